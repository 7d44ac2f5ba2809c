"""When a new member may take part in elections.

A member that has heard of no other member would elect itself. Until it may, it listens, and follows
a leader that it hears of. The first election message of another member ends the wait, too: that
member has taken part already.

On one machine the files of the other members tell which of them live (`local_members.py`). A new
member waits until each of them has answered or has ended. So members that start together lead
together, and a member that cannot be understood keeps this one from leading beside it. When some
have answered, the others may be stopped, and the group has noticed that: so the wait for them ends
after `join_wait`.

With a guard no member waits: the guard never lets two lead.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hustings.core.names import member_id
from hustings.net.addresses import Address

if TYPE_CHECKING:
    from hustings.net.local_members import LocalMember
    from hustings.net.node import MemberNode

_LOOK = 0.1  # seconds between two looks at the members of this machine
_NAMED = 3  # members that a sentence names


class Bootstrap:
    """Whether one node's member may take part in elections yet."""

    def __init__(self, node: MemberNode, join_wait: float) -> None:
        self._node = node
        self._loop = asyncio.get_running_loop()
        self._join_wait = join_wait
        self._began = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._said: frozenset[str] = frozenset()
        self.open = True

    def begin(self) -> None:
        """The node starts: hold its member back if it has to wait."""
        node = self._node
        self._began = self._loop.time()
        self.open = node.lease_layer is not None or node.leadership.observer or not self._missing()
        node.leadership.held_back = not self.open
        if not self.open:
            self._timer = self._loop.call_later(_LOOK, self._look)

    def stop(self) -> None:
        """The node stops."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        if self.open or self._node.closed:
            return
        if self._node.local is not None:
            self._node.local.look()
        self.check()
        if not self.open:
            self._timer = self._loop.call_later(_LOOK, self._look)
            if self._waited:
                self._say()

    @property
    def _waited(self) -> bool:
        return self._loop.time() >= self._began + self._join_wait

    def check(self) -> None:
        """Let the member take part if nothing is waited for any more."""
        node = self._node
        if self.open or node.closed:
            return
        if not node.leadership.held_back:
            self.open = True  # it has heard another member take part
        elif node.settled.is_set() and not self._obstacles():
            self.open = True
            node.upon(node.leadership.joined)

    def _obstacles(self) -> bool:
        company = len(self._node.stack.membership.view) > 1
        return bool(self._missing()) and not (company and self._waited)

    def _missing(self) -> list[LocalMember | None]:
        """Members of this machine that live and have not answered."""
        local, view = self._node.local, self._node.stack.membership.view
        found = () if local is None else local.found
        return [
            each
            for each in found
            if each is None or not (each.observer or member_id(each.name) in view)
        ]

    def _say(self) -> None:
        """Say why this member does not lead, once for each set of reasons."""
        reasons = sorted({self._reason(each) for each in self._missing()})
        if not reasons or frozenset(reasons) == self._said:
            return
        self._said = frozenset(reasons)
        more = len(reasons) - _NAMED
        told = "; ".join(reasons[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
        self._node.note(f"nobody leads here until other members of this machine answer: {told}")

    def _reason(self, other: LocalMember | None) -> str:
        local = self._node.local
        if other is None or local is None:
            return "one of them runs another version of hustings"
        who = f"{other.name} (process {other.process})"
        if not local.on_this_network(other):
            return (
                f"{other.name} runs on another machine or in another network namespace: give the "
                "members seeds, or each its own HUSTINGS_LOCAL_DIR"
            )
        if not local.shares_key(other):
            return f"{who} has another key, or none: give all members the same"
        if local.endpoint(other) is None:
            where = Address(other.host, other.port)
            return f"{who} listens at {where}, which this member cannot reach: bind both alike"
        return f"{who} does not answer: it may be stopped or busy"
