"""One member with a leadership layer, driven by hand, and a world that does what it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.layers.leadership.layer import LeadershipConfig, LeadershipLayer
from hustings.layers.leadership.standing import OBSERVER, ByStanding, with_standing
from hustings.protocols.bully import Bully, BullyConfig
from hustings.testing.effects import Declare, Effect, Multicast, Send
from hustings.testing.recorded import RecordedMember, view_of

SETTINGS = (
    LeadershipConfig()
)  # delta = 1: membership_wait 4, reconcile_interval 5, leaderless_timeout 20


def order() -> ByStanding:
    """A member's own order: no two members share one."""
    return ByStanding(HighestId())


def bully() -> Election:
    return Bully(BullyConfig(), order())


def observer(member: MemberId) -> Candidate:
    return with_standing(Candidate(member), OBSERVER)


def people(ids: Iterable[MemberId]) -> list[Candidate]:
    return [Candidate(member) for member in ids]


class LeadingMember(RecordedMember):
    """A member that is shown as its layer has it, after every handler."""

    def __init__(
        self,
        me: MemberId | Candidate,
        others: Sequence[Candidate],
        settings: LeadershipConfig = SETTINGS,
        elect: Callable[[], Election] = bully,
        seed: int = 0,
    ) -> None:
        own = Candidate(me) if isinstance(me, int) else me
        group = view_of([own, *others])
        super().__init__(lambda: LeadershipLayer(elect(), settings), own, group, seed=seed)
        self.directory = {each.id: each for each in [own, *others]}

    @property
    def leadership(self) -> LeadershipLayer:
        assert isinstance(self.election, LeadershipLayer)
        return self.election

    def _run(self, handler: Callable[[Context], None]) -> list[Effect]:
        effects = super()._run(handler)
        self.me = self.leadership.shown(self.me)
        return effects

    def ask(self, what: Callable[[LeadershipLayer, Context], object]) -> list[Effect]:
        """Something that an owner wants, or a world."""

        def handler(ctx: Context) -> None:
            what(self.leadership, ctx)

        return self._run(handler)

    def meet(self, *others: Candidate) -> None:
        """Somebody comes into the world's view, or changes there."""
        for other in others:
            _directory(self)[other.id] = other
            self.view.add(other.id)

    def lose(self, member: MemberId) -> None:
        """Somebody goes out of the world's view."""
        self.view.remove(member)


def _directory(member: LeadingMember) -> dict[MemberId, Candidate]:
    directory = member.view._directory
    assert isinstance(directory, dict)
    return directory


def in_office(
    me: MemberId, others: Sequence[Candidate], settings: LeadershipConfig = SETTINGS, term: int = 1
) -> LeadingMember:
    """A member that leads."""
    return following(me, me, others, settings, term)


def following(
    me: MemberId,
    leader: MemberId,
    others: Sequence[Candidate],
    settings: LeadershipConfig = SETTINGS,
    term: int = 1,
) -> LeadingMember:
    """A member that follows somebody."""
    member = LeadingMember(me, others, settings)
    member.start()
    member.assume_leader(leader, term)
    return member


def sent(effects: Sequence[Effect], kind: type[Message]) -> list[tuple[MemberId | None, Message]]:
    """Messages of a kind and to whom they went; None: to all."""
    found: list[tuple[MemberId | None, Message]] = []
    for effect in effects:
        if isinstance(effect, Send | Multicast) and isinstance(effect.message, kind):
            found.append((effect.to if isinstance(effect, Send) else None, effect.message))
    return found


def told(effects: Sequence[Effect]) -> list[Outcome]:
    """What the owner heard."""
    return [effect.outcome for effect in effects if isinstance(effect, Declare)]
