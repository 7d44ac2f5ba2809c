"""The base of elections: handlers are checked when a class is made; outcomes go to the owner."""

from typing import ClassVar

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Election, upon
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message, Role, kind_of
from hustings.core.outcome import Elected, GaveUp, NoLeader
from hustings.testing import Declare, RecordedMember, persist, recording, view_of


class LeaderQueryMsg(Message, frozen=True, tag="ASKED"):
    """A question."""


class TellMsg(Message, frozen=True, tag="TELL"):
    """An answer."""

    what: int


class Asking(Election):
    """Handles one kind of message."""

    messages: ClassVar[tuple[type[Message], ...]] = (LeaderQueryMsg,)

    @upon(LeaderQueryMsg)
    def on_ask(self, ctx: Context, sender: MemberId, message: LeaderQueryMsg) -> None:
        ctx.send(sender, TellMsg(1))


def election() -> Asking:
    return Asking(Config(), HighestId())


def test_a_missing_handler_fails_when_the_class_is_made() -> None:
    with pytest.raises(ProtocolBug, match="Deaf has no handler for ASKED, TELL"):

        class Deaf(Election):
            messages = (LeaderQueryMsg, TellMsg)


def test_a_handler_too_many_fails_when_the_class_is_made() -> None:
    with pytest.raises(ProtocolBug, match="Curious handles TELL, not in its messages"):

        class Curious(Asking):
            @upon(TellMsg)
            def on_tell(self, ctx: Context, sender: MemberId, message: TellMsg) -> None:
                pass


def test_a_subclass_may_add_a_kind_with_its_handler() -> None:
    class Both(Asking):
        messages = (LeaderQueryMsg, TellMsg)

        @upon(TellMsg)
        def on_tell(self, ctx: Context, sender: MemberId, message: TellMsg) -> None:
            pass

    assert list(Both.handlers) == [LeaderQueryMsg, TellMsg]
    assert Both.handlers[LeaderQueryMsg] is Asking.on_ask
    assert list(Asking.handlers) == [LeaderQueryMsg]


def test_a_subclass_may_put_another_handler_in_place() -> None:
    class Mute(Asking):
        @upon(LeaderQueryMsg)
        def stay_silent(self, ctx: Context, sender: MemberId, message: LeaderQueryMsg) -> None:
            pass

    assert Mute.handlers[LeaderQueryMsg] is Mute.stay_silent


def test_hooks_do_nothing_until_overridden() -> None:
    member = RecordedMember(election, Candidate(1), view_of([Candidate(1), Candidate(2)]))
    assert member.start() == []
    assert member.call() == []
    assert member.suspect(2) == []
    assert member.alive(2) == []
    assert member.leave() == []


def test_a_leader_assumed_is_believed_but_not_declared() -> None:
    believing = election()
    with recording(Candidate(1)) as ctx:
        believing.assume_leader(ctx, 7, 3)
    assert ctx.effects == []
    assert (believing.leader, believing.term) == (7, 3)
    assert believing.state() == "leader=7 term=3"


def test_outcomes_change_the_belief_and_reach_the_owner() -> None:
    it = election()
    with recording(Candidate(1)) as ctx:
        it.elect(ctx, 4, 2)
        assert (it.leader, it.term) == (4, 2)
        it.disown(ctx, "it is gone")
        assert (it.leader, it.term) == (None, 2)
        it.elect(ctx, 4, 3)
        it.give_up(ctx, "too often")
        assert (it.leader, it.term) == (None, 3)
    assert ctx.effects == [
        Declare(Elected(4, 2)),
        Declare(NoLeader("it is gone")),
        Declare(Elected(4, 3)),
        Declare(GaveUp("too often")),
    ]


def test_a_term_is_remembered_across_restarts() -> None:
    before, after = election(), election()
    before.term = 5
    with recording(Candidate(1)) as ctx:
        before.remember(ctx)
    assert ctx.effects == [persist(term=5)]
    with recording(Candidate(1), stored={"term": 5}, incarnation=2) as ctx:
        after.recall(ctx)
    assert after.term == 5
    assert ctx.effects == []


@pytest.mark.parametrize("stored", [{}, {"term": 2}, {"term": "9"}, {"term": None}])
def test_recalling_never_takes_a_term_back(stored: dict[str, object]) -> None:
    it = election()
    it.term = 3
    with recording(Candidate(1), stored=stored) as ctx:
        it.recall(ctx)
    assert it.term == 3


def test_messages_are_known_by_their_papers_name_and_differ_by_kind() -> None:
    assert kind_of(LeaderQueryMsg) == kind_of(LeaderQueryMsg()) == "ASKED"
    assert kind_of(TellMsg(1)) == "TELL"
    assert LeaderQueryMsg.role is Role.OTHER

    class SayMsg(Message, frozen=True, tag="SAY"):
        what: int

    same_fields: object = SayMsg(1)
    assert same_fields != TellMsg(1)
    for field in TellMsg.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(TellMsg(1), field, 2)
