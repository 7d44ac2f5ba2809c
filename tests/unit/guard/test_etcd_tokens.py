"""Tokens, identity and limits of the guard on etcd, against a cluster in memory."""

from __future__ import annotations

import pytest

from hustings.core.errors import BadInput
from hustings.guard import (
    HeldBy,
    Holder,
    MemoryLost,
    NotGranted,
    Unreachable,
    make_guard,
)
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_etcd import Etcd, opened

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 5.0


# --- tokens that are known -----------------------------------------------------------------------


def test_nothing_is_granted_below_a_token_that_is_known(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            with pytest.raises(MemoryLost, match="its last token is 1, and token 2 is known"):
                await guard.acquire(ADA, TTL, 2)
            assert (etcd.keys, etcd.leases) == ({}, {})
            assert (await granted(guard, ADA, TTL, 1)).token == 2

    virtually(story())


def test_who_holds_a_token_that_nobody_believes_gives_it_up(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            assert (await granted(guard, ADA, TTL, first.token)).token == first.token
            etcd.write("elsewhere", "x")
            known = etcd.revision
            assert await guard.acquire(ADA, TTL, known) == HeldBy("", 0, 0.0)
            assert (etcd.standing("jobs"), etcd.leases) == ([], {})
            assert (await granted(guard, ADA, TTL, known)).token > known

    virtually(story())


def test_who_holds_in_a_cluster_that_is_behind_gives_it_up(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            with pytest.raises(MemoryLost, match=f"its last token is {first.token}, and token 9"):
                await guard.acquire(ADA, TTL, 9)
            assert etcd.standing("jobs") == []

    virtually(story())


def test_recovery_lifts_all_later_tokens_and_never_lowers_them(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            await other.recover(900)
            assert etcd.text("jobs.base") == "900"
            with pytest.raises(NotGranted):
                await guard.renew(first, TTL)
            second = await granted(guard, ADA, TTL)
            assert second.token == 900 + first.token
            await guard.renew(second, TTL)
            revision = etcd.revision
            await other.recover(900 + revision)
            assert etcd.revision == revision, "its tokens are there already"
            await other.recover(901 + revision)
            assert etcd.text("jobs.base") == str(901 + revision)
            await guard.release(await granted(guard, ADA, TTL))
            assert (await granted(guard, ADA, TTL, 901 + revision)).token > 901 + revision

    virtually(story())


def test_a_recovery_that_somebody_else_was_quicker_with_looks_again(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            etcd.before("Txn", lambda: etcd.write("jobs.base", "5000"), skip=1)
            await guard.recover(900)
            assert etcd.text("jobs.base") == "5000"
            etcd.before("Txn", lambda: etcd.write("jobs.base", "5001"), skip=1)
            await guard.recover(9000)
            assert etcd.text("jobs.base") == "9000"

    virtually(story())


@pytest.mark.parametrize("value", ["many", "-1", "9" * 30])
def test_a_base_that_is_no_number_is_told_of(etcd: Etcd, value: str) -> None:
    async def story() -> None:
        async with opened() as guard:
            etcd.write("jobs.base", value)
            with pytest.raises(Unreachable, match=r"key jobs\.base in etcd is not a guard's"):
                await guard.acquire(ADA, TTL)

    virtually(story())


# --- identity ------------------------------------------------------------------------------------


def test_the_first_word_stays_and_all_are_told_it(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as one, opened() as two:
            word = await one.identity()
            assert word == etcd.text("jobs.identity") != ""
            assert await two.identity() == word
            two.known_as = "old"
            assert await two.identity() == word
            with pytest.raises(MemoryLost):
                await two.acquire(ADA, TTL, 10**6)
            assert await one.identity() == "old", "who knows of a loss gives back the old word"

    virtually(story())


# --- numbers of leases, limits, addresses --------------------------------------------------------


@pytest.mark.parametrize("most", [False, True])
def test_a_lease_has_a_positive_number_that_etcd_can_count(
    etcd: Etcd, monkeypatch: pytest.MonkeyPatch, most: bool
) -> None:
    monkeypatch.setattr("secrets.randbits", lambda bits: (1 << bits) - 1 if most else 0)

    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            (lease,) = etcd.leases
            assert 2**32 < lease < 2**63
            assert (await granted(guard, ADA, TTL)).token == first.token

    virtually(story())


def test_ttls_that_etcd_cannot_keep_are_refused(etcd: Etcd) -> None:
    guard = opened()
    guard.check_ttl(1.0)
    with pytest.raises(BadInput, match=r"ttl must be at least 1 s with etcd, not 0\.9"):
        guard.check_ttl(0.9)
    with pytest.raises(BadInput, match="positive time"):
        guard.check_ttl(float("inf"))


@pytest.mark.parametrize(
    "url, says",
    [
        ("etcd://h?tmeout=1", "timeout"),
        ("etcd://ada@h", "needs both a user and a password"),
        ("etcd://:pw@h", "needs both a user and a password"),
        ("etcd://h?ca=x", "are for the scheme etcds"),
        ("etcds://h?cert=x", "belong together"),
        ("etcds://h?key=x", "belong together"),
        ("etcds://h?ca=no/such", "option ca of etcds: No such file or directory: no/such"),
        ("etcds://h?cert=no/c&key=no/k", "option key of etcds"),
        ("etcd://h?timeout=0", "positive time"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_guard(url, "jobs")


@pytest.mark.parametrize(
    "url, key",
    [
        ("etcd://h", "jobs/"),
        ("etcd://h/of/mine", "of/mine/jobs/"),
        ("etcd://h/of?election=all", "all/"),
    ],
)
def test_path_and_group_make_the_name(etcd: Etcd, url: str, key: str) -> None:
    async def story() -> None:
        async with make_guard(url, "jobs") as guard:
            await granted(guard, ADA, TTL)
            assert [each.startswith(key.encode()) for each in etcd.keys] == [True]

    virtually(story())
