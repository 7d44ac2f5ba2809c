"""Forks: the child process has no member, says so everywhere, and holds nothing of the parent's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import hustings
from hustings.core.names import member_id
from hustings.net import fork
from hustings.net.member_state import NotLeader
from hustings.net.state_file import StateFile
from tests import waiting
from tests.net.kit.crowd import Crowd
from tests.net.kit.loops import run, until
from tests.waiting import PATIENCE_S

STAYED = "this member stayed in the process that was forked: join again"

ASYNCHRONOUS = """
import asyncio, json, os, sys, time, hustings

async def main():
    group, seed, state, guard = sys.argv[1:]
    options = {"guard": guard} if guard else {"alone": True}
    async with hustings.join(group, name="z", seeds=[seed], state=state, **options) as member:
        async with member.campaign() as term:
            print(member.address, flush=True)
            sys.stdin.readline()
            child = os.fork()
            if not child:
                said = {
                    "is_leader": member.is_leader,
                    "leader": member.leader,
                    "members": member.members(),
                    "reason": member.state.reason,
                    "remaining": term.remaining,
                    "lost": term.lost.is_set(),
                }
                for name, call in {
                    "check": term.check,
                    "campaign": member.campaign,
                    "resign": lambda: member.resign().send(None),
                    "transfer": lambda: member.transfer("b").send(None),
                    "observe": lambda: member.observe().__anext__().send(None),
                }.items():
                    try:
                        call()
                        said[name] = "nothing"
                    except hustings.HustingsError as error:
                        said[name] = f"{type(error).__name__}: {error}"
                try:
                    member.leave().send(None)
                except StopIteration:
                    said["leave"] = "returned"
                print(json.dumps({**said, "pid": os.getpid()}), flush=True)
                time.sleep(60)
                os._exit(0)
            for _ in range(2):
                await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
                term.check()
                print(json.dumps([member.is_leader, len(member.members())]), flush=True)

asyncio.run(main())
"""

BLOCKING = """
import json, os, sys, time
import hustings.blocking

group, seed, state, guard = sys.argv[1:]
options = {"guard": guard} if guard else {"alone": True}
with hustings.blocking.join(group, name="z", seeds=[seed], state=state, **options) as member:
    with member.campaign() as term:
        print(member.address, flush=True)
        sys.stdin.readline()
        child = os.fork()
        if not child:
            said = {
                "is_leader": member.is_leader,
                "leader": member.leader,
                "members": member.members(),
                "reason": member.state.reason,
                "remaining": term.remaining,
                "lost": term.lost.is_set(),
            }
            for name, call in {
                "check": term.check,
                "campaign": lambda: member.campaign().__enter__(),
                "resign": member.resign,
                "transfer": lambda: member.transfer("b"),
                "observe": lambda: next(member.observe()),
            }.items():
                try:
                    call()
                    said[name] = "nothing"
                except hustings.HustingsError as error:
                    said[name] = f"{type(error).__name__}: {error}"
            member.close()
            said["leave"] = "returned"
            print(json.dumps({**said, "pid": os.getpid()}), flush=True)
            time.sleep(60)
            os._exit(0)
        for _ in range(2):
            sys.stdin.readline()
            term.check()
            print(json.dumps([member.is_leader, len(member.members())]), flush=True)
"""


class Parent:
    """A process with a member that leads."""

    def __init__(self, program: str, *words: str) -> None:
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *words]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.address = self.read()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.read())


@pytest.mark.parametrize("program", [ASYNCHRONOUS, BLOCKING], ids=["asyncio", "threads"])
@pytest.mark.parametrize("guard", ["", "memory://forks"], ids=["advisory", "guarded"])
def test_a_forked_child_has_no_member_and_disturbs_nobody(
    program: str, guard: str, tmp_path: Path
) -> None:
    group = uuid.uuid4().hex[:12]
    with hustings.blocking.join(group, name="b", observer=True, guard=guard or None) as other:
        parent = Parent(program, group, other.address, str(tmp_path), guard)
        child = 0
        try:
            waiting.until(lambda: other.leader and other.leader.name == "z", "z leads")
            term = other.term
            said = parent.ask()
            child = said.pop("pid")
            refused = f"NotLeader: {STAYED}"
            assert {said.pop(each) for each in ("campaign", "resign", "transfer", "observe")} == {
                refused
            }
            assert said.pop("check").startswith("LeadershipLost: z leads group")
            assert said == {
                "is_leader": False,
                "leader": None,
                "members": [],
                "reason": STAYED,
                "remaining": 0.0,
                "lost": True,
                "leave": "returned",
            }
            # The parent hears, speaks and leads on: nobody was told anything.
            assert parent.ask() == [True, 2]
            assert other.term == term
            # When the parent ends, nothing of it is left, although the child lives.
            parent.process.kill()
            parent.process.wait(PATIENCE_S)
            waiting.until(lambda: other.leader is None, "the end of the parent is noticed")
            host, _, port = parent.address.rpartition(":")
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(type=kind) as again:
                    if kind is socket.SOCK_STREAM:  # connections that ended bar nobody
                        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    again.bind((host, int(port)))
            os.kill(child, 0)
            for file in tmp_path.glob("*.state"):
                StateFile(str(file), group, member_id("z")).close()
        finally:
            parent.process.kill()
            with suppress(ProcessLookupError):
                if child:
                    os.kill(child, signal.SIGKILL)
            parent.process.communicate()


def test_a_socket_that_is_gone_is_kept_by_nobody() -> None:
    one = socket.socket()
    fork.keep_from_children(one, socket.socket.fileno)
    before = len(fork._held)
    one.close()
    del one
    assert len(fork._held) == before - 1


# Other loops and threads


def test_a_member_on_another_loop_says_so() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            await until(lambda: member.is_leader, "alone, it leads")
            said: list[str] = []

            async def elsewhere() -> None:
                for use in (member.elect(), member.resign(), member.transfer("b"), member.leave()):
                    with pytest.raises(RuntimeError) as refused:
                        await use
                    said.append(str(refused.value))
                with pytest.raises(RuntimeError, match="on another event loop"):
                    member.campaign()
                with pytest.raises(RuntimeError, match="on another event loop"):
                    await anext(member.observe())

            def thread() -> None:
                asyncio.run(elsewhere())
                with pytest.raises(RuntimeError, match="outside of any event loop"):
                    member.campaign()

            other = threading.Thread(target=thread)
            other.start()
            await asyncio.get_running_loop().run_in_executor(None, other.join)
            sentence = (
                "a is used on another event loop: a member belongs to the loop that opened it; in "
                "threads use hustings.blocking"
            )
            assert said == [sentence] * 4
            assert not member.closed
            assert member.is_leader, "what only reads may be called anywhere"

    run(story())


def test_a_closed_member_is_closed_everywhere() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            await member.leave()
            await member.leave()
            with pytest.raises(NotLeader, match="a has left group"):
                await member.elect()

    run(story())
