"""When a new member may take part in elections.

A member that has heard of no other member would elect itself. Until it may, it listens, and follows
a leader that it hears of. The first election message of another member ends the wait, too: that
member has taken part already.

On one machine the files of the other members tell which of them live (`local_members.py`). A new
member waits until each of them has answered or has ended. So members that start together lead
together, and a member that cannot be understood keeps this one from leading beside it. When some
have answered, the others may be stopped, and the group has noticed that: so the wait for them ends
after `join_wait`.

A member of another wire version cannot answer in a way that this one understands. `versions.py`
finds such members, and a new member waits until their group has ended, whoever else has answered.

With a guard no member waits: the guard never lets two lead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hustings.core.names import member_id
from hustings.net.addresses import Address
from hustings.net.limits import show_versions
from hustings.net.wire import OURS

if TYPE_CHECKING:
    from hustings.net.local_members import LocalMember
    from hustings.net.node import MemberNode

_LOOK = 0.1  # seconds between two looks at the members of this machine
_NAMED = 3  # members that a sentence names
_AT_ONCE = 4  # log lines about reasons that may follow each other; in the long run one a minute


class Bootstrap:
    """Whether one node's member may take part in elections yet."""

    def __init__(self, node: MemberNode, join_wait: float) -> None:
        self._node = node
        self._loop = asyncio.get_running_loop()
        self._join_wait = join_wait
        self._began = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._said: frozenset[str] = frozenset()  # the reasons that were told last
        self.open = True

    def begin(self) -> None:
        """The node starts: hold its member back if it has to wait."""
        node = self._node
        self._began = self._loop.time()
        free = node.lease_layer is not None or node.leadership.observer
        self.open = free or not self._silent_here()
        node.leadership.held_back = not self.open
        if not self.open:
            self._timer = self._loop.call_later(_LOOK, self._look)

    def hold(self) -> None:
        """A reason to wait was found after the start; a member that takes part goes on."""
        node = self._node
        if self.open and node.lease_layer is None:
            node.upon(node.leadership.hold_back)
            if node.leadership.held_back:
                self.open = False
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
        elif node.settled.is_set() and not node.other_versions.ahead:
            if (self._company and self._waited) or not self._silent_here():
                self.open = True
                node.upon(node.leadership.joined)

    @property
    def _company(self) -> bool:
        return len(self._node.stack.membership.view) > 1

    def _silent_here(self) -> list[LocalMember | None]:
        """Members of this machine that live and have not answered, in no wire version."""
        return [
            each
            for each in (() if self._node.local is None else self._node.local.found)
            if each is None or not (each.observer or self._answers(each))
        ]

    def _answers(self, other: LocalMember) -> bool:
        node = self._node
        if member_id(other.name) in node.stack.membership.view:
            return True
        local = node.local
        if local is None or not local.shares_key(other):
            return False
        return local.endpoint(other) in node.other_versions.there

    def _say(self) -> None:
        """Say why this member does not lead, once for each set of reasons."""
        sentences = [*self._words_about_versions(), *self._words_about_here()]
        if not sentences or frozenset(sentences) == self._said:
            return
        self._said, now = frozenset(sentences), self._loop.time()
        told = "; ".join(sentences)
        self._node.rejections.say("waiting", f"nobody leads here until {told}", now, _AT_ONCE)

    def _words_about_versions(self) -> Iterator[str]:
        if told := self._node.other_versions.told():
            oldest, written, newest = OURS
            yield (
                f"members of another wire version have ended: {_listed(told)}; this member writes "
                f"version {written} and reads {show_versions(oldest, newest)}"
            )

    def _words_about_here(self) -> Iterator[str]:
        if reasons := sorted({self._reason(each) for each in self._silent_here()}):
            yield f"other members of this machine answer: {_listed(reasons)}"

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


def _listed(reasons: list[str]) -> str:
    more = len(reasons) - _NAMED
    return "; ".join(reasons[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
