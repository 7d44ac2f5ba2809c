"""Which engine it is: two addresses of one are one guard, and two engines are two, however alike.

Engines keep a word beside the lease that tells them apart; the first member draws it.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack, suppress

import pytest

import hustings
from hustings.core.errors import BadInput
from hustings.guard import Grant, Guard, Holder, MemoryLost, make_guard
from hustings.guard.config import guard_for
from tests.guard.engines.base import Engine
from tests.guard.engines.etcd import Engine as Etcd
from tests.guard.engines.etcd import Node, program
from tests.guard.engines.valkey import Engine as Valkey
from tests.guard.fakes.consul import Consul
from tests.guard.fakes.kubernetes import Kubernetes
from tests.guard.fakes.serving import served
from tests.guard.test_members import every_engine, group_of, seated
from tests.guard.test_memory_loss import DECIDED, KNOWN, operated, tokens
from tests.net.kit.loops import run, until

ADA = Holder("ada", 1)
MANY = 6  # that come at once


class Plain(Node):
    """An etcd on which nothing is set but where it listens: its cluster's id is everybody's."""

    def command(self) -> list[str]:
        here = f"http://127.0.0.1:{self.port}"
        return [
            program("etcd"),
            *("--data-dir", str(self.folder / "data"), "--log-level", "error"),
            *("--listen-client-urls", here, "--advertise-client-urls", here),
            *("--listen-peer-urls", f"http://127.0.0.1:{self.peer}"),
        ]


def new_group() -> str:
    return f"identity-{uuid.uuid4().hex[:8]}"


async def told(url: str, group: str) -> str:
    """What a member says which engine it has."""
    guard = guard_for(url, group, lambda _: 0)
    try:
        fields = await guard.agreed(5.0, lambda _: None)
    finally:
        await guard.close()
    return {field.name: field.value for field in fields}["guard engine"]


@every_engine
def test_two_addresses_of_one_engine_are_one_guard(engine: Engine) -> None:
    async def play() -> None:
        group, url = new_group(), engine.url()
        word = await told(url, group)
        assert len(word) == 16
        assert await told(url.replace("127.0.0.1", "localhost"), group) == word
        assert await told(url, new_group()) != word, "another lease is another guard"
        async with make_guard(url, group) as guard:
            assert await guard.identity() == word
        named = f"{url}{'&' if '?' in url else '?'}identity=prod"
        assert await told(named, group) == "prod"

    run(play())


async def named_by_many(url: str) -> None:
    """Of those that find no name at the same time, all are told the same one."""
    group = new_group()
    async with AsyncExitStack() as stack:
        guards = [await stack.enter_async_context(make_guard(url, group)) for _ in range(MANY)]
        words = await asyncio.gather(*(each.identity() for each in guards))
        assert len(set(words)) == 1
        assert len(words[0]) == 16
        await renamed(guards)


async def renamed(guards: list[Guard]) -> None:
    """Only what has lost its memory gets another name."""
    one, two, *_ = guards
    before = await one.identity()
    two.known_as = "mine"
    assert await two.identity() == before
    with suppress(MemoryLost):
        await two.acquire(ADA, 10.0, KNOWN)
    assert [await each.identity() for each in guards] == ["mine"] * len(guards)


@every_engine
def test_who_comes_at_once_finds_one_name(engine: Engine) -> None:
    run(named_by_many(engine.url()), within=60)


def test_who_comes_at_once_finds_one_name_in_consul() -> None:
    async def play() -> None:
        async with served(Consul()) as port:
            await named_by_many(f"consul://127.0.0.1:{port}/service")

    run(play())


def test_who_comes_at_once_finds_one_name_in_kubernetes() -> None:
    async def play() -> None:
        async with served(Kubernetes()) as port:
            await named_by_many(f"kubernetes://127.0.0.1:{port}?tls=no")

    run(play(), within=60)


def test_naming_a_lease_of_kubernetes_changes_neither_holder_nor_token() -> None:
    async def play() -> None:
        async with served(Kubernetes()) as port:
            url = f"kubernetes://127.0.0.1:{port}?tls=no"
            async with make_guard(url, "jobs") as one, make_guard(url, "jobs") as two:
                first = await one.acquire(ADA, 15.0)
                assert isinstance(first, Grant)
                before = await two.look()
                assert (before.holder, before.token) == ("ada", first.token)
                word = await two.identity()
                assert await two.look() == before
                again = await one.renew(first, 15.0)
                assert again.token == first.token
                assert await one.identity() == word
                await one.release(again, to="ben")
                assert await one.identity() == word

    run(play())


@pytest.mark.parametrize("kind", [Plain, Valkey])
def test_two_engines_are_two_guards_however_alike(kind: type[Node] | type[Valkey]) -> None:
    """Two leaders with one token, before: whoever asks another engine is no member now."""
    one, two = kind(), kind()

    async def story() -> None:
        group = new_group()
        members = await group_of("a", group, one.url())
        try:
            await seated(members)
            with pytest.raises(BadInput, match=r"guard engine is \w+ here and \w+ there"):
                await hustings.join(
                    group, name="b", seeds=[members[0].address], protocol="bully", guard=two.url()
                ).open()
        finally:
            await members[0].leave()

    try:
        one.start()
        two.start()
        run(story(), within=60)
    finally:
        one.close()
        two.close()


@every_engine
def test_who_comes_after_a_memory_loss_is_of_the_group(engine: Engine) -> None:
    """Also where somebody came in between, and has given the engine another name."""
    group = new_group()

    async def story() -> None:
        url = engine.url(group)
        async with make_guard(url, group) as guard:
            await guard.recover(KNOWN)
        members = await group_of("abc", group, url)
        try:
            before = (await seated(members)).state.token or 0
            await until(lambda: tokens(members) == {before}, "all know it")
            word = await told(url, group)
            await asyncio.to_thread(engine.forget)
            await told(url, group)
            if engine.name in DECIDED:
                lost = "nobody can lead until somebody decides"
                await until(
                    lambda: any(lost in note for each in members for note in each.notes),
                    "somebody has noticed",
                    within=30.0,
                )
                await operated(url, "--group", group, "--recover", "--above", f"{before}", "--yes")
            await until(lambda: min(tokens(members)) > before, "a larger token", within=30.0)
            assert await told(url, group) == word
            seeds = [members[0].address]
            joining = hustings.join(
                group, name="d", seeds=seeds, protocol="bully", guard=url, ttl=3.0
            )
            members.append(await joining.open())
            await seated(members)
        finally:
            for member in members:
                await member.leave()

    run(story(), within=110)


@pytest.mark.parametrize("engine", ["etcd"], indirect=True)
def test_who_is_let_in_gives_an_engine_its_name_back(engine: Etcd) -> None:
    """An operator was quicker: the engine's tokens are lifted before any member has asked."""
    group = new_group()

    async def story() -> None:
        url = engine.url(group)
        members = await group_of("ab", group, url)
        try:
            await seated(members)
            word = await told(url, group)
            await asyncio.to_thread(engine.forget)
            async with make_guard(url, group) as guard:
                await guard.recover(KNOWN)
            await until(lambda: min(tokens(members)) > KNOWN, "a larger token", within=30.0)
            kept = f"{group}.identity"
            await until(lambda: word in engine.order("get", kept), "the name that it had")
        finally:
            for member in members:
                await member.leave()

    run(story(), within=110)
