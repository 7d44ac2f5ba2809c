"""The member: the object through which a program takes part in a group.

Everything here runs on the event loop on which the member was opened. For threads there is
`hustings.blocking`. The loss of leadership never ends the process or the membership: the member
goes on, and may lead again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from math import inf
from typing import TYPE_CHECKING, Protocol, TypeVar

from hustings.core.choice import Candidate, MemberId, candidate
from hustings.core.errors import BadInput, UnknownName
from hustings.core.names import LONGEST_NAME, PROJECT, is_attribute_name
from hustings.core.outcome import PAUSED, Elected, GaveUp, Guarantee, NoLeader, Outcome
from hustings.layers.gossip.messages import MAX_ATTRIBUTES
from hustings.layers.leadership.standing import is_observer, with_attribute
from hustings.net import loss_reason, telemetry
from hustings.net.campaign import Campaign, Term
from hustings.net.clock import clock_of
from hustings.net.fork import tell_of_forks
from hustings.net.logs import DEBUG, ERROR, INFO, NOTE, WARNING, MemberLog
from hustings.net.loss_reason import LossReason
from hustings.net.member_state import (
    JOINING,
    LEFT,
    Leadership,
    Metrics,
    MetricsRecorder,
    NotLeader,
    NotTakenOver,
    Peer,
    Unable,
)
from hustings.net.node import MemberNode
from hustings.net.wire import SIGNED

if TYPE_CHECKING:
    from hustings.net.keys import Key

T = TypeVar("T")

STAYED = "this member stayed in the process that was forked: join again"
ELECTED, LOST = "leader-elected", "leader-lost"  # events of the log
ASKS, LED_ON = "leader-paused", "leader-resumed"

LARGEST = sys.float_info.max
MOST_ATTRIBUTES = MAX_ATTRIBUTES - 4  # the others are kept for the project's own
_NOTES = 100  # log lines that are kept
_GLANCE = 0.02  # seconds between two checks of something that has no event
_ENDING = 5.0  # seconds for cancelled campaigns to clean up before a transfer


class SuccessEngine(Protocol):
    """The engine of a guard, which keeps what the group has done."""

    @property
    def keeps_words(self) -> bool:
        """Whether the engine can keep anything but the lease."""

    async def success(self) -> str:
        """What was recorded of the work that the group does once; "" if nothing was."""

    async def record(self, success: str) -> None:
        """Keep `success` for good."""


class Voters(Protocol):
    """The voters of a group that is its own guard."""

    @property
    def number(self) -> int:
        """How often the set of voters has changed."""

    def replace(self, old: str, new: str) -> bool:
        """Begin to replace one voter by another; returns whether that could begin."""


class Member:
    """One member of one group. `hustings.join` makes it."""

    def __init__(
        self,
        name: str,
        group: str,
        address: str,
        me: Candidate,
        guarantee: Guarantee,
        bound: float,
        steady: float,
        close: Callable[[bool], Awaitable[None]],  # True: stop as a crash would
        guard: str = "",  # the kind of its guard
    ) -> None:
        self.name = name
        self.group = group
        self.address = address
        self.guarantee = guarantee
        self.bound = bound
        self.steady = steady
        self.notes: list[str] = []
        self.error: Exception | None = None  # why it was closed, if not by its owner
        self.opened = False  # whether `join` has returned it
        self.campaigns: dict[Campaign, None] = {}
        self.voters: Voters | None = None  # set where the group is its own guard
        self.engine: SuccessEngine | None = None  # set where an engine is the guard
        self.known: Mapping[MemberId, str] = {}  # names of leaders that are not members
        self.state = Leadership(
            group=group, term=0, leader=None, leaders=(), leading=False, reason=JOINING
        )
        self._me = me
        self._marks = {name: value for name, value in me.attributes if name.startswith(PROJECT)}
        self._node: MemberNode | None = None
        self._outcome: Outcome = NoLeader(JOINING)
        self._close = close
        self._guard = guard
        self.log = MemberLog(group, name)
        self._changed = asyncio.Event()
        self._closed = False
        self._forked = False  # this process is a child of the member's own
        self._yielding = 0  # transfers under way
        self._over: LossReason | None = None  # why leadership ends, if its owner wants that
        self._leads_since = 0.0
        self._paused: Leadership | None = None  # what it had when it stood still, while it asks
        self._paused_for = 0.0  # seconds
        self._asking: asyncio.TimerHandle | None = None  # until a pause is taken for a loss
        self._loop = asyncio.get_running_loop()
        self.clock = self._loop.time  # of the program; callable from any thread
        self._member_clock = clock_of(self._loop)
        tell_of_forks(self)
        self._metrics = MetricsRecorder(self.clock)

    # What is known

    @property
    def id(self) -> MemberId:
        """The number that stands for this member's name."""
        return self._me.id

    @property
    def node(self) -> MemberNode:
        """The node that runs this member."""
        if self._node is None:
            raise RuntimeError("the member is not open")
        return self._node

    @property
    def closed(self) -> bool:
        """Whether the member has left, or had to leave."""
        return self._closed

    @property
    def leader(self) -> Peer | None:
        """The leader, if one is known."""
        return self.state.leader

    @property
    def is_leader(self) -> bool:
        """Whether this member leads. Without a guard this is only its own opinion."""
        return self.state.leading and self.in_time

    @property
    def in_time(self) -> bool:
        """Whether the guard's lease still lasts, by the clock at this moment."""
        return self.remaining > 0

    @property
    def term(self) -> int:
        """The highest known term."""
        return self.state.term

    @property
    def until(self) -> float | None:
        """When the lease of this leader ends, on the clock of members; None if there is none."""
        lease_layer = None if self._node is None or self._forked else self._node.lease_layer
        return None if lease_layer is None else lease_layer.until

    @property
    def remaining(self) -> float:
        """Seconds left of the lease, or 0; infinite without a guard. Callable from any thread."""
        if self._forked:
            return 0.0
        lease_layer = None if self._node is None else self._node.lease_layer
        if lease_layer is None:
            return inf
        until = lease_layer.until
        return 0.0 if until is None else max(0.0, until - self._member_clock.time())

    @property
    def stale_bound(self) -> float:
        """The longest time for which a leader that is cut off goes on; infinite without a guard."""
        return inf if self._node is None else self._node.stale_bound

    def witness(self) -> AbstractContextManager[tuple[int, ...]]:
        """The descriptors that a program inherits which acts under this member's lease.

        `with member.witness() as kept: subprocess.Popen(..., pass_fds=kept)`. If this process is
        killed, its lease is given back at once, but not as long as a process has them open. A
        forked child has them without more. If the process starts a program in another way, others
        cannot know that the program has ended, so the lease of a killed leader runs out. There are
        no descriptors without a lease.
        """
        client = None if self._node is None or self._forked else self._node.lease_client
        return nullcontext(()) if client is None else client.inherited()

    @property
    def handed(self) -> bool:
        """Whether another leader handed this member the leadership that it has now."""
        if self._node is None or not self.state.leading:
            return False
        return self._node.leadership.transfer.handed == self.state.term

    @property
    def seats(self) -> int:
        """How many members lead at a time."""
        return self.node.stack.seats

    def members(self) -> tuple[Peer, ...]:
        """All live members, this one too, by name."""
        if self._node is None or self._forked:
            return ()
        peers = [self._peer(member) for member in self._node.stack.membership.view.ids]
        return tuple(sorted(peers, key=lambda peer: (peer.name, peer.id)))

    def metrics(self) -> Metrics:
        """Figures, counted since the member joined."""
        return self._metrics.metrics(self.node, self.state)

    # What an owner does

    async def observe(self) -> AsyncIterator[Leadership]:
        """Yield the present state, then each change; a slow reader sees only the newest state.

        The iteration ends when the member has left. If it had to leave, the error is raised.
        """
        self._check_loop()
        seen: Leadership | None = None
        while True:
            changed = self._changed
            if self.state != seen:
                seen = self.state
                yield seen
                continue
            if self._closed:
                if self.error is not None:
                    raise self.error
                return
            await changed.wait()

    async def changes(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def campaign(self, drain: float | None = None) -> Campaign:
        """An `async with` block that runs while this member leads; `drain`: seconds to finish in.

        >>> async def work(member):
        ...     async with member.campaign() as term:
        ...         print("I lead in term", term.number)
        """
        self._check_loop()
        return Campaign(self, 0.0 if drain is None else drain)

    async def run(
        self,
        job: Callable[[Term], Awaitable[T]],
        *,
        every: str | float | None = None,
        restart: str = "on-failure",
        restart_delay: str | float | None = None,
        max_restarts: int | None = None,
        drain: str | float = 0.0,
        grace: str | float = "10s",
    ) -> T:
        """Run `job(term)` whenever this member leads, until the job has finished; its result.

        The job is cancelled when leadership is lost, and begins again when this member leads again.
        A job that raises begins again after `restart_delay` (1 s), which doubles up to a minute;
        `restart` is "on-failure", "always" or "never", and `max_restarts` limits restarts in a row.
        What a job raises then is raised here. With `every` the job runs once in each period.
        A transfer gives the job `drain` seconds to return, after `term.draining` is set. When this
        call is cancelled, the job has `grace` seconds to clean up.

        >>> async def work(member):
        ...     async def report(term):
        ...         print("the only report, in term", term.number)
        ...     await member.run(report, every="5m")
        """
        from hustings.net.job import JobRun, job_options  # noqa: PLC0415 (memory: few run a job)

        options = job_options(every, restart, restart_delay, max_restarts, drain, grace)
        return await JobRun(self, job, options).run()

    def began(self, campaign: Campaign) -> None:
        """A campaign has begun."""
        self.campaigns[campaign] = None
        if self._node is not None:
            self._node.engage()

    def ended(self, campaign: Campaign) -> None:
        """A campaign has ended; the lease may be given back."""
        if campaign in self.campaigns:
            del self.campaigns[campaign]
            if self._node is not None:
                self._node.disengage()

    async def wait_to_lead(self) -> Leadership:
        """Wait until this member has led for `steady` seconds, and no transfer is under way."""
        clock = asyncio.get_running_loop().time
        while True:
            changed, wait = self._changed, None
            if self._closed:
                raise self.error or NotLeader(f"{self.name} has left group {self.group!r}")
            if self.is_leader and not self._yielding:
                wait = self._leads_since + self.steady - clock()
                if wait <= 0:
                    return self.state
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await changed.wait()

    async def elect(self) -> None:
        """Call an election."""
        node = self._open()
        self._done(node.runner.run(node.stack.call))

    async def resign(self, drain: float | None = None) -> None:
        """Give leadership up: the best other member takes over, and this one is not eligible.

        It is chosen again only if no other member is there, or after `stand`.
        """
        node = self._open()
        resigned = loss_reason.gave_way(loss_reason.STOOD_BACK, "this member resigned")
        async with self._giving_way(drain, resigned):
            self._done(node.upon(node.leadership.stand_back))

    async def stand(self) -> None:
        """Be eligible again, after `resign`."""
        node = self._open()
        self._done(node.upon(node.leadership.stand))

    async def transfer(
        self, to: str, drain: float | None = None, within: float | None = None
    ) -> None:
        """Hand leadership over to the member of this name; it leads when this returns.

        Campaigns are asked to finish. After `drain` seconds they are cancelled. The other member
        takes over only when all have ended. If it does not within `within` seconds, `NotTakenOver`
        says who leads. A campaign that calls this itself is not waited for: it ends first.
        """
        node = self._open()
        heir = self._heir(to)
        if not self.state.leading:
            raise NotLeader(f"{self.name} does not lead group {self.group!r}: ask its leader")
        done: list[bool] = []
        own = any(each.task is asyncio.current_task() for each in self.campaigns)
        over = loss_reason.gave_way(loss_reason.HANDED_OVER, f"leadership is handed over to {to}")
        async with self._giving_way(drain, over):
            self._done(node.upon(lambda ctx: done.append(node.leadership.hand_over(ctx, heir.id))))
        if not any(done):
            raise NotLeader(f"{self.name} could not hand over group {self.group!r} to {to!r}")
        if not own:
            await taken_over(self, heir.id, to, within)

    async def replace_voter(self, old: str, new: str, within: float = 10.0) -> None:
        """Let another member vote in place of one that is gone for good; one at a time.

        `new` must be up and have a state directory, and a majority of the voters must agree.
        """
        self._open()
        voters = self.voters
        if voters is None:
            raise BadInput("only the voters of quorum:// can be replaced")
        if not any(peer.name == new for peer in self.members()):
            raise UnknownName("member", new, [peer.name for peer in self.members()])
        number = voters.number
        self._done(voters.replace(old, new))
        end = self.clock() + within
        while voters.number == number:
            if self.clock() >= end:
                raise Unable(f"no majority of the voters has let {new!r} in for {old!r} yet")
            await asyncio.sleep(_GLANCE)

    async def update(self, attributes: Mapping[str, float]) -> None:
        """Change some of this member's attributes; the group is told."""
        node = self._open()
        own = {k: v for k, v in self._me.attributes if not k.startswith(PROJECT)}
        fresh = candidate(self._me.id, **checked_attributes({**own, **attributes}))
        if not node.leadership.observer and not node.stack.choice.can_rank(fresh):
            raise BadInput("the group ranks by an attribute that is not given or not finite")
        for name, value in self._marks.items():
            fresh = with_attribute(fresh, name, value)
        self._me = fresh
        node.stand_as(fresh)

    def mark(self, name: str, value: float) -> None:
        """Set one of the project's own attributes of this member; the group hears it by gossip."""
        node = self._open()
        self._marks[name] = value
        self._me = with_attribute(self._me, name, value)
        node.stand_as(self._me)

    def marks_of(self, member: MemberId) -> dict[str, float]:
        """The project's own attributes of a member, as far as they are known here."""
        entry = None if self._node is None else self._node.stack.membership.circle.entry(member)
        attributes = () if entry is None else entry.who.attributes
        return {name: value for name, value in attributes if name.startswith(PROJECT)}

    def rekey(self, keys: Iterable[Key]) -> None:
        """Install exactly these keys, and seal with the first."""
        ring = self._open().filter.wire.ring
        if ring is None or ring.mode == SIGNED:
            raise BadInput("a member that joined without a key cannot be given one: let it rejoin")
        ring.replace(keys)

    async def leave(self) -> None:
        """Leave in good order: hand over, say goodbye, close. A second call does nothing."""
        if self._closed:
            return
        self._check_loop()
        node = self._node
        try:
            if node is not None:
                left = loss_reason.gave_way(loss_reason.LEFT_GROUP, "this member leaves the group")
                async with self._giving_way(None, left):
                    node.leave()
        finally:  # also if the caller is cancelled
            await self._end(LEFT)

    async def kill(self) -> None:
        """Stop without a word, as a crash would: for tests."""
        await self._end(LEFT, crashed=True)

    # What its node tells

    def attend(self, node: MemberNode) -> None:
        """Set the node that runs this member from now on."""
        self._node = node

    def told(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._publish()

    def changed(self) -> None:
        self._publish()

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)
        del self.notes[:-_NOTES]
        self.log.note(sentence)

    def failed(self, error: Exception) -> None:
        if self.error is None:
            self.error = error
        if self.opened:  # else the caller of `join` gets the error
            sentence = f"this member cannot go on: {error}"
            self.notes.append(sentence)
            self.log.say(ERROR, NOTE, sentence, term=self.term)
        asyncio.get_running_loop().create_task(self._end(str(error)))

    # Inside

    def _check_loop(self) -> None:
        """Refuse a call from another process, event loop or thread than the member's own."""
        if self._forked:
            raise NotLeader(STAYED)
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self._loop:
            where = "outside of any event loop" if running is None else "on another event loop"
            raise RuntimeError(
                f"{self.name} is used {where}: a member belongs to the loop that opened it; in "
                "threads use hustings.blocking"
            )

    def forked(self) -> None:
        """This process is a forked child: the member stayed in the parent."""
        reason = loss_reason.gave_way(loss_reason.FORKED, STAYED)
        self._forked = self._closed = True
        self._outcome = NoLeader(STAYED)
        self.state = Leadership(
            group=self.group,
            term=self.state.term,
            leader=None,
            leaders=(),
            leading=False,
            reason=STAYED,
        )
        if self._node is not None:
            self._node.forked()
        for campaign in self.campaigns:
            campaign.forked(reason)

    def _open(self) -> MemberNode:
        self._check_loop()
        if self._closed or self._node is None:
            raise NotLeader(f"{self.name} has left group {self.group!r}")
        return self._node

    def _done(self, could: bool) -> None:
        if not could:
            why = self.state.reason or "it has failed"
            raise Unable(f"{self.name} can do nothing in group {self.group!r} now: {why}")

    async def _end(self, reason: str, crashed: bool = False) -> None:
        if self._closed:
            return
        self._closed = True
        self._outcome = NoLeader(reason)
        if self._node is not None:
            self._node.stop()
        self._publish()
        await self._close(crashed)

    def _heir(self, name: str) -> Peer:
        others = [peer for peer in self.members() if not peer.me]
        found = [peer for peer in others if peer.name == name]
        if name == self.name:
            raise BadInput(f"{name!r} is this member itself: name another one")
        if not found:
            raise UnknownName("member", name, [peer.name for peer in others])
        if found[0].observer:
            raise BadInput(f"{name!r} only observes and cannot lead")
        return found[0]

    @asynccontextmanager
    async def _giving_way(self, drain: float | None, reason: LossReason) -> AsyncIterator[None]:
        """A block in which no campaign runs and none begins."""
        self._yielding += 1
        self._over = reason
        try:
            await self._drain(drain, reason)
            yield
        finally:
            self._over = None
            self._yielding -= 1
            self._wake()

    async def _drain(self, drain: float | None, reason: LossReason) -> None:
        """Let campaigns finish; cancel those that do not."""
        caller = asyncio.current_task()  # a campaign need not wait for itself
        running = [each for each in self.campaigns if each.task is not caller]
        if not running:
            return
        for campaign in running:
            campaign.ask_to_finish()
        patience = max(each.drain for each in running) if drain is None else drain
        await _all_done(running, patience)
        for campaign in running:
            campaign.end(reason)
        await _all_done(running, _ENDING)

    def _publish(self) -> None:
        """Compute the state anew; if it has changed, wake all tasks that wait for it."""
        before, self.state = self.state, self._state()
        if self._outcome == NoLeader(PAUSED) and self._pauses(before):
            return
        before = self._resumed(before)
        if self.state.leading and not (before.leading and before.term == self.state.term):
            self._leads_since = asyncio.get_running_loop().time()
        alone = self._node is not None and self._node.stack.seats == 1
        ended = [each for each in self.campaigns if not each.holds(self.state, alone=alone)]
        led_on = self.state.leading and (self.state.term == before.term or not alone)
        reason = self.loss_reason() if ended or (before.leading and not led_on) else None
        if reason is not None:
            for campaign in ended:
                campaign.end(reason)
        self._metrics.changed(before, self.state)
        if before != self.state:
            self._tell(before, reason)
        if before != self.state or self._closed:
            self._wake()

    def _pauses(self, before: Leadership) -> bool:
        """Keep campaigns while this member, which led and stood still, asks who leads."""
        if self._paused is None:
            if not before.leading or self._node is None:
                return False
            self._paused, self._paused_for = before, self._node.recent_stall
            limit = self._node.leadership.settings.leaderless_limit
            self._asking = self._member_clock.call_later(limit, self._asked_in_vain)
            reason = loss_reason.stalled(self._paused_for, self.bound)
            said = f"asks whether another member leads (term {before.term}): {reason}"
            self.log.say(WARNING, ASKS, said, term=before.term, reason=reason.kind)
            self._metrics.changed(before, self.state)
            self._wake()
        return self._asking is not None

    def _asked_in_vain(self) -> None:
        self._asking = None
        self._publish()

    def _resumed(self, before: Leadership) -> Leadership:
        """End a pause, if there was one: what this member had before decides what has changed."""
        paused, self._paused = self._paused, None
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
        if paused is None:
            return before
        if self.state.leading and self.state.term == paused.term:
            seconds = loss_reason.in_seconds(self._paused_for)
            said = f"leads on in term {paused.term} after {seconds}: no member took its place"
            self.log.say(INFO, LED_ON, said, term=paused.term)
            self._metrics.changed(before, self.state)
            self._wake()
        return paused

    def loss_reason(self, number: int | None = None) -> LossReason:
        """Why this member leads no longer, or not in the term of before, `number`."""
        outcome, node, state = self._outcome, self._node, self.state
        if self._forked:
            return loss_reason.gave_way(loss_reason.FORKED, STAYED)
        if self._over is not None:
            return self._over
        if self._closed:
            why = "this member left the group" if self.error is None else str(self.error)
            kind = loss_reason.LEFT_GROUP if self.error is None else loss_reason.MEMBER_FAILED
            return loss_reason.gave_way(kind, why)
        stall = 0.0 if node is None else node.recent_stall
        if state.leading:
            if self.in_time and state.term == number:
                return loss_reason.gave_way(loss_reason.HANDED_OVER, "its own program ended it")
            if self.in_time:
                return loss_reason.later_term(self.name, state.term)
            return loss_reason.lease_ended(self._guard, self._guard_silence(), stall)
        if state.leader is not None:
            return loss_reason.other_leader(state.leader.name, state.term, stall)
        reason = outcome.reason if isinstance(outcome, NoLeader | GaveUp) else ""
        if reason == PAUSED:
            return loss_reason.stalled(stall or self._paused_for, self.bound)
        if node is not None and node.lease_layer is not None and reason == node.lease_layer.lapsed:
            return loss_reason.lease_ended(self._guard, self._guard_silence(), stall)
        return loss_reason.no_leader(reason)

    def _tell(self, before: Leadership, reason: LossReason | None) -> None:
        """Write the change of leadership to the log."""
        state, log = self.state, self.log
        if reason is not None and before.leading:
            level = WARNING if reason.alarming else INFO
            said = f"leads no longer (term {before.term}): {reason}"
            log.say(level, LOST, said, term=before.term, token=before.token, reason=reason.kind)
            telemetry.lost(self.name, before, reason)
        if state.leading and (reason is not None or not before.leading):
            token = "" if state.token is None else f", with token {state.token}"
            said = f"leads in term {state.term}{token}"
            log.say(INFO, ELECTED, said, term=state.term, token=state.token)
            telemetry.elected(self.name, state)
        elif state.leader is not None and state.leader != before.leader:
            said = f"follows {state.leader.name} in term {state.term}"
            log.say(DEBUG, "follows", said, term=state.term, token=state.token)
        elif state.leader is None and not before.leading:
            log.say(DEBUG, "no-leader", f"knows no leader: {state.reason}", term=state.term)

    def _guard_silence(self) -> float:
        node = self._node
        if node is None or node.lease_layer is None:
            return 0.0
        return node.lease_layer.silence(node.runner.now())

    def _wake(self) -> None:
        """Let all waiting tasks look again."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _state(self) -> Leadership:
        outcome, node = self._outcome, self._node
        term = self.state.term
        if node is None or not isinstance(outcome, Elected):
            reason = outcome.reason if isinstance(outcome, NoLeader | GaveUp) else ""
            return Leadership(
                group=self.group, term=term, leader=None, leaders=(), leading=False, reason=reason
            )
        ids = node.stack.leaders or (outcome.leader,)
        if outcome.leader not in ids:
            ids = (outcome.leader, *ids)
        leaders = tuple(self._peer(each, leader=True) for each in ids)
        first = next(each for each in leaders if each.id == outcome.leader)
        return Leadership(
            group=self.group,
            term=outcome.term,
            leader=first,
            leaders=leaders,
            leading=self.id in ids,
            risk=outcome.risk,
            token=None if node.lease_layer is None else outcome.term,
        )

    def _peer(self, member: MemberId, leader: bool | None = None) -> Peer:
        node = self.node
        entry = node.stack.membership.circle.entry(member)
        place = node.address_book.place(member)
        attributes = dict(() if entry is None else entry.who.attributes)
        if leader is None:
            leader = any(each.id == member for each in self.state.leaders)
        return Peer(
            id=member,
            name=self.known.get(member, f"member-{member}") if place is None else place.name,
            address="" if place is None else place.text().partition(" ")[0],
            attributes={k: v for k, v in attributes.items() if not k.startswith(PROJECT)},
            incarnation=0 if entry is None else entry.incarnation,
            observer=entry is not None and is_observer(entry.who),
            me=member == self.id,
            leader=leader,
        )


async def _all_done(campaigns: Iterable[Campaign], within: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            for campaign in campaigns:
                await campaign.done.wait()


def checked_attributes(attributes: Mapping[str, float]) -> dict[str, float]:
    """The attributes as a member may have them; raises with a sentence about what is wrong."""
    checked: dict[str, float] = {}
    if len(attributes) > MOST_ATTRIBUTES:
        raise BadInput(f"{len(attributes)} attributes are too many: at most {MOST_ATTRIBUTES}")
    for name, value in attributes.items():
        if not is_attribute_name(name) or name.startswith(PROJECT):
            raise BadInput(
                f"attribute {name!r} does not do: 1 to {LONGEST_NAME} printable characters in "
                f"Unicode's form NFC, without blanks around them, and names that begin with "
                f"{PROJECT} are taken"
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadInput(f"attribute {name!r} must be a number, not {value!r}")
        if not -LARGEST <= value <= LARGEST:
            raise BadInput(f"attribute {name!r} must be finite, not {value!r}")
        checked[name] = float(value)
    return checked


# A transfer of leadership

_LEAST_S = 3.0  # seconds that a successor has at least
_DELTAS = 40  # times delta: what it has in addition


async def taken_over(member: Member, heir: MemberId, name: str, within: float | None) -> None:
    """Wait until the successor leads; `NotTakenOver` says who leads instead."""
    node = member.node
    if within is None:
        lease = None if node.lease_layer is None else node.lease_layer.lease
        within = max(_LEAST_S, _DELTAS * node.stack.membership.config.delta)
        within += 0.0 if lease is None else lease.asked
    end = member.clock() + within
    while not _leads(member, heir):
        left = end - member.clock()
        if member.closed:
            raise NotLeader(f"{member.name} has left group {member.group!r}")
        if left <= 0:
            raise NotTakenOver(
                f"{name!r} has not taken over group {member.group!r} within {within:g} s: "
                f"{_instead(member, heir)}"
            )
        with suppress(TimeoutError):
            async with asyncio.timeout(min(left, _GLANCE)):
                await member.changes()


def _leads(member: Member, heir: MemberId) -> bool:
    node, leader = member.node, member.leader
    if node.stack.seats > 1:
        return heir in node.stack.leaders
    if leader is None or leader.id != heir:
        return False
    return node.lease_layer is not None or node.leadership.transfer.accepted == heir


def _instead(member: Member, heir: MemberId) -> str:
    leader = member.leader
    if not any(peer.id == heir for peer in member.members()):
        return "it is gone"
    if leader is None:
        return "nobody leads now"
    return "it has not answered" if leader.id == heir else f"{leader.name} leads"
