"""Groups in an environment: laws for each link, pauses, bytes, and a run that goes on otherwise."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from statistics import fmean

import pytest

from hustings.core.errors import BadInput
from hustings.core.streams import Stream
from hustings.sim.delay import Delay, Exponential, Lognormal, Uniform
from hustings.sim.environment import parse_environment
from hustings.testing import Group, NotQuiet
from hustings.testing.surroundings import LinkLaws, StreamRandom, longer

NAMES = ("a", "b", "c")
PAUSES = """
[delay]
within = "1ms"
[pauses]
rate = "30/m"
length = "exponential:200ms"
longest = "800ms"
"""
SITES = """
[sites]
x = 2
y = 1
[delay]
within = "1ms"
between."x,y" = "40ms"
[loss]
rate = "2%"
burst = 5
"""


def living(text: str, seed: int = 3, protocol: str = "le-s") -> Group:
    group = Group(seed=seed, environment=parse_environment(text), protocol=protocol)
    for name in NAMES:
        group.join(name)
    return group


def pauses_of(group: Group) -> list[tuple[str, float, float]]:
    """Each pause that has ended: whose it was, when it began, how long it took."""
    found, since = [], {}
    for each in group.changes:
        if each.what == "paused":
            since[each.member] = each.time
        elif each.what == "resumed":
            began = since.pop(each.member)
            found.append((each.member, began, each.time - began))
    return found


def test_laws_hold_for_each_link() -> None:
    laws = LinkLaws(parse_environment(SITES))
    near, far = Stream(1), Stream(2)
    assert {laws.way(near, 0.0, 1, 2) for _ in range(10)} == {0.001}
    assert {laws.way(far, 0.0, 1, 3) for _ in range(10)} == {0.04}
    lost = [laws.lost(near, 0.0, 1, 2) for _ in range(200_000)]
    assert fmean(lost) == pytest.approx(0.02, abs=0.003)
    bursts = sum(now and not before for before, now in pairwise(lost))
    assert sum(lost) / bursts == pytest.approx(5.0, rel=0.1)


def test_one_link_does_not_depend_on_another() -> None:
    alone, beside = (LinkLaws(parse_environment(SITES)) for _ in range(2))
    one, two, other = Stream(5), Stream(5), Stream(6)
    first = [alone.lost(one, 0.0, 1, 2) for _ in range(5000)]
    second = []
    for _ in range(5000):
        second.append(beside.lost(two, 0.0, 1, 2))
        beside.lost(other, 0.0, 2, 3)
    assert first == second
    assert any(first)


def test_a_stream_behind_the_interface_of_random() -> None:
    rng, stream = StreamRandom(), Stream(4)
    drawn = [rng.upon(stream).gauss(2.0, 3.0) for _ in range(20_000)]
    assert fmean(drawn) == pytest.approx(2.0, abs=0.1)
    again = Stream(4)
    assert [rng.upon(again).gauss(2.0, 3.0) for _ in range(20_000)] == drawn
    assert {rng.upon(stream).randrange(3) for _ in range(100)} == {0, 1, 2}


def test_members_pause_as_the_law_says() -> None:
    with living(PAUSES) as group:
        group.advance(600.0)
        found = pauses_of(group)
    lengths = [length for _, _, length in found]
    assert len(found) == pytest.approx(3 * 600.0 * 0.5 / 1.1, rel=0.1)  # half of one a second
    assert max(lengths) == pytest.approx(0.8)
    assert fmean(lengths) == pytest.approx(0.2 * (1 - 2.718281828**-4), rel=0.1)


def test_equal_seeds_meet_equal_pauses_whatever_runs() -> None:
    stories = []
    for protocol in ("le-s", "bully"):
        with living(PAUSES, protocol=protocol) as group:
            group.advance(30.0)
            stories.append({(name, length) for name, _, length in pauses_of(group)})
    assert len(stories[0] & stories[1]) >= len(stories[0]) - 3  # those at the end may be cut off


def test_pauses_are_held_and_begun_on_purpose() -> None:
    with living(PAUSES) as group:
        group.inside.hold_pauses(True)
        group.advance(60.0)
        assert pauses_of(group) == []
        lengths = []
        for _ in range(200):
            group.inside.begin_pause("b")
            assert group.inside.paused == ["b"]
            group.advance(1.0)  # more than the longest pause
        lengths = [length for _, _, length in pauses_of(group)]
        assert len(lengths) == 200
        assert fmean(lengths) == pytest.approx(0.2 * (1 - 2.718281828**-4), rel=0.2)
        group.inside.hold_pauses(False)
        group.advance(60.0)
        assert {name for name, _, _ in pauses_of(group)} == {"a", "b", "c"}


def test_a_pause_of_who_is_killed_ends_with_it() -> None:
    with living(PAUSES, seed=4) as group:
        while not group.inside.paused:
            group.advance(0.01)
        name = group.inside.paused[0]
        group.kill(name)
        group.advance(5.0)
        group.restart(name)
        group.advance(60.0)
        assert name in {each for each, began, _ in pauses_of(group) if began > 6.0}


def test_reseeding_keeps_the_past_and_changes_the_future() -> None:
    stories = []
    for seed in (None, 1, 2, 1):
        with living(PAUSES) as group:
            group.advance(20.0)
            if seed is not None:
                group.inside.reseed(seed)
            group.advance(40.0)
            stories.append((group.changes, group.log))
    before, after = (
        [[each for each in changes if (each.time <= 20.0) == early] for changes, _ in stories]
        for early in (True, False)
    )
    assert before[0] == before[1] == before[2]
    assert stories[1] == stories[3]
    assert after[0] != after[1] != after[2]


@pytest.mark.parametrize(
    "law", [Exponential(0.2), Uniform(0.1, 0.9), Lognormal(0.2, 0.7)], ids=lambda law: law.name
)
def test_a_longer_draw_is_one_of_those_that_are_longer(law: Delay) -> None:
    """Compared with drawing until it is longer."""
    rng = Random(8)
    by_hand = [each for _ in range(60_000) if (each := law.draw(rng, 1, 1)) > 0.4]
    drawn = [longer(law, 0.4, rng, 1) for _ in range(20_000)]
    assert min(drawn) >= 0.4
    assert fmean(drawn) == pytest.approx(fmean(by_hand), rel=0.03)
    middle = sorted(by_hand)[len(by_hand) // 2]
    assert sum(each < middle for each in drawn) / len(drawn) == pytest.approx(0.5, abs=0.02)


def test_bytes_are_those_of_frames_with_headers() -> None:
    with living("[delay]\nwithin = '1ms'\n[wire]\nip = 6") as group:
        group.advance(20.0)
        group.settle()
        sent, received = (sum(group.wire(name)[way] for name in NAMES) for way in (0, 1))
        frames = [group.member(name).metrics() for name in NAMES]
        assert received == sent
        least = sum(each.bytes_received + 48 * each.frames_received for each in frames)
        assert least <= received <= 1.05 * least  # frames of the kit itself are few


def test_what_an_environment_decides_is_not_said_again() -> None:
    with pytest.raises(BadInput, match="the environment decides"):
        Group(environment=parse_environment(SITES), loss=0.1)
    with living(SITES) as group:
        group.settle()
        with pytest.raises(BadInput, match="the environment decides"):
            group.weather(loss=0.5)
        with pytest.raises(NotQuiet, match="laws for delay and loss"):
            group.advance(100.0, skip_quiet=True)
