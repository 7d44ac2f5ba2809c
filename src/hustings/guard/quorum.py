"""`quorum://a,b,c`: the guard is the group itself. Three, five or seven of its members vote.

There is no server to ask. Voters are named by their members' names, and their promises travel with
the group's own messages. The promises must survive a restart, so voters need a state directory.
With `?durable=no` a voter that starts waits for one lease instead. `?max_ttl=30s` is the longest
lease that voters grant, and the time for which a voter without storage waits. Its default is the
`ttl`. `quorum://b,c,d?initial=a,b,c` names the first voters of the group, where voters were
replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hustings.core.choice import MemberId
from hustings.core.durations import parse_duration, show_duration
from hustings.core.errors import BadInput
from hustings.guard.base import DRIFT, Guarantees
from hustings.guard.urls import GuardUrl
from hustings.layers.gossip.layer import GossipContext
from hustings.layers.lease import LeaseLayer
from hustings.net.agreed_config import Field
from hustings.net.clock import member_clock
from hustings.net.node import MemberNode
from hustings.quorum import QuorumConfig, QuorumLeaseLayer
from hustings.quorum.layer import Move

SCHEME = "quorum"
FEWEST, MOST = 3, 7
_FIRST_LOOK = 1.0  # seconds: a voter that does not vote for this long says why
_LOOK = 3.0  # seconds between later checks of the reason
_BEGUN = (
    "no voter remembered an earlier vote: they have waited for one lease and begin with tokens "
    "above the date; that is right at a group's first start, and later means that all voters have "
    "lost their state"
)
_LOST = (
    "if all voters lose their state, or get an old copy of it back, tokens begin again above the "
    "date: they are smaller than before if at that time the clocks of all voters and of the member "
    "that asks are behind"
)
_UNCONFIRMED = (
    "a member says that the voters have changed, and no majority of the voters that this member "
    "knows confirms it: nothing is changed; if it is true and those voters are gone for good, "
    "restart this member with the names of the present voters and an empty state"
)
_UNKEPT = (
    "voters keep nothing: after all of them were restarted tokens begin again above the date of "
    "the member that asks, and may be smaller than before if times of day differ"
)


class VoterOptions:
    """The voters that an address names, and their guarantees."""

    def __init__(self, url: GuardUrl, id_of: Callable[[str], MemberId]) -> None:
        url.only("durable", "max_ttl", "initial")
        if url.user is not None or url.path or any(port is not None for _, port in url.hosts):
            raise BadInput("quorum:// takes names of members, as quorum://a,b,c, and no addresses")
        self.names = tuple(name for name, _ in url.hosts)
        if len(set(self.names)) != len(self.names):
            raise BadInput("every voter of quorum:// must be named once")
        if len(self.names) % 2 == 0 or not FEWEST <= len(self.names) <= MOST:
            raise BadInput(f"quorum:// needs 3, 5 or 7 voters, not {len(self.names)}")
        durable = url.options.get("durable", "yes")
        if durable not in ("yes", "no"):
            raise BadInput(f"option durable of quorum must be yes or no, not {durable!r}")
        self.durable = durable == "yes"
        max_ttl = url.options.get("max_ttl")
        self.max_ttl = None if max_ttl is None else parse_duration(max_ttl, "option max_ttl")
        initial = url.options.get("initial")
        self.initial = tuple(sorted(self.names if initial is None else initial.split(",")))
        if len(set(self.initial)) != len(self.initial) or len(self.initial) != len(self.names):
            raise BadInput("option initial of quorum names as many voters as there are, each once")
        if not self.durable and set(self.initial) != set(self.names):
            raise BadInput(
                "option initial of quorum is for voters that were replaced, and voters that keep "
                "nothing (durable=no) never are: leave it out"
            )
        self.above = 0  # all tokens are larger than this
        self._ids = tuple(id_of(name) for name in self.names)
        self._first_ids = tuple(id_of(name) for name in self.initial)
        self.guarantees = Guarantees(
            drift=DRIFT,
            monotone=self.durable,
            proviso=_LOST if self.durable else _UNKEPT,
            clock="voters",
        )

    def check(self, asked: float) -> None:
        """Refuse a lease that voters never grant."""
        if self.max_ttl is not None and not 0 < asked <= self.max_ttl:
            raise BadInput(
                f"ttl must not exceed max_ttl={show_duration(self.max_ttl)} of quorum://, and is "
                f"{show_duration(asked)}"
            )

    def agreed(self, asked: float) -> tuple[Field, ...]:
        """The values that must be equal at all members: else there would be two guards, or none."""
        max_ttl = asked if self.max_ttl is None else self.max_ttl
        return (
            Field("voters", ",".join(self.initial), True),
            Field("durable", "yes" if self.durable else "no", True),
            Field("longest lease", show_duration(max_ttl), True),
        )

    def around(self, confirmed: LeaseLayer) -> QuorumLeaseLayer:
        """An election that asks, with these voters as its guard."""
        config = QuorumConfig(
            delta=confirmed.lease.delta,
            voters=self._ids,
            initial=self._first_ids,
            durable=self.durable,
            max_ttl=self.max_ttl,
            above=self.above,
        )
        return QuorumLeaseLayer(confirmed, config)


class GroupVoters:
    """The voters of a member's group, as the member knows them, and a change of the voters."""

    def __init__(self, host: MemberNode, id_of: Callable[[str], MemberId]) -> None:
        self._host = host
        self._id_of = id_of

    @property
    def _layer(self) -> QuorumLeaseLayer:
        inner = self._host.stack.inner
        assert isinstance(inner, QuorumLeaseLayer)
        return inner

    @property
    def number(self) -> int:
        """How often the voters have changed."""
        return self._layer.electorate.number

    @property
    def ids(self) -> tuple[MemberId, ...]:
        """The present voters."""
        return self._layer.electorate.voters

    def excuse(self) -> str | None:
        """Why this member, if it is a voter, does not vote; in a sentence."""
        layer, me = self._layer, self._host.runner.me.id
        if me not in layer.electorate.voters or layer.acceptor.votes:
            return None
        return f"this voter {layer.recovery.state()}"

    def watch(self, note: Callable[[str], None]) -> None:
        """Report the reason when it lasts, and whenever it changes."""
        clock = member_clock()
        said: str | None = None
        begun = False
        doubted = -1

        def look() -> None:
            nonlocal said, begun, doubted
            if self._host.closed:
                return
            for move in self._layer.take_moves():
                note(self._moved(move))
            asked = self._layer.configurations
            if asked.nonce and doubted != self.number and clock.time() > asked.asked + _FIRST_LOOK:
                doubted = self.number
                note(_UNCONFIRMED)
            recovery, excuse = self._layer.recovery, self.excuse()
            if excuse is not None and excuse != said:
                note(f"this voter {recovery.excuse(clock.time())}")
            elif excuse is None and said is not None:
                note("this voter votes now")
            if recovery.founded and not begun:
                begun = True
                note(_BEGUN)
            said = excuse
            clock.call_later(_LOOK, look)

        clock.call_later(_FIRST_LOOK, look)

    def _moved(self, move: Move) -> str:
        """Why this member uses other voters from now on, in a sentence."""
        before, after = move.before.voters, move.electorate.voters
        return (
            f"the voters are {self._named(after)} from now on (change {move.electorate.number}): "
            f"so say {self._named(move.confirmed)} of the voters before, {self._named(before)}"
        )

    def _named(self, members: Iterable[MemberId]) -> str:
        places = [(each, self._host.address_book.place(each)) for each in members]
        return ", ".join(f"{each:x}" if place is None else place.name for each, place in places)

    def replace(self, old: str, new: str) -> bool:
        """Begin to replace the voter `old` by `new`. Return whether the change could begin."""
        stack, before, after = self._host.stack, self._id_of(old), self._id_of(new)
        if before not in self.ids:
            raise BadInput(f"{old!r} does not vote: name one that does")
        if after in self.ids:
            raise BadInput(f"{new!r} votes already: name one that does not")
        if not self._layer.quorum.durable:
            raise BadInput("voters that keep nothing cannot be replaced: restart all with others")
        return self._host.runner.run(
            lambda ctx: self._layer.replace(GossipContext(ctx, stack), before, after)
        )
