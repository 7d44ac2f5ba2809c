"""When a new member may take part in elections.

A member that has heard of no other member would elect itself. So a new member may have to wait.
Until it may take part it listens, and follows a leader that it hears of.

    its seeds    a member that was told of others waits until one of them has answered (StartRule)
    this machine it also waits until each member that its files show has answered or has ended

An answer is a reply to a question of this process: a recorded frame is none. A member hears only
members that have answered (`presence.py`), at least while it waits. A frame of an election says
that its sender has stopped waiting, and so ends the wait of its receiver: the group exists.

On one machine the files of the other members tell which of them live (`local_members.py`). When
some have answered, the others may be stopped, and the group has noticed that: so the wait for them
ends after `join_wait`.

A member of another wire version cannot answer in a way that this one understands. `versions.py`
finds such members, and a new member waits until their group has ended, whoever else has answered.

With a guard no member waits: the guard never lets two lead. An observer never leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from hustings.core.choice import MemberId
from hustings.core.durations import show_duration, yes_or_duration
from hustings.core.errors import BadInput
from hustings.core.names import member_id
from hustings.core.outcome import ELECTING, NoLeader
from hustings.layers.leadership.layer import WAITING
from hustings.layers.leadership.standing import is_observer
from hustings.net.addresses import Address, is_loopback, reaches_family
from hustings.net.clock import member_clock
from hustings.net.limits import Reason, WireVersions, show_versions, stranger
from hustings.net.transport import Endpoint
from hustings.net.udp import is_own_host
from hustings.net.wire import OURS

if TYPE_CHECKING:
    from hustings.net.local_members import LocalMember
    from hustings.net.node import MemberNode

_LOOK = 0.1  # seconds between two looks at the members of this machine
_TELL = 1.0  # seconds between two looks at the reasons for waiting
_AT_ONCE = 4  # log lines about them that may follow each other; in the long run one a minute
_REMIND = 600.0  # seconds after which a wait is logged again
_NAMED = 3  # members or seeds that a sentence names
_RECALLED = 30.0  # seconds for which something that was found there counts
_MOST_SEEN = 256  # endpoints of seeds of which something is remembered
# What no member of this group says.
_NOT_OURS = {
    Reason.OTHER_GROUP: "is in another group: correct the name of the group",
    Reason.NOT_A_FRAME: "does not speak as hustings does: correct the address",
}
HOW_TO_GO_ON = "to lead without others, say alone=30s or expect=1"


class StartRule(NamedTuple):
    """How many members must be in touch before one of them takes part in its first election."""

    expect: int | None = None  # this member included; None: one more, if it was told of others
    alone: float | None = None  # after how many seconds fewer will do; None: never
    never: bool = False  # it must not be alone, whether or not it was told of others


ANY_START = StartRule()


def start_rule(
    expect: int | None, alone: bool | str | float | None, *, guarded: bool, most: int
) -> StartRule:
    """The rule of two arguments; `most` members can be in touch.

    >>> start_rule(None, "30s", guarded=False, most=9)
    StartRule(expect=None, alone=30.0, never=False)
    >>> start_rule(3, None, guarded=False, most=9)
    StartRule(expect=3, alone=None, never=False)
    """
    if guarded and (expect is not None or alone is not None):
        raise BadInput(
            "expect and alone are for groups without a guard: a guard decides who leads, and "
            "nobody is waited for; leave them out"
        )
    if expect is not None:
        if isinstance(expect, bool) or not isinstance(expect, int):
            raise BadInput(f"expect must be a whole number of members, not {expect!r}")
        if not 1 <= expect <= most:
            raise BadInput(f"expect must be from 1 to {most} members, not {expect}")
    if alone is not None:
        alone = yes_or_duration(alone, "alone")
    if expect == 1 and alone is False:
        raise BadInput("expect=1 lets this member lead alone, and alone=no forbids it: give one")
    if expect is not None and expect > 1 and alone is True:
        raise BadInput(
            f"alone=yes waits for nobody, and expect={expect} for {expect - 1} others: give one, "
            "or the time after which fewer will do, such as alone=30s"
        )
    if alone is None or isinstance(alone, bool):
        return StartRule(expect, 0.0 if alone else None, alone is False)
    return StartRule(expect, alone)


class Bootstrap:
    """Whether one node's member may take part in elections yet."""

    def __init__(self, node: MemberNode, join_wait: float, rule: StartRule) -> None:
        self._node = node
        self._clock = member_clock()
        self._join_wait = join_wait
        self._rule = rule
        self._began = self._clock.time()
        self._timer: asyncio.TimerHandle | None = None
        self._seen: dict[Endpoint, tuple[float, str]] = {}  # at the addresses of seeds, and when
        self._version: object = None  # of what `check` depends on
        self._next_words = 0.0  # when the reasons are looked at again
        self._said: tuple[frozenset[str], float] = (frozenset(), 0.0)
        self._asks = False  # whether others must answer before this member takes part
        self.open = True

    # The node

    def begin(self) -> None:
        """The node starts: hold its member back if it has to wait."""
        node = self._node
        self._began = self._clock.time()
        free = node.lease_layer is not None or node.leadership.observer
        self._asks = not free and self._need > 1
        self.open = free or not (self._asks or self._silent_here())
        node.leadership.held_back = not self.open
        if not self.open:
            self._timer = self._clock.call_later(_LOOK, self._look)

    def hold(self) -> None:
        """A reason to wait was found after the start; a member that takes part goes on."""
        node = self._node
        if self.open and node.lease_layer is None:
            node.upon(node.leadership.hold_back)
            if node.leadership.held_back:
                self.open = False
                self._timer = self._clock.call_later(_LOOK, self._look)

    @property
    def asks(self) -> bool:
        """Whether this member waits until others have answered."""
        return self._asks and not self.open

    def stop(self) -> None:
        """The node stops."""
        if self._timer is not None:
            self._timer.cancel()

    def refused(self, to: Endpoint) -> None:
        """The system of that address says that no process listens there."""
        self._note(to, "no process listens there")

    def unread(self, source: Endpoint, reason: Reason, versions: WireVersions) -> None:
        """A frame from that address was refused."""
        if self.open:
            return
        words = _NOT_OURS.get(reason) or stranger(reason, versions, OURS)
        if words is not None:
            self._note(source, f"it {words}")

    def differs(self, source: Endpoint, words: str) -> None:
        """The member at that address is configured otherwise."""
        self._note(source, f"{words}; give all members the same")

    def _note(self, endpoint: Endpoint, words: str) -> None:
        if not self.open and endpoint in self._node.seeds.endpoints:
            self._seen.pop(endpoint, None)
            self._seen[endpoint] = (self._clock.time(), words)
            if len(self._seen) > _MOST_SEEN:
                del self._seen[next(iter(self._seen))]

    # Whether it may take part

    @property
    def _need(self) -> int:
        """How many members must be in touch, this one included."""
        if self._rule.expect is not None:
            return self._rule.expect
        return 2 if self._rule.never or self._told_of_others else 1

    @property
    def _told_of_others(self) -> bool:
        """Whether somebody said that the group has members beyond this machine's folder."""
        return bool(self._node.seeds.addresses) or self._multicasts

    @property
    def _multicasts(self) -> bool:
        transport = self._node.transport
        return transport.reaches_all and not is_loopback(transport.endpoint[0])

    @property
    def _waited(self) -> bool:
        return self._clock.time() >= self._began + self._join_wait

    def check(self) -> None:
        """Let the member take part if nothing is waited for any more."""
        node = self._node
        if self.open or node.closed:
            return
        if not node.leadership.held_back:
            self._go()  # it follows a leader, or has heard that another member takes part
            return
        validation = node.address_validation
        version = (node.stack.membership.view.version, validation.answers, node.settled.is_set())
        if version != self._version:
            self._version = version
            self._decide()

    def _decide(self) -> None:
        node = self._node
        if self._asks:
            for member in self._others():
                if self._place(member) is None:
                    self._ask(member)
        if not node.settled.is_set() or node.other_versions.ahead or self._lacks_members():
            return
        if (self._company and self._waited) or not self._silent_here():
            if self._said[0] and self._rule.alone and len(self._in_touch()) + 1 < self._need:
                node.note(
                    f"too few members have answered within {show_duration(self._rule.alone)}: this "
                    "member takes part in elections without them, as its setting alone says"
                )
            self._go()
            node.upon(node.leadership.joined)

    def _go(self) -> None:
        self.open = True
        if self._said[0] and self._node.leadership.held is None:
            self._node.listener.told(NoLeader(ELECTING))

    @property
    def _company(self) -> bool:
        return len(self._node.stack.membership.view) > 1

    def _ask(self, member: MemberId) -> None:
        endpoint = self._node.address_book.endpoint(member)
        if endpoint is not None:
            self._node.address_validation.ask(member, endpoint)

    def _others(self) -> Iterator[MemberId]:
        """The other members that may lead.

        They are taken from the membership: the leadership layer looks there a little later.
        """
        view, me = self._node.stack.membership.view, self._node.runner.me.id
        return (each for each in view.ids if each != me and not is_observer(view.candidate(each)))

    def _in_touch(self) -> list[MemberId]:
        """The other members that may lead and have answered this process, one for each address.

        So a process counts once, under however many names it answers.
        """
        places = ((self._place(each), each) for each in self._others())
        return list({place: each for place, each in places if place is not None}.values())

    def _place(self, member: MemberId) -> Endpoint | None:
        """The address of a member, if it has answered there."""
        node = self._node
        endpoint, present = node.address_book.endpoint(member), node.presence.has(member)
        answered = present and node.address_validation.answered(member) == endpoint
        return endpoint if answered else None

    def _lacks_members(self) -> bool:
        """Whether too few members have answered."""
        if not self._asks:
            return False
        rule, longest = self._rule, inf if self._rule.alone is None else self._rule.alone
        if self._waited and self._clock.time() >= self._began + longest:
            return False
        own = self._waited and not self._multicasts and self._only_own_seeds()
        if own and rule.expect is None and not rule.never:
            return False
        in_touch = self._in_touch()
        if len(in_touch) + 1 < self._need:
            return True
        if own or rule.expect is not None or not self._told_of_others:
            return False
        # Members of this machine found each other without the seeds. The seeds may lead to a group
        # that none of them has reached.
        local = self._node.local
        if local is not None:
            local.look()
        return not any(self._is_beyond(each) for each in in_touch)

    def _only_own_seeds(self) -> bool:
        """Whether all seeds are this member itself.

        An address that it only advertises proves nothing: all replicas behind one address may
        advertise that one.
        """
        node = self._node
        return all(
            (found := self._usable(each)) and all(node.is_bound_to(endpoint) for endpoint in found)
            for each in node.seeds.addresses
        )

    def _usable(self, address: Address) -> list[Endpoint]:
        """The endpoints of a seed, without those of a family that this member does not speak.

        A name often has an address of each family. If all are of the wrong one, they are returned.
        """
        found = self._node.seeds.found(address)
        bound = self._node.transport.endpoint[0]
        usable = [each for each in found if reaches_family(bound, each[0])]
        return usable or found

    def _is_beyond(self, member: MemberId) -> bool:
        """Whether a member is elsewhere, or where a seed says."""
        node = self._node
        here = [] if node.local is None else node.local.found
        for each in here:
            if each is not None and member_id(each.name) == member:
                return self._is_seed(each)
        return True

    def _is_seed(self, other: LocalMember) -> bool:
        """Whether a member of this machine listens at a seed's address."""
        node = self._node
        place = node.address_book.endpoint(member_id(other.name))
        wildcard = Address(other.host, other.port).is_wildcard
        for address in node.seeds.addresses:
            for host, port in node.seeds.found(address):
                if (host, port) in (place, (other.host, other.port)):
                    return True
                if wildcard and port == other.port and is_own_host(host):
                    return True
        return False

    # Members of this machine

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

    # What is said

    def _look(self) -> None:
        self._timer = None
        if self.open or self._node.closed:
            return
        if self._node.local is not None:
            self._node.local.look()
        if self._node.leadership.held_back:
            self._decide()
        self.check()
        if not self.open:
            self._timer = self._clock.call_later(_LOOK, self._look)
            if self._waited and self._clock.time() >= self._next_words:
                self._next_words = self._clock.time() + _TELL
                self._say()

    def _say(self) -> None:
        """Say why this member does not lead, once for each set of reasons."""
        sentences = [
            *self._words_about_versions(),
            *self._words_about_seeds(),
            *self._words_about_here(),
        ]
        now, (before, at) = self._clock.time(), self._said
        said = frozenset(sentences)
        if not sentences or (said == before and now < at + _REMIND):
            return
        self._said = (said, now)
        told = "; ".join(sentences)
        self._node.listener.told(NoLeader(f"{WAITING}: {told}"))
        self._node.rejections.say("waiting", f"nobody leads here until {told}", now, _AT_ONCE)

    def say_alone(self) -> None:
        """Nobody has answered in time: say so if this member goes on alone."""
        node = self._node
        if self.open or not self._lacks_members():
            if not self._only_own_seeds():
                told = ", ".join(map(str, node.seeds.addresses))
                node.note(f"no seed answers yet ({told}): alone for now, and looking on")

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

    def _words_about_seeds(self) -> Iterator[str]:
        if not self._lacks_members():
            return
        in_touch = len(self._in_touch()) + 1
        if in_touch < self._need:
            until = f"{self._need} members are in touch, {in_touch} so far"
            if self._need == 2:
                until = "another member answers"
        else:
            until = "a seed answers, since members of this machine have only found each other"
        silent = self._node.seeds.addresses
        reasons = list(filter(None, map(self._why_silent, silent)))
        if self._multicasts and not silent:
            reasons.append("nobody has answered the multicast")
        reasons += self._heard_only()
        why = f" ({_listed(reasons)})" if reasons else ""
        yield f"{until}{why}; {HOW_TO_GO_ON}"

    def _why_silent(self, seed: Address) -> str:
        """Why a seed has not answered, as far as that is known; empty if it has."""
        node, found = self._node, self._usable(seed)
        bound = node.transport.endpoint[0]
        if not found:
            return f"{seed} cannot be resolved: correct the name, or wait until it is known"
        if not any(reaches_family(bound, host) for host, _ in found):
            mine, theirs = ("IPv6", "IPv4") if ":" in bound else ("IPv4", "IPv6")
            return (
                f"{seed} is an address of {theirs}, and this member is bound to {mine} ({bound}): "
                "bind an address of the same family"
            )
        there = {node.address_book.endpoint(each) for each in self._in_touch()}
        others = [each for each in found if not node.is_own(each)]
        if not others and not all(map(node.is_bound_to, found)):
            return f"{seed} is only advertised by this member, and others may advertise it, too"
        others = [each for each in others if each not in there]
        if not others:
            return ""
        if is_loopback(bound) and not any(is_loopback(host) for host, _ in others):
            return (
                f"{seed} is beyond this machine, and this member is bound to {bound}: bind an "
                "address that the others reach (bind, and a key)"
            )
        if any(self._is_observer_at(each) for each in others):
            return f"{seed}: an observer, which never leads"
        since = self._clock.time() - _RECALLED
        seen = [self._seen[each] for each in others if each in self._seen]
        words = next((words for at, words in seen if at >= since), "no answer")
        return f"{seed}: {words}"

    def _heard_only(self) -> Iterator[str]:
        """Members that others tell of, or that speak, and that do not answer where they should."""
        node = self._node
        for member in self._others():
            place = node.address_book.place(member)
            if place is not None and self._place(member) is None:
                where = Address(*place.endpoint)
                yield f"{place.name} is heard of and does not answer at its own address {where}"
        yield from node.presence.unheard()

    def _is_observer_at(self, endpoint: Endpoint) -> bool:
        owner, view = self._node.address_book.owner(endpoint), self._node.stack.membership.view
        return owner is not None and owner in view and is_observer(view.candidate(owner))


def _listed(reasons: list[str]) -> str:
    more = len(reasons) - _NAMED
    return "; ".join(reasons[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
