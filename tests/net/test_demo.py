"""The demo with real processes: all acts with a small group, and nothing left behind, ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-W", "error", "-m", "hustings", "demo", "--members", "5"]
PATIENCE = 60.0  # seconds: other work may keep the machine busy
SHORTLY = 2.0  # within so many seconds nothing is left


@contextmanager
def demo(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The demo in a process of its own, which is ended in any case."""
    running = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with running:
        try:
            yield running
        finally:
            left = children(running.pid)
            running.kill()
            for pid in left:  # for the day on which a test fails
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def until(condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return condition()


def status(pid: int) -> tuple[str, int, int] | None:
    """State, parent and session of a process; none if it is gone, or dead and not yet buried."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent, _, session = text.rpartition(")")[2].split()[:4]
    return None if state in "ZX" else (state, int(parent), int(session))


def children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            seen = status(int(entry.name))
            if seen is not None and seen[1] == parent:
                found.append(int(entry.name))
    return found


def gone(pids: list[int]) -> bool:
    return all(status(pid) is None for pid in pids)


def read_until(running: subprocess.Popen[str], word: str) -> str:
    """Lines of the demo, up to the one that holds a word."""
    assert running.stdout is not None
    lines = []
    for line in running.stdout:
        lines.append(line)
        if word in line:
            return "".join(lines)
    raise AssertionError(
        f"{word!r} never came: {''.join(lines)}{running.stderr and running.stderr.read()}"
    )


def with_one_stopped(running: subprocess.Popen[str]) -> list[int]:
    """All members' processes, when one of them stands still and cannot end by itself."""
    read_until(running, "SIGSTOP")
    members = children(running.pid)
    assert len(members) == 5
    assert until(lambda: any((status(pid) or "R")[0] == "T" for pid in members))
    return members


def test_all_acts_with_a_small_group() -> None:
    with demo("--json", "--seconds", "1") as running:
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (0, ""), out
    shown: dict[str, Any] = json.loads(out)
    acts = {act["name"]: act for act in shown["acts"]}
    assert shown["fine"] is True
    assert all(0.0 <= act["agreed"] < 15.5 for act in acts.values())
    for name in ("kill", "pause"):  # whom it hit leads no longer
        victim = acts[name]["what"].split()[-1]
        assert victim in acts[name]["leaders_before"]
        assert [victim] != acts[name]["leaders_after"] != []
        assert acts[name]["members"] == 4
        assert acts[name]["agreed"] >= acts[name]["noticed"] > 0.0
    assert acts["pause"]["noticed"] > 0.02  # nobody can tell a pause at once, unlike a death
    for name in ("start", "restart", "resume", "heal", "transfer"):
        assert acts[name]["members"] == 5
        assert len(acts[name]["leaders_after"]) == 1
    assert len(acts["cut"]["leaders_after"]) == 2
    heir = acts["transfer"]["leaders_after"][0]
    assert acts["transfer"]["leaders_before"] != [heir]


def test_ctrl_c_leaves_nothing_behind() -> None:
    with demo("--no-tty", "--seconds", "1") as running:
        members = with_one_stopped(running)
        sessions = [seen[2] for seen in map(status, members) if seen is not None]
        assert running.pid not in sessions  # so the terminal's Ctrl-C is the demo's alone
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE)
        assert time.monotonic() - began < SHORTLY
        assert running.returncode == 130
        assert err == "hustings: interrupted\n"
        assert gone(members)


def test_members_end_with_a_demo_that_is_killed() -> None:
    with demo("--no-tty", "--seconds", "1") as running:
        members = with_one_stopped(running)
        running.kill()
        assert until(lambda: gone(members), SHORTLY)


def test_a_member_that_dies_by_itself_ends_the_demo_with_a_sentence() -> None:
    with demo("--no-tty", "--seconds", "60") as running:
        read_until(running, "All 5 agree")
        members = children(running.pid)
        os.kill(members[0], signal.SIGKILL)
        _, err = running.communicate(timeout=PATIENCE)
        assert running.returncode == 1
        assert err.startswith("hustings: note: member m")
        assert err.endswith(" ended: by SIGKILL\n")
        assert gone(members)


def test_what_goes_wrong_in_a_process_reaches_the_parent_in_one_sentence() -> None:
    script = """
from hustings.demo.live.processes import MemberEnded, Processes
from hustings.demo.live.member_process import MemberPlan
with Processes() as processes:
    processes.start(MemberPlan("demo", "m1", 1, "buly", 1))
    try:
        while True:
            processes.hear(30.0)
    except MemberEnded as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.startswith("member m1 ended: unknown protocol 'buly': did you mean 'bully'?")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
