"""The perfect detector: the truth, to everybody, after a fixed time."""

import pytest

from hustings.core.errors import BadInput
from hustings.sim.faults import (
    Alive,
    Call,
    Crash,
    Happening,
    Join,
    Leave,
    Pause,
    Restart,
    Resume,
    Suspect,
    schedule,
)
from hustings.sim.oracle import Oracle
from hustings.sim.queue import END_OF_TIME
from hustings.sim.world import Ended, World
from tests.unit.layers.detector.listeners import Listener, Note, people
from tests.unit.layers.detector.test_detector_layer import beliefs, bully


def journal_of(happenings: list[Happening], latency: float = 1.0, out: int = 0) -> list[Note]:
    """What four members are told; the last `out` of them have not joined at first."""
    journal: list[Note] = []
    world = World(lambda: Listener(journal), people(4))
    world.watch(Oracle(latency))
    for member in range(1, 5 - out):
        world.start(member)
    schedule(world, happenings)
    assert world.run() is Ended.QUIESCENT
    return journal


def told(at: float, who: list[int], what: str, about: int) -> list[Note]:
    return [Note(at, member, what, about) for member in who]


@pytest.mark.parametrize("latency", [0.0, 1.0, 2.5])
def test_a_crash_and_a_return_are_told_to_all_others_in_time(latency: float) -> None:
    journal = journal_of([Crash(member=2, at=5.0), Restart(member=2, at=9.0)], latency)
    assert journal == [
        *told(5.0 + latency, [1, 3, 4], "suspect", 2),
        *told(9.0 + latency, [1, 3, 4], "alive", 2),
    ]


def test_a_departure_is_told_like_a_crash() -> None:
    assert journal_of([Leave(member=4, at=5.0)]) == told(6.0, [1, 2, 3], "suspect", 4)


def test_a_crash_in_the_middle_of_a_send_is_told() -> None:
    world = World(bully, people(4))
    world.watch(Oracle(2.0))
    world.start()
    schedule(world, [Call(member=1), Crash(member=4, after_sends=2, at=0.0)])
    world.run()
    assert beliefs(world) == [3, 3, 3]


def test_nobody_is_suspected_while_it_is_alive() -> None:
    assert journal_of([Crash(member=2, at=5.0), Restart(member=2, at=5.5)]) == []
    again: list[Happening] = [
        Crash(member=2, at=5.0),
        Restart(member=2, at=5.5),
        Crash(member=2, at=5.75),
        Restart(member=2, at=9.0),
        Crash(member=2, at=9.5),
        Restart(member=2, at=9.75),
    ]
    assert journal_of(again) == [
        *told(6.75, [1, 3, 4], "suspect", 2),
        *told(10.0, [1, 3, 4], "alive", 2),
    ]


def test_nobody_is_trusted_while_it_is_gone() -> None:
    happenings: list[Happening] = [
        Crash(member=2, at=5.0),
        Restart(member=2, at=9.0),
        Crash(member=2, at=9.5),
    ]
    assert journal_of(happenings) == told(6.0, [1, 3, 4], "suspect", 2)


def test_one_that_crashes_while_paused_has_crashed() -> None:
    happenings: list[Happening] = [
        Pause(member=2, at=1.0),
        Crash(member=2, at=5.0),
        Restart(member=2, at=9.0),
    ]
    assert journal_of(happenings) == [
        *told(6.0, [1, 3, 4], "suspect", 2),
        *told(10.0, [1, 3, 4], "alive", 2),
    ]


def test_a_pause_is_no_crash_and_who_wakes_hears_what_it_missed() -> None:
    happenings: list[Happening] = [
        Pause(member=3, at=1.0),
        Crash(member=1, at=2.0),
        Crash(member=2, at=4.0),
        Restart(member=1, at=6.0),
        Resume(member=3, at=10.0),
    ]
    journal = journal_of(happenings)
    assert [note for note in journal if note.who == 3] == [
        Note(10.0, 3, "suspect", 2),
        Note(10.0, 3, "alive", 1),
    ]
    assert not [note for note in journal if note.about == 3]


@pytest.mark.parametrize("up", [Join(member=4, at=8.0), Restart(member=3, at=8.0)])
def test_who_comes_up_hears_who_is_gone(up: Join | Restart) -> None:
    happenings: list[Happening] = [
        Crash(member=1, at=2.0),
        Crash(member=3, at=2.0),
        Crash(member=2, at=7.5),
        up,
    ]
    journal = journal_of(happenings, out=1)
    about = [(note.at, note.about) for note in journal if note.who == up.member and note.at > 8]
    gone_before = [(9.0, 1)] if up.member == 3 else [(9.0, 1), (9.0, 3)]
    assert about == [(8.5, 2), *gone_before]


def test_who_falls_asleep_before_the_news_hears_it_on_waking() -> None:
    happenings: list[Happening] = [
        Crash(member=1, at=2.0),
        Join(member=4, at=8.0),
        Pause(member=4, at=8.5),
        Resume(member=4, at=20.0),
    ]
    journal = journal_of(happenings, out=1)
    assert [note for note in journal if note.who == 4] == told(20.0, [4], "suspect", 1)


def test_nobody_is_told_of_itself_or_of_those_who_live() -> None:
    assert journal_of([Crash(member=member, at=1.0) for member in (1, 2, 3, 4)]) == []
    assert journal_of([]) == []


def test_a_scripted_detector_says_what_the_script_says() -> None:
    script: list[Happening] = [
        Suspect(member=1, about=4, at=3.0),
        Alive(member=1, about=4, at=4.0),
        Suspect(member=1, about=4, at=5.0),
    ]
    assert journal_of(script) == [
        *told(3.0, [1], "suspect", 4),
        *told(4.0, [1], "alive", 4),
        *told(5.0, [1], "suspect", 4),
    ]


@pytest.mark.parametrize("latency", [-1.0, float("inf"), float("nan")])
def test_a_latency_that_is_no_time_is_refused(latency: float) -> None:
    with pytest.raises(BadInput, match="latency must lie between 0 and"):
        Oracle(latency)


def test_what_would_be_told_after_the_end_of_time_is_not_told() -> None:
    assert journal_of([Crash(member=1, at=1.0)], latency=END_OF_TIME) == []
