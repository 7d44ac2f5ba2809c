"""What members say about tokens that the guard has not said: when it counts, and what it costs.

A lie that is stored, or to which an engine is lifted, is there for good. So where the guard can be
looked at it is, before anything is done; and a leader in its window is unseated by it alone.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from hustings.core.choice import Candidate
from hustings.core.guard import Observed
from hustings.core.outcome import ELECTING, Elected, NoLeader
from hustings.guard.base import HIGHEST_LIFT, LARGEST_TOKEN
from hustings.layers.lease import ASK, AWAITING, CHECK, STEP, LeaseHeldMsg
from hustings.testing import (
    Acquire,
    Declare,
    Effect,
    Multicast,
    Release,
    Send,
    SetTimer,
    persist,
    view_of,
)
from tests.unit.layers.puppets import GROUP, LEASE, ME, Driven

KNOWN = 7  # what the guard has granted
FAR = [KNOWN + STEP + 1, 10**9, HIGHEST_LIFT, LARGEST_TOKEN - 2, LARGEST_TOKEN, 2**60]
STRANGER = 9  # in nobody's view


class Checked(Driven):
    """A member whose guard can be looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.checks: list[int] = []
        self.watch()

    def watch(self) -> None:
        """Note what is known when the guard is looked at."""
        election = self.election
        election.check = lambda: self.checks.append(election.term)

    def told(self, sender: int, leader: int, token: int) -> list[Effect]:
        return self.member.deliver(sender, LeaseHeldMsg(leader, token))

    def shown(self, holder: int | None, token: int) -> list[Effect]:
        return self.member.answer(Observed(holder, token))


@pytest.fixture
def follower() -> Checked:
    """Member 3 leads, by the guard's own word."""
    checked = Checked()
    assert checked.shown(3, KNOWN) == [persist(token=KNOWN), Declare(Elected(3, KNOWN))]
    return checked


@pytest.fixture
def leading() -> Checked:
    """Asked at 100, answered at 102: until 120."""
    checked = Checked()
    checked.at(100.0).nominate()
    checked.at(102.0).grant(KNOWN)
    return checked


@pytest.mark.parametrize("token", FAR)
def test_a_token_far_above_what_the_guard_has_said_is_looked_up_first(
    follower: Checked, token: int
) -> None:
    assert follower.hear(1, token) == []
    assert follower.checks == [KNOWN]
    assert follower.election.term == KNOWN
    assert follower.shown(3, KNOWN) == [], "a lie: nothing changes"
    assert follower.hear(3, KNOWN) == []
    assert follower.outcome == Elected(3, KNOWN)
    assert follower.shown(1, token) == [persist(token=token), Declare(Elected(1, token))]


NEAR = [KNOWN + 1, KNOWN + STEP]


@pytest.mark.parametrize("token", NEAR)
def test_a_small_step_is_shown_and_looked_up_soon(follower: Checked, token: int) -> None:
    shown, look = follower.at(50.0).hear(1, token)
    assert shown == Declare(Elected(1, token))
    assert isinstance(look, SetTimer)
    assert look.key == CHECK
    assert 0.0 < look.delay < 0.1 * LEASE.delta * len(GROUP), "members do not look all at once"
    assert follower.election.heard == token
    assert follower.checks == []
    assert follower.hear(1, token) == [], "and it is not put off"
    assert follower.member.fire(CHECK) == []
    assert follower.checks == [KNOWN]
    assert follower.shown(1, token) == [persist(token=token)]
    assert follower.hear(1, token) == []
    assert CHECK not in follower.member.timers, "it is known now"


@pytest.mark.parametrize("token", NEAR)
def test_what_is_shown_and_not_true_is_not_acted_on(follower: Checked, token: int) -> None:
    follower.hear(1, token)
    assert follower.election.term == KNOWN, "what the guard is asked with"
    follower.nominate()
    follower.grant(KNOWN + 1)
    assert follower.outcome == Elected(2, KNOWN + 1)


def test_small_steps_do_not_add_up(follower: Checked) -> None:
    follower.hear(1, KNOWN + STEP)
    assert follower.hear(1, KNOWN + STEP + 1) == []
    assert follower.checks == [KNOWN]


def test_the_leader_is_shown_again_when_it_says_so(follower: Checked) -> None:
    """Of two that claim to lead the one that the election holds is shown, or the larger token."""
    follower.hear(1, KNOWN + 5)
    assert follower.hear(3, KNOWN) == []
    assert follower.hear(3, KNOWN + 6) == [Declare(Elected(3, KNOWN + 6))]
    assert follower.hear(1, KNOWN + 6) == [], "a token has one holder"
    assert follower.hear(3, KNOWN + 2) == [Declare(Elected(3, KNOWN + 2))], "its own word"
    follower.hear(1, KNOWN + 5)
    follower.election.inner.leader = 3
    assert follower.hear(3, KNOWN) == [Declare(Elected(3, KNOWN))]


def test_a_large_group_looks_within_a_third_of_the_lease() -> None:
    checked = Checked()
    checked.member.view = view_of([ME, *map(Candidate, range(3, 100_000))])
    looks = []
    for token in range(1, 200):
        looks += [each.delay for each in checked.hear(3, token) if isinstance(each, SetTimer)]
        checked.member.fire(CHECK)
    assert LEASE.renewal * 0.9 < max(looks) < LEASE.renewal


def test_looks_are_spread_by_the_delay_of_messages() -> None:
    checked = Checked()
    checked.election.lease = msgspec.structs.replace(LEASE, delta=0.5)
    looks = []
    for token in range(1, 200):
        looks += [each.delay for each in checked.hear(3, token) if isinstance(each, SetTimer)]
        checked.member.fire(CHECK)
    assert 0.9 * 0.05 * len(GROUP) < max(looks) < 0.05 * len(GROUP)


def test_what_was_heard_of_is_not_what_the_guard_has_said(follower: Checked) -> None:
    """But a guard that has forgotten its own word goes on above it: nobody may have it again."""
    assert (follower.election.term, follower.election.heard) == (KNOWN, KNOWN)
    follower.hear(1, KNOWN + 3)
    assert (follower.election.term, follower.election.heard) == (KNOWN, KNOWN + 3)
    follower.say(NoLeader(ELECTING))
    assert follower.election.heard == KNOWN + 3
    follower.shown(3, KNOWN + 9)
    assert follower.election.heard == KNOWN + 9
    assert Driven().election.heard == 0


def test_every_new_token_is_looked_up(follower: Checked) -> None:
    for token in NEAR:
        follower.hear(1, token)
        follower.member.fire(CHECK)
    assert follower.checks == [KNOWN, KNOWN]


def test_what_the_guard_has_said_since_is_the_new_measure(follower: Checked) -> None:
    assert follower.shown(None, 1_000_000) == [persist(token=1_000_000)]
    assert follower.outcome == Elected(3, KNOWN), "nobody holds: that is no reason to drop anybody"
    assert follower.hear(1, 1_000_001)[0] == Declare(Elected(1, 1_000_001))
    assert follower.checks == []


def test_a_refusal_and_a_grant_are_the_guards_word_too() -> None:
    refused = Checked()
    refused.nominate()
    refused.refuse(3, 1_000_000)
    assert refused.hear(1, 1_000_001)[0] == Declare(Elected(1, 1_000_001))
    granted = Checked()
    granted.nominate()
    granted.grant(1_000_000)
    granted.say(Elected(3, 2))
    assert granted.hear(3, 1_000_001)[0] == Declare(Elected(3, 1_000_001))
    assert refused.checks == granted.checks == []


def test_what_was_stored_is_trusted_after_a_restart(follower: Checked) -> None:
    follower.shown(3, 1_000_000)
    follower.member.restart()
    follower.watch()
    assert follower.hear(3, 1_000_000) == [Declare(Elected(3, 1_000_000))]
    assert follower.hear(1, 1_000_001)[0] == Declare(Elected(1, 1_000_001))
    assert follower.checks == []


@pytest.mark.parametrize("token", [KNOWN, KNOWN + 1, *FAR])
def test_whom_nobody_knows_is_not_shown_at_its_word(follower: Checked, token: int) -> None:
    assert follower.hear(STRANGER, token) == []
    assert follower.checks == [KNOWN]
    assert follower.told(STRANGER, 2, token) == []


@pytest.mark.parametrize("token", [KNOWN, KNOWN + 1, *FAR])
def test_who_leads_says_so_itself(follower: Checked, token: int) -> None:
    assert follower.told(1, 3, token) == []
    assert follower.checks == []
    unguarded = Driven()
    assert unguarded.member.deliver(1, LeaseHeldMsg(3, token)) == []


@pytest.mark.parametrize("token", [KNOWN + 1, *FAR])
def test_a_leader_in_its_window_is_unseated_by_the_guard_alone(
    leading: Checked, token: int
) -> None:
    assert leading.at(103.0).hear(3, token) == []
    assert leading.checks == [KNOWN]
    assert leading.shown(2, KNOWN) == []
    assert leading.outcome == Elected(2, KNOWN)
    assert leading.shown(3, token)[-1] == Declare(Elected(3, token))
    assert leading.election.until is None


@pytest.mark.parametrize("token", [KNOWN + 1, *FAR])
def test_a_leader_that_is_outdone_gets_a_new_token_and_keeps_nothing_of_what_was_said(
    leading: Checked, token: int
) -> None:
    """If the guard has lost its memory, those who said so have reminded it, and that is enough."""
    effects = leading.at(105.0).told(3, 2, token)
    assert effects[-3:] == [Declare(NoLeader(AWAITING)), Release(2), SetTimer(ASK, 3.0)]
    assert not [each for each in effects if each == persist(token=token)]
    assert Acquire(30.0, 3) in leading.member.fire(ASK)
    leading.grant(KNOWN + 1)
    assert leading.outcome == Elected(2, KNOWN + 1)


def test_a_leader_gives_way_to_what_it_cannot_believe_ever_more_rarely(leading: Checked) -> None:
    """The first time within a lease, then within two, and so on; a liar cannot keep it busy."""
    given_way, token = [], KNOWN
    for now in range(103, 600):
        leading.at(float(now))
        if leading.told(3, 2, 10**9):
            given_way.append(now)
            token += 1
            leading.member.fire(ASK)
            leading.grant(token)
        else:
            leading.member.fire(ASK)
            leading.grant(token)
    gaps = [later - earlier for earlier, later in pairwise(given_way)]
    assert gaps == [30, 60, 120, 240]


@pytest.mark.parametrize("token", [KNOWN + 1, *FAR])
def test_who_does_not_lead_is_not_outdone_by_a_word(follower: Checked, token: int) -> None:
    assert follower.told(3, 2, token) == []
    assert (follower.election.term, follower.election.unmoved) == (KNOWN, 0.0)


def test_a_leader_is_not_outdone_by_whom_it_does_not_know_nor_by_less(leading: Checked) -> None:
    assert leading.told(STRANGER, 2, 10**9) == []
    assert leading.told(3, 2, KNOWN) == []
    assert leading.hear(3, KNOWN) == [], "nobody else has this token"
    assert leading.checks == []


def test_a_leader_below_what_the_guard_has_said_is_told_and_the_guard_looked_at(
    follower: Checked,
) -> None:
    """It has lost its memory: whoever looks for this member reminds it."""
    assert follower.hear(3, KNOWN - 1) == [Send(3, LeaseHeldMsg(3, KNOWN))]
    assert follower.checks == [KNOWN]
    assert follower.hear(1, KNOWN - 1) == [], "a former leader, late"
    follower.election.inner.leader = 1
    assert follower.hear(1, KNOWN - 1) == [Send(1, LeaseHeldMsg(1, KNOWN))]
    assert follower.checks == [KNOWN, KNOWN]


def test_where_nobody_can_be_asked_a_members_word_is_enough() -> None:
    """Members that are the guard themselves outbid it."""
    driven = Driven()
    assert driven.hear(STRANGER, 10**15)[-1] == Declare(Elected(STRANGER, 10**15))
    driven.nominate()
    driven.grant(10**15 + 1)
    assert driven.outcome == Elected(2, 10**15 + 1)


# Who watches only


def bystander() -> Driven:
    driven = Driven()
    driven.election.bystander = True
    return driven


def test_who_cannot_ask_keeps_nothing_and_goes_with_its_election() -> None:
    watcher = bystander()
    assert watcher.hear(1, 10**15) == [Declare(Elected(1, 10**15))], "and stores nothing"
    watcher.election.inner.leader = 3
    assert watcher.hear(3, KNOWN) == [Declare(Elected(3, KNOWN))]
    assert watcher.hear(3, KNOWN + 1) == [Declare(Elected(3, KNOWN + 1))]
    assert (watcher.election.term, watcher.election.heard) == (KNOWN + 1, KNOWN + 1)
    watcher.member.restart()
    assert watcher.election.term == 0


# Who is suspected


def test_a_holder_that_is_suspected_while_nobody_leads_is_not_shown_again() -> None:
    """Its lease runs on, and the guard says so; nobody would find it there."""
    driven = Driven()
    driven.hear(3, KNOWN)
    driven.say(NoLeader(ELECTING))
    driven.member.suspect(3)
    driven.nominate()
    assert not [each for each in driven.refuse(3, KNOWN) if isinstance(each, Declare)]
    driven.member.fire(ASK)
    driven.refuse(3, KNOWN + 1)
    assert driven.outcome == Elected(3, KNOWN + 1), "with a new token it is alive again"


def test_nor_is_it_when_the_guard_is_looked_at() -> None:
    checked = Checked()
    checked.shown(3, KNOWN)
    checked.member.suspect(3)
    checked.say(NoLeader(ELECTING))
    checked.hear(1, 10**9)
    assert checked.shown(3, KNOWN) == []
    assert checked.outcome == NoLeader(ELECTING)


def test_a_suspect_that_holds_nothing_is_no_reason_to_doubt_who_does() -> None:
    driven = Driven()
    driven.hear(3, KNOWN)
    driven.member.suspect(1)
    driven.nominate()
    driven.refuse(3, KNOWN)
    assert driven.outcome == Elected(3, KNOWN)


# A leader that cannot be heard: its machine has nothing but the guard in common with this one


def test_who_asks_tells_the_others_of_a_leader_that_they_cannot_hear() -> None:
    asking = Checked()
    asking.nominate()
    assert Multicast(LeaseHeldMsg(STRANGER, KNOWN)) in asking.refuse(STRANGER, KNOWN)
    asking.member.fire(ASK)
    assert Multicast(LeaseHeldMsg(STRANGER, KNOWN)) in asking.refuse(STRANGER, KNOWN), "again"
    asking.member.fire(ASK)
    heard = asking.refuse(3, KNOWN + 1)
    assert not any(isinstance(each, Multicast) for each in heard), "that one speaks for itself"


def test_where_members_are_the_guard_nobody_is_told() -> None:
    asking = Driven()
    asking.nominate()
    refused = asking.refuse(STRANGER, KNOWN)
    assert not any(isinstance(each, Multicast) for each in refused)


def told_of(checked: Checked, leader: int, token: int, sender: int = 1) -> bool:
    """Whether the member wants to look at the guard then."""
    checked.told(sender, leader, token)
    return CHECK in checked.member.timers


@pytest.mark.parametrize("token", [KNOWN, KNOWN + 1, *FAR])
def test_such_a_leader_is_looked_up_and_not_believed(follower: Checked, token: int) -> None:
    follower.election.inner.leader = 1
    (look,) = follower.told(1, STRANGER, token)
    assert isinstance(look, SetTimer)
    assert look.key == CHECK
    assert 0.0 < look.delay < 0.1 * LEASE.delta * len(GROUP)
    assert follower.outcome == Elected(3, KNOWN)
    assert follower.election.term == KNOWN
    assert follower.told(1, STRANGER, token) == [], "and it is not put off"
    follower.member.fire(CHECK)
    assert follower.checks == [KNOWN]
    follower.shown(STRANGER, KNOWN + 1)
    assert follower.outcome == Elected(STRANGER, KNOWN + 1)


def test_only_who_asks_the_guard_may_say_so(follower: Checked) -> None:
    assert not told_of(follower, STRANGER, KNOWN + 1)
    follower.election.inner.leader = 3
    assert not told_of(follower, STRANGER, KNOWN + 1)
    follower.election.inner.leader = 1
    assert not told_of(follower, 3, KNOWN + 1), "that one is in view, and speaks for itself"
    assert not told_of(follower, STRANGER, KNOWN - 1), "that is over"
    assert told_of(follower, STRANGER, KNOWN + 1)


def test_what_is_known_is_not_looked_up(follower: Checked) -> None:
    follower.election.inner.leader = 1
    follower.shown(STRANGER, KNOWN + 1)
    assert not told_of(follower, STRANGER, KNOWN + 1)


def test_who_leads_or_stands_by_looks_nothing_up(leading: Checked, follower: Checked) -> None:
    for checked in (leading, follower):
        checked.election.inner.leader = 1
    follower.election.bystander = True
    assert not told_of(leading, STRANGER, KNOWN + 1)
    assert not told_of(follower, STRANGER, KNOWN + 1)
