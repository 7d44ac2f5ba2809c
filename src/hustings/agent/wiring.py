"""The agent's members on real sockets: all groups share one port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from hustings.agent.command import check_guard
from hustings.agent.config import AgentConfig, GroupConfig
from hustings.core.errors import BadInput
from hustings.joining import Joining, join
from hustings.net.addresses import Address, endpoints, parse_address, permit
from hustings.net.limits import Counters
from hustings.net.member import Member
from hustings.net.udp import UdpPort, open_port

IP = "ip:"  # how a multicast address of the network is written


class Sockets:
    """One port, and a member in each group behind it."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._counters = Counters()
        self._port: UdpPort | None = None
        self.warning = self._check()

    async def open(self) -> str:
        """Listen for all groups."""
        multicast = self._multicast()
        self._port = await open_port(self._config.bind, None, self._counters, multicast)
        return str(Address(*self._port.endpoint))

    async def join(self, group: GroupConfig, note: Callable[[str], None]) -> Member:
        """A member that has found its group, or is alone for now."""
        return await self._joining(group, port=self._port, note=note).open()

    def drops(self) -> Mapping[str, int]:
        """What the port refused before it was any group's."""
        return self._counters.mapping()

    async def close(self) -> None:
        """Stop listening."""
        if self._port is not None:
            await self._port.close()
            await asyncio.sleep(0)  # what the port was doing notices

    def _check(self) -> str | None:
        """Refuse now what could be refused later; or a warning."""
        config = self._config
        endpoints(config.bind, config.advertise)
        for group in config.groups:
            try:
                check_guard(group.guard)
                self._joining(group)
            except BadInput as error:
                raise group.wrong(error) from None
        self._multicast()
        sealed = all(group.keys for group in config.groups)
        return permit(config.bind, sealed, config.insecure)

    def _joining(self, group: GroupConfig, **more: Any) -> Joining:
        given: dict[str, Any] = {
            "name": group.name,
            "protocol": group.protocol,
            "choice": group.choice,
            "multicast": group.multicast,
            "detector": group.detector,
            "preempt_after": group.preempt_after,
            "stall_bound": group.stall_bound,
            "measure": group.measure,
            "guard": group.guard,
            "ttl": group.ttl,
        }
        advertise = self._config.advertise
        return join(
            group.group,
            seeds=group.seeds,
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
