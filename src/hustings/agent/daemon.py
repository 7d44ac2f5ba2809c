"""The agent as a process: members join, HTTP answers, signals are handled, all of it leaves.

Nothing starts before all checks have passed. The shutdown takes a bounded time.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from typing import Any, Protocol

from hustings.agent.access import Token, permit_http
from hustings.agent.agent_member import AgentMember
from hustings.agent.command import check_command, check_guard, environment_for, secrets_of
from hustings.agent.config import AgentConfig, GroupConfig
from hustings.agent.event_loop import ignore_from_now_on
from hustings.agent.hooks import SHELL, AgentHooks
from hustings.agent.logs import Log, bridged
from hustings.agent.service import HttpService, token_for
from hustings.core.errors import BadInput, HustingsError
from hustings.joining import Joining, join
from hustings.net.addresses import Address, endpoints, parse_address, permit
from hustings.net.files import check_state_folder
from hustings.net.keys import Key, read_key
from hustings.net.limits import Counters
from hustings.net.logs import notes_of
from hustings.net.member import Member
from hustings.net.member_state import Leadership
from hustings.net.seal import KeyRing
from hustings.net.udp import UdpTransport, open_udp

FINE, FAILED = 0, 1
AT_ONCE_S = 0.5  # seconds in which a start that cannot succeed fails
_LAST_S = 1.0  # for work that is still under way when the time to leave is over

Note = Callable[[str], None]


class Network(Protocol):
    """The network of the members: real sockets, or a test's replacement."""

    warning: str | None  # a remark about listening there

    async def open(self) -> str:
        """Begin to listen; returns the address."""

    async def join(self, group: GroupConfig, note: Note) -> AgentMember:
        """A member that has begun to look for its group; `BadInput` if it cannot."""

    def drops(self) -> Mapping[str, int]:
        """Counts of data refused before a member had it, by reason."""

    async def close(self) -> None:
        """Stop listening."""


def checked(config: AgentConfig) -> str | None:
    """Check without starting all that a start would refuse; returns a warning or None."""
    text = token_for(config.token_file, config.token)
    for group in config.groups:
        if group.state is not None:
            check_state_folder(group.state)
    return permit_http(config.http, token=text is not None)


class Daemon:
    """One agent, from its configuration to its exit code."""

    def __init__(
        self,
        config: AgentConfig,
        network: Network,
        log: Log,
        reread: Callable[[], AgentConfig] | None = None,
    ) -> None:
        self._config = config
        self._network = network
        self._log = log
        self._reread = reread
        self._members: dict[str, AgentMember] = {}
        self._hooks: dict[str, AgentHooks] = {}
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._serving: asyncio.Task[None] | None = None  # HTTP
        self._reloading = asyncio.Lock()
        self._code = FINE
        self.http: str | None = None  # the bound address, once all members have joined

    async def run(self) -> int:
        """Run until told to stop; returns the exit code. `BadInput` before anything has started.

        Afterwards the signals that it heard are ignored: the process is to exit with that code.
        """
        config = self._config
        self._service = HttpService(
            config.http,
            self._log,
            members=self._members,
            token=token_for(config.token_file, config.token),
            names=_names(config),
            streams=config.streams,
            drops=self._network.drops,
            groups=[group.group for group in config.groups],
        )
        loop = asyncio.get_running_loop()
        heard = [signal.SIGTERM, signal.SIGHUP]
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # ignored in a script's `agent &`
            heard.append(signal.SIGINT)
        for number in heard:
            if number == signal.SIGHUP:
                loop.add_signal_handler(number, self.reload)
            else:
                loop.add_signal_handler(number, self.stop, number.name)
        try:
            warnings = [self._network.warning, self._service.warning]
            with bridged(self._log):
                await self._serve([*config.notes, *warnings])
        finally:
            ignore_from_now_on(heard)
            self._service.close()
        return self._code

    def stop(self, why: str) -> None:
        """Leave in good order; called a second time, leave at once."""
        if self._stop.is_set():
            self._hurry.set()
        else:
            self._log.info("stopping", f"leaving: {why}")
        self._stop.set()

    def reload(self) -> None:
        """Read keys, attributes and token again; on any error everything stays as it is."""
        if not self._stop.is_set():
            self._start(self._reload(), "reload")

    async def _serve(self, notes: list[str | None]) -> None:
        starting = asyncio.ensure_future(self._begin(notes))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await stopping
                await self._leave()
        finally:
            if self._serving is not None:
                await self._service.finish(self._serving)
            for task in (starting, stopping, *self._tasks):
                task.cancel()
            await asyncio.gather(starting, stopping, *self._tasks, return_exceptions=True)
            # Members that have not left: the start failed, or the time was over.
            left = [one.leave() for one in self._members.values() if not one.closed]
            await self._briefly(asyncio.gather(*left), "the members' leave")
            ended = [each.cancel() for each in self._hooks.values()]
            await asyncio.gather(*ended, return_exceptions=True)
            await self._briefly(self._network.close(), "the end of the port")
        self._log.info("stopped", "gone")

    async def _begin(self, notes: list[str | None]) -> None:
        address = await self._network.open()
        for note in notes:
            if note is not None:
                self._log.warning("notice", note)
        joins = [asyncio.ensure_future(self._join(group)) for group in self._config.groups]
        try:
            # A mistake is told in one sentence and nothing else, so it has time to show itself.
            await asyncio.wait(joins, timeout=AT_ONCE_S, return_when=asyncio.FIRST_EXCEPTION)
            if not any(each.done() and each.exception() is not None for each in joins):
                # Before all have joined: one that waits for a late engine is healthy, not ready.
                self._serving = self._start(self._service.serve(), "http")
                self._serving.add_done_callback(self._http_ended)
                http = self._service.url
                told = f"members on {address}, HTTP on {http}"
                self._log.info("listening", told, address=address, http=http)
            await asyncio.gather(*joins)
        finally:  # report a failure when all others have ended too
            for task in joins:
                task.cancel()
            await asyncio.gather(*joins, return_exceptions=True)
        self.http = self._service.url

    async def _join(self, group: GroupConfig) -> None:
        early: list[str] = []  # a start that fails is told in one sentence, and nothing else

        def note(sentence: str) -> None:
            if group.group in self._members:
                self._log.warning("notice", sentence, group=group.group)
            else:
                early.append(sentence)

        try:
            member = await self._network.join(group, note)
        except HustingsError as error:
            raise group.wrong(error) from None
        self._members[group.group] = member
        if group.hooks:
            environment = environment_for(os.environ, {}, secrets_of(group.guard))
            self._hooks[group.group] = AgentHooks(
                group.hooks, group.group, member.name, environment, self._log
            )
        for sentence in early:
            note(sentence)
        self._log.info(
            "joined", f"{member.name} at {member.address}", group=group.group, member=member.name
        )
        self._start(self._watch(member), f"watch {group.group}")

    async def _watch(self, member: AgentMember) -> None:
        """Tell each change of leadership to the log and to all listeners."""
        why = "nobody told it to"
        try:
            async for state in member.observe():
                self._tell(state)
        except Exception as error:
            why = str(error) or type(error).__name__
        if member.group in self._hooks:
            await self._hooks[member.group].end()
        if not self._stop.is_set():
            self._log.error("member-ended", f"the member has ended: {why}", group=member.group)
            if all(one.closed for one in self._members.values()):
                self._code = FAILED
                self.stop("no member is left")

    def _tell(self, state: Leadership) -> None:
        self._service.tell(state)
        if state.group in self._hooks:
            self._hooks[state.group].saw(state)
        self._log.info(
            "leadership",
            _told(state),
            group=state.group,
            term=state.term,
            leader=None if state.leader is None else state.leader.name,
            leading=state.leading,
        )

    async def _leave(self) -> None:
        """Say goodbye in all groups at once, and wait for the answers as long as is allowed."""
        self._service.end()
        leaving = [
            asyncio.ensure_future(self._goodbye(member)) for member in self._members.values()
        ]
        hurry = asyncio.ensure_future(self._hurry.wait())
        assert self._serving is not None
        everything = asyncio.gather(*leaving, self._serving, return_exceptions=True)
        await asyncio.wait(
            (everything, hurry),
            timeout=self._config.shutdown_s + self._hooks_s(),
            return_when=asyncio.FIRST_COMPLETED,
        )
        hurry.cancel()
        if not everything.done():
            self._service.hurry()
            self._code = FAILED
            self._log.warning(
                "shutdown-timeout", "not everything ended in time: leaving it as it is"
            )
            everything.cancel()
            with suppress(asyncio.CancelledError):
                await everything

    def _hooks_s(self) -> float:
        """The time for on-lose, in addition to that for leaving."""
        limits = (group.hooks.lose_s for group in self._config.groups)
        return max(limits, default=0.0)

    async def _goodbye(self, member: AgentMember) -> None:
        try:
            await member.leave()
        except HustingsError as error:
            self._code = FAILED
            self._log.error("leave-failed", str(error), group=member.group)
        if member.group in self._hooks:
            await self._hooks[member.group].end()

    async def _reload(self) -> None:
        if self._reread is None:
            return
        async with self._reloading:
            try:
                fresh = await asyncio.to_thread(read_again, self._reread, self._config)
            except HustingsError as error:
                self._log.error("reload-refused", f"everything stays as it was: {error}")
                return
            self._service.api.token = fresh.token
            sealed = [group.group for group in self._config.groups if group.keys]
            for group in fresh.config.groups:
                if (member := self._members.get(group.group)) is not None:
                    keys = fresh.keys[group.group] if group.group in sealed else ()
                    await self._refresh(member, group, keys)
            for sentence in changes_for_restart(self._config, fresh.config):
                self._log.warning("restart-needed", sentence)
            self._log.info("reloaded", "keys, attributes and token were read again")

    async def _refresh(
        self, member: AgentMember, group: GroupConfig, keys: tuple[Key, ...]
    ) -> None:
        try:
            await member.update(group.attributes)
            if keys:
                member.rekey(keys)
        except HustingsError as error:
            self._log.error("reload-refused", str(error), group=group.group)

    def _http_ended(self, serving: asyncio.Task[None]) -> None:
        if not self._stop.is_set() and not serving.cancelled():
            error = serving.exception()
            self._code = FAILED
            self._log.error("http-ended", f"HTTP has ended: {error!r}")
            self.stop("HTTP has ended")

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)
        return task

    async def _briefly(self, work: Awaitable[object], what: str) -> None:
        try:
            async with asyncio.timeout(_LAST_S):
                await work
        except (TimeoutError, HustingsError):
            self._log.warning("shutdown-timeout", f"{what} did not come in time")


def _names(config: AgentConfig) -> list[str]:
    """The names that this agent was given."""
    return [*config.http_names, *([] if config.advertise is None else [config.advertise.host])]


def _told(state: Leadership) -> str:
    if state.leader is None:
        return f"nobody leads: {state.reason}"
    who = ", ".join(one.name for one in state.leaders) or state.leader.name
    verb = "lead" if len(state.leaders) > 1 else "leads"
    return f"{who} {verb} in term {state.term}" + (" (this member)" if state.leading else "")


_AGENT = ("groups", "token_file", "token", "notes")  # read again, or compared below
_GROUP = ("attributes", "locate", "keys", "place")


@dataclass(frozen=True)
class Fresh:
    """New values of what can be reloaded, all checked."""

    config: AgentConfig
    token: Token | None
    keys: dict[str, tuple[Key, ...]]  # by group: the first seals, all open


def read_again(reread: Callable[[], AgentConfig], running: AgentConfig) -> Fresh:
    """Read the configuration and its files again; `BadInput` if they do not fit to run with."""
    config = reread()
    text = token_for(config.token_file, config.token)
    permit_http(running.http, token=text is not None)
    keys = {}
    for group in config.groups:
        keys[group.group] = tuple(read_key(path) for path in group.keys)
        if group.keys:
            KeyRing(keys[group.group])  # refuses what no member could use
    return Fresh(config, None if text is None else Token(text), keys)


def changes_for_restart(old: AgentConfig, new: AgentConfig) -> Iterator[str]:
    """Sentences about changes that take effect only when the agent starts again."""
    for field in fields(AgentConfig):
        if field.name not in _AGENT and getattr(old, field.name) != getattr(new, field.name):
            yield f"{_key(field.name)} has changed: it takes effect at the next start"
    before = {group.group: group for group in old.groups}
    after = {group.group: group for group in new.groups}
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"group {name} is gone from the configuration: it is left at the next start"
        elif name not in before:
            yield f"group {name} is new in the configuration: it is joined at the next start"
        else:
            yield from _group_changes(before[name], after[name])


def _group_changes(old: GroupConfig, new: GroupConfig) -> Iterator[str]:
    for field in fields(GroupConfig):
        if field.name not in _GROUP and getattr(old, field.name) != getattr(new, field.name):
            key = _key(field.name)
            yield f"{key} of group {old.group} has changed: it takes effect at the next start"
    for name in sorted(old.attributes.keys() - new.attributes.keys()):
        yield f"attribute {name} of group {old.group} is gone: it stays until the next start"
    if bool(old.keys) != bool(new.keys):
        yield f"whether group {old.group} has a key has changed: it takes effect at the next start"


def _key(name: str) -> str:
    return name.removesuffix("_s").replace("_", "-")


IP = "ip:"  # the prefix of a multicast address of the network


class Sockets:
    """One port, with a member in each group behind it."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._counters = Counters()
        self._transport: UdpTransport | None = None
        self._notes = ExitStack()
        self.warning = self._check()

    async def open(self) -> str:
        """Listen for all groups."""
        multicast = self._multicast()
        self._transport = await open_udp(self._config.bind, None, self._counters, multicast)
        return str(Address(*self._transport.endpoint))

    async def join(self, group: GroupConfig, note: Callable[[str], None]) -> Member:
        """A member that has found its group, or is alone for now."""
        self._notes.enter_context(notes_of(group.group, note))
        return await self._joining(group, transport=self._transport).open()

    def drops(self) -> Mapping[str, int]:
        """Counts of data that the port refused before a group had it."""
        return self._counters.mapping()

    async def close(self) -> None:
        """Stop listening."""
        self._notes.close()
        if self._transport is not None:
            await self._transport.close()
            await asyncio.sleep(0)  # let the port's tasks notice

    def _check(self) -> str | None:
        """Check now what could be refused later; returns a warning or None."""
        config = self._config
        endpoints(config.bind, config.advertise)
        for group in config.groups:
            try:
                check_guard(group.guard)
                if group.hooks:
                    check_command((SHELL,))
                self._joining(group)
            except BadInput as error:
                raise group.wrong(error) from None
        self._multicast()
        sealed = all(group.keys for group in config.groups)
        return permit(config.bind, sealed, config.insecure)

    def _joining(self, group: GroupConfig, **more: Any) -> Joining:
        given: dict[str, Any] = {
            "name": group.name,
            "expect": group.expect,
            "alone": group.alone,
            "protocol": group.protocol,
            "choice": group.choice,
            "multicast": group.multicast,
            "detector": group.detector,
            "preempt_after": group.preempt_after,
            "stall_bound": group.stall_bound,
            "measure": group.measure,
            "guard": group.guard,
            "ttl": group.ttl,
            "guard_wait": group.guard_wait,
        }
        advertise = self._config.advertise
        return join(
            group.group,
            seeds=group.seeds,
            local=not group.no_local,
            settings=group.settings,
            attributes=group.attributes,
            bind=str(self._config.bind),
            advertise=None if advertise is None else str(advertise),
            key=group.keys or None,
            insecure=self._config.insecure,
            state=group.state,
            observer=group.observer,
            preempt=group.preempt,
            detector_settings=group.detector_settings,
            gossip_settings=group.gossip_settings,
            leadership_settings=group.leadership_settings,
            guard_settings=group.guard_settings,
            limits=group.limits,
            witness=False,  # other processes act on what an agent has told them
            **{key: value for key, value in given.items() if value is not None},
            **more,
        )

    def _multicast(self) -> Address | None:
        """The network's multicast address: a port has one for all its groups, or none."""
        wanted = [group.multicast or "" for group in self._config.groups]
        if not any(text.startswith(IP) for text in wanted):
            return None
        if len(set(wanted)) > 1:
            raise BadInput(
                "groups that share a port share its multicast address too: give all of them the "
                "same multicast, or run two agents"
            )
        return parse_address(wanted[0].removeprefix(IP), "multicast group")
