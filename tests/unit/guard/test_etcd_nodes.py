"""Conversations with the nodes of an etcd cluster: whom is asked, for how long, what is said."""

from __future__ import annotations

import asyncio

import pytest
from aetcd import rpc

from hustings.core.errors import BadInput
from hustings.guard import Holder, Unreachable
from hustings.guard.etcd_nodes import PAUSE, EtcdLine, Nodes
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.fakes_etcd import Etcd, failure

ADA = Holder("ada", 1)
CODE = rpc.StatusCode
GONE = failure(CODE.UNAVAILABLE, "connection refused")
LEADERLESS = failure(CODE.UNAVAILABLE, "etcdserver: no leader")


def nodes_at(hosts: str, timeout: float = 3.0) -> Nodes:
    return Nodes([(host, 1) for host in hosts], shown="etcd://cluster", timeout=timeout)


async def ask(line: EtcdLine) -> int:
    answer = await line.call(line.kv.Range, rpc.RangeRequest(key=b"x"))
    return int(answer.header.revision)


def targets(etcd: Etcd) -> str:
    return "".join(each.target[0] for each in etcd.asked)


# --- which node ----------------------------------------------------------------------------------


def test_a_node_that_is_down_is_passed_over_and_who_answered_is_asked_first(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("abc")
        etcd.down = {"a:1": GONE}
        assert await nodes.converse(ask) == 1
        assert await nodes.converse(ask) == 1
        assert targets(etcd) == "abb"
        etcd.down = {"b:1": GONE, "c:1": GONE}
        assert await nodes.converse(ask) == 1
        assert targets(etcd) == "abbbca"
        assert now() == 0.0, "nobody waits for a node that says no"
        assert len(etcd.channels) == 3

    virtually(story())


def test_every_node_gets_its_share_of_the_time(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("abc")
        etcd.silent = {"a:1", "b:1", "c:1"}
        with pytest.raises(Unreachable) as caught:
            await nodes.converse(ask)
        assert str(caught.value) == (
            "etcd at etcd://cluster cannot be used now: no answer within 1 s"
        )
        assert now() == pytest.approx(3.0)
        assert targets(etcd) == "abc"
        assert [each.timeout for each in etcd.asked] == pytest.approx([1.0, 1.0, 1.0])

    virtually(story())


def test_what_is_left_of_a_silent_nodes_time_goes_to_the_others(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("abc")
        etcd.silent, etcd.down = {"a:1", "c:1"}, {"b:1": GONE}
        with pytest.raises(Unreachable, match="no answer within 2 s"):
            await nodes.converse(ask)
        assert now() == pytest.approx(3.0)

    virtually(story())


def test_a_connection_without_an_answer_is_made_anew(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab", timeout=2.0)
        etcd.silent = {"a:1"}
        assert await nodes.converse(ask) == 1
        assert now() == 1.0
        assert [(each.target, each.closed) for each in etcd.channels] == [
            ("a:1", True),
            ("b:1", False),
            ("a:1", False),
        ]

    virtually(story())


def test_a_deadline_that_the_client_notices_counts_as_silence(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("a")
        etcd.down = {"a:1": failure(CODE.DEADLINE_EXCEEDED, "Deadline Exceeded")}
        with pytest.raises(Unreachable, match="Deadline Exceeded"):
            await nodes.converse(ask)
        assert [each.closed for each in etcd.channels] == [True, False]

    virtually(story())


def test_a_connection_that_another_conversation_gave_up_is_no_cancellation(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab", timeout=10.0)
        etcd.silent = {"a:1"}
        one = asyncio.ensure_future(nodes.converse(ask))
        await asyncio.sleep(1.0)
        two = asyncio.ensure_future(nodes.converse(ask))
        assert await two == 1
        assert now() == 5.0, "the second was given up with the first, and turned to the other node"
        assert await one == 1
        assert [each.closed for each in etcd.channels] == [True, False, False]

    virtually(story())


def test_who_fails_late_does_not_turn_the_others_away_from_who_answers(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("abc", timeout=9.0)

        async def fail_late() -> None:
            await asyncio.sleep(1.0)
            raise GONE

        etcd.before("Range", fail_late)
        late = asyncio.ensure_future(nodes.converse(ask))
        await asyncio.sleep(0.5)
        etcd.down = {"a:1": GONE, "b:1": GONE}
        assert await nodes.converse(ask) == 1
        etcd.down = {"a:1": GONE}
        assert await late == 1
        assert await nodes.converse(ask) == 1
        assert targets(etcd) == "aabcbc"

    virtually(story())


def test_a_process_that_stood_still_gives_no_node_more_than_its_time(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab")

        def stand_still() -> None:
            etcd.stood_still = 10.0
            raise GONE

        etcd.before("Range", stand_still)
        etcd.silent = {"b:1"}
        with pytest.raises(Unreachable):
            await nodes.converse(ask)
        assert now() == 0.0

    virtually(story())


def test_who_is_cancelled_ends(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab", timeout=10.0)
        etcd.silent = {"a:1"}
        one = asyncio.ensure_future(nodes.converse(ask))
        await asyncio.sleep(1.0)
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert now() == 1.0
        assert targets(etcd) == "a"

    virtually(story())


def test_a_channel_closed_between_two_questions_is_as_good_as_a_node_down(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab")

        async def twice(line: EtcdLine) -> int:
            await ask(line)
            if line.node.channel.target == "a:1":
                await line.node.channel.close()
            return await ask(line)

        assert await nodes.converse(twice) == 1
        assert targets(etcd) == "abb", "a conversation is had with one node, from its first word"

        async def closed(line: EtcdLine) -> int:
            await line.node.channel.close()
            return await ask(line)

        with pytest.raises(Unreachable, match="closed"):
            await nodes.converse(closed)

    virtually(story())


# --- trying all nodes once more ------------------------------------------------------------------


def test_a_cluster_between_two_leaders_is_asked_again(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab")
        etcd.down = {"a:1": LEADERLESS, "b:1": GONE}
        asyncio.get_running_loop().call_later(1.0, etcd.down.clear)
        assert await nodes.converse(ask) == 1
        assert now() == pytest.approx(1.0, abs=1.01 * PAUSE)
        assert len(etcd.asked) == pytest.approx(2 * 1.0 / PAUSE, abs=4), "with pauses in between"

    virtually(story())


def test_a_cluster_that_stays_without_a_leader_is_given_up_in_time(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab")
        etcd.down = {"a:1": LEADERLESS, "b:1": LEADERLESS}
        with pytest.raises(Unreachable, match="cannot be used now: etcdserver: no leader"):
            await nodes.converse(ask)
        assert 3.0 - 1.5 * PAUSE <= now() <= 3.0

    virtually(story())


# --- refused from the beginning ------------------------------------------------------------------


@pytest.mark.parametrize(
    "code, details, says",
    [
        (CODE.INVALID_ARGUMENT, "bad name", "etcd at etcd://cluster refuses: bad name"),
        (CODE.PERMISSION_DENIED, "not yours", "etcd at etcd://cluster refuses: not yours"),
        (CODE.UNIMPLEMENTED, "what?", "etcd at etcd://cluster refuses: what?"),
        (CODE.FAILED_PRECONDITION, "authentication is not enabled", "refuses: authentication is"),
        (CODE.UNAUTHENTICATED, "who?", "etcd at etcd://cluster wants another name or password"),
        (CODE.UNAVAILABLE, "Certificate verify failed", "no TLS connection, see options ca, cert"),
    ],
)
def test_what_waiting_does_not_cure_is_said_at_once_when_it_is_opened(
    etcd: Etcd, code: rpc.StatusCode, details: str, says: str
) -> None:
    async def story() -> None:
        nodes = nodes_at("ab")
        etcd.down = {"a:1": failure(code, details), "b:1": GONE}
        with pytest.raises(BadInput, match=says):
            await nodes.converse(ask, opening=True)
        assert now() == 0.0
        etcd.down["b:1"] = etcd.down["a:1"]
        with pytest.raises(Unreachable, match=details):
            await nodes.converse(ask)
        assert now() == 0.0

    virtually(story())


HANDSHAKE = failure(CODE.UNAVAILABLE, "Ssl Handshake failed")


def test_a_broken_handshake_is_a_mistake_only_if_it_lasts(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("a")
        etcd.down = {"a:1": HANDSHAKE}
        asyncio.get_running_loop().call_later(1.0, etcd.down.clear)
        assert await nodes.converse(ask, opening=True) == 1
        etcd.down = {"a:1": HANDSHAKE}
        begin = now()
        with pytest.raises(BadInput) as caught:
            await nodes.converse(ask, opening=True)
        assert str(caught.value) == (
            "etcd at etcd://cluster speaks no TLS, or not with us: Ssl Handshake failed"
        )
        assert 3.0 - 1.5 * PAUSE <= now() - begin <= 3.0
        with pytest.raises(Unreachable, match="Handshake"):
            await nodes.converse(ask)

    virtually(story())


def test_who_breaks_off_the_handshake_and_then_is_down_is_only_down(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("a")
        etcd.down = {"a:1": HANDSHAKE}
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, etcd.down.update, {"a:1": GONE})
        with pytest.raises(Unreachable, match="connection refused"):
            await nodes.converse(ask, opening=True)
        assert now() < 2.0

    virtually(story())


@pytest.mark.parametrize("noticed", [False, True])
def test_silence_after_a_broken_handshake_takes_nothing_back(etcd: Etcd, noticed: bool) -> None:
    async def story() -> None:
        nodes = nodes_at("a")
        etcd.down = {"a:1": HANDSHAKE}

        def fall_silent() -> None:
            if noticed:
                etcd.down["a:1"] = failure(CODE.DEADLINE_EXCEEDED, "Deadline Exceeded")
            else:
                etcd.down.clear()
                etcd.silent = {"a:1"}

        asyncio.get_running_loop().call_later(1.0, fall_silent)
        with pytest.raises(BadInput, match="Handshake failed"):
            await nodes.converse(ask, opening=True)

    virtually(story())


def test_silence_of_one_node_does_not_hide_what_another_says(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab")
        etcd.down, etcd.silent = {"a:1": HANDSHAKE}, {"b:1"}
        with pytest.raises(BadInput, match="Handshake failed"):
            await nodes.converse(ask, opening=True)

    virtually(story())


# --- open and closed -----------------------------------------------------------------------------


def test_what_is_closed_stays_so_until_it_is_opened(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab")
        await nodes.converse(ask, opening=True)
        await nodes.close()
        assert all(each.closed for each in etcd.channels)
        with pytest.raises(Unreachable, match="the guard on etcd is closed"):
            await nodes.converse(ask)
        assert len(etcd.asked) == 1
        await nodes.converse(ask, opening=True)
        await nodes.converse(ask)
        assert len(etcd.channels) == 4

    virtually(story())


def test_a_conversation_under_way_ends_when_the_guard_is_closed(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("ab", timeout=10.0)
        etcd.silent = {"a:1", "b:1"}
        one = asyncio.ensure_future(nodes.converse(ask))
        await asyncio.sleep(1.0)
        await nodes.close()
        with pytest.raises(Unreachable, match="the guard on etcd is closed"):
            await one
        assert now() == 1.0
        assert len(etcd.channels) == 2, "nothing is connected anew"

    virtually(story())


def test_silence_after_the_end_connects_nothing_anew(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = nodes_at("a")

        async def shut(line: EtcdLine) -> None:
            nodes._nodes = []  # as `close` leaves it, but without giving up this conversation
            await ask(line)

        etcd.down = {"a:1": failure(CODE.DEADLINE_EXCEEDED, "Deadline Exceeded")}
        with pytest.raises(Unreachable):
            await nodes.converse(shut)
        assert len(etcd.channels) == 1

    virtually(story())
