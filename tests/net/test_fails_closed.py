"""A member that was told of others does not lead before one of them has answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import hustings
from hustings import blocking
from hustings.net.addresses import Address
from hustings.net.keys import new_key
from hustings.net.member import Member
from hustings.net.transport import Endpoint
from hustings.net.udp import is_own_host, resolve
from hustings.net.wire import VERSION
from hustings.testing import Group
from tests.net.kit.crowd import QUIET_S, Crowd, gives, leads_not, note_of
from tests.net.kit.loops import run, throughout, until
from tests.net.kit.ports import free_address, free_port
from tests.net.kit.stranger import datagrams

ONE, OTHER = new_key(), new_key()


async def facing(crowd: Crowd, one: dict[str, Any], other: dict[str, Any]) -> tuple[Member, Member]:
    """Two members that start together, each the other's seed."""
    here, there = free_address(), free_address()
    return await asyncio.gather(
        crowd.add("a", bind=here, seeds=[there], **one),
        crowd.add("b", bind=there, seeds=[here], **other),
    )


def resolving(monkeypatch: pytest.MonkeyPatch, name: str, *hosts: str) -> None:
    """A resolver that knows one more name."""

    async def looked_up(address: Address) -> list[Endpoint]:
        if address.host == name:
            return [(host, address.port) for host in hosts]
        return await resolve(address)

    monkeypatch.setattr("hustings.joining.resolve", looked_up)


# The six cases


@pytest.mark.parametrize(
    "one, other, to_one, to_other",
    [
        (
            {"key": ONE},
            {"key": OTHER},
            "it has a key that this member has not: install the same keys on both",
            "it has a key that this member has not: install the same keys on both",
        ),
        (
            {"key": ONE},
            {"insecure": True},
            "it speaks without a key and this member has one: give all members the key",
            "it speaks sealed and this member has no key: give it the group's key",
        ),
        (
            {"protocol": "bully"},
            {"protocol": "le-s"},
            "protocol is bully here and le-s there; give all members the same",
            "protocol is le-s here and bully there; give all members the same",
        ),
    ],
    ids=["another key", "no key", "another protocol"],
)
def test_members_that_differ_say_so_and_nobody_leads(
    one: dict[str, Any], other: dict[str, Any], to_one: str, to_other: str
) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            a, b = await facing(crowd, one, other)
            for member, theirs, words in ((a, b, to_one), (b, a, to_other)):
                why = f"{theirs.address}: {words}"
                await gives(member, why)
                note = note_of(member, "nobody leads here until another member answers", why)
                assert note.endswith("to lead without others, say alone=30s or expect=1")
            await leads_not(a, b)

    run(story())


def test_the_third_of_three_with_another_key_says_so_and_the_others_elect() -> None:
    async def story() -> None:
        places = [free_address() for _ in range(3)]
        async with Crowd(seeds=places) as crowd:
            a, b, c = await asyncio.gather(
                *(
                    crowd.add(name, bind=place, key=key)
                    for name, place, key in zip("abc", places, (ONE, ONE, OTHER), strict=True)
                )
            )
            await crowd.agreed(among=[a, b])
            await until(lambda: note_of(c, "nobody leads here", a.address, b.address), "why")
            await leads_not(c)

    run(story())


@pytest.mark.parametrize("key", [{"key": ONE}, {}], ids=["key", "no key"])
def test_members_of_two_groups_that_are_each_others_seeds(key: dict[str, Any]) -> None:
    """As with a typing error in the name of the group."""

    async def story() -> None:
        async with Crowd(**key) as crowd:
            a, b = await facing(crowd, {"group": "jobs"}, {"group": "job"})
            for member, other in ((a, b), (b, a)):
                await gives(member, f"{other.address}: it is in another group")
            await leads_not(a, b)

    run(story())


def test_a_member_that_advertises_a_wrong_address_is_heard_and_is_no_answer() -> None:
    async def story() -> None:
        wrong = free_address()
        async with Crowd(key=ONE) as crowd:
            a = await crowd.add("a", seeds=[free_address()])
            b = await crowd.add("b", seeds=[a.address], advertise=wrong)
            await gives(a, f"b is heard of and does not answer at its own address {wrong}")
            await leads_not(a)
            assert b.leader is None or b.is_leader

    run(story())


def test_a_member_of_another_release_says_so_and_nobody_leads() -> None:
    async def story() -> None:
        with datagrams() as other:
            host, port = other.getsockname()
            async with Crowd() as crowd:
                joining = asyncio.create_task(crowd.add("a", seeds=[f"{host}:{port}"]))
                other.setblocking(False)
                data, source = await asyncio.get_running_loop().sock_recvfrom(other, 2048)
                other.sendto(data[:1] + bytes((VERSION + 1,)) + data[2:], source)
                member = await joining
                why = f"{host}:{port}: it writes wire version {VERSION + 1}"
                await until(lambda: why in member.state.reason, lambda: member.state.reason)
                assert note_of(member, "nobody leads here until", why)
                await leads_not(member)

    run(story())


def test_a_member_without_a_guard_does_not_lead_beside_a_group_with_one() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            a, b = await facing(crowd, {"guard": "memory://closed", "ttl": "2s"}, {})
            await until(lambda: a.is_leader, "the guard lets it")
            why = f"{a.address}: guard is none here and memory there"
            await until(lambda: why in b.state.reason, "the other one says why it does not lead")
            assert note_of(b, "nobody leads here until", why)
            await leads_not(b)

    run(story())


def test_a_member_that_waits_refuses_no_newcomer() -> None:
    """It is in no group, so a newcomer that differs may have the right one."""

    async def story() -> None:
        async with Crowd() as crowd:
            waits = await crowd.add("b", seeds=[free_address()])
            await until(lambda: note_of(waits, "nobody leads here"), "why")
            a = await crowd.add("a", guard="memory://closed-waiting", ttl="2s")
            await until(lambda: a.is_leader, "the guard lets it")
            await leads_not(waits)

    run(story())


def test_so_does_a_member_that_comes_later() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a", guard="memory://closed-later", ttl="2s")
            await until(lambda: a.is_leader, "the guard lets it")
            with pytest.raises(hustings.BadInput, match="guard is none here and memory there"):
                await crowd.add("b")

    run(story())


def test_members_with_two_guards_that_start_together_do_not_lead_for_a_moment() -> None:
    """Each guard would let one lead."""

    async def story() -> None:
        async with Crowd() as crowd:
            one, other = ({"guard": f"memory://closed-{each}", "ttl": "2s"} for each in "ab")
            a, b = await facing(crowd, one, other)
            await leads_not(a, b)
            for member in (a, b):
                assert note_of(member, "guard engine is", "this member does not lead beside it")

    run(story())


def test_a_seed_that_cannot_be_resolved() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a", seeds=["nowhere.invalid"])
            why = "nowhere.invalid:7400 cannot be resolved: correct the name, or wait until"
            await until(lambda: note_of(member, "nobody leads here", why), "it says so")
            assert why in member.state.reason
            await leads_not(member)

    run(story())


@pytest.mark.parametrize(
    "bind, seed, why",
    [
        ("127.0.0.1:0", "[::1]:7499", "is an address of IPv6, and this member is bound to IPv4"),
        ("[::1]:0", "127.0.0.1:7499", "is an address of IPv4, and this member is bound to IPv6"),
        ("127.0.0.1:0", "192.0.2.1:7499", "is beyond this machine, and this member is bound to"),
    ],
)
def test_a_seed_that_this_member_cannot_send_to(bind: str, seed: str, why: str) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a", bind=bind, seeds=[seed])
            await until(lambda: note_of(member, "nobody leads here", f"{seed} {why}"), "why")
            await leads_not(member)

    run(story())


def test_a_seed_where_no_process_listens() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            seed = free_address()
            member = await crowd.add("a", seeds=[seed])
            why = f"({seed}: no process listens there)"
            await until(lambda: note_of(member, "nobody leads here", why), "why")
            await leads_not(member)

    run(story())


def test_the_sentence_is_said_once_while_nothing_changes() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a", seeds=[free_address()])
            await until(lambda: note_of(member, "nobody leads here"), "why")
            before = len(member.notes)
            await throughout(2.5, lambda: len(member.notes) == before, "it is said again")

    run(story())


# Who may lead


def test_members_that_start_together_wait_for_each_other_and_elect() -> None:
    async def story() -> None:
        places = [free_address() for _ in range(3)]
        async with Crowd(seeds=places) as crowd:
            await asyncio.gather(*(crowd.add(f"m{i}", bind=places[i]) for i in range(3)))
            await crowd.agreed()
            assert not any(note_of(each, "nobody leads here") for each in crowd.members)

    run(story())


def test_one_whose_only_seed_is_itself_leads() -> None:
    async def story() -> None:
        here = free_address()
        async with Crowd() as crowd:
            member = await crowd.add("a", bind=here, seeds=[here])
            await until(lambda: member.is_leader, "it leads")
            assert not member.notes

    run(story())


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::1", "127.0.0.1"]])
def test_one_whose_name_is_its_own_address_leads(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a headless service with one replica; the other family is not its own."""
    port = free_port()
    resolving(monkeypatch, "jobs.example", *addresses)

    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a", bind=f"127.0.0.1:{port}", seeds=[f"jobs.example:{port}"])
            await until(lambda: member.is_leader, "it leads")

    run(story())


def test_one_bound_to_all_interfaces_knows_its_own_addresses() -> None:
    async def story() -> None:
        port = free_port()
        async with Crowd(insecure=True) as crowd:
            member = await crowd.add(
                "a",
                bind=f"0.0.0.0:{port}",
                advertise=f"127.0.0.7:{port}",
                seeds=[f"127.0.0.1:{port}", f"localhost:{port}"],
            )
            await until(lambda: member.is_leader, "it leads")

    run(story())


def test_an_address_that_a_member_only_advertises_is_not_proved_to_be_its_own() -> None:
    """As all replicas do that advertise the address of the service before them."""

    async def story() -> None:
        service = f"127.0.0.8:{free_port()}"
        async with Crowd() as crowd:
            member = await crowd.add("a", bind="127.0.0.7:0", advertise=service, seeds=[service])
            why = f"{service} is only advertised by this member"
            await until(lambda: note_of(member, "nobody leads here", why), "why")
            await leads_not(member)

    run(story())


def test_where_any_address_can_be_bound_not_every_address_is_this_machines_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With `ip_nonlocal_bind` a wildcard-bound member would take all its seeds for itself."""
    monkeypatch.setattr("hustings.net.udp._can_bind", lambda host: True)
    assert is_own_host("127.0.0.1")
    assert is_own_host("127.0.0.77")
    for other in ("198.51.100.7", "240.0.0.1", "2001:db8::7", "100::1"):
        assert not is_own_host(other)

    async def story() -> None:
        port = free_port()
        async with Crowd(insecure=True) as crowd:
            member = await crowd.add(
                "a",
                bind=f"0.0.0.0:{port}",
                advertise=f"127.0.0.7:{port}",
                seeds=[f"198.51.100.7:{port}"],
            )
            await until(lambda: note_of(member, "nobody leads here"), "why")
            await leads_not(member)

    run(story())


def test_only_an_address_of_one_machine_is_this_machines_own() -> None:
    """Linux lets a process bind an address of a group, and one that stands for all."""
    for own in ("127.0.0.1", "127.0.0.77", "::1"):
        assert is_own_host(own)
    groups = ("224.0.0.1", "239.1.2.3", "ff02::1", "255.255.255.255", "127.255.255.255")
    for other in ("198.51.100.7", "2001:db8::7", "0.0.0.0", "::", *groups):
        assert not is_own_host(other)


def test_a_name_that_resolves_to_the_address_of_nobody_is_not_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As names that a resolver blocks. A member bound to all interfaces is bound to it, too."""
    port = free_port()
    resolving(monkeypatch, "db.example", "0.0.0.0")

    async def story() -> None:
        async with Crowd(insecure=True) as crowd:
            member = await crowd.add(
                "a",
                bind=f"0.0.0.0:{port}",
                advertise=f"127.0.0.7:{port}",
                seeds=[f"db.example:{port}"],
            )
            await until(lambda: note_of(member, "nobody leads here", "db.example"), "why")
            await leads_not(member)

    run(story())


def test_members_behind_one_name_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name has each member's own address, and one where nobody is."""
    port = free_port()
    resolving(monkeypatch, "jobs.example", "127.0.0.11", "127.0.0.12", "127.0.0.13")

    async def story() -> None:
        async with Crowd(key=ONE, seeds=[f"jobs.example:{port}"]) as crowd:
            member = await crowd.add("a", bind=f"127.0.0.11:{port}")
            await until(lambda: note_of(member, "nobody leads here"), "why")
            await leads_not(member)
            await crowd.add("b", bind=f"127.0.0.12:{port}")
            await crowd.agreed()

    run(story())


@pytest.mark.parametrize("options", [{"expect": 1}, {"alone": True}, {"alone": "0s"}])
def test_one_that_may_be_alone_leads(options: dict[str, Any]) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a", seeds=[free_address()], **options)
            await until(lambda: member.is_leader, "it leads")
            assert note_of(member, "no seed answers yet", "alone for now, and looking on")

    run(story())


def test_threads_and_jobs_have_the_same_rule() -> None:
    lone: dict[str, Any] = {"seeds": [free_address()], "local": False}
    with (
        blocking.join("threads", alone="yes", **lone) as member,
        member.campaign(timeout=10.0) as term,
    ):
        assert term.number == 1
    with (
        blocking.join("threads", **lone) as member,
        pytest.raises(TimeoutError),
        member.campaign(timeout=QUIET_S),
    ):
        pytest.fail("it leads alone")
    with pytest.raises(hustings.BadInput, match="expect must be from 1"):
        hustings.once("threads", expect=0)(lambda term: None).run()


def test_one_that_may_be_alone_after_a_while_leads_then() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            loop = asyncio.get_running_loop()
            began = loop.time()
            member = await crowd.add("a", seeds=[free_address()], alone="1.5s")
            await until(lambda: member.is_leader, "it leads")
            assert loop.time() - began >= 1.5
            assert note_of(member, "too few members have answered within 1.5s")

    run(story())


def test_without_seeds_alone_no_waits_too() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            first = await crowd.add("a", seeds=[], alone=False)
            await leads_not(first)
            await crowd.add("b")
            await crowd.agreed()

    run(story())


def test_so_many_as_are_expected() -> None:
    async def story() -> None:
        async with Crowd(expect=3) as crowd:
            a, b = await crowd.add_all("ab")
            await until(lambda: note_of(a, "3 members are in touch, 2 so far"), "why")
            await leads_not(a, b)
            watcher = await crowd.add("o", observer=True)
            await leads_not(a, b)
            await crowd.add("c")
            leader = await crowd.agreed()
            await leader.kill()
            await crowd.agreed(but=leader.name, among=list(crowd.open()))
            assert watcher.leader is not None

    run(story())


def test_after_the_first_leader_a_newcomer_need_not_count() -> None:
    async def story() -> None:
        async with Crowd(expect=3) as crowd:
            await crowd.add_all("abc")
            leader = await crowd.agreed()
            for each in [each for each in crowd.open() if each is not leader]:
                await each.kill()
            late = await crowd.add("late")
            await until(lambda: late.leader is not None, "it follows")
            await leader.kill()
            await until(lambda: late.is_leader, "the group knew")

    run(story())


def test_an_observer_finds_the_group_and_is_no_answer() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            here, there = free_address(), free_address()
            observer = await crowd.add("o", observer=True, bind=here, seeds=[there])
            member = await crowd.add("a", bind=there, seeds=[here])
            await crowd.known(2)
            await leads_not(member)
            assert note_of(member, f"{observer.address}: an observer, which never leads")
            assert not note_of(observer, "nobody leads here")

    run(story())


def test_a_guard_decides_and_nobody_is_waited_for() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add(
                "a", seeds=[free_address(), "nowhere.invalid"], guard="memory://alone", ttl="2s"
            )
            await until(lambda: member.is_leader, "the guard lets it")

    run(story())


@pytest.mark.parametrize(
    "options, refusal",
    [
        ({"expect": 0}, "expect must be from 1 to 4096 members, not 0"),
        ({"expect": 5000}, "expect must be from 1 to 4096 members, not 5000"),
        ({"expect": True}, "expect must be a whole number of members, not True"),
        ({"expect": 2.0}, "expect must be a whole number of members, not 2.0"),
        ({"alone": "soon"}, "alone must be yes, no or a duration such as 30s, not 'soon'"),
        ({"alone": -1}, "alone must be yes, no or a duration such as 30s, not -1"),
        ({"expect": 1, "alone": False}, "expect=1 lets this member lead alone"),
        ({"expect": 3, "alone": True}, "alone=yes waits for nobody, and expect=3"),
        ({"expect": 3, "guard": "memory://x"}, "expect and alone are for groups without a guard"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(options: dict[str, Any], refusal: str) -> None:
    with pytest.raises(hustings.BadInput) as raised:
        hustings.join("group", **options)
    assert refusal in str(raised.value)


# Later starts


def test_both_members_of_a_group_start_again_at_one_time() -> None:
    async def story() -> None:
        here, there = free_address(), free_address()
        async with Crowd(key=ONE) as crowd:
            for _ in range(3):
                both = await asyncio.gather(
                    crowd.add("a", bind=here, seeds=[there]),
                    crowd.add("b", bind=there, seeds=[here]),
                )
                await crowd.agreed()
                for member in both:
                    await member.kill()

    run(story())


def test_a_member_that_starts_again_follows_the_one_that_led_on() -> None:
    async def story() -> None:
        async with Crowd(key=ONE) as crowd:
            a, b = await facing(crowd, {}, {})
            leader = await crowd.agreed()
            stays = b if leader is a else a
            await leader.kill()
            await until(lambda: stays.is_leader, "it leads down to the last member")
            await crowd.add(leader.name, bind=leader.address, seeds=[stays.address])
            assert await crowd.agreed() is stays

    run(story())


def test_the_last_member_leads_on_when_all_seeds_are_gone_and_a_newcomer_waits() -> None:
    async def story() -> None:
        async with Crowd(key=ONE) as crowd:
            a, b = await facing(crowd, {}, {})
            last = await crowd.add("c", seeds=[a.address, b.address])
            await crowd.agreed()
            await a.kill()
            await b.kill()
            await until(lambda: last.is_leader, "the last one leads")
            lost = await crowd.add("d", seeds=[a.address, b.address])
            await until(lambda: note_of(lost, "nobody leads here", a.address, b.address), "why")
            await throughout(QUIET_S, lambda: last.is_leader and not lost.is_leader, "both lead")
            await crowd.add("e", seeds=[last.address])
            assert await crowd.agreed(among=[last, crowd.named("e")]) is last

    run(story())


def test_members_with_one_guard_and_two_keys_never_lead_together() -> None:
    async def story() -> None:
        async with Crowd(guard="memory://closed-keys", ttl="2s") as crowd:
            a, b = await facing(crowd, {"key": ONE}, {"key": OTHER})
            await until(lambda: a.is_leader or b.is_leader, "the guard lets one")
            await throughout(3.0, lambda: not (a.is_leader and b.is_leader), "both lead")

    run(story())


def test_a_member_of_both_families_and_one_of_ipv4_elect() -> None:
    async def story() -> None:
        wide, narrow = free_port(), free_port()
        async with Crowd(key=ONE) as crowd:
            await asyncio.gather(
                crowd.add(
                    "a",
                    bind=f"[::]:{wide}",
                    advertise=f"127.0.0.1:{wide}",
                    seeds=[f"127.0.0.1:{narrow}"],
                ),
                crowd.add("b", bind=f"127.0.0.1:{narrow}", seeds=[f"127.0.0.1:{wide}"]),
            )
            await crowd.agreed()

    run(story())


# On one machine, and in memory


def test_members_of_one_machine_that_have_only_found_each_other_wait_for_the_seed() -> None:
    """They would lead beside the group that the seed is in."""

    async def story() -> None:
        seed = free_address()
        async with Crowd(local=True, seeds=[seed]) as crowd:
            a, b = await crowd.add_all("ab")
            await crowd.known(2)
            why = "a seed answers, since members of this machine have only found each other"
            await until(lambda: note_of(a, why), "why")
            await leads_not(a, b)
            await crowd.add("c", bind=seed)
            await crowd.agreed()

    run(story())


def test_in_a_group_in_memory_the_same_rules_hold() -> None:
    with Group(seed=1) as group:
        group.join("a", expect=3)
        group.join("b", expect=3)
        group.advance(20.0)
        assert group.leaders == []
        group.join("c", expect=3)
        group.settle()
    with Group(seed=1) as group:
        group.join("a")
        group.join("b")
        group.settle()
        for name in "ab":
            group.kill(name)
        group.restart("a")
        group.advance(20.0)
        assert group.leaders == [], "its seed is gone"
        group.restart("b")
        group.settle()


@pytest.mark.parametrize("protocol", ["le-s", "bully"])
def test_newcomers_to_a_group_that_runs_follow_its_leader_at_once(protocol: str) -> None:
    """One that waited longer would hear an election first, and bully its way through it."""
    names = "abcde"
    with Group(seed=1, protocol=protocol) as group:
        group.join("a")
        group.advance(1.0)
        for name in names[1:]:
            group.join(name)
        group.advance(0.1)
        assert group.leaders == ["a"]
        assert {group.member(name).state.term for name in names} == {1}
