"""A troop: members in processes of their own, forked from one parent, driven from a test.

The test has no loop: while it waits for a condition, reports are read and, if there is a switch,
packets are passed on. Nothing happens behind its back.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from hustings.lab.plans.namespaces import Switch, address
from tests.net.kit.clocks import environment

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]
GROUP = "troop"
PORT = 7400


@dataclass
class Soldier:
    """One member's process, as far as its reports tell."""

    name: str
    tunnel: str | None = None
    pid: int = 0
    wire: socket.socket | None = None
    address: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)  # what it reported when asked
    dead: bool = False
    unread: bytes = b""

    @property
    def leader(self) -> str | None:
        """Whom it holds for the leader."""
        return self.state.get("leader")

    @property
    def leading(self) -> bool:
        """Whether it leads in its own opinion."""
        return bool(self.state.get("leading"))

    @property
    def term(self) -> int:
        """The highest term that it knows."""
        return int(self.state.get("term", 0))

    def told(self, what: str) -> list[dict[str, Any]]:
        """All reports of one kind."""
        return [each for each in self.reports if each["what"] == what]

    def signal(self, number: int) -> None:
        """Send a signal to its process."""
        os.kill(self.pid, number)

    def order(self, do: str, **more: Any) -> None:
        """Have it do something."""
        assert self.wire is not None
        self.wire.sendall(json.dumps({"do": do, **more}).encode() + b"\n")


class Nursery:
    """The process that forks members; one of each clock for all troops of a test run."""

    _all: ClassVar[dict[str, Nursery]] = {}

    def __init__(self, clock: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.net.kit.nursery"],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            env=environment(clock),
            start_new_session=True,
        )
        atexit.register(self.close)

    @classmethod
    def get(cls, clock: str) -> Nursery:
        """The one that is there, or a new one."""
        if clock not in cls._all:
            cls._all[clock] = cls(clock)
        return cls._all[clock]

    def fork(self, order: dict[str, Any]) -> None:
        """Ask for one more process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it, and all that it has forked."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Troop:
    """Starts members, hears them, and ends whatever is left of them."""

    def __init__(self, *, tunnels: bool = False, seed: int = 0, **common: Any) -> None:
        self.common = {"group": GROUP, **common}
        self.soldiers: dict[str, Soldier] = {}
        self.switch = Switch(seed) if tunnels else None
        self._selector = selectors.DefaultSelector()
        self._folder = tempfile.TemporaryDirectory(prefix="troop")
        self._path = f"{self._folder.name}/wire"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._path)
        self._listener.listen(512)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._numbers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for soldier in self.soldiers.values():
            if soldier.wire is not None:
                with suppress(ProcessLookupError):
                    soldier.signal(signal.SIGKILL)
                soldier.wire.close()
        if self.switch is not None:
            self.switch.close()
        self._listener.close()
        self._selector.close()
        self._folder.cleanup()

    # Members

    def start(
        self, name: str, *, faults: dict[str, Any] | None = None, clock: str = "", **order: Any
    ) -> Soldier:
        """Fork a member, on another `clock` (see kit.clocks); it need not be up when this returns.

        Words of the nursery's (`rate`, `offset`, `wall`, `campaign`) go there, the rest to `join`.
        """
        self._numbers += 1
        nursery = {word: order.pop(word) for word in NURSERY if word in order}
        seeds = [each.address for each in self.alive() if each.address][:5]
        given = {"name": name, "seeds": seeds, "local": False, "seed": self._numbers}
        given |= {**self.common, **order}
        before = self.soldiers.get(name)
        if before is not None and before.wire is not None:
            self._gone(before)
        soldier = Soldier(name)
        if self.switch is not None:
            known = None if before is None else before.tunnel
            soldier.tunnel = known or address(self._numbers)
            given.update(bind=f"{soldier.tunnel}:{PORT}", insecure=True)
            nursery["tunnel"] = soldier.tunnel
        self.soldiers[name] = soldier
        order = {"name": name, "join": given, "faults": faults or {}, **nursery}
        Nursery.get(clock).fork({"path": self._path, **order})
        return soldier

    def up(self, name: str, within: float = 20.0, **order: Any) -> Soldier:
        """Fork a member and wait until it is in the group or alone."""
        soldier = self.start(name, **order)
        self.wait(lambda: soldier.address, f"{name} is up", within)
        return soldier

    def muster(self, names: Iterable[str], within: float = 20.0, **order: Any) -> list[Soldier]:
        """Several: the first by itself, the others at once with the first as their seed."""
        first, *rest = names
        soldiers = [self.up(first, within, **order)]
        soldiers += [self.start(name, **order) for name in rest]
        self.wait(lambda: all(each.address for each in soldiers), "all are up", within)
        return soldiers

    def alive(self) -> list[Soldier]:
        """Those that have not been killed and have not closed."""
        return [each for each in self.soldiers.values() if not each.dead]

    def kill(self, soldier: Soldier) -> float:
        """`kill -9`; when that was."""
        at = time.monotonic()
        soldier.signal(signal.SIGKILL)
        soldier.dead = True
        return at

    def pause(self, soldier: Soldier) -> None:
        """Its process does not run any more."""
        soldier.signal(signal.SIGSTOP)

    def resume(self, soldier: Soldier) -> None:
        """Its process runs again, as if no time had passed."""
        soldier.signal(signal.SIGCONT)

    # Waiting

    def wait(
        self, condition: Callable[[], T], what: str | Callable[[], str], within: float = 30.0
    ) -> T:
        """Read reports until a condition holds; what it returned."""
        deadline = time.monotonic() + within
        while not (found := condition()):
            if time.monotonic() > deadline:
                said = what if isinstance(what, str) else what()
                raise AssertionError(f"not within {within} s: {said}; {self.standing()}")
            self.turn(0.05)
        return found

    def linger(self, seconds: float, condition: Callable[[], object], what: str) -> None:
        """A condition holds all the time for so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert condition(), f"{what}; {self.standing()}"
            self.turn(0.02)

    def turn(self, most: float) -> None:
        """Handle what comes within so many seconds."""
        now = time.monotonic()
        soon = None if self.switch is None else self.switch.due(now)
        ready = self._selector.select(most if soon is None else max(0.0, min(most, soon)))
        for key, _ in ready:
            key.data()
        if self.switch is not None:
            self.switch.due(time.monotonic())

    def agreed(
        self, but: str = "", within: float = 15.0, among: Iterable[Soldier] | None = None
    ) -> Soldier:
        """Wait until all hold one of them for the only leader in one term, and it is not `but`."""
        chosen = self.alive() if among is None else list(among)
        found = self.wait(lambda: one_leader(chosen, but), "one leader", within)
        assert found is not None
        return found

    def settled(self, lasting: float = 0.5, within: float = 20.0) -> Soldier:
        """Wait until all have agreed for a while."""
        deadline = time.monotonic() + within
        while True:
            leader = self.agreed(within=deadline - time.monotonic())
            until = time.monotonic() + lasting
            while one_leader(self.alive()) is leader:
                if time.monotonic() >= until:
                    return leader
                self.turn(0.02)

    def known(self, count: int, within: float = 15.0) -> None:
        """Wait until everybody knows so many members."""
        deadline = time.monotonic() + within
        while True:
            sizes = [len(each["members"]) for each in self.ask_all(self.alive(), within)]
            if all(size == count for size in sizes):
                return
            assert time.monotonic() < deadline, f"{count} members are known: {sizes}"
            self.linger(0.05, lambda: True, "")

    def ask(self, soldier: Soldier, within: float = 30.0) -> dict[str, Any]:
        """A report on demand."""
        return self.ask_all([soldier], within)[0]

    def ask_all(self, soldiers: list[Soldier], within: float = 30.0) -> list[dict[str, Any]]:
        """Reports of several."""
        self._numbers += 1
        number = self._numbers
        for soldier in soldiers:
            soldier.order("report", number=number)
        self.wait(
            lambda: all(each.last.get("number") == number for each in soldiers),
            "all report",
            within,
        )
        return [each.last for each in soldiers]

    def standing(self) -> str:
        """What everybody thinks."""
        return "; ".join(
            f"{each.name}: {each.leader or each.state.get('reason')!r} term {each.term}"
            f"{' LEADS' if each.leading else ''}"
            f"{' '.join(failed['text'] for failed in each.told('failed'))}"
            for each in self.soldiers.values()
        )

    # Inside

    def _accept(self) -> None:
        wire, _ = self._listener.accept()
        wire.settimeout(10)
        line = b""
        while not line.endswith(b"\n"):
            line += wire.recv(1)
        born = json.loads(line)
        soldier = self.soldiers[born["name"]]
        soldier.wire, soldier.pid = wire, born["pid"]
        if soldier.tunnel is not None and self.switch is not None:
            _, devices, _, _ = socket.recv_fds(wire, 3, 1)
            switch, own = self.switch, soldier.tunnel
            switch.plug(own, devices[0])
            self._selector.register(
                devices[0], selectors.EVENT_READ, lambda: switch.read(own, time.monotonic())
            )
        wire.setblocking(False)
        self._selector.register(wire, selectors.EVENT_READ, lambda: self._hear(soldier))

    def _hear(self, soldier: Soldier) -> None:
        assert soldier.wire is not None
        try:
            data = soldier.wire.recv(262_144)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone(soldier)
            return
        *lines, soldier.unread = (soldier.unread + data).split(b"\n")
        for line in lines:
            report = json.loads(line)
            soldier.reports.append(report)
            match report["what"]:
                case "opened":
                    soldier.address = report["address"]
                case "state":
                    soldier.state = report
                case "report":
                    soldier.last = report
                case "closed" | "failed":
                    soldier.dead = True

    def _gone(self, soldier: Soldier) -> None:
        soldier.dead = True
        if soldier.wire is None:
            return
        self._selector.unregister(soldier.wire)
        soldier.wire.close()
        soldier.wire = None
        if self.switch is not None and soldier.tunnel in self.switch.devices:
            self._selector.unregister(self.switch.devices[soldier.tunnel])
            self.switch.unplug(soldier.tunnel)


NURSERY = ("rate", "offset", "wall", "campaign")


def one_leader(soldiers: Iterable[Soldier], but: str = "") -> Soldier | None:
    """The one that all hold for the leader in one term, itself too."""
    members = list(soldiers)
    if not members or len({(each.leader, each.term) for each in members}) != 1:
        return None
    leading = [each for each in members if each.leading]
    if len(leading) != 1 or leading[0].name != members[0].leader or leading[0].name == but:
        return None
    return leading[0]
