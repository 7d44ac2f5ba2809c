"""When a supervisor asks and when it kills, by a clock that the test sets; and its guardian's
patience.

No process is started here: what is tried is arithmetic, and it decides whether two commands run at
one time.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from types import SimpleNamespace

import pytest

from hustings.agent import supervisor
from hustings.agent.child import TAKE_OVER_S
from hustings.agent.command import CommandSpec, lease_for
from hustings.agent.supervisor import LATE_S, SETTLE_S, Deadline, Guardian, Supervisor
from hustings.core.errors import BadInput

GRACE_S, SILENCE_S = 5.0, 3.0


@dataclass
class Table:
    """A supervisor, its member's end of the line, and a clock."""

    monkeypatch: pytest.MonkeyPatch
    now: float = 90.0
    sent: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        clock = SimpleNamespace(monotonic=lambda: self.now)
        self.monkeypatch.setattr("hustings.agent.supervisor.time", clock)
        self.wake, self.woken = os.pipe()
        self.monkeypatch.setattr(supervisor, "wake_on_child", lambda: self.wake)
        self.monkeypatch.setattr(supervisor, "below", lambda of, but=(): [])
        self.member, control = socket.socketpair()
        self.guardian, self.held_by_guardian = os.pipe()
        self.control = control
        self.supervisor = Supervisor(
            control.fileno(),
            self.guardian,
            Deadline(0.0),
            GRACE_S,
            SILENCE_S,
            100.0,
            -1,
            ["no-such-command"],
        )
        self.monkeypatch.setattr(
            self.supervisor, "signal_all", lambda *numbers: self.sent.extend(numbers)
        )

    def told(self) -> list[str]:
        self.member.setblocking(False)
        try:
            return self.member.recv(4096).decode().split("\n")[:-1]
        except BlockingIOError:
            return []

    def order(self, data: bytes) -> None:
        self.member.sendall(data)
        self.supervisor._look(0.0)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    made = Table(monkeypatch)
    yield made
    monkeypatch.undo()
    made.member.close()
    made.control.close()
    for descriptor in (made.guardian, made.held_by_guardian, made.wake, made.woken):
        os.close(descriptor)


ASKED = [signal.SIGTERM, signal.SIGCONT]

# --- the grace -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noticed_at, killed_at, asked",
    [
        (90.0, 95.0, True),  # while leading: a hand-over, or a member that is gone
        (100.0, 105.0, True),  # when the lease is over
        (103.0, 105.0, True),  # late: the grace began when the lease was over
        (105.0, 105.0, False),  # too late to ask
        (400.0, 105.0, False),
    ],
)
def test_the_grace_counts_from_the_end_of_the_lease(
    table: Table, noticed_at: float, killed_at: float, asked: bool
) -> None:
    table.now = noticed_at
    table.supervisor.end()
    assert table.supervisor.kill_at == killed_at
    assert table.sent == (ASKED if asked else [])


def test_without_a_lease_it_counts_from_the_order(table: Table) -> None:
    table.supervisor.until = inf
    table.now = 400.0
    table.supervisor.end()
    assert table.supervisor.kill_at == 405.0


def test_who_is_told_twice_does_not_wait_longer(table: Table) -> None:
    table.supervisor.end()
    table.now = 93.0
    table.supervisor.end()
    assert table.supervisor.kill_at == 95.0
    assert table.sent == ASKED


@pytest.mark.parametrize(
    "number, at, asked, killed_at",
    [
        (signal.SIGTERM, 90.0, inf, 95.0),
        (signal.SIGINT, 90.0, 92.5, 95.0),
        (signal.SIGINT, 103.0, 104.0, 105.0),  # the grace began when the lease was over
    ],
)
def test_a_signal_that_is_passed_on_begins_the_grace(
    table: Table, number: int, at: float, asked: float, killed_at: float
) -> None:
    table.now = at
    table.order(b"g" + bytes([number]))
    assert table.told() == [f"passed {int(number)}"]
    assert (table.supervisor.ask_at, table.supervisor.kill_at) == (asked, killed_at)
    assert table.sent == []  # the signal itself went to the process group
    table.supervisor.end()
    assert table.sent == ASKED
    assert (table.supervisor.ask_at, table.supervisor.kill_at) == (inf, killed_at)


def test_a_second_signal_does_not_prolong_the_grace(table: Table) -> None:
    table.order(b"g" + bytes([signal.SIGINT]))
    table.now = 94.0
    table.order(b"g" + bytes([signal.SIGTERM]))
    assert table.supervisor.kill_at == 95.0
    table.order(b"k\0")
    assert table.supervisor.kill_at == 94.0


def test_killing_never_waits(table: Table) -> None:
    table.supervisor.end()
    table.now = 92.0
    table.supervisor.kill()
    assert table.supervisor.kill_at == 92.0
    table.now = 94.0
    table.supervisor.kill()
    assert table.supervisor.kill_at == 92.0


# --- what its guardian knows ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "heard_at, until, by",
    [
        (90.0, 100.0, 98.0),  # silence, then the grace
        (96.0, 100.0, 104.0),
        (98.0, 100.0, 105.0),  # the lease, then the grace
        (90.0, inf, 98.0),
    ],
)
def test_when_all_is_killed_if_nobody_says_anything(
    table: Table, heard_at: float, until: float, by: float
) -> None:
    table.supervisor.heard_at, table.supervisor.until = heard_at, until
    assert table.supervisor._killed_by(table.now) == by


def test_when_all_is_killed_once_it_was_asked(table: Table) -> None:
    table.supervisor.end()
    assert table.supervisor._killed_by(91.0) == 95.0
    assert (
        table.supervisor._killed_by(97.0) == 97.0
    )  # it tries again and again: at work, not stopped


def test_a_deadline_is_shared_with_a_child() -> None:
    deadline = Deadline(5.0)
    child = os.fork()
    if child == 0:
        deadline.at = 1234.5
        os._exit(0)
    os.waitpid(child, 0)
    assert deadline.at == 1234.5


class Waiting:
    """What a guardian sees: a supervisor that ends, or not, and a clock that goes while it
    waits.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, deadlines: list[float]) -> None:
        self.now = 0.0
        self.killed_at: float | None = None
        self._deadlines = deadlines  # one for each look; the last one stays
        monkeypatch.setattr(supervisor, "wake_on_child", lambda: -1)
        self.control, self.member = socket.socketpair()
        self.guardian = Guardian(self.control.fileno(), 7, Deadline(deadlines[0]))
        replaced = {
            "time": SimpleNamespace(monotonic=lambda: self.now),
            "os": SimpleNamespace(
                waitpid=self._waitpid, kill=self._kill, write=os.write, WNOHANG=os.WNOHANG
            ),
            "select": SimpleNamespace(select=self._select),
        }
        for name, module in replaced.items():
            monkeypatch.setattr(f"hustings.agent.supervisor.{name}", module)
        monkeypatch.setattr(supervisor, "drain", lambda _: None)

    def _waitpid(self, process: int, flags: int) -> tuple[int, int]:
        assert self.now < 1000.0, "it waits without end"
        return (0, 0) if self.killed_at is None else (7, 9)

    def _kill(self, process: int, number: int) -> None:
        assert (process, number) == (7, signal.SIGKILL)
        self.killed_at = self.now

    def _select(self, readers: object, _: object, __: object, pause: float | None) -> None:
        assert pause is not None
        self.now += pause
        if len(self._deadlines) > 1:
            self._deadlines.pop(0)
        self.guardian.deadline.at = self._deadlines[0]


def test_a_guardian_kills_a_supervisor_that_lets_its_deadline_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = Waiting(monkeypatch, [10.0])
    waiting.guardian._wait_for_supervisor()
    assert waiting.killed_at is not None
    assert 10.0 + LATE_S <= waiting.killed_at <= 10.0 + SETTLE_S
    monkeypatch.undo()
    assert waiting.member.recv(64) == b"killed\n"
    waiting.control.close()
    waiting.member.close()


def test_a_guardian_bears_a_supervisor_that_is_late_with_everybody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine stood still: at the first look the deadline is past, at the second there is one
    that is not."""
    waiting = Waiting(monkeypatch, [-100.0, 50.0, 60.0, 60.0])
    waiting.guardian._wait_for_supervisor()
    assert waiting.killed_at is not None
    assert waiting.killed_at >= 60.0 + LATE_S
    monkeypatch.undo()
    waiting.control.close()
    waiting.member.close()


def test_a_guardian_sleeps_until_the_deadline_and_kills_nobody_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    killed: list[int] = []
    ends = iter([(0, 0), (0, 0), (7, 0)])
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: 90.0))
    monkeypatch.setattr(supervisor, "wake_on_child", lambda: 0)
    monkeypatch.setattr(supervisor, "drain", lambda descriptor: None)
    monkeypatch.setattr(os, "waitpid", lambda *_: next(ends))
    monkeypatch.setattr(os, "kill", lambda process, number: killed.append(process))
    monkeypatch.setattr(select, "select", lambda *given: slept.append(given[3]))
    Guardian(0, 7, Deadline(90.25))._wait_for_supervisor()
    assert slept == [0.25 + LATE_S] * 2
    assert killed == []


def test_a_guardian_sweeps_until_it_has_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not end is told once, when it should long be gone, and looked at less often."""
    now, slept, waited = [90.0], list[float](), list[int]()
    told: list[tuple[str, int | None]] = []

    def wait(process: int, options: int) -> tuple[int, int]:
        waited.append(process)
        if len(waited) > 3:
            raise ChildProcessError
        return 0, 0

    def sleep(pause: float) -> None:
        slept.append(pause)
        now[0] += SETTLE_S

    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(supervisor, "wake_on_child", lambda: 0)
    monkeypatch.setattr(supervisor, "kill_family", lambda of: 2)
    monkeypatch.setattr(supervisor, "tell", lambda line, word, number: told.append((word, number)))
    monkeypatch.setattr(os, "waitpid", wait)
    Guardian(0, 7, Deadline(0.0))._sweep()
    assert waited == [-1] * 4
    assert told == [("left", 2)]
    assert slept == [supervisor.LOOK_S, supervisor.SLOW_LOOK_S, supervisor.SLOW_LOOK_S]


# --- the family ----------------------------------------------------------------------------------


def test_groups_are_killed_at_one_blow_but_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {11: 77, 12: os.getpgid(0), 13: 0, 1: 5, 14: 5}
    struck: list[tuple[str, int]] = []
    monkeypatch.setattr(
        supervisor, "below", lambda of, but=(): [(each, 1) for each in (11, 12, 13, 14)]
    )
    monkeypatch.setattr(supervisor, "_group", lambda process: groups[process])
    monkeypatch.setattr(supervisor, "_is_dead", lambda process: True)
    monkeypatch.setattr(os, "kill", lambda each, number: struck.append(("one", each)))
    monkeypatch.setattr(os, "killpg", lambda each, number: struck.append(("all", each)))
    assert supervisor.kill_family(1) == 0
    assert struck == [("one", 11), ("all", 77), ("one", 12), ("one", 13), ("one", 14)]


def test_a_supervisor_is_deaf_before_there_is_a_command(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf: list[tuple[int, object]] = []
    monkeypatch.setattr(os, "fork", lambda: 4_000_001)
    monkeypatch.setattr(signal, "signal", lambda *given: deaf.append(given))
    assert table.supervisor.start()
    assert deaf == [(each, signal.SIG_IGN) for each in supervisor.DEAF_TO]
    assert table.told() == ["started 4000001"]


def test_a_command_ends_once_and_is_buried_last(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, stray = 4_000_001, 4_000_002
    family = [(main, os.getpid()), (stray, main)]
    waited: list[int] = []
    done = [None, SimpleNamespace(si_code=os.CLD_EXITED, si_status=3)]

    def wait(process: int, options: int) -> tuple[int, int]:
        waited.append(process)
        if process == -1 and len(waited) > 2:
            raise ChildProcessError
        return 0, 0

    monkeypatch.setattr(supervisor, "below", lambda of, but=(): family)
    monkeypatch.setattr(supervisor, "_is_dead", lambda process: False)
    monkeypatch.setattr(os, "waitid", lambda *_: done.pop(0))
    monkeypatch.setattr(os, "waitpid", wait)
    table.supervisor.main = main
    assert table.supervisor.is_gone() is False  # it runs
    assert table.supervisor.is_gone() is False  # what it started does
    assert table.told() == ["ended 3"]
    family.pop()
    assert table.supervisor.is_gone() is False  # there is a child
    assert table.supervisor.is_gone() is True
    assert waited == [main, -1, -1]
    assert table.told() == []


@pytest.mark.parametrize("order", [b"e\0", b"k\0", bytes([ord("g"), signal.SIGTERM])])
@pytest.mark.parametrize("ended_before", [True, False])
def test_a_success_comes_before_the_order_to_end(
    table: Table, monkeypatch: pytest.MonkeyPatch, order: bytes, ended_before: bool
) -> None:
    """A command may have ended by itself when the order is heard: then it has succeeded."""
    over = SimpleNamespace(si_code=os.CLD_EXITED, si_status=0)
    done = [over] if ended_before else [None, over]
    monkeypatch.setattr(os, "waitid", lambda *_: done.pop(0))
    monkeypatch.setattr(os, "waitpid", lambda *_: (0, 0))
    monkeypatch.setattr(table.supervisor, "signal", lambda *_, **__: None)
    table.supervisor.main = 4_000_001
    table.order(order)
    table.supervisor._note_end()
    told = [each for each in table.told() if not each.startswith("passed")]
    assert told == (["done", "ended 0"] if ended_before else ["ended 0"])


# --- orders --------------------------------------------------------------------------------------


def until_order(at: float) -> bytes:
    return b"u" + struct.pack(">d", at)


def test_a_later_end_of_the_lease_and_an_earlier_one(table: Table) -> None:
    table.order(until_order(130.0))
    assert table.supervisor.until == 130.0
    table.order(until_order(95.0))
    assert table.supervisor.until == 95.0


def test_orders_that_come_in_pieces(table: Table) -> None:
    whole = until_order(120.0) + b".\0" + until_order(125.0) + b"e\0"
    for place in range(len(whole) - 1):
        table.order(whole[place : place + 1])
        assert not table.supervisor.ending
    assert table.supervisor.until == 125.0
    table.order(whole[-1:])
    assert table.supervisor.ending


def test_a_sign_of_life_is_a_sign_of_life(table: Table) -> None:
    table.now = 92.0
    table.order(b".\0")
    assert table.supervisor.heard_at == 92.0
    assert not table.supervisor.ending


@pytest.mark.parametrize("orders", [b"e\0", b"k\0", b".\0e\0", until_order(200.0) + b"k\0"])
def test_what_was_called_off_before_it_began_is_not_started(table: Table, orders: bytes) -> None:
    table.member.sendall(orders)
    table.supervisor.run()
    assert table.told() == ["ended 137", "empty"]


def test_a_lease_that_is_over_before_it_began(table: Table) -> None:
    table.now = 100.0
    table.supervisor.run()
    assert table.told() == ["expired", "ended 137", "empty"]


def test_a_lease_that_was_renewed_before_it_began(table: Table) -> None:
    """It is started, or would be: there is no such command."""
    table.now = 100.0
    table.member.sendall(until_order(130.0))
    assert not table.supervisor._is_too_late()


def test_a_member_that_is_gone_before_it_began(table: Table) -> None:
    table.member.shutdown(socket.SHUT_RDWR)
    assert table.supervisor._is_too_late()


def test_a_guardian_that_is_gone_before_it_began(table: Table) -> None:
    other = os.dup(table.held_by_guardian)
    os.close(table.held_by_guardian)
    try:
        assert not table.supervisor._is_too_late()
    finally:
        os.close(other)
    assert table.supervisor._is_too_late()
    assert table.told() == ["unguarded"]
    table.held_by_guardian = os.open(os.devnull, os.O_RDONLY)  # for the fixture to close


# --- the lease that is asked for ------------------------------------------------------------------


@pytest.mark.parametrize("grace_s", [0.0, 0.2, 5.0, 30.0])
def test_a_lease_has_room_for_the_grace_and_for_killing(grace_s: float) -> None:
    spec = CommandSpec(("true",), grace_s=grace_s)
    asked = lease_for(spec, "etcd://", None)
    margin, ttl = asked["margin"], asked["ttl"]
    assert isinstance(margin, float)
    assert isinstance(ttl, float)
    # Supervisor, guardian and member each kill within this of the end of the grace.
    assert margin > grace_s + SETTLE_S
    assert max(TAKE_OVER_S, LATE_S * 1.5) < SETTLE_S
    assert ttl >= 2 * margin
    assert lease_for(spec, "etcd://", 2 * margin) == {"ttl": 2 * margin, "margin": margin}
    with pytest.raises(BadInput, match="leaves no time to lead"):
        lease_for(spec, "etcd://", 2 * margin - 0.001)


def test_the_clock_is_the_machines() -> None:
    """Times are told from one process to another: both must read the same clock."""
    child_read, child_write = os.pipe()
    before = time.monotonic()
    child = os.fork()
    if child == 0:
        os.write(child_write, struct.pack("d", time.monotonic()))
        os._exit(0)
    os.waitpid(child, 0)
    (there,) = struct.unpack("d", os.read(child_read, 8))
    assert before <= there <= time.monotonic()
    os.close(child_read)
    os.close(child_write)
