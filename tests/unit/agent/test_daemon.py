"""The agent from start to end, over fakes: nothing half-done, signals obeyed, bounded ends."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hustings.agent.config import AgentConfig, load
from hustings.agent.daemon import Daemon
from hustings.agent.logs import Log
from hustings.agent.server import listen
from hustings.core.errors import BadInput, HustingsError, Unavailable
from hustings.net.addresses import Address
from hustings.net.keys import new_key, write_key
from tests.net.kit.loops import until
from tests.unit.agent.fake import TOKEN, FakeMember, FakeNetwork

HEARD = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@pytest.fixture(autouse=True)
def _heard_again() -> Iterator[None]:
    """An agent ignores signals when it is over; the next test's does not."""
    before = {number: signal.getsignal(number) for number in HEARD}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@dataclass
class Stage:
    """One agent and all that is around it."""

    folder: Path
    config: AgentConfig
    network: FakeNetwork
    stream: io.StringIO = field(default_factory=io.StringIO)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def said(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.events if line["event"] == event]

    def reread(self) -> AgentConfig:
        return load(self.folder / "hustings.toml", {}, {})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[Daemon, asyncio.Task[int]]]:
        with Log(self.stream, "json") as diary:
            daemon = Daemon(self.config, self.network, diary, self.reread)
            task = asyncio.create_task(daemon.run())
            await until(lambda: task.done() or daemon.http is not None, "the start")
            yield daemon, task
            if not task.done():
                daemon.stop("the test is over")
                await task


def stage(folder: Path, text: str = "[groups.billing]\n", **members: FakeMember) -> Stage:
    (folder / "hustings.toml").write_text(text, encoding="utf-8")
    config = load(folder / "hustings.toml", {"http": "127.0.0.1:0"}, {})
    found = {group.group: FakeMember(group.group) for group in config.groups} | members
    return Stage(folder, config, FakeNetwork(found))


async def get(url: str) -> Any:
    def read() -> Any:
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.loads(response.read())

    return await asyncio.to_thread(read)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_joins_answers_and_leaves(tmp_path: Path, number: signal.Signals) -> None:
    show = stage(tmp_path, "[groups.billing]\n[groups.search]\n")
    show.network.warning = "insecure, that is"

    async def scene() -> None:
        async with show.running() as (daemon, task):
            show.network.members["billing"].lead("web-2", 3)
            await until(lambda: any(e.get("term") == 3 for e in show.events), "the log of it")
            groups = (await get(f"{daemon.http}/v1/groups"))["groups"]
            assert [each["leader"] for each in groups] == ["web-2", None]
            show.network.notes["search"]("somebody has another key")
            os.kill(os.getpid(), number)
            assert await task == 0

    asyncio.run(scene())
    assert all(member.did == ["leave"] for member in show.network.members.values())
    assert show.network.closed
    assert [line["message"] for line in show.said("notice")] == [
        "insecure, that is",
        "somebody has another key",
    ]
    assert show.said("leadership")[-1]["message"] == "nobody leads: left"
    assert show.events[-1]["event"] == "stopped"


def test_the_port_of_http_is_in_use(tmp_path: Path) -> None:
    taken = listen(Address("127.0.0.1", 0))
    port = taken.getsockname()[1]
    show = stage(tmp_path)
    show.config = replace(show.config, http=Address("127.0.0.1", port))

    async def scene() -> None:
        async with show.running() as (_, task):
            with pytest.raises(BadInput, match=f"HTTP address 127.0.0.1:{port} is in use"):
                await task

    asyncio.run(scene())
    taken.close()
    assert not show.network.opened
    assert show.events == []


@pytest.mark.parametrize(
    "http, sentence",
    [
        (Address("0.0.0.0", 0), "there is no token for orders"),
        (Address("192.0.2.77", 7401), "there is no token"),
        (Address("host.invalid", 7401), "there is no token"),
    ],
)
def test_http_is_not_opened_to_others_without_a_token(
    tmp_path: Path, http: Address, sentence: str
) -> None:
    show = stage(tmp_path)
    show.config = replace(show.config, http=http)

    async def scene() -> None:
        async with show.running() as (_, task):
            with pytest.raises(BadInput, match=sentence):
                await task

    asyncio.run(scene())
    assert not show.network.opened


def test_addresses_that_cannot_be_listened_on() -> None:
    with pytest.raises(BadInput, match="cannot be resolved"):
        listen(Address("host.invalid", 7401))
    with pytest.raises(BadInput, match=r"cannot listen for HTTP on 192\.0\.2\.77:7401"):
        listen(Address("192.0.2.77", 7401))


def test_a_port_that_is_the_administrator_s(monkeypatch: pytest.MonkeyPatch) -> None:
    class Guarded(socket.socket):
        def bind(self, address: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("hustings.agent.server.socket.socket", Guarded)
    with pytest.raises(BadInput, match="needs privileges: choose a port from 1024 up"):
        listen(Address("127.0.0.1", 80))


def test_a_group_that_cannot_be_joined_ends_the_start(tmp_path: Path) -> None:
    show = stage(tmp_path, "[groups.billing]\n\n[groups.search]\n")
    show.network.refuses["search"] = BadInput("the name web-1 is taken")

    async def scene() -> None:
        async with show.running() as (_, task):
            with pytest.raises(BadInput, match=r"line 3: groups.search: the name web-1 is taken"):
                await task

    asyncio.run(scene())
    assert show.network.members["billing"].did == ["leave"]
    assert show.network.closed


def test_while_a_member_waits_for_its_engine_it_is_healthy_and_not_ready(tmp_path: Path) -> None:
    show = stage(tmp_path)
    show.network.late = True

    async def scene() -> None:
        with Log(show.stream, "json") as diary:
            daemon = Daemon(show.config, show.network, diary)
            task = asyncio.create_task(daemon.run())
            await until(lambda: bool(show.said("listening")), "HTTP")
            url = show.said("listening")[0]["http"]
            assert await get(f"{url}/healthz") is not None
            with pytest.raises(urllib.error.HTTPError) as refused:
                await get(f"{url}/readyz")
            assert refused.value.code == 503
            assert json.loads(refused.value.read())["groups"] == {"billing": False}
            daemon.stop("enough")
            assert await task == 0

    asyncio.run(scene())


def test_an_engine_that_is_given_up_is_told_apart_from_a_mistake(tmp_path: Path) -> None:
    show = stage(tmp_path)
    show.network.refuses["billing"] = Unavailable("guard etcd://h did not answer for 60s")

    async def scene() -> None:
        async with show.running() as (_, task):
            with pytest.raises(Unavailable, match=r"line 1: groups.billing: guard etcd://h"):
                await task

    asyncio.run(scene())


def test_a_start_that_hangs_can_be_stopped(tmp_path: Path) -> None:
    show = stage(tmp_path)
    show.network.slow = True

    async def scene() -> None:
        with Log(show.stream, "json") as diary:
            daemon = Daemon(show.config, show.network, diary)
            task = asyncio.create_task(daemon.run())
            await until(lambda: show.network.opened, "the start")
            daemon.stop("enough")
            assert await task == 0

    asyncio.run(scene())
    assert show.network.closed


def test_an_end_that_hangs_is_bounded(tmp_path: Path) -> None:
    show = stage(tmp_path)
    show.config = replace(show.config, shutdown_s=0.1)
    show.network.members["billing"].hangs = True

    async def scene() -> None:
        async with show.running() as (daemon, task):
            daemon.stop("enough")
            assert await task == 1

    asyncio.run(scene())
    assert show.said("shutdown-timeout")
    assert show.network.closed


def test_told_twice_it_leaves_at_once(tmp_path: Path) -> None:
    show = stage(tmp_path)
    show.config = replace(show.config, shutdown_s=600.0)
    show.network.members["billing"].hangs = True

    async def scene() -> None:
        async with show.running() as (daemon, task):
            daemon.stop("enough")
            daemon.stop("now")
            assert await task == 1

    asyncio.run(scene())


def test_a_leave_that_fails_is_told(tmp_path: Path) -> None:
    show = stage(tmp_path)
    show.network.members["billing"].refuses = HustingsError("the disk is full")

    async def scene() -> None:
        async with show.running() as (daemon, task):
            daemon.stop("enough")
            assert await task == 1

    asyncio.run(scene())
    assert show.said("leave-failed")[0]["message"] == "the disk is full"


def test_a_member_that_ends_by_itself(tmp_path: Path) -> None:
    show = stage(tmp_path, "[groups.billing]\n[groups.search]\n")

    async def scene() -> None:
        async with show.running() as (_, task):
            show.network.members["billing"].end()
            await until(lambda: bool(show.said("member-ended")), "the log of it")
            assert not task.done()
            show.network.members["search"].end()
            assert await task == 1

    asyncio.run(scene())
    assert [line["group"] for line in show.said("member-ended")] == ["billing", "search"]


def test_streams_end_with_the_agent(tmp_path: Path) -> None:
    show = stage(tmp_path)

    async def scene() -> None:
        async with show.running() as (daemon, task):
            assert daemon.http is not None
            host, _, port = daemon.http.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"event: leadership\n")
            daemon.stop("enough")
            assert await task == 0
            assert (await reader.read()).endswith(b"0\r\n\r\n")
            writer.close()

    asyncio.run(scene())


# SIGHUP


def reload_stage(folder: Path) -> Stage:
    write_key(folder / "one.key", new_key())
    (folder / "agent.token").write_text(TOKEN, encoding="utf-8")
    (folder / "agent.token").chmod(0o600)
    text = (
        "[http]\ntoken-file = 'agent.token'\n"
        "[groups.billing]\nkey = 'one.key'\n[groups.billing.attributes]\ncpu = 1\nload = 2\n"
    )
    return stage(folder, text)


def test_sighup_reads_keys_attributes_and_token_again(tmp_path: Path) -> None:
    show = reload_stage(tmp_path)
    second = new_key()

    async def scene() -> None:
        async with show.running():
            write_key(tmp_path / "two.key", second)
            text = (
                "[agent]\nlog-level = 'debug'\n[http]\ntoken-file = 'agent.token'\n"
                "[groups.billing]\nkey = ['two.key', 'one.key']\nprotocol = 'bully'\n"
                "[groups.billing.attributes]\ncpu = 9\n[groups.new]\n"
            )
            (tmp_path / "hustings.toml").write_text(text, encoding="utf-8")
            (tmp_path / "agent.token").write_text("x" * 20, encoding="utf-8")
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: bool(show.said("reloaded")), "the reload")
            did = show.network.members["billing"].did
            assert did[0] == ("update", {"cpu": 9.0})
            assert did[1][0] == "rekey"
            assert did[1][1][0] == second.id

    asyncio.run(scene())
    told = [line["message"] for line in show.said("restart-needed")]
    assert [sentence.split(" has")[0].split(" is")[0] for sentence in told] == [
        "http",
        "log-level",
        "protocol of group billing",
        "attribute load of group billing",
        "group new",
    ]


@pytest.mark.parametrize(
    "damage, sentence",
    [
        (lambda folder: (folder / "hustings.toml").write_text("[agent\n"), "this is not TOML"),
        (lambda folder: (folder / "hustings.toml").unlink(), "cannot read"),
        (lambda folder: (folder / "one.key").write_text("x"), "is not a key file"),
        (lambda folder: (folder / "agent.token").write_text("x"), "must hold one word"),
    ],
)
def test_a_reload_that_is_refused_changes_nothing(
    tmp_path: Path, damage: Callable[[Path], object], sentence: str
) -> None:
    show = reload_stage(tmp_path)

    async def scene() -> None:
        async with show.running():
            damage(tmp_path)
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: bool(show.said("reload-refused")), "the refusal")
            assert show.network.members["billing"].did == []

    asyncio.run(scene())
    (line,) = show.said("reload-refused")
    assert line["message"].startswith("everything stays as it was: ")
    assert sentence in line["message"]


def test_a_member_that_refuses_new_attributes(tmp_path: Path) -> None:
    show = reload_stage(tmp_path)

    async def scene() -> None:
        async with show.running():
            member = show.network.members["billing"]
            member.refuses = BadInput("the group ranks by an attribute that is not given")
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: bool(show.said("reloaded")), "the reload")
            member.refuses = None

    asyncio.run(scene())
    assert show.said("reload-refused")[0]["group"] == "billing"
