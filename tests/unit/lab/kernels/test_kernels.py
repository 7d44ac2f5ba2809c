"""The kernels: tiny groups worked out by hand, exact values, cuts, limits, and two ways to one run.

The machine plays everything event by event; the quicker kernels toss the same coins, so both must
come to the same numbers in every run.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from hustings.core.errors import BadInput
from hustings.lab.kernels.announce import columns as col
from hustings.lab.kernels.announce import play as announce
from hustings.lab.kernels.announce.parameters import AnnounceParameters
from hustings.lab.kernels.announce.play import columns_of, play, play_machine
from hustings.lab.kernels.announce.sleep_and_loss import Sleep, first_naps, nap
from hustings.lab.kernels.counter import below, branch, limit, message_key, root
from hustings.lab.kernels.results import Columns

LEADERS = ("al", "le-a", "le-s", "le-m")
EVERY = ("sup", *LEADERS)


def run_key(seed: int, run: int) -> np.uint64:
    """Called from here, a word comes back as a plain number."""
    return np.uint64(branch(root(seed), np.uint64(run)))


def wakes(seed: int, run: int, members: int) -> list[float]:
    """When the members of one run wake, with T_S = 1."""
    slept, at = np.zeros(members), np.zeros(members, np.int64)
    first_naps(run_key(seed, run), Sleep(1e8, 0.0), slept, at)
    return [float(tick) / 1e8 for tick in at]


def values(found: Columns, run: int = 0) -> dict[str, float]:
    return {name: float(column[run]) for name, column in found.metrics.items()}


# By hand


@pytest.mark.parametrize("protocol", EVERY)
def test_a_group_of_one_speaks_once(protocol: str) -> None:
    found = values(play(AnnounceParameters(protocol=protocol, members=1), 4, 7, 8))
    (at,) = wakes(4, 7, 1) if protocol in ("sup", "le-s", "le-m") else (0.0,)
    assert found["tmax"] == found["time"] == pytest.approx(at)
    assert found["num_msgs"] == found["sent_by_tmax"] == found["first_round"] == 1
    assert (found["leader"], found["simultaneous_leaders_max"]) == (1, 1)
    if protocol == "sup":
        assert found["t_halt"] == found["tmax"]
    else:
        assert found["leadership_delay"] == pytest.approx(at + 0.1)
        assert (found["rounds"], found["avg_rounds"]) == (1, 1)


def test_two_members_of_le_s_without_loss() -> None:
    """The better one speaks when it wakes; the other before it, or not more than Delta later."""
    found = play(AnnounceParameters(protocol="le-s", members=2), 9, 0, 300)
    seen = set()
    for run in range(300):
        worse, best = wakes(9, run, 2)
        got = values(found, run)
        assert got["tmax"] == pytest.approx(best)
        sends = 1.0 if best + 0.1 < worse else 2.0
        again = worse + 1 < best + 0.1  # it repeats itself before it can hear the better one
        seen.add((sends, again, worse < best))
        assert got["num_msgs"] == got["messages"] == sends + again
        assert got["first_round"] == sends
        assert got["sent_by_tmax"] == 1 + (worse <= best) + (worse + 1 <= best)
        assert (got["rounds"], got["avg_rounds"], got["leader"]) == (1, 1, 2)
        assert got["simultaneous_leaders_max"] == sends
        led = (0.1 + (best + 0.1 - worse if sends == 2 else 0)) / (best + 0.1)
        assert got["simultaneous_leaders"] == pytest.approx(led)
    assert {(1.0, False, False), (2.0, False, False), (2.0, False, True)} <= seen


def test_two_members_of_le_m_and_sup_without_loss() -> None:
    le_m, sup = (
        play(AnnounceParameters(protocol=name, members=2), 9, 0, 200) for name in ("le-m", "sup")
    )
    for run in range(200):
        first, second = sorted(wakes(9, run, 2))
        spoken = 2.0 if second <= first + 0.1 else 1.0
        for got in (values(le_m, run), values(sup, run)):
            assert got["num_msgs"] == got["first_round"] == spoken
        assert values(le_m, run)["tmax"] == pytest.approx(first)
        assert values(le_m, run)["leader"] == 1 + wakes(9, run, 2).index(first)
        got = values(sup, run)
        last = second if spoken == 2 else first
        assert got["tmax"] == pytest.approx(last)
        assert got["t_halt"] == pytest.approx(second if spoken == 2 else first + 0.1)
        assert got["leader"] == pytest.approx(
            1 + wakes(9, run, 2).index(first) if spoken == 1 else nan, nan_ok=True
        )


@pytest.mark.parametrize("protocol", ["al", "le-a"])
def test_announcements_at_once_wait_for_the_coins(protocol: str) -> None:
    """Three members: when each first hears the best is read off the coins themselves."""
    group = AnnounceParameters(protocol=protocol, members=3, loss_model="uncorrelated", loss=0.6)
    found = play(group, 2, 0, 200)
    bar = np.uint64(limit(0.6))
    for run in range(200):
        key = run_key(2, run)
        firsts = [
            next(n for n in range(1, 999) if not below(np.uint64(message_key(key, 2, n)), k, bar))
            for k in (0, 1)
        ]
        got = values(found, run)
        assert got["rounds"] == max(firsts)
        assert got["avg_rounds"] == sum(firsts) / 2
        assert got["tmax"] == pytest.approx(max(firsts) - 1)
        if protocol == "al":
            assert got["num_msgs"] == 3 * max(firsts)


@pytest.mark.parametrize("members", [2, 10, 500])
def test_exact_values_without_loss(members: int) -> None:
    for protocol in ("al", "le-a"):
        found = play(AnnounceParameters(protocol=protocol, members=members), 1, 0, 3)
        for run in range(3):
            got = values(found, run)
            assert (got["tmax"], got["rounds"], got["avg_rounds"]) == (0, 1, 1)
            assert got["num_msgs"] == got["first_round"] == got["messages"] == members
            assert got["leadership_delay"] == pytest.approx(0.1)
            assert got["simultaneous_leaders_max"] == got["simultaneous_leaders"] == members


def test_sleeps_of_both_laws() -> None:
    assert nap(root(1), 3, Sleep(0.0, 0.0)) == 0.0
    key = root(1)
    even = np.array([nap(key, member, Sleep(2.0, 0.0)) for member in range(5000)])
    late = np.array([nap(key, member, Sleep(2.0, 5.0)) for member in range(5000)])
    assert 0 <= even.min() < even.max() < 2
    assert 0 <= late.min() < late.max() <= 2
    assert even.mean() == pytest.approx(1.0, abs=0.04)
    assert late.mean() == pytest.approx(2 * (1 / (1 - np.exp(-5)) - 1 / 5), abs=0.03)
    assert nap(key, 0, Sleep(1.0, 500.0)) == pytest.approx(1.0, abs=0.05)


# The same runs however they are cut and played

LOSSES: list[dict[str, Any]] = [
    {"loss_model": "none"},
    {"loss_model": "correlated", "loss": 0.4},
    {"loss_model": "uncorrelated", "loss": 0.4},
    {"loss_model": "uncorrelated", "loss": 0.3, "collision": 0.02},
    {"loss_model": "correlated", "loss": 0.3, "collision": 0.02},
]


def same(one: Columns, other: Columns) -> None:
    assert set(one.metrics) == set(other.metrics)
    for name, column in one.metrics.items():
        np.testing.assert_array_equal(column, other.metrics[name], name)
    np.testing.assert_array_equal(one.cut, other.cut)


@pytest.mark.parametrize("protocol", EVERY)
@pytest.mark.parametrize("T_L", [inf, 2.0])
def test_cuts_cannot_be_seen(protocol: str, T_L: float) -> None:
    group = AnnounceParameters(
        protocol=protocol, members=9, T_L=T_L, loss_model="uncorrelated", loss=0.4
    )
    whole = play(group, 3, 0, 60)
    for first, last in ((0, 1), (17, 18), (1, 40), (40, 60)):
        part = play(group, 3, first, last)
        cut = {name: column[first:last] for name, column in whole.metrics.items()}
        same(part, Columns(cut, whole.cut[first:last]))
    assert not np.array_equal(whole.metrics["tmax"], play(group, 4, 0, 60).metrics["tmax"]) or (
        protocol in ("al", "le-a")
    )


@pytest.mark.parametrize("protocol", LEADERS)
@pytest.mark.parametrize(
    "delay, T_S", [(0.1, 1.0), (0.0, 1.0), (1.7, 0.8), (2.0, 1.0), (3e-8, 1e-7)]
)
@pytest.mark.parametrize("key", ["absolute", "relative"])
def test_the_machine_comes_to_the_same_runs(
    protocol: str, delay: float, T_S: float, key: str
) -> None:
    """A delay of whole periods fills the ring to the last place; in a few ticks much coincides."""
    for loss in LOSSES:
        if loss.get("collision") and not delay:
            continue
        for members in (2, 3, 14):
            group = AnnounceParameters(
                protocol=protocol,
                members=members,
                delay=delay,
                T_S=T_S,
                key=key,
                **loss,
            )
            rows = np.zeros((40, col.COLUMNS))
            play_machine(group, 5, 0, rows)
            same(play(group, 5, 0, 40), columns_of(group, rows))


def test_leaders_that_expire_make_a_difference() -> None:
    lasting = AnnounceParameters(protocol="le-s", members=20, loss_model="uncorrelated", loss=0.4)
    for_ever, short = (play(replace(lasting, T_L=T_L), 5, 0, 400) for T_L in (inf, 1.0))
    np.testing.assert_array_equal(for_ever.metrics["tmax"], short.metrics["tmax"])
    assert short.metrics["num_msgs"].mean() > 1.2 * for_ever.metrics["num_msgs"].mean()
    assert np.isnan(short.metrics["leader"]).any()


@pytest.mark.parametrize("protocol", LEADERS)
def test_large_groups_whose_leaders_expire(protocol: str) -> None:
    """Many blocks of members, most of which an announcement passes over."""
    group = AnnounceParameters(
        protocol=protocol, members=20_000, T_L=3.0, loss_model="uncorrelated", loss=0.4
    )
    found = values(play(group, 7, 0, 1))
    assert 8 <= found["rounds"] <= 40
    assert found["avg_rounds"] == pytest.approx(1 / 0.6, abs=0.05)
    assert found["tmax"] <= found["rounds"]


def test_a_full_table_of_pairs_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """And changes nothing; at its largest it is refused in a sentence."""
    group = AnnounceParameters(
        protocol="le-m", members=60, T_L=1.0, loss_model="uncorrelated", loss=0.5
    )
    whole = play(group, 2, 0, 20)
    monkeypatch.setattr(AnnounceParameters, "pairs", 64)
    same(whole, play(group, 2, 0, 20))
    monkeypatch.setattr(announce, "MOST_PAIRS", 64)
    with pytest.raises(BadInput, match="leaders in all"):
        play(group, 2, 0, 20)


# Limits


@pytest.mark.parametrize("protocol", LEADERS)
@pytest.mark.parametrize("T_L", [inf, 3.0])
def test_a_run_that_is_given_up_says_so(protocol: str, T_L: float) -> None:
    group = AnnounceParameters(
        protocol=protocol,
        members=6,
        T_L=T_L,
        loss_model="uncorrelated",
        loss=0.9,
        max_rounds=12,
    )
    found = play(group, 1, 0, 200)
    assert 0 < found.cut.sum() < 200
    for column in found.metrics.values():
        assert np.isnan(column[found.cut]).all()
    assert np.nanmax(found.metrics["rounds"]) <= 12
    free = play(
        AnnounceParameters(protocol=protocol, members=6, T_L=T_L, loss_model="none"), 1, 0, 10
    )
    assert not free.cut.any()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"protocol": "bully"}, "unknown protocol 'bully'"),
    ({"loss_model": "some"}, "unknown loss model 'some'"),
    ({"law": "normal"}, "unknown law"),
    ({"key": "own"}, "unknown key"),
    ({"members": 0}, "members must lie between 1 and 1,000,000, not 0"),
    ({"members": 1_000_001}, "members must lie"),
    ({"max_rounds": 0}, "max_rounds must lie"),
    ({"T_A": 0.0}, "T_A must lie between 1e-06"),
    ({"T_S": -1.0}, "T_S must lie between 0"),
    ({"T_S": nan}, "T_S must lie"),
    ({"delay": inf}, "delay must lie"),
    ({"T_L": 0.0}, "T_L must be at least 1e-06, not 0"),
    ({"T_L": nan}, "T_L must be at least 1e-06, not nan"),
    ({"T_L": 1e9}, "T_L must be infinite or at most"),
    ({"lam": 0.0}, "lam must lie"),
    ({"loss_model": "correlated", "loss": 1.5}, "loss must lie in"),
    ({"loss_model": "correlated", "collision": -0.1}, "collision must lie in"),
    ({"loss": 0.5}, "loss model 'none' loses nothing"),
    ({"loss_model": "uncorrelated", "loss": 1.0}, "no member ever hears the leader"),
    ({"loss_model": "uncorrelated", "collision": 0.1, "delay": 0.0}, "collision needs a delay"),
    ({"members": 10**6, "delay": 1e3}, "messages under way"),
    ({"members": 10**6, "T_L": 1.0, "T_S": 1e3}, "wake-ups would be planned"),
]


@pytest.mark.parametrize("changed, words", BAD, ids=[words for _, words in BAD])
def test_bad_settings_get_a_sentence(changed: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {"protocol": "le-s", "members": 8}
    with pytest.raises(BadInput) as refused:
        AnnounceParameters(**usual | changed)
    assert words in str(refused.value)


@pytest.mark.parametrize("first, last", [(-1, 2), (2, 2), (3, 2), (0, 2**60), (0, 10**8)])
def test_bad_run_numbers_get_a_sentence(first: int, last: int) -> None:
    with pytest.raises(BadInput, match="runs"):
        play(AnnounceParameters(protocol="al", members=3), 1, first, last)
