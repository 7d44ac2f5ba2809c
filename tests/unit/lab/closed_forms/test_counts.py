"""Every closed form against an election that is run and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest

from hustings.lab.closed_forms import (
    broadcast,
    bully,
    bully_assistant,
    bully_grant,
    bully_group,
    bully_map,
    ring,
    stable,
)
from hustings.lab.closed_forms.counted import Counts, GroupSetting
from tests.unit.lab.closed_forms import counting, rings

SMALL = range(2, 8)


def settings(start: bool = False, largest: int = 7) -> Iterator[GroupSetting]:
    """Every set of further dead members and every single detector, for small groups."""
    for n in range(1 if start else 2, largest + 1):
        everybody = range(1, n + 1 if start else n)
        for size in range(1, len(everybody) + 1):
            for live in combinations(everybody, size):
                for d in live:
                    yield GroupSetting(n, live, (d,), start)


def crowds(largest: int = 6, start: bool = False) -> Iterator[GroupSetting]:
    """Every set of further dead members and every set of detectors, for small groups."""
    for setting in settings(start, largest):
        if setting.d == setting.live[0]:
            for size in range(1, len(setting.live) + 1):
                for detectors in combinations(setting.live, size):
                    yield GroupSetting(setting.n, setting.live, detectors, start)


def roles(tally: counting.Tally, **kinds: str) -> Counts:
    """A tally under the names of the closed forms; all other kinds are `other`."""
    listed = {role: names.split() for role, names in kinds.items()}
    known = [name for names in listed.values() for name in names]
    totals = {role: sum(tally.kinds[name] for name in names) for role, names in listed.items()}
    return Counts(
        totals["election"],
        totals["answer"],
        totals["coordinator"],
        sum(count for name, count in tally.kinds.items() if name not in known),
        Fraction(tally.last),
        tally.leader,
    )


def same(expected: Counts, counted: Counts) -> bool:
    """Equal wherever a closed form is claimed, and something is claimed."""
    pairs = zip(expected.metrics().values(), counted.metrics().values(), strict=True)
    return all(form is None or form == count for form, count in pairs)


BULLY = {"election": "ELECTION", "answer": "OK", "coordinator": "COORDINATOR"}
MAP = {"election": "ELECTION", "answer": "OK", "coordinator": "LEADER"}
STABLE = {"election": "PREPARE", "answer": "ACK", "coordinator": "COMMIT"}
ASSISTANT = {"election": "ELECTION", "answer": "OK", "coordinator": "COORDINATOR I_AM_LEADER"}
BROADCAST = {"election": "START", "answer": "ID", "coordinator": ""}

Twin = Callable[[GroupSetting], Counts]


def _stable(s: GroupSetting) -> counting.Tally:
    if s.start or not s.flags.get("unanimous", True):
        return counting.stable(s.n, s.live, s.d, start=s.start)
    return counting.stable_told(s.n, s.live)


TWINS: dict[str, tuple[Callable[[GroupSetting], Counts], Twin]] = {
    "broadcast": (
        broadcast.counts,
        lambda s: roles(counting.broadcast(s.live, s.detectors, False), **BROADCAST),
    ),
    "bully": (
        bully.counts,
        lambda s: roles(counting.bully(s.n, s.live, s.detectors, start=s.start), **BULLY),
    ),
    "bully-map": (
        bully_map.counts,
        lambda s: roles(counting.bully_map(s.n, s.live, s.detectors, start=s.start), **MAP),
    ),
    "bully-grant": (
        bully_grant.counts,
        lambda s: roles(counting.bully_grant(s.n, s.live, s.detectors), **BULLY),
    ),
    "bully-group": (
        bully_group.counts,
        lambda s: roles(counting.bully_group(s.n, s.live, s.detectors), **BULLY),
    ),
    "stable": (
        stable.counts,
        lambda s: roles(_stable(s), **STABLE),
    ),
    "bully-assistant": (
        bully_assistant.counts,
        lambda s: roles(counting.bully_assistant(s.n, s.live, s.detectors), **ASSISTANT),
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_one_detector_and_any_dead(name: str) -> None:
    form, twin = TWINS[name]
    for setting in settings():
        expected = form(setting)
        assert None not in expected.metrics().values(), setting
        assert same(expected, twin(setting)), setting


@pytest.mark.parametrize("name", TWINS)
def test_several_detectors_and_any_dead(name: str) -> None:
    form, twin = TWINS[name]
    claimed = 0
    for setting in crowds():
        expected = form(setting)
        if expected.messages is not None:
            claimed += not setting.single
            assert same(expected, twin(setting)), setting
    assert claimed > 0


def test_one_notice_is_enough_where_silence_gives_consent() -> None:
    form, twin = TWINS["stable"]
    for told in settings():
        setting = replace(told, flags={"unanimous": False})
        assert same(form(setting), twin(setting)), setting
    several = GroupSetting(5, (1, 2, 3, 4), (1, 2), flags={"unanimous": False})
    assert (form(several).messages, form(several).leader) == (None, 4)


@pytest.mark.parametrize("name", ["broadcast", "bully", "bully-map", "bully-grant", "stable"])
def test_a_group_starts(name: str) -> None:
    form, twin = TWINS[name]
    for setting in settings(start=True, largest=6):
        expected = form(setting)
        assert None not in expected.metrics().values(), setting
        assert same(expected, twin(setting)), setting


def test_any_set_of_members_starts_or_detects_a_bully_election() -> None:
    """The best member may win before the others have heard of the election."""
    form, twin = TWINS["bully"]
    for start in (False, True):
        for setting in crowds(largest=6, start=start):
            expected = form(setting)
            assert None not in expected.metrics().values(), setting
            assert same(expected, twin(setting)), setting


@pytest.mark.parametrize("name", ["bully-group", "bully-assistant"])
def test_without_a_leader_there_is_no_group_and_no_assistant(name: str) -> None:
    form, _ = TWINS[name]
    expected = form(GroupSetting(4, (1, 2, 3, 4), (1,), start=True))
    assert (expected.messages, expected.leader) == (None, 4)
    assert expected.why


@pytest.mark.parametrize("name", TWINS)
def test_all_detectors_of_larger_groups(name: str) -> None:
    form, twin = TWINS[name]
    for n in (16, 33, 64):
        live = tuple(range(1, n))
        for d in (1, 2, n // 2, n - 3, n - 2, n - 1):
            setting = GroupSetting(n, live, (d,))
            assert same(form(setting), twin(setting)), setting


def test_longer_timers() -> None:
    timers = {"T1": 3, "T2": 7, "T": 5, "W": 2}
    for plain in settings(largest=6):
        s = GroupSetting(plain.n, plain.live, plain.detectors, timers=timers)
        who = (s.n, s.live, s.detectors)
        for form, tally, kinds in (
            (bully.counts, counting.bully(*who, T1=3), BULLY),
            (bully_map.counts, counting.bully_map(*who, T=5), MAP),
            (bully_grant.counts, counting.bully_grant(*who, T1=3, window=2), BULLY),
            (bully_group.counts, counting.bully_group(*who, T1=3, T2=7), BULLY),
            (stable.counts, counting.stable_told(s.n, s.live, T1=3), STABLE),
            (bully_assistant.counts, counting.bully_assistant(*who, T1=3, T2=7), ASSISTANT),
        ):
            assert same(form(s), roles(tally, **kinds)), (form, s)


@pytest.mark.parametrize("K", [1, 3, 9])
def test_other_sizes_of_the_coordination_group(K: int) -> None:
    for plain in settings():
        s = GroupSetting(plain.n, plain.live, plain.detectors, numbers={"K": K})
        tally = counting.bully_group(s.n, s.live, s.detectors, K=K)
        assert same(bully_group.counts(s), roles(tally, **BULLY)), s


def test_broadcast_with_the_id_in_the_start() -> None:
    for plain in crowds(largest=5):
        s = GroupSetting(plain.n, plain.live, plain.detectors, flags={"combined": True})
        tally = counting.broadcast(s.live, s.detectors, combined=True)
        assert same(broadcast.counts(s), roles(tally, **BROADCAST)), s


def test_ring_with_any_initiators_and_any_dead() -> None:
    for s in crowds():
        expected = ring.counts(s)
        if len(s.live) > 1:
            played = rings.play(s.live, s.detectors, rings.CACHED)
            assert (expected.messages, expected.time) == (played.messages, played.time), s
            assert played.leaders == {expected.leader}
        else:
            assert (expected.messages, expected.time) == (0, 0)


@pytest.mark.parametrize("n", range(3, 20))
def test_the_second_highest_crashes_after_its_answers(n: int) -> None:
    for T1, T2 in ((2, 10), (3, 5)):
        expected = bully.second_highest_crashes(n, T1, T2)
        tally = counting.bully(n, range(1, n), [1], T1, T2, dies_at={n - 1: 2})
        assert same(expected, roles(tally, **BULLY))


@pytest.mark.parametrize("n", range(3, 20))
def test_all_members_detect(n: int) -> None:
    tally = counting.bully(n, range(1, n), range(1, n))
    assert same(bully.all_detect(n), roles(tally, **BULLY))
    assert same(
        bully.counts(GroupSetting(n, tuple(range(1, n)), tuple(range(1, n)))), bully.all_detect(n)
    )
