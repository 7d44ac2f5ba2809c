"""A running group is upgraded member by member: it does not split, and members are told.

The releases are processes from copies of the present source: see `kit/releases.py`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

import pytest

from hustings.net.wire import VERSION
from tests.net.kit.plain import Plain, Plains
from tests.net.kit.releases import BEFORE, FIRST, FOURTH, SECOND, THIRD, Release, Versions, release
from tests.net.kit.rollouts import WAITS, Rollout

REFUSES = "is seen but not understood: it writes wire version"


Made = Callable[..., Release]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("releases")
    return partial(release, folder)


@pytest.mark.parametrize(
    "seeded, leader_first, end, multicast",
    [
        (False, True, Plain.kill, "fan-out"),
        (True, False, Plain.leave, "bimodal"),
    ],
    ids=["here, leader first", "seeds, leader last"],
)
def test_releases_in_a_row_are_one_group(
    made: Made, seeded: bool, leader_first: bool, end: Callable[[Plain], None], multicast: str
) -> None:
    """From the first release to the fourth, three rollouts, and one leader at any time."""
    with Plains("rollout", protocol="bully", multicast=multicast) as plains:
        rollout = Rollout(plains, 3, seeded)
        for place in range(3):
            rollout.start(made(FIRST), place)
        began = rollout.steady()
        for versions in (SECOND, THIRD, FOURTH):
            assert rollout.upgrade(made(versions), leader_first, end)
        assert rollout.together(began) == [], rollout.story()
        assert not [note for each in plains.all for note in each.notes if REFUSES in note]
        assert len(plains.all) == 12


@pytest.mark.parametrize(
    "before, after, leader_first, seeded",
    [
        (FIRST, FOURTH, True, False),
        (FIRST, FOURTH, False, True),
        (BEFORE, FIRST, True, True),
        (BEFORE, FIRST, False, False),
    ],
    ids=[
        *("a notice, leader first, here", "a notice, leader last, seeds"),
        *("no notice, leader first, seeds", "no notice, leader last, here"),
    ],
)
def test_what_cannot_be_bridged_waits_until_the_last_old_member_has_gone(
    made: Made, before: Versions, after: Versions, leader_first: bool, seeded: bool
) -> None:
    with Plains("rollout") as plains:
        rollout, waiting = Rollout(plains, 3, seeded), list[Plain]()

        def look(new: Plain, left: list[Plain]) -> None:
            waiting.append(new)
            plains.told(left, f"{REFUSES} {after.written}")
            assert not any(each.led() for each in waiting), rollout.story()

        rollout.start(made(before), 0, 1, 2)
        began = rollout.steady()
        assert not rollout.upgrade(made(after), leader_first, Plain.leave, look)
        assert rollout.together(began) == [], rollout.story()
        reads = f"reads version {before.written}; this member writes version {after.written} and"
        assert all(reads in "".join(each.notes) for each in waiting)
        assert len(waiting) == 2


def test_without_notices_a_group_splits(made: Made) -> None:
    """What the tests above would see if newcomers knew nothing about other wire versions."""
    with Plains("rollout") as plains:
        rollout = Rollout(plains, 4, True)
        plains.agreed(rollout.start(made(FIRST), 0, 1))
        deaf = rollout.start(made(FOURTH, notices=False), 2, 3)
        plains.wait(lambda: any(each.leading for each in deaf), "the new ones elect")
        assert rollout.together()


def test_an_old_member_that_comes_back_waits_for_the_new_group(made: Made) -> None:
    with Plains("rollout") as plains:
        rollout = Rollout(plains, 3, True)
        new = rollout.start(made(FOURTH), 0, 1)
        plains.agreed(new)
        (old,) = rollout.start(made(FIRST), 2, alone=True)
        plains.told([old], WAITS)
        plains.told(new, REFUSES)
        assert "upgrade that member" in "".join(new[0].notes)
        for each in new:
            each.kill()
        plains.wait(lambda: old.leading, "the old one leads when nobody else is there")
        assert rollout.together() == [], rollout.story()


def test_a_member_that_knows_no_notices_is_refused_by_the_new_group(made: Made) -> None:
    with Plains("rollout") as plains:
        rollout = Rollout(plains, 3, True)
        new = rollout.start(made(FIRST), 0, 1)
        plains.agreed(new)
        (old,) = rollout.start(made(BEFORE), 2)
        plains.wait(lambda: old.refused, "it is refused")
        assert f"le-s of wire version {VERSION} there" in old.refused
        plains.told(new, REFUSES)
        assert not old.led()


@pytest.mark.parametrize("seeded", [False, True], ids=["here", "seeds"])
def test_of_newcomers_of_two_versions_those_of_one_lead(made: Made, seeded: bool) -> None:
    """The older ones, unless the newer ones have agreed before the first of those was there."""
    with Plains("rollout") as plains:
        rollout = Rollout(plains, 4, seeded)
        old, new = rollout.prepare(made(FIRST), 0, 1), rollout.prepare(made(FOURTH), 2, 3)
        for each in (*old, *new):
            each.go()
        plains.wait(lambda: any(each.leading for each in plains.all), "one leads")
        led, waits = (old, new) if any(each.leading for each in old) else (new, old)
        plains.agreed(led)
        plains.told(waits, WAITS)
        assert not any(each.led() for each in waits), rollout.story()


def test_newcomers_that_find_an_older_newcomer_wait_for_it(made: Made) -> None:
    """The older member waits itself, for a member of its machine that has stopped."""
    with Plains("rollout") as plains:
        rollout = Rollout(plains, 3, False)
        (stopped,) = rollout.start(made(FIRST), 0)
        plains.agreed([stopped])
        stopped.process.send_signal(signal.SIGSTOP)
        (old,) = rollout.start(made(FIRST), 1)
        plains.told([old], "does not answer: it may be stopped or busy")
        (new,) = rollout.start(made(FOURTH), 2)
        plains.told([new], WAITS)
        assert not old.led()
        assert not new.led()
        stopped.kill()
        plains.wait(lambda: old.leading, "the older one leads")
        assert not new.led(), rollout.story()
