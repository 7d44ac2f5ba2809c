"""How the guard on Consul asks: which agent, with what, for how long, and what errors become."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_reqrep import ConnectionKey

from hustings.core.errors import BadInput
from hustings.guard import Grant, Holder, Unreachable, make_guard
from tests.guard.fakes.consul import Consul
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.fakes_http import Network

ADA = Holder("ada", 1)
TTL = 20.0


def serve(network: Network, *hosts: str) -> Consul:
    consul = Consul()
    network.servers |= {f"http://{host}:8500": consul for host in hosts}
    return consul


def always(status: int, text: str = "") -> Any:
    async def answer(_: Any) -> web.Response:
        return web.Response(status=status, text=text)

    return answer


async def silence(_: Any) -> Any:
    await asyncio.Event().wait()


def places(network: Network) -> str:
    return "".join(each.place[7] for each in network.asked)


# --- opening -------------------------------------------------------------------------------------


def test_opening_tries_a_session_and_leaves_nothing(network: Network) -> None:
    async def story() -> None:
        consul = serve(network, "h")
        async with make_guard("consul://h", "jobs"):
            assert any(each.endswith("session/create") for each in network.requests())
            assert (consul.sessions, consul.keys) == ({}, {})
            assert network.open == 1
        assert network.open == 0

    virtually(story())


def test_a_key_that_is_no_lock_is_not_touched(network: Network) -> None:
    async def story() -> None:
        consul = serve(network, "h")
        consul.keys["jobs/.lock"] = {"ModifyIndex": 3, "Flags": 7, "Value": None}
        with pytest.raises(
            BadInput, match=r"key jobs/\.lock in Consul at consul://h is not a lock"
        ):
            await make_guard("consul://h", "jobs").open()
        assert consul.sessions == {}
        assert network.open == 0

    virtually(story())


@pytest.mark.parametrize(
    "status, kind, says",
    [
        (401, BadInput, "Consul at consul://h wants another token: no"),
        (403, BadInput, "Consul at consul://h wants another token: no"),
        (400, Unreachable, "Consul at consul://h refuses: no"),
        (300, Unreachable, "Consul at consul://h refuses: no"),
        (499, Unreachable, "Consul at consul://h refuses: no"),
        (500, Unreachable, "Consul at consul://h cannot be used now: no"),
    ],
)
def test_refusals_are_told_apart_when_it_is_opened(
    network: Network, status: int, kind: type[Exception], says: str
) -> None:
    async def story() -> None:
        network.servers["http://h:8500"] = always(status, " no\n")
        with pytest.raises(kind) as caught:
            await make_guard("consul://h", "jobs").open()
        assert str(caught.value) == says
        assert network.open == 0

    virtually(story())


def test_a_base_that_is_no_number_is_noticed_when_it_is_opened(network: Network) -> None:
    async def story() -> None:
        consul = serve(network, "h")
        consul.keys["jobs/.base"] = {"ModifyIndex": 3, "Value": "bWFueQ=="}
        with pytest.raises(Unreachable, match=r"jobs/\.base"):
            await make_guard("consul://h", "jobs").open()
        assert network.open == 0

    virtually(story())


def test_no_tls_is_told_when_it_is_opened_and_waited_for_later(network: Network) -> None:
    key = ConnectionKey("h", 8500, True, True, None, None, None)

    async def story() -> None:
        consul = serve(network, "h")

        async def no_tls(_: Any) -> Any:
            raise aiohttp.ClientConnectorSSLError(key, OSError(1, "wrong version"))

        async with make_guard("consul://h,i", "jobs") as guard:
            network.servers["http://h:8500"] = no_tls
            with pytest.raises(Unreachable, match=r"refuses: no TLS connection \(.*wrong version"):
                await guard.acquire(ADA, TTL)
            assert consul.keys == {}
        with pytest.raises(BadInput, match=r"no TLS connection .*; see options tls, ca, cert, key"):
            await make_guard("consul://h", "jobs").open()
        assert network.open == 0

    virtually(story())


def test_a_guard_that_was_closed_can_be_closed_again_and_opened(network: Network) -> None:
    async def story() -> None:
        serve(network, "h")
        guard = make_guard("consul://h", "jobs")
        await guard.close()
        await guard.open()
        await guard.close()
        await guard.close()
        await guard.open()
        assert network.open == 1
        await guard.close()
        assert network.open == 0

    virtually(story())


def test_what_is_refused_later_may_be_allowed_again(network: Network) -> None:
    async def story() -> None:
        consul = serve(network, "h")
        async with make_guard("consul://h", "jobs") as guard:
            grant = await guard.acquire(ADA, TTL)
            assert isinstance(grant, Grant)
            network.servers["http://h:8500"] = always(403, "lacks permission")
            for ask in (guard.renew(grant, TTL), guard.acquire(ADA, TTL), guard.release(grant)):
                with pytest.raises(Unreachable, match="consul://h refuses: lacks permission"):
                    await ask
            network.servers["http://h:8500"] = consul
            await guard.renew(grant, TTL)

    virtually(story())


# --- which agent, for how long -------------------------------------------------------------------


def test_an_agent_that_is_down_is_passed_over_and_who_answered_is_asked_first(
    network: Network,
) -> None:
    async def story() -> None:
        serve(network, "b", "c")
        network.servers["http://a:8500"] = always(500, "No cluster leader")
        guard = make_guard("consul://a,b,c", "jobs")
        await guard.open()
        assert places(network) == "abbbb"
        del network.servers["http://b:8500"], network.asked[:]
        assert isinstance(await guard.acquire(ADA, TTL), Grant)
        assert places(network) == "bccccc"
        del network.servers["http://c:8500"], network.asked[:]
        with pytest.raises(Unreachable, match="cannot be used now: nobody is at http://b:8500"):
            await guard.acquire(ADA, TTL)
        assert places(network) == "cab"
        assert now() == 0.0
        await guard.close()

    virtually(story())


def test_every_agent_gets_its_share_of_the_time(network: Network) -> None:
    async def story() -> None:
        network.servers = {f"http://{each}:8500": silence for each in "abc"}
        with pytest.raises(Unreachable) as caught:
            await make_guard("consul://a,b,c?timeout=3", "jobs").open()
        assert str(caught.value) == (
            "Consul at consul://a,b,c cannot be used now: no answer within 1 s"
        )
        assert now() == pytest.approx(3.0)
        assert places(network) == "abc"
        assert [each.timeout for each in network.asked] == pytest.approx([1.0, 1.0, 1.0])

    virtually(story())


def test_two_questions_at_once_both_come_to_the_agent_that_is_up(network: Network) -> None:
    async def story() -> None:
        serve(network, "a", "b")
        guard = make_guard("consul://a,b", "jobs")
        await guard.open()
        network.servers["http://a:8500"] = silence
        words = await asyncio.gather(guard.identity(), guard.identity())
        assert words[0] == words[1] != ""
        await guard.close()

    virtually(story())


def test_who_fails_late_does_not_turn_the_others_away_from_who_answers(network: Network) -> None:
    async def story() -> None:
        consul = serve(network, "a", "b", "c")
        guard = make_guard("consul://a,b,c?timeout=9", "jobs")
        await guard.open()

        async def fail_late(_: Any) -> Any:
            await asyncio.sleep(1.0)
            return web.Response(status=500, text="No cluster leader")

        network.servers["http://a:8500"] = fail_late
        late = asyncio.ensure_future(guard.identity())
        await asyncio.sleep(0.5)
        del network.servers["http://a:8500"], network.servers["http://b:8500"]
        word = await guard.identity()
        network.servers["http://b:8500"] = consul
        del network.asked[:]
        assert await late == word
        assert places(network) == "bc", "it went on where it was, and then where they had turned to"
        await guard.close()

    virtually(story())


def test_a_process_that_stood_still_gives_no_agent_more_than_its_time(network: Network) -> None:
    async def story() -> None:
        async def stand_still(_: Any) -> Any:
            network.stood_still = 10.0
            return web.Response(status=500, text="No cluster leader")

        network.servers = {"http://a:8500": stand_still, "http://b:8500": silence}
        with pytest.raises(Unreachable):
            await make_guard("consul://a,b", "jobs").open()
        assert now() == 0.0

    virtually(story())


def test_an_answer_without_words_is_told_by_its_status(network: Network) -> None:
    async def story() -> None:
        network.servers["http://h:8500"] = always(503)
        with pytest.raises(Unreachable, match="cannot be used now: 503"):
            await make_guard("consul://h", "jobs").open()

    virtually(story())


# --- with what -----------------------------------------------------------------------------------


def test_token_and_datacenter_go_with_every_question(network: Network) -> None:
    async def story() -> None:
        serve(network, "h")
        async with make_guard("consul://:s3cret@h?dc=east", "jobs") as guard:
            await guard.acquire(ADA, TTL)
            assert {each.headers["X-Consul-Token"] for each in network.asked} == {"s3cret"}
            assert {each.query["dc"] for each in network.asked} == {"east"}
            assert {each.tls for each in network.asked} == {True}
            reads = [each for each in network.asked if each.method == "GET"]
            assert {"consistent" in each.query for each in reads} == {True}
        del network.asked[:]
        async with make_guard("consul://h", "jobs"):
            assert not any("X-Consul-Token" in each.headers for each in network.asked)
            assert not any("dc" in each.query for each in network.asked)

    virtually(story())


def test_with_tls_agents_are_spoken_to_so(network: Network) -> None:
    async def story() -> None:
        network.servers["https://h:8501"] = Consul()
        async with make_guard("consul://h:8501?tls=yes", "jobs"):
            assert {type(each.tls).__name__ for each in network.asked} == {"SSLContext"}

    virtually(story())


@pytest.mark.parametrize(
    "url, key",
    [
        ("consul://h", "jobs/.lock"),
        ("consul://h/of/mine", "of/mine/jobs/.lock"),
        ("consul://h/of?election=/all/", "all/.lock"),
        ("consul://h/of%20mine", "of mine/jobs/.lock"),
    ],
)
def test_path_and_group_make_the_prefix(network: Network, url: str, key: str) -> None:
    async def story() -> None:
        consul = serve(network, "h")
        async with make_guard(url, "jobs") as guard:
            await guard.acquire(ADA, TTL)
            await guard.recover(900)
            await guard.identity()
            beside = key.removesuffix(".lock")
            assert sorted(consul.keys) == [
                f"{beside}{each}" for each in (".base", ".identity", ".lock")
            ]

    virtually(story())


def test_an_address_in_brackets_stays_so(network: Network) -> None:
    async def story() -> None:
        network.servers["http://::1:8500"] = Consul()
        async with make_guard("consul://[::1]", "jobs"):
            assert len(network.asked) > 0

    virtually(story())


def test_ttls_that_consul_cannot_keep_are_refused() -> None:
    guard = make_guard("consul://h", "jobs")
    guard.check_ttl(10.0)
    guard.check_ttl(86400.0)
    for ttl in (9.9, 86400.5):
        with pytest.raises(BadInput, match="between 10 and 86400 s with Consul, not"):
            guard.check_ttl(ttl)
    with pytest.raises(BadInput, match="positive time"):
        guard.check_ttl(float("nan"))


@pytest.mark.parametrize(
    "url, says",
    [
        ("consul://h?tmeout=1", "timeout"),
        ("consul://ada:pw@h", "knows no users"),
        ("consul://h?lock_delay=61", "lies between 0 and 60 s, not 61"),
        ("consul://h?lock_delay=-1", "must be a number"),
        ("consul://h?ca=x", "need tls=yes"),
        ("consul://h?timeout=0", "positive time"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_guard(url, "jobs")


def test_the_longest_delay_is_allowed(network: Network) -> None:
    async def story() -> None:
        consul = serve(network, "h")
        async with make_guard("consul://h?lock_delay=60", "jobs") as guard:
            await guard.acquire(ADA, TTL)
            assert [each["delay"] for each in consul.sessions.values()] == [60.0]

    virtually(story())


def test_what_is_not_consul_is_told_when_it_is_opened(network: Network) -> None:
    async def story() -> None:
        network.servers["http://h:8500"] = always(200, "<html>welcome</html>")
        with pytest.raises(Unreachable, match="what answers at consul://h is not Consul: JSON"):
            await make_guard("consul://h", "jobs").open()
        assert network.open == 0

    virtually(story())
