"""The end of a killed holder's process ends its lease, and nothing else does.

Leases last much longer here than tests wait, so a member that leads after a kill was let in by the
witness, and by nothing else.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import hustings
from hustings.guard import Grant, HeldBy, Holder, make_guard
from hustings.net.member import Member
from tests.guard.engines.base import Engine
from tests.guard.engines.postgres import Engine as Postgres
from tests.guard.proxy import Proxy
from tests.guard.test_members import every_engine
from tests.net.kit.loops import run, until

TTL = 600.0
A_WHILE = 1.0  # seconds in which nothing must happen
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
)

HOLDER = """
import asyncio, multiprocessing, os, subprocess, sys, time
import hustings

def start(member, what):
    if what == "forked":
        return os.fork() or time.sleep(600)
    if what == "shelled":  # a program by a way that closes nothing
        return os.spawnl(os.P_NOWAIT, "/bin/sleep", "sleep", "600")
    if what == "kept by a fork":
        with member.witness():
            return os.fork() or time.sleep(600)
    if what == "kept by a shell":
        with member.witness():
            return os.spawnl(os.P_NOWAIT, "/bin/sleep", "sleep", "600")
    if what == "kept by a program":
        with member.witness() as kept:
            return subprocess.Popen(["sleep", "600"], pass_fds=kept).pid
    if what == "program":
        return subprocess.Popen(["sleep", "600"]).pid
    if what == "spawned":
        process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
        process.start()
        return process.pid
    if what == "closed":
        with member.witness() as kept:
            os.close(*kept)

async def main(group, url, ttl, what):
    child = start(None, "program") if what == "earlier" else None
    joining = hustings.join(group, name="holder", guard=url, ttl=float(ttl))
    async with joining as member:
        async with member.campaign() as term:
            if what == "uvloop":
                process = await asyncio.create_subprocess_exec("sleep", "600")
                child = process.pid
            else:
                child = child or start(member, what)
            if child:
                print("child", child, flush=True)
            print("leads", term.token, flush=True)
            await asyncio.sleep(600)

if __name__ == "__main__":
    if sys.argv[-1] == "uvloop":
        import uvloop
        uvloop.run(main(*sys.argv[1:]))
    else:
        asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("witness") / "holder.py"
    path.write_text(HOLDER)
    return str(path)


@pytest.fixture(autouse=True)
def known_program(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDER_PROGRAM", program)


class Held:
    """A process that holds the lease, and its child if it has one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.child = 0
        self.token = 0
        assert process.stdout is not None
        for line in process.stdout:
            word, number = line.split()
            if word == "child":
                self.child = int(number)
            else:
                self.token = int(number)
                return
        raise AssertionError(f"it ended with {process.wait()}")

    @classmethod
    def started(cls, url: str, group: str, what: str = "", ttl: float = TTL) -> Held:
        command = [sys.executable, os.environ["HOLDER_PROGRAM"], group, url, str(ttl), what]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            return cls(process)
        except BaseException:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
            raise

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        for each in filter(None, (self.child, self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def held_by(url: str, group: str, what: str = "", ttl: float = TTL) -> Iterator[Held]:
    held = Held.started(url, group, what, ttl)
    try:
        yield held
    finally:
        held.end()


async def other(group: str, url: str, **more: object) -> Member:
    given: dict[str, Any] = {"guard": url, "ttl": TTL, **more}
    return await hustings.join(group, name="other", **given).open()


async def stays_out(member: Member) -> None:
    end = time.monotonic() + A_WHILE
    while time.monotonic() < end:
        assert not member.is_leader
        await asyncio.sleep(0.02)


def new_group() -> str:
    return f"witness-{uuid.uuid4().hex[:8]}"


@every_engine
def test_a_killed_holder_is_followed_at_once_with_a_larger_token(engine: Engine) -> None:
    group = new_group()
    ttl = 60.0 if engine.name == "zookeeper" else TTL  # its longest session

    async def story() -> None:
        url = engine.url(group)
        with held_by(url, group, ttl=ttl) as held:
            member = await other(group, url, ttl=ttl)
            try:
                await until(lambda: member.leader is not None, "it hears of the holder")
                assert member.leader is not None
                assert member.leader.name == "holder"
                await stays_out(member)
                held.kill()
                await until(lambda: member.is_leader, "it follows", within=ttl / 2)
                assert (member.state.token or 0) > held.token
            finally:
                await member.leave()

    run(story())


@pytest.fixture
def url(engines: Callable[[str], Engine]) -> str:
    return engines("valkey").url()


def test_a_member_that_starts_after_the_kill_does_not_wait_either(url: str) -> None:
    """As where a supervisor starts the only replica again."""
    group = new_group()

    async def story() -> None:
        with held_by(url, group) as held:
            held.kill()
            member = await other(group, url)
            try:
                await until(lambda: member.is_leader, "it follows")
                assert (member.state.token or 0) > held.token
            finally:
                await member.leave()

    run(story())


def test_a_member_of_the_same_name_follows_its_killed_predecessor(url: str) -> None:
    group = new_group()

    async def story() -> None:
        with held_by(url, group) as held:
            held.kill()
            async with hustings.join(group, name="holder", guard=url, ttl=TTL) as member:
                await until(lambda: member.is_leader, "it follows")
                assert (member.state.token or 0) > held.token

    run(story())


@pytest.mark.parametrize("what", ["kept by a fork", "kept by a shell", "kept by a program"])
def test_a_child_that_has_the_witness_keeps_the_lease(url: str, what: str) -> None:
    group = new_group()

    async def story() -> None:
        with held_by(url, group, what) as held:
            member = await other(group, url)
            try:
                held.kill()
                await stays_out(member)
                os.kill(held.child, signal.SIGKILL)
                await until(lambda: member.is_leader, "it follows the child's end")
            finally:
                await member.leave()

    run(story())


@pytest.mark.parametrize("followed", ["before the kill", "after it"])
@pytest.mark.parametrize("what", ["program", "spawned", "forked", "shelled", "uvloop", "earlier"])
def test_a_program_without_the_witness_makes_the_lease_run_out(
    url: str, what: str, followed: str
) -> None:
    """Nobody can see when it ends, so nobody gives the lease back, not even when it has ended."""
    group = new_group()

    async def story() -> None:
        with held_by(url, group, what) as held:
            member = await other(group, url) if followed == "before the kill" else None
            held.kill()
            member = member or await other(group, url)
            try:
                await stays_out(member)
                os.kill(held.child, signal.SIGKILL)
                await stays_out(member)
            finally:
                await member.leave()

    run(story())


def test_a_holder_that_closed_the_witness_keeps_its_lease_until_it_is_killed(url: str) -> None:
    """As programs do that close all descriptors which they do not know."""
    group = new_group()

    async def story() -> None:
        with held_by(url, group, "closed") as held:
            member = await other(group, url)
            try:
                await stays_out(member)
                held.kill()
                await until(lambda: member.is_leader, "it follows")
            finally:
                await member.leave()

    run(story())


def test_a_stopped_holder_keeps_its_lease(url: str) -> None:
    group = new_group()

    async def story() -> None:
        with held_by(url, group) as held:
            member = await other(group, url)
            try:
                held.process.send_signal(signal.SIGSTOP)
                await stays_out(member)
                held.kill()
                await until(lambda: member.is_leader, "it follows")
            finally:
                await member.leave()

    run(story())


def test_a_holder_that_is_cut_off_from_the_engine_keeps_its_lease(
    engines: Callable[[str], Engine],
) -> None:
    """Its connections end, and it cannot make new ones. That is not its end."""
    engine = engines("postgres")
    assert isinstance(engine, Postgres)
    group = new_group()

    async def story() -> None:
        async with Proxy(engine.port) as proxy:
            held = await asyncio.to_thread(Held.started, engine.url(group, at=proxy.port), group)
            try:
                member = await other(group, engine.url(group))
                try:
                    await until(lambda: member.leader is not None, "it hears of the holder")
                    proxy.hold(proxy.questions)
                    proxy.hold(proxy.answers)
                    proxy.cut()
                    await stays_out(member)
                    held.kill()
                    await until(lambda: member.is_leader, "it follows")
                    assert (member.state.token or 0) > held.token
                finally:
                    await member.leave()
            finally:
                held.end()

    run(story())


def test_a_holder_whose_session_the_server_ends_keeps_its_lease(
    engines: Callable[[str], Engine],
) -> None:
    """As an administrator ends sessions, and as a failover does."""
    postgres = engines("postgres")
    assert isinstance(postgres, Postgres)
    group = new_group()

    async def story() -> None:
        url = postgres.url(group)
        with held_by(url, group) as held:
            member = await other(group, url)
            try:
                await asyncio.to_thread(postgres.execute, END_SESSIONS)
                await stays_out(member)
                await asyncio.to_thread(postgres.execute, END_SESSIONS)
                held.kill()
                await until(lambda: member.is_leader, "it follows")
                assert (member.state.token or 0) > held.token
            finally:
                await member.leave()

    run(story())


def test_a_paused_holder_whose_session_the_server_ends_keeps_its_lease(
    engines: Callable[[str], Engine],
) -> None:
    """The worst case: it could not know that anybody else leads, and acts when it goes on."""
    postgres = engines("postgres")
    assert isinstance(postgres, Postgres)
    group = new_group()

    async def story() -> None:
        url = postgres.url(group)
        with held_by(url, group) as held:
            member = await other(group, url)
            try:
                held.process.send_signal(signal.SIGSTOP)
                await asyncio.to_thread(postgres.execute, END_SESSIONS)
                await stays_out(member)
                held.kill()
                await until(lambda: member.is_leader, "it follows")
            finally:
                await member.leave()

    run(story())


@pytest.mark.parametrize("whose", ["the holder's", "the other's"])
def test_without_a_common_place_the_lease_runs_out(
    url: str, whose: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    group = new_group()

    async def story() -> None:
        with held_by(url, group) as held:
            if whose == "the holder's":
                monkeypatch.setenv("HUSTINGS_LOCAL_DIR", str(tmp_path))
                member = await other(group, url)
            else:
                member = await other(group, url, witness=False)
            try:
                held.kill()
                await stays_out(member)
            finally:
                await member.leave()

    run(story())


@every_engine
def test_only_this_lease_of_this_holder_is_given_back(engine: Engine) -> None:
    group = new_group()
    first, again, second = Holder("a", 1), Holder("a", 2), Holder("b", 1)

    async def story() -> None:
        ttl = engine.long_ttl
        url = engine.url(group)
        async with make_guard(url, group) as one, make_guard(url, group) as two:
            held = await one.acquire(first, ttl)
            assert isinstance(held, Grant)
            for holder, token in (
                (again, held.token),
                (first, held.token + 1),
                (second, held.token),
            ):
                await two.release_for(holder, token)
                assert isinstance(await two.acquire(second, ttl), HeldBy)
            assert (await one.renew(held, ttl)).token == held.token
            await two.release_for(first, held.token)
            after = await two.acquire(second, ttl)
            assert isinstance(after, Grant)
            assert after.token > held.token
            await one.release_for(first, held.token)
            assert (await two.renew(after, ttl)).token == after.token
            await two.release(after)

    run(story())
