"""Closed forms and runs agree: every metric that has a formula, for all eight elections.

The formulas share no code with the protocols. Which metrics must have a formula is listed here, so
that a form that goes missing is noticed and not taken for agreement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from types import MappingProxyType

import pytest

from hustings.core.choice import MemberId
from hustings.core.election import Election
from hustings.lab.closed_forms.registry import evaluate
from hustings.lab.figures.comparison import METRICS, compare
from hustings.protocols.broadcast import Broadcast
from hustings.protocols.bully import Bully
from hustings.protocols.bully_assistant import BullyAssistant
from hustings.protocols.bully_grant import BullyGrant
from hustings.protocols.bully_group import BullyGroup
from hustings.protocols.bully_map import BullyMap
from hustings.protocols.registry import COMPARED, classes
from hustings.protocols.ring import Ring
from hustings.protocols.stable import Stable
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.scenarios import Scenario

Ids = tuple[MemberId, ...]

EVERYTHING = frozenset(METRICS)
LEADER_ONLY = frozenset({"leader"})
LARGEST = 64

by_kind = pytest.mark.parametrize("kind", classes(COMPARED), ids=lambda kind: kind.about.name)


def claimed(
    kind: type[Election], n: int, live: Ids, openers: Ids, start: bool, K: int, unanimous: bool
) -> frozenset[str]:
    """The metrics for which a closed form must exist."""
    several, best = len(openers) > 1, live[-1]
    if start and kind in (BullyGroup, BullyAssistant):
        return LEADER_ONLY  # nobody has named a group or an assistant
    if several and kind is Stable and (start or not unanimous):
        return LEADER_ONLY
    if several and kind is BullyGroup and best < n - K:
        return LEADER_ONLY
    if several and kind is BullyMap and best in openers:
        return LEADER_ONLY | {"election_messages"}
    return EVERYTHING


def agree(
    kind: type[Election],
    n: int,
    crashed: Ids,
    openers: Ids,
    *,
    start: bool = False,
    delay: float = 1.0,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Play once and compare with the forms, one metric after the other."""
    top = n if start else n - 1
    live = tuple(j for j in range(1, top + 1) if j not in crashed)
    unanimous = kind.Settings.parse(settings).unanimous
    if unanimous and not start:
        openers = live  # a crash that not all have noticed is none
    experiment = Experiment(
        kind,
        n,
        kind.Settings.parse({"delta": delay, **settings}),
        network=Network(Fixed(delay)),
        scenario=Scenario("start", crashed, initiators=openers)
        if start
        else Scenario("leader-crash", crashed, detectors=openers),
    )
    (row,) = compare([experiment])
    K = settings.get("K", 2)
    assert isinstance(K, int)
    case = (kind.about.name, n, crashed, openers, start, delay, settings)
    assert set(row.formula) == claimed(kind, n, live, openers, start, K, unanimous), case
    for metric, value in row.formula.items():
        assert row.counted[metric] == value, (*case, metric)
    assert row.agrees, case
    assert row.formula["leader"] == live[-1], case
    assert (row.ended, set(row.verdicts.values())) == ("quiescent", {"holds"}), case


def subsets(members: Iterable[int], least: int = 0) -> Iterator[Ids]:
    pool = list(members)
    for size in range(least, len(pool) + 1):
        yield from combinations(pool, size)


def casts(n: int, start: bool) -> Iterator[tuple[Ids, Ids]]:
    """Every set of dead members with every set of live openers."""
    top = n if start else n - 1
    for crashed in subsets(range(1, top + 1)):
        live = [j for j in range(1, top + 1) if j not in crashed]
        for openers in subsets(live, least=1):
            yield crashed, openers


# One detector: every n, every d


def detecting(kind: type[Election], d: int) -> Ids:
    """Who is told: one member, or by default all where a crash must be noticed by all."""
    return () if kind.Settings().unanimous else (d,)


def told_apart(kind: type[Election], n: int, d: int) -> None:
    """Without the comparison's own reading of an experiment: texts here, a run there."""
    forms = evaluate(kind.about.name, {"n": str(n), "d": str(d)})
    scenario = Scenario("leader-crash", detectors=detecting(kind, d))
    counts = play(Experiment(kind, n, kind.Settings(), scenario=scenario), 0).metrics
    assert forms.corrected == {metric: counts[metric] for metric in METRICS}, (n, d)
    assert not forms.notes


def detectors(n: int) -> Iterable[int]:
    """All; in a large group those at the ends and in the middle."""
    if n <= 24:
        return range(1, n)
    return (1, 2, n // 2, n - 3, n - 2, n - 1)


@by_kind
def test_every_group_and_every_detector(kind: type[Election]) -> None:
    for n in range(2, LARGEST + 1):
        for d in detectors(n):
            told_apart(kind, n, d)


@pytest.mark.soak
@by_kind
def test_every_group_and_every_detector_of_large_groups(kind: type[Election]) -> None:
    for n in range(25, LARGEST + 1):
        for d in range(1, n):
            told_apart(kind, n, d)


# Further dead, several detectors, a group that starts


@by_kind
@pytest.mark.parametrize("start", [False, True], ids=["leader-crash", "start"])
def test_any_dead_and_any_openers_of_small_groups(kind: type[Election], start: bool) -> None:
    for n in range(1 if start else 2, 7):
        for crashed, openers in casts(n, start):
            agree(kind, n, crashed, openers, start=start)


@pytest.mark.soak
@by_kind
@pytest.mark.parametrize("start", [False, True], ids=["leader-crash", "start"])
def test_any_dead_and_any_openers_of_larger_groups(kind: type[Election], start: bool) -> None:
    for n in (7, 8):
        for crashed, openers in casts(n, start):
            agree(kind, n, crashed, openers, start=start)


@by_kind
@pytest.mark.parametrize("n", [9, 16, 33, 64])
def test_the_best_few_are_dead(kind: type[Election], n: int) -> None:
    for m in sorted({1, 2, n // 4, n // 2, n - n // 4, n - 4, n - 3, n - 2, n - 1}):
        for d in sorted({1, (m + 1) // 2, max(1, m - 1), m}):
            agree(kind, n, tuple(range(m + 1, n)), (d,))


@by_kind
@pytest.mark.parametrize("n", [12, 31, 64])
def test_any_other_members_are_dead(kind: type[Election], n: int) -> None:
    """Every third, every fifth, the lower half, all but three, with detectors at both ends."""
    middle = range(2, n - 1)
    for crashed in (
        tuple(middle[::3]),
        tuple(middle[::5]),
        tuple(range(2, n // 2)),
        tuple(j for j in middle if j != n // 2),
    ):
        for d in (1, n // 2 + 1 if n // 2 + 1 not in crashed else 1, n - 1):
            agree(kind, n, crashed, (d,))
        agree(kind, n, (*crashed, n - 1), (1,))


@by_kind
@pytest.mark.parametrize("n", [8, 21, 64])
def test_several_detect_at_once(kind: type[Election], n: int) -> None:
    crowds = [(1, 2), (1, n - 1), (1, n // 2, n - 2), (2, 3, n - 1), tuple(range(1, n))]
    for openers in crowds:
        agree(kind, n, (), openers)
        agree(kind, n, (n - 1,), tuple(j for j in openers if j != n - 1))


@by_kind
@pytest.mark.parametrize("n", [1, 2, 3, 8, 21, 64])
def test_a_group_starts(kind: type[Election], n: int) -> None:
    for openers in {(1,), (n,), ((n + 1) // 2,), tuple(sorted({1, n})), tuple(range(1, n + 1))}:
        agree(kind, n, (), openers, start=True)
        if n > 1 and n not in openers:
            agree(kind, n, (n,), openers, start=True)


@pytest.mark.parametrize("start", [False, True], ids=["leader-crash", "start"])
@pytest.mark.parametrize("n", [7, 8, 10, 12])
def test_bully_openers_around_the_winner(n: int, start: bool) -> None:
    """Several detectors of which one is the winner, with every set of the dead just below it."""
    top = n if start else n - 1
    for crashed in subsets(range(top - 4, top)):
        live = [j for j in range(1, top + 1) if j not in crashed]
        for lowest in live[:-1]:
            for more in subsets(live[-3:-1]):
                agree(Bully, n, crashed, tuple(sorted({lowest, *more, top})), start=start)
                agree(Bully, n, crashed, tuple(sorted({lowest, *more})), start=start)


# Settings


TIMERS: list[tuple[type[Election], dict[str, object]]] = [
    (Broadcast, {"T": 9.0}),
    (Broadcast, {"combined": True}),
    (Ring, {"T": 400.0}),
    (Ring, {"T": "inf"}),
    (Bully, {"T1": 3.0}),
    (Bully, {"T1": 2.5, "T2": 40.0}),
    (BullyMap, {"T": 5.0}),
    (BullyMap, {"T": 2.75, "T2": 30.0}),
    (BullyGrant, {"T1": 3.0, "W": 2.0}),
    (BullyGrant, {"W": 0.0}),
    (BullyGroup, {"T1": 3.0, "T2": 7.0}),
    (BullyGroup, {"T1": 3.5}),
    (BullyGroup, {"K": 1}),
    (BullyGroup, {"K": 3, "T2": 6.0}),
    (BullyGroup, {"K": 9}),
    (Stable, {"T1": 3.0}),
    (Stable, {"belief": "silent"}),
    (Stable, {"belief": "silent", "T1": 3.0}),
    (BullyAssistant, {"T1": 3.0, "T2": 7.0}),
    (BullyAssistant, {"T1": 2.25}),
]


@pytest.mark.parametrize("kind, settings", TIMERS)
def test_other_settings(kind: type[Election], settings: dict[str, object]) -> None:
    for n in (2, 3, 5):
        for crashed, openers in casts(n, start=False):
            agree(kind, n, crashed, openers, settings=settings)
    for n in (12, 64):
        for m in (n // 2, n - 2, n - 1):
            for d in (1, m - 1, m):
                agree(kind, n, tuple(range(m + 1, n)), (d,), settings=settings)


@by_kind
@pytest.mark.parametrize("delay", [0.25, 0.5, 3.0])
def test_time_scales_with_the_delay(kind: type[Election], delay: float) -> None:
    for crashed, openers in casts(5, start=False):
        agree(kind, 5, crashed, openers, delay=delay)
    for n in (16, 64):
        for m in (n // 2, n - 1):
            for d in (1, m - 1, m):
                agree(kind, n, tuple(range(m + 1, n)), (d,), delay=delay)


@pytest.mark.parametrize(
    "kind, settings",
    [
        (Bully, {"T1": 1.5}),
        (BullyMap, {"T": 2.5}),
        (BullyGrant, {"T1": 2.0, "W": 0.5}),
        (BullyGroup, {"T1": 1.5, "T2": 4.0}),
        (Stable, {"T1": 1.5}),
        (BullyAssistant, {"T1": 1.5, "T2": 4.0}),
    ],
)
def test_timers_given_in_time_and_not_in_delays(
    kind: type[Election], settings: dict[str, object]
) -> None:
    for crashed, openers in casts(5, start=False):
        agree(kind, 5, crashed, openers, delay=0.5, settings=settings)


@by_kind
@pytest.mark.parametrize("delay", [0.1, 0.3, 0.7, 1.1])
def test_a_delay_that_is_no_binary_fraction(kind: type[Election], delay: float) -> None:
    """Timers of two delays are still just long enough for a question and its answer."""
    for n, crashed, d in ((8, (), 1), (8, (), 7), (8, (7,), 1), (8, (5, 7), 6)):
        scenario = Scenario("leader-crash", crashed, detecting(kind, d))
        config = kind.Settings.parse({"delta": delay})
        network = Network(Fixed(delay))
        metrics = play(Experiment(kind, n, config, network=network, scenario=scenario), 0).metrics
        texts = {"n": str(n), "d": str(d), "crashed": ",".join(str(j) for j in crashed)}
        forms = dict(evaluate(kind.about.name, texts).corrected)
        assert metrics.pop("time") == pytest.approx(forms.pop("time") * delay, rel=1e-6)
        assert metrics == forms, (n, crashed, d)
