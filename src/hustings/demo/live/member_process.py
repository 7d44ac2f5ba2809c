"""The process of one member: it joins by `hustings.join`, reports what it knows, obeys orders."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from dataclasses import dataclass

from hustings.core.errors import HustingsError
from hustings.core.streams import derive
from hustings.demo.live.channel import (
    Channel,
    CutOrder,
    FiguresReport,
    FollowingReport,
    HandOver,
    HealOrder,
    LeaveOrder,
    Opened,
    Order,
    RefusedReport,
)
from hustings.joining import Joining, join
from hustings.net.member import Member
from hustings.net.member_state import Leadership

FIGURES = 0.25  # seconds between two reports of counts


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """The settings of a member."""

    group: str
    name: str
    rank: int  # the highest is the best
    protocol: str
    seed: int
    seeds: tuple[str, ...] = ()
    preempt: bool = False


def joining(part: MemberPlan) -> Joining:
    """The member to join. `BadInput` if it cannot be one."""
    return join(
        part.group,
        name=part.name,
        seeds=part.seeds,
        local=False,  # the demo says where they meet, and two demos may run at one time
        protocol=part.protocol,
        preempt=part.preempt,
        choice="highest:rank",
        attributes={"rank": part.rank},
        seed=derive(part.seed, "demo", part.name),
    )


async def serve(channel: Channel, part: MemberPlan) -> None:
    """Be this member until told to leave; raises the reason if it cannot go on."""
    seat = _MemberProcess(channel)
    asyncio.get_running_loop().add_reader(channel.fileno(), seat.heed)
    await seat.take(await joining(part).open())


class _MemberProcess:
    """A member and its channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._member: Member | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._said: tuple[str, int] | None = None

    async def take(self, member: Member) -> None:
        """Report until the member has left."""
        self._member = member
        self._channel.say(Opened(time.monotonic(), member.node.transport.endpoint))
        self._count(member)
        async for state in member.observe():
            self._follow(state)

    def heed(self) -> None:
        """Carry out the orders that have come."""
        for order in self._channel.orders():
            self._obey(order)
        self._end_with_the_demo()

    def _end_with_the_demo(self) -> None:
        if self._channel.ended:
            os._exit(0)  # no process is left to report to

    def _obey(self, order: Order) -> None:
        member = self._member
        if member is None:
            if isinstance(order, LeaveOrder):
                os._exit(0)
            self._channel.say(RefusedReport("it has not joined yet"))
            return
        match order:
            case CutOrder(endpoints):
                member.node.transport.faults.cut(endpoints)
            case HealOrder():
                member.node.transport.faults.heal()
            case HandOver(to):
                self._begin(member.transfer(to))
            case LeaveOrder():
                self._begin(member.leave())

    def _begin(self, doing: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._carry_out(doing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, doing: Coroutine[None, None, None]) -> None:
        try:
            await doing
        except HustingsError as error:
            self._channel.say(RefusedReport(str(error)))
        except Exception as error:
            self._channel.say(RefusedReport(f"{type(error).__name__}: {error}"))

    def _follow(self, state: Leadership) -> None:
        """Report changes of leader; a change of the peers' addresses and the like is none."""
        now = ("" if state.leader is None else state.leader.name, state.term)
        if now != self._said:
            self._said = now
            self._channel.say(FollowingReport(time.monotonic(), *now))

    def _count(self, member: Member) -> None:
        if member.closed:
            return
        figures = member.metrics()
        self._channel.say(FiguresReport(time.monotonic(), figures.frames_sent, figures.members))
        self._end_with_the_demo()
        asyncio.get_running_loop().call_later(FIGURES, self._count, member)
