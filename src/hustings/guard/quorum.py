"""`quorum://a,b,c`: the guard is the group itself, three, five or seven members of which vote.

There is no server to ask: voters are named as members are, and their promises travel with the
group's own messages. What they promise must survive a restart, so they need a state directory;
with `?durable=no` they wait for one lease instead whenever they start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.guard.seam import DRIFT, Promise
from hustings.guard.urls import GuardUrl
from hustings.net.host import Host
from hustings.protocols.quorum import Quorate, QuorumConfig
from hustings.substrate.confirmed import Confirmed
from hustings.substrate.stack import StackedContext

SCHEME = "quorum"
FEWEST, MOST = 3, 7
_LOOK = 3.0  # seconds: a voter that does not vote for so long says why


class Quorum:
    """Who votes in one group, and what that promises."""

    def __init__(self, url: GuardUrl, id_of: Callable[[str], MemberId]) -> None:
        url.only("durable")
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
        self._ids = tuple(id_of(name) for name in self.names)
        self.promise = Promise(
            drift=DRIFT,
            monotone=self.durable,
            proviso=""
            if self.durable
            else "voters keep nothing: after all of them were restarted tokens begin anew above "
            "the date of whoever asks, and may be smaller than before where times of day differ",
            clock="voters",
        )

    def around(self, confirmed: Confirmed) -> Quorate:
        """An election that asks, with these voters as its guard."""
        config = QuorumConfig(delta=confirmed.lease.delta, voters=self._ids, durable=self.durable)
        return Quorate(confirmed, config)


class Voters:
    """The voters of a member's group, as it knows them, and a change of them."""

    def __init__(self, host: Host, id_of: Callable[[str], MemberId]) -> None:
        self._host = host
        self._id_of = id_of

    @property
    def _quorate(self) -> Quorate:
        inner = self._host.stack.inner
        assert isinstance(inner, Quorate)
        return inner

    @property
    def number(self) -> int:
        """How often they have changed."""
        return self._quorate.electorate.number

    @property
    def ids(self) -> tuple[MemberId, ...]:
        """Who votes now."""
        return self._quorate.electorate.voters

    def excuse(self) -> str | None:
        """Why this member, if it is a voter, does not vote; in a sentence."""
        quorate = self._quorate
        if self._host.runner.me.id not in quorate.electorate.voters or quorate.voter.votes:
            return None
        return f"this voter {quorate.enrolment.state()}"

    def watch(self, note: Callable[[str], None]) -> None:
        """Say so when it lasts, and whenever it is for another reason."""
        loop = asyncio.get_running_loop()
        said: list[str | None] = [None]

        def look() -> None:
            if self._host.closed:
                return
            excuse = self.excuse()
            if excuse is not None and excuse != said[0]:
                note(excuse)
            elif excuse is None and said[0] is not None:
                note("this voter votes now")
            said[0] = excuse
            loop.call_later(_LOOK, look)

        loop.call_later(_LOOK, look)

    def replace(self, old: str, new: str) -> bool:
        """Begin to let `new` vote in the place of `old`; whether that could be begun."""
        stack, before, after = self._host.stack, self._id_of(old), self._id_of(new)
        if before not in self.ids:
            raise BadInput(f"{old!r} does not vote: name one that does")
        if after in self.ids:
            raise BadInput(f"{new!r} votes already: name one that does not")
        if not self._quorate.quorum.durable:
            raise BadInput("voters that keep nothing cannot be replaced: restart all with others")
        return self._host.runner.run(
            lambda ctx: self._quorate.replace(StackedContext(ctx, stack), before, after)
        )
