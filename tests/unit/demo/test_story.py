"""The acts: their order, their numbers, and that they are what the world did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.demo.simulated.story import (
    FEWEST,
    LIMIT,
    LIMIT_EACH,
    MOST,
    NONE,
    ONE,
    QUIET,
    TWO,
    Play,
    SimulatedAct,
    play,
)
from hustings.demo.simulated.telling import row, to_json, transcript
from hustings.demo.simulated.watch import latest
from hustings.protocols.bully import Bully
from hustings.protocols.registry import CATALOGUE, classes, find
from hustings.protocols.ring import Ring
from hustings.sim.member import Status
from tests.unit.demo.deaf import Deaf, Vain

GOLDEN = Path(__file__).parent / "golden"
NAMES = ["elect", "crash", "partition", "heal", "return", "pause", "resume"]
STORIES = [("bully", 9, 1), ("ring", 6, 3)]


@pytest.mark.parametrize("protocol, members, seed", STORIES)
def test_the_story_is_told_as_written(
    protocol: str, members: int, seed: int, rewrite: bool
) -> None:
    told = "\n".join(transcript(play(find(protocol), members, seed))) + "\n"
    path = GOLDEN / f"{protocol}-{members}-{seed}.txt"
    if rewrite:
        path.write_text(told, encoding="utf-8")
    else:
        assert told == path.read_text(encoding="utf-8")


def test_one_seed_makes_one_story_and_another_seed_another() -> None:
    assert to_json(play(Bully, 9, 1)) == to_json(play(Bully, 9, 1))
    assert to_json(play(Bully, 9, 1)) != to_json(play(Bully, 9, 2))


@pytest.mark.parametrize("kind", [Bully, Ring])
@pytest.mark.parametrize("members", [3, 4, 5, 9, 16])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_act_settles_on_the_best(kind: type[Bully | Ring], members: int, seed: int) -> None:
    acts = play(kind, members, seed).acts
    assert [act.name for act in acts] == NAMES
    assert [act.verdict for act in acts] == [ONE, ONE, TWO, ONE, ONE, ONE, ONE]
    best, next_best = members, members - 1
    assert [act.after[0] for act in acts] == [
        *(best, next_best, next_best, next_best),
        *(best, next_best, best),
    ]
    assert all(act.best for act in acts)


def test_large_groups_play() -> None:
    """A token on a long ring takes longer than members would wait in silence."""
    assert all(act.settled is not None for act in play(Ring, 24, 1).acts)
    assert all(act.settled is not None for act in play(Bully, MOST, 1).acts)


@pytest.mark.parametrize("kind", classes(CATALOGUE), ids=lambda kind: str(kind.about.name))
def test_every_protocol_of_the_catalogue_plays_to_the_end(kind: type[Bully]) -> None:
    acts = play(kind, 5, 1).acts
    assert [act.name for act in acts] == NAMES
    assert all(act.ended - act.began <= LIMIT + 5 * LIMIT_EACH + 1 for act in acts)


def test_terms_grow_with_every_leadership() -> None:
    terms = [act.term for act in play(Bully, 9, 1).acts if act.term is not None]
    assert terms == sorted(set(terms))


@pytest.fixture(scope="module")
def story() -> Play:
    return play(Bully, 9, 1)


def test_counts_are_those_of_the_messages_that_flew(story: Play) -> None:
    """The acts count what the world counted; the recorder saw each message leave."""
    openings = [act.cues[0].t for act in story.acts] + [float("inf")]
    for place, act in enumerate(story.acts):
        flown = [
            flight
            for flight in story.flights
            if openings[place] <= flight.left < openings[place + 1]
        ]
        assert Counter(flight.kind for flight in flown) == Counter(act.messages)
    assert sum(act.lost for act in story.acts) == sum(
        flight.fate not in ("arrived", "under way", "waited") for flight in story.flights
    )


def test_all_agree_from_the_settled_instant_on_and_not_before(story: Play) -> None:
    for act in story.acts:
        assert act.settled is not None
        assert agrees(story, act, act.settled)
        assert agrees(story, act, act.ended)
        assert not agrees(story, act, act.settled - 1e-6)


def agrees(story: Play, act: SimulatedAct, t: float) -> bool:
    """Whether all who are up at `t` hold the act's leaders, each the one on its side."""
    sides = latest(story.cuts, t) or (tuple(range(1, story.members + 1)),)
    leaders = dict(
        zip(sorted(sides, key=lambda side: act.after[0] not in side), act.after, strict=True)
    )
    for side, leader in leaders.items():
        for member in side:
            state = latest(story.watcher.states[member], t)
            if state.status is Status.UP and state.leader != leader:
                return False
    return True


def test_two_lead_only_while_the_group_is_of_two_minds(story: Play) -> None:
    times = {act.name: act.two_leaders for act in story.acts}
    assert times["elect"] == times["crash"] == times["pause"] == 0.0
    assert times["partition"] > 0.0
    assert times["heal"] > 0.0
    for act in story.acts:
        assert act.two_leaders <= act.ended - act.began


def test_the_leader_stands_on_the_first_side_and_both_sides_live() -> None:
    for members in range(FEWEST, 12):
        for seed in range(3):
            played = play(Bully, members, seed)
            (sides,) = [sides for _, sides in played.cuts if sides]
            assert played.acts[2].before[0] in sides[0]
            assert sorted(sides[0] + sides[1]) == list(range(1, members + 1))
            assert [member for member in sides[1] if member != played.acts[1].before[0]]


def test_an_election_that_never_concludes_ends_every_act_with_that_verdict() -> None:
    acts = play(Deaf, 4, 1).acts
    assert [act.verdict for act in acts] == [NONE] * 7
    assert all(act.time is None and act.after == () for act in acts)
    assert all(act.ended - act.began <= QUIET + 1 for act in acts)
    assert acts[0].messages == {"SHOUT": 1}
    assert acts[0].cues[-1].text == "No agreement: nobody leads, and 1-4 know no living leader."


def test_several_that_all_lead_are_no_agreement() -> None:
    act, crash = play(Vain, 4, 1).acts[:2]
    assert act.verdict == NONE
    assert len(act.after) == 3  # all but the one that shouted
    assert act.ended - act.began <= LIMIT
    assert "all lead" in act.cues[-1].text
    assert "one of 3 leaders, crashes" in crash.cues[0].text


@pytest.mark.parametrize("members", [-1, 0, 2, 41])
def test_too_few_or_too_many_members_are_refused(members: int) -> None:
    with pytest.raises(BadInput, match=f"members must lie between 3 and 40, not {members}"):
        play(Bully, members, 1)


def test_the_row_of_an_act(story: Play) -> None:
    letters = {"ELECTION": "E", "OK": "O", "COORDINATOR": "C"}
    act = story.acts[1]
    counts = " ".join(f"{act.messages[kind]}{letter}" for kind, letter in letters.items())
    assert act.time is not None
    expected = ["crash", "9 crashes", "9", "8", f"{act.time:.1f}", counts, ONE]
    assert row(act, letters) == expected
    silent = play(Deaf, 3, 1).acts[1]
    assert row(silent, {}) == ["crash", "3 crashes", "nobody", "nobody", "-", "-", NONE]
