"""What is said after a hand-over: once more to all, or at once, and what came too late."""

from __future__ import annotations

from hustings.core.choice import Candidate
from hustings.layers.leadership.layer import LeadershipConfig
from hustings.layers.leadership.messages import HandOverMsg
from hustings.layers.leadership.transfer import REPEAT
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.messages import AnnounceMsg
from tests.unit.layers.leadership.members import LeadingMember, in_office, order, people, sent, told

FOUR = people([1, 2, 4])  # beside member 3


def le_s() -> LeS:
    return LeS(LeS.Settings.parse({"T_A": 2.0, "T_L": 9.0}), order())


def test_what_the_old_leader_announced_in_office_comes_too_late() -> None:
    settings = LeadershipConfig(preempt_after=0.0)  # where the better of two leads in any case
    member = LeadingMember(2, people([1, 3, 4]), settings, elect=le_s)
    member.start()
    member.assume_leader(4, 5)
    member.deliver(4, HandOverMsg(3, 6))
    stale = AnnounceMsg(5, 1, Candidate(4))
    assert not told(member.deliver(4, stale))
    assert member.leadership.leader == 3
    member.clock += settings.delta + 0.1  # by then it is a claim of now
    assert told(member.deliver(4, stale))


def test_what_is_out_of_date_by_then_is_not_said_to_all() -> None:
    leader = in_office(3, FOUR)
    leader.ask(lambda leadership, ctx: leadership.hand_over(ctx, 2))
    leader.deliver(4, HandOverMsg(4, 3))
    assert leader.leadership.leader == 4
    assert not sent(leader.fire(REPEAT), HandOverMsg)


def test_who_leaves_tells_all_at_once() -> None:
    leader = in_office(3, FOUR)
    word = HandOverMsg(4, 2)
    assert sent(leader.leave(), HandOverMsg) == [(4, word), (None, word)]


def test_who_never_repeats_itself_tells_all_at_once() -> None:
    leader = in_office(3, FOUR, LeadershipConfig(transfer_retries=0))
    effects = leader.ask(lambda leadership, ctx: leadership.hand_over(ctx, 2))
    assert sent(effects, HandOverMsg) == [
        (2, HandOverMsg(2, 2)),
        (None, HandOverMsg(2, 2)),
    ]
