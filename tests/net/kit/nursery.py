"""The nursery: one process without threads, from which members are forked.

Run as `python -m tests.net.kit.nursery`. Each line on its standard input is a JSON object that says
whom to fork. A child connects to the socket that is named there, tells what becomes of it, line by
line, and does what it is told, until that connection ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from typing import Any

import hustings
from hustings.joining import join
from hustings.lab.plans.namespaces import enter
from hustings.lab.surveys.asking import Survey
from hustings.lab.surveys.describing import describe
from hustings.net.logs import notes_of
from hustings.net.member import Member
from hustings.net.member_state import Leadership


class SkewedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock runs at another rate, and has begun at another time."""

    def __init__(self, rate: float, offset: float) -> None:
        self._rate = rate
        self._offset = offset
        self._began = time.monotonic()
        super().__init__(_Patient(rate))

    def time(self) -> float:
        """Seconds of this clock."""
        return self._offset + (time.monotonic() - self._began) * self._rate


class _Patient(selectors.DefaultSelector):
    """Waits in seconds of a clock with another rate."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._clock_rate = rate

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / self._clock_rate)


class Child:
    """One member in a process of its own."""

    def __init__(self, order: dict[str, Any], wire: socket.socket) -> None:
        self.name = str(order["name"])
        self.order = order
        self.wire = wire
        self.member: Member | None = None
        self.working = False

    def tell(self, what: str, **more: Any) -> None:
        """A report, with the time on a clock that all processes share."""
        report = {"what": what, "name": self.name, "at": time.monotonic(), **more}
        try:
            self.wire.sendall(json.dumps(report).encode() + b"\n")
        except OSError:
            os._exit(0)  # whoever started this is gone

    async def live(self) -> None:
        """Join, report, obey; a note in the log is reported, too."""
        with notes_of(self.order["join"]["group"], lambda text: self.tell("note", text=text)):
            await self._live()

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        self.wire.setblocking(True)
        orders = socket.socket(fileno=os.dup(self.wire.fileno()))
        await loop.connect_accepted_socket(lambda: asyncio.StreamReaderProtocol(reader), orders)
        self.wire.setblocking(True)
        given = dict(self.order["join"])
        try:
            self.member = await join(given.pop("group"), **given).open()
        except hustings.HustingsError as error:
            self.tell("failed", text=str(error))
            return
        member = self.member
        self.apply(self.order.get("faults", {}))
        self.tell("opened", address=member.address, pid=os.getpid())
        jobs = [asyncio.create_task(self.observe(member))]
        if self.order.get("campaign"):
            jobs.append(asyncio.create_task(self.campaign(member)))
        while line := await reader.readline():
            await self.obey(member, json.loads(line))
        for job in jobs:
            job.cancel()
        await member.kill()

    async def observe(self, member: Member) -> None:
        async for state in member.observe():
            self.tell("state", **told(state))
        self.tell("closed", error=None if member.error is None else str(member.error))

    async def campaign(self, member: Member) -> None:
        """Work while leading, and say when it begins and ends."""
        while not member.closed:
            try:
                async with member.campaign() as term:
                    self.tell("working", term=term.number)
                    try:
                        await asyncio.Event().wait()
                    finally:
                        self.tell("rested", term=term.number)
            except hustings.LeadershipLost:
                continue
            except hustings.NotLeader:
                return

    async def obey(self, member: Member, order: dict[str, Any]) -> None:
        try:
            match order["do"]:
                case "faults":
                    self.apply(order)
                case "report":
                    self.tell(
                        "report",
                        number=order["number"],
                        date=time.time(),
                        members=[peer.name for peer in member.members()],
                        drops=member.metrics().drops,
                        health=member.metrics().health,
                        packets=member.metrics().frames_sent,
                        sent=member.metrics().messages_sent,
                        changes=member.metrics().leader_changes,
                    )
                case "transfer":
                    await member.transfer(order["to"])
                case "resign":
                    await member.resign()
                case "elect":
                    await member.elect()
                case "leave":
                    await member.leave()
                case "survey":
                    await self.survey(member, order)
                case "block":
                    time.sleep(order["seconds"])  # the loop does not run: a process that hangs
                case "room":
                    make_room(order["room"])
        except hustings.HustingsError as error:
            self.tell("refused", order=order["do"], text=str(error))

    async def survey(self, member: Member, order: dict[str, Any]) -> None:
        """What `hustings measure` does once its observer has joined."""
        survey = Survey(member, order["seconds"], rate=order["rate"])
        made = describe(await survey.run())
        self.tell("surveyed", rows=made.rows, missing=made.missing, text=made.to_toml("troop"))

    def apply(self, faults: dict[str, Any]) -> None:
        """Turn the switch at the member's port."""
        if self.member is None:
            return
        switch = self.member.node.transport.faults
        for name in ("loss", "copies", "delay", "jitter"):
            if name in faults:
                setattr(switch, name, faults[name])
        if faults.get("heal"):
            switch.heal()
        if "cut" in faults:
            endpoints = [(host, int(port)) for host, port in faults["cut"]]
            switch.cut(endpoints, to=faults.get("to", True), by=faults.get("by", True))


def make_room(room: bool) -> None:
    """Whether files may grow in this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if room else 0, hard))


def told(state: Leadership) -> dict[str, Any]:
    return {
        "term": state.term,
        "leader": None if state.leader is None else state.leader.name,
        "leading": state.leading,
        "reason": state.reason,
    }


def child(order: dict[str, Any]) -> None:
    """All of a forked process's life."""
    with socket.socket(socket.AF_UNIX) as wire:
        try:
            wire.connect(order["path"])
        except OSError:
            return  # whoever wanted this one has not waited for it
        born = Child(order, wire)
        born.tell("born", pid=os.getpid())
        if "tunnel" in order:
            device = enter(order["tunnel"])
            socket.send_fds(wire, [b"{}\n"], [device])
            os.close(device)
        if "wall" in order:
            real = time.time
            time.time = lambda: real() + order["wall"]
        rate, offset = order.get("rate", 1.0), order.get("offset", 0.0)
        try:
            with asyncio.Runner(loop_factory=lambda: SkewedLoop(rate, offset)) as runner:
                runner.run(born.live())
        except Exception as error:
            born.tell("failed", text=repr(error))
            raise


def main() -> None:
    """Fork whom the lines on standard input ask for."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody is waited for
    for line in sys.stdin.buffer:
        order = json.loads(line)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            try:
                child(order)
            finally:
                os._exit(0)


if __name__ == "__main__":
    main()
