"""Members of hustings in one process: settings are the keywords of `hustings.join`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import hustings
from bench.net.records import NOBODY, Kind, Reporter
from hustings.core.names import member_id

GROUP = "bench"
SEEDS = 3


def prepare() -> None:
    """Do nothing: this module's import loads what members need, before they are forked."""


def run(plan: dict[str, Any], members: Sequence[int], reports: int, commands: int) -> None:
    asyncio.run(serve(plan, members, reports, commands))


def name_of(member: int) -> str:
    return f"m{member:04d}"


@lru_cache(maxsize=1)
def numbers(n: int) -> dict[int, int]:
    """Number members by id; a member's name may not be known yet where its id is."""
    return {member_id(name_of(each)): each for each in range(n)}


def seeds(plan: dict[str, Any], member: int) -> list[str]:
    """Return the first member of each of the first processes, without this one."""
    share, n = plan["per_process"], plan["n"]
    firsts = [first for first in range(0, n, share) if first != member]
    return [f"127.0.0.1:{plan['port'] + first}" for first in firsts[:SEEDS]]


class Seat:
    """One member, with its reports and its commands."""

    def __init__(self, plan: dict[str, Any], number: int, reports: int) -> None:
        self.reporter = Reporter(reports, number)
        self.numbers = numbers(plan["n"])
        self.joining = hustings.join(
            GROUP,
            name=name_of(number),
            bind=f"127.0.0.1:{plan['port'] + number}",
            seeds=seeds(plan, number),
            local=False,
            **plan["settings"],
        )

    async def follow(self) -> None:
        self.member = await self.joining.open()
        async for state in self.member.observe():
            leader = state.leader
            self.reporter.follow(NOBODY if leader is None else self.numbers[leader.id])

    async def obey(self, command: dict[str, Any]) -> None:
        if command["do"] == "stand":
            await self.member.stand()
            return
        self.reporter.say(Kind.CALLED)
        try:
            if command["do"] == "transfer":
                await self.member.transfer(name_of(command["to"]))
            else:
                await self.member.resign()
        except Exception:
            self.reporter.say(Kind.REFUSED)
            raise


async def serve(plan: dict[str, Any], members: Sequence[int], reports: int, commands: int) -> None:
    seats = {number: Seat(plan, number, reports) for number in members}
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(seat.follow()) for seat in seats.values()]
    pending: list[asyncio.Task[None]] = []

    def told() -> None:
        # A command is shorter than a pipe's atomic write, so lines come whole.
        for line in os.read(commands, 65_536).splitlines():
            command = json.loads(line)
            pending.append(loop.create_task(seats[command["member"]].obey(command)))

    loop.add_reader(commands, told)
    await asyncio.gather(*tasks)
