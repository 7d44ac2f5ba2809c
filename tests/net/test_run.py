"""`hustings run` on real sockets: processes that are killed, stopped, told to go, and their own."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hustings.agent.command import CommandSpec, Supervised
from hustings.agent.supervisor import SETTLE_S
from hustings.joining import join
from tests.net.running import (
    DEAF,
    RUN,
    WAITING,
    Running,
    Runs,
    children_of,
    command_of,
    guardian_of,
    keeper_of,
    processes_of,
)
from tests.waiting import PATIENCE_S, until

GRACE_S = 0.3  # as in running.py
SILENCE_S = 0.34  # of a member with the default stall bound
BUSY_S = 2.0  # what a busy machine may add to a bound before it counts as broken


# --- three members -------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["le-s", "bully"])
def test_the_leader_is_killed(runs: Runs, protocol: str) -> None:
    """Its command, deaf and with offspring, goes with it; another member's command runs."""
    for _ in range(3):
        runs.start(DEAF, "--protocol", protocol)
    first = runs.leader()
    until(lambda: len(command_of(first.name)) >= 4, "the offspring")
    first.signal(signal.SIGKILL)
    killed_at = time.monotonic()
    until(lambda: not processes_of(first.name), "its command ends")
    assert time.monotonic() - killed_at < GRACE_S + SETTLE_S + BUSY_S
    second = runs.leader()
    assert second is not first


def follows(former: Running, leader: Running) -> bool:
    return f"{leader.name} leads" in former.said.partition("no longer")[2]


def test_the_leader_is_stopped_and_goes_on(runs: Runs) -> None:
    """Its keeper ends the command; when it goes on, it follows whoever leads then."""
    for _ in range(3):
        runs.start(DEAF, "-v")
    first = second = runs.leader()
    for _ in range(3):
        first.signal(signal.SIGSTOP)
        stopped_at = time.monotonic()
        until(lambda: any(one.leads for one in runs.others(first)), "another one leads")
        until(lambda: not processes_of(first.name), "its command ends")
        assert time.monotonic() - stopped_at < SILENCE_S + GRACE_S + SETTLE_S + BUSY_S
        first.signal(signal.SIGCONT)
        until(lambda: follows(first, runs.leader()), "it follows")
        second = runs.leader()
        # On a busy machine it may have gone on before the others had settled, and lead again.
        if second is not first:
            break
        until(lambda: processes_of(first.name), "its command runs again")
    assert second is not first
    second.signal(signal.SIGTERM)
    until(lambda: "SIGTERM is passed on to the command" in second.said, "the first is heard")
    second.signal(signal.SIGTERM)
    assert second.wait() == 137
    assert runs.leader() is not second


def test_the_leader_is_told_to_go(runs: Runs) -> None:
    for _ in range(3):
        runs.start("trap 'exit 9' TERM; sleep 600 & wait")
    first = runs.leader()
    first.signal(signal.SIGTERM)
    assert first.wait() == 9
    assert runs.leader() is not first


def test_one_that_does_not_lead_is_told_to_go(runs: Runs) -> None:
    for _ in range(3):
        runs.start(WAITING)
    leader = runs.leader()
    one, other = runs.others(leader)
    assert one.address
    assert other.address
    one.signal(signal.SIGTERM)
    assert one.wait() == 0
    assert runs.leading() == [leader]


def test_a_command_that_ends_makes_room(runs: Runs) -> None:
    """The first to lead does its work and goes; then the next one does, and the last."""
    work = 'until [ -e go ]; do sleep 0.05; done; echo "$HUSTINGS_MEMBER $HUSTINGS_TERM" >> done'
    for _ in range(3):
        runs.start(f"{work}; exit 5")
    until(lambda: all(one.address for one in runs.all), "all have joined")
    (runs.folder / "go").touch()
    assert [one.wait() for one in runs.all] == [5, 5, 5]
    lines = [line.split() for line in (runs.folder / "done").read_text().splitlines()]
    assert sorted(member for member, _ in lines) == sorted(one.name for one in runs.all)
    terms = [int(term) for _, term in lines]
    assert terms == sorted(terms)


# --- one member ----------------------------------------------------------------------------------


def with_offspring(runs: Runs) -> Running:
    """A member whose command has deaf children: one orphaned, one in a session of its own."""
    one = runs.start(DEAF)
    until(lambda: len(command_of(one.name)) >= 4, "the offspring")
    return one


@pytest.mark.parametrize("who", [keeper_of, guardian_of])
def test_a_killed_guard_leaves_nothing(runs: Runs, who: Callable[[str], int]) -> None:
    one = with_offspring(runs)
    os.kill(who(one.name), signal.SIGKILL)
    assert one.wait() == 137
    assert "a process that guards the command was killed or stopped" in one.said


def test_both_guards_killed_at_once_leave_nothing(runs: Runs) -> None:
    """They are one process group, and `kill -9 -GROUP` kills both; the member does the rest."""
    one = with_offspring(runs)
    os.killpg(guardian_of(one.name), signal.SIGKILL)
    assert one.wait() == 137


def test_a_stopped_keeper_is_not_waited_for(runs: Runs) -> None:
    one = with_offspring(runs)
    os.kill(keeper_of(one.name), signal.SIGSTOP)
    assert one.wait() == 137


def test_a_stopped_guardian_changes_nothing(runs: Runs) -> None:
    one = with_offspring(runs)
    os.kill(guardian_of(one.name), signal.SIGSTOP)
    one.signal(signal.SIGTERM)
    until(lambda: "SIGTERM is passed on to the command" in one.said, "the first is heard")
    one.signal(signal.SIGTERM)
    assert one.wait() == 137


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_member_is_killed_and_its_keeper_struck(runs: Runs, number: int) -> None:
    one = with_offspring(runs)
    os.kill(keeper_of(one.name), number)
    one.signal(signal.SIGKILL)
    killed_at = time.monotonic()
    until(lambda: not processes_of(one.name), "the guardian ends all")
    assert time.monotonic() - killed_at < SILENCE_S + GRACE_S + SETTLE_S + BUSY_S


def test_a_command_that_is_killed_leaves_nothing(runs: Runs) -> None:
    one = with_offspring(runs)
    main = min(map(int, children_of(keeper_of(one.name)).split()))  # the first that it started
    os.kill(main, signal.SIGKILL)
    assert one.wait() == 137


def test_what_was_there_before_is_left_alone(runs: Runs) -> None:
    """As of a script that starts something and then becomes `hustings run`."""
    errors = runs.folder / "errors"
    with errors.open("wb") as stream:
        process = subprocess.Popen(
            [
                "sh",
                "-c",
                f"sleep 600 & echo $! > other; exec {' '.join(RUN)} {runs.group} "
                f"--name {runs.group}-0 --grace 300ms -- sh -c 'echo > up; sleep 600'",
            ],
            cwd=runs.folder,
            stderr=stream,
            start_new_session=True,
        )
    one = Running(process, f"{runs.group}-0", errors)
    runs.all.append(one)
    until((runs.folder / "up").exists, "the command is up")
    os.killpg(guardian_of(one.name), signal.SIGKILL)
    assert one.wait() == 137
    other = int((runs.folder / "other").read_text())
    os.kill(other, signal.SIGKILL)  # it is there to be killed


def test_no_dead_process_stays_unburied(runs: Runs) -> None:
    """Restarts, each of which leaves an orphan behind, and then a run that lasts."""
    one = runs.start(
        "(sleep 600 &); echo >> runs; [ $(wc -l < runs) -lt 5 ] && exit 1; exec sleep 600",
        "--restart",
        "on-failure",
        "--restart-delay",
        "1ms",
    )
    until((runs.folder / "runs").exists, "the first run")
    until(lambda: len((runs.folder / "runs").read_text()) == 5, "five runs")
    until(lambda: len(command_of(one.name)) == 2, "the last run and its orphan")
    assert children_of(one.process.pid) == str(guardian_of(one.name))
    one.signal(signal.SIGTERM)
    assert one.wait() == 143


def test_restarts_are_bounded(runs: Runs) -> None:
    restart = ("--restart", "always", "--restart-delay", "1ms", "--max-restarts", "2")
    one = runs.start("echo >> runs; exit 6", *restart)
    assert one.wait() == 6
    assert len((runs.folder / "runs").read_text()) == 3


def test_input_and_output_are_the_commands(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RUN, "group", "-q", "--", "sh", "-c", "tr a-z A-Z; echo oops >&2; exit 3"],
        input=b"hello\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, b"HELLO\n", b"oops\n")


def test_the_promise_is_told_at_the_start(runs: Runs) -> None:
    one = runs.start("exit 0", grace="2s")
    assert one.wait() == 0
    assert "the command and all that it started end within 3.65s" in one.said
    assert "advisory: a member that takes over waits until the command is gone" in one.said


def test_a_hangup_that_was_ignored_stays_ignored(runs: Runs) -> None:
    """As under nohup; also for the command."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        one = runs.start("kill -HUP $$; echo > up; exec sleep 600")
    finally:
        signal.signal(signal.SIGHUP, before)
    until((runs.folder / "up").exists, "the command is up")
    one.signal(signal.SIGHUP)
    one.signal(signal.SIGTERM)
    assert one.wait() == 143


def test_a_ctrl_c_that_was_ignored_stays_ignored(runs: Runs) -> None:
    """As in the background of a script; SIGTERM is the way to end it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        one = runs.start("kill -INT $$; echo > up; exec sleep 600")
    finally:
        signal.signal(signal.SIGINT, before)
    until((runs.folder / "up").exists, "the command is up")
    one.signal(signal.SIGINT)
    one.signal(signal.SIGTERM)
    assert one.wait() == 143


# --- terminals -----------------------------------------------------------------------------------


def on_terminal(runs: Runs, script: str) -> tuple[int, int]:
    """`hustings run` in a terminal's foreground: the terminal, and its process."""
    process, terminal = pty.fork()
    if process == 0:
        try:
            os.chdir(runs.folder)
            name = ("--name", runs.group, "--grace", "300ms")
            os.execv(RUN[0], [*RUN, runs.group, *name, "--", "sh", "-c", script])
        finally:
            os._exit(127)
    return terminal, process


@pytest.mark.parametrize(
    "script, code",
    [
        ("echo > up; exec sleep 600", 130),
        ("trap 'exit 4' INT; echo > up; sleep 600 & wait", 4),
    ],
)
def test_ctrl_c(runs: Runs, script: str, code: int) -> None:
    terminal, process = on_terminal(runs, script)
    until((runs.folder / "up").exists, "the command is up")
    os.write(terminal, b"\x03")
    assert exit_code(process) == code
    assert processes_of(runs.group) == []
    os.close(terminal)


def test_signals_at_the_very_end_change_no_exit_code(runs: Runs) -> None:
    """From when the command is gone until the process is: the code is the command's."""
    one = runs.start("trap 'exit 9' INT; echo > up; sleep 600 & wait", "--http", "127.0.0.1:0")
    until((runs.folder / "up").exists, "the command is up")
    one.signal(signal.SIGINT)
    until(lambda: not command_of(one.name), "the command is gone")

    def gone() -> bool:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            one.signal(number)
        return one.process.poll() is not None

    until(gone, "the process is gone")
    assert one.wait() == 9


def test_what_is_typed_reaches_the_command(runs: Runs) -> None:
    terminal, process = on_terminal(runs, "echo > up; read word; echo $word > heard")
    until((runs.folder / "up").exists, "the command is up")
    os.write(terminal, b"swordfish\n")
    assert exit_code(process) == 0
    assert (runs.folder / "heard").read_text() == "swordfish\n"
    os.close(terminal)


def test_a_terminal_that_is_closed_ends_everything(runs: Runs) -> None:
    terminal, process = on_terminal(runs, "echo > up; exec sleep 600")
    until((runs.folder / "up").exists, "the command is up")
    os.close(terminal)
    assert exit_code(process) == 129
    assert processes_of(runs.group) == []


def exit_code(process: int) -> int:
    ended: list[int] = []

    def has_ended() -> bool:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            ended.append(os.waitstatus_to_exitcode(status))
        return bool(found)

    try:
        until(has_ended, "hustings run ends")
    except BaseException:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
    return ended[0]


# --- a hand-over ---------------------------------------------------------------------------------


def test_a_hand_over_waits_for_the_command(tmp_path: Path) -> None:
    """Real members, in this process: the other leads only when nothing of the command is left."""

    async def story() -> None:
        group = tmp_path.name
        async with join(group, name=f"{group}-a") as one:
            spec = CommandSpec(("sh", "-c", f"echo > '{tmp_path}/up'; {DEAF}"), grace_s=GRACE_S)
            supervised = Supervised(one, spec)
            running = asyncio.create_task(supervised.run())
            while not (tmp_path / "up").exists():
                await asyncio.sleep(0.01)
            async with join(group, name=f"{group}-b", seeds=[one.address]) as other:
                while len(one.members()) < 2 or len(other.members()) < 2:
                    await asyncio.sleep(0.01)

                async def look() -> None:
                    async for state in other.observe():
                        if state.leading:
                            assert processes_of(one.name) == []
                            return

                looking = asyncio.create_task(look())
                await one.transfer(other.name)
                await looking
                supervised.signal(signal.SIGTERM)
                assert await running == 0

    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


# --- refusals ------------------------------------------------------------------------------------


def refused(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*RUN, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.strip()


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert address in refused(tmp_path, "group", "--bind", address, "--", "true")


def test_a_rule_for_the_first_election_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    assert "alone must be yes, no or" in refused(tmp_path, "group", "--alone", "5", "--", "true")
    both = ("--alone", "yes", "--expect", "3")
    assert "alone=yes waits for nobody" in refused(tmp_path, "group", *both, "--", "true")


def test_a_name_that_is_taken_is_refused(runs: Runs) -> None:
    one, other = runs.start(WAITING), runs.start(WAITING)
    leader = runs.leader()
    taken = ("--name", one.name, "--join", other.address)
    assert one.name in refused(runs.folder, runs.group, "-q", *taken, "--", "true")
    assert runs.leading() == [leader]
