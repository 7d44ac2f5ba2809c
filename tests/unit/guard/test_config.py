"""The guard that somebody has chosen for a group: what is refused before anything starts."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hustings.core.errors import BadInput, Unavailable
from hustings.guard import Guard, Unreachable
from hustings.guard.base import IDENTITY
from hustings.guard.config import MOST_KIND, GroupGuard, guard_for
from hustings.guard.memory import MemoryGuard, Register
from hustings.guard.quorum import GroupVoters, VoterOptions
from hustings.guard.urls import check_bounds, client_tls, one_of, parse_url, seconds
from hustings.layers.lease import LeaseConfig, LeaseLayer
from tests.net.kit.loops import run
from tests.unit.layers.puppets import Puppet

IDS = {name: number for number, name in enumerate("abcdefg", 1)}
VOTERS = "quorum://a,b,c"
LEASE = LeaseConfig(ttl=5.0, delta=0.05)


def chosen(url: str | Callable[[str], Guard], **more: Any) -> GroupGuard:
    return guard_for(url, "jobs", IDS.__getitem__, **more)


def told(notes: list[str]) -> Callable[[str], None]:
    return notes.append


# What is asked of a guard


def test_the_lease_is_the_guards_unless_somebody_knows_better() -> None:
    assert dict(chosen("memory://x").lease) == {"drift": 0.001}
    asked = chosen("memory://x", ttl="5s", settings={"drift": 0.01, "margin": 1.0}).lease
    assert dict(asked) == {"drift": 0.01, "margin": 1.0, "ttl": 5.0}
    assert chosen(VOTERS, ttl=4.0).lease["ttl"] == 4.0


def test_how_long_an_engine_is_waited_for() -> None:
    assert chosen("memory://x").wait_s == 10.0
    assert chosen("memory://x", wait="2m").wait_s == 120.0
    assert chosen(lambda group: MemoryGuard(Register()), wait=0).wait_s == 0.0
    for wrong in ("-1s", "2d", "25h", True):
        with pytest.raises(BadInput, match="guard_wait"):
            chosen("memory://x", wait=wrong)


def test_a_guard_of_ones_own_is_named_after_its_class() -> None:
    own = chosen(lambda group: MemoryGuard(Register()))
    assert (own.shown, own.kind, own.address) == ("MemoryGuard", "memoryguard", "")
    assert own.make is not None
    assert isinstance(own.make(), MemoryGuard)
    with pytest.raises(BadInput, match="given by its address, and not as int"):
        chosen(7)  # type: ignore[arg-type]  # what a program may pass all the same


@pytest.mark.parametrize(
    "url, kind",
    [
        (VOTERS, "quorum"),
        ("memory://x", "memory"),
        ("etcds://h", "etcd"),
        ("postgresql://u@h/db", "postgres"),
        ("rediss://h", "redis"),
        ("valkey://h", "redis"),
    ],
)
def test_one_engine_has_one_name(url: str, kind: str) -> None:
    assert chosen(url).kind == kind


def test_a_long_name_is_cut_where_members_compare_it() -> None:
    assert len(GroupGuard("x" * 99, chosen(VOTERS).guarantees, {}).kind) == MOST_KIND


def test_an_engine_is_no_voter_and_voters_are_no_engine() -> None:
    engine, voters = chosen("memory://x"), chosen(VOTERS)
    assert (engine.voting, voters.make) == (None, None)
    assert voters.voting is not None
    made = voters.voting(LeaseLayer(Puppet(), LEASE))
    assert made.electorate.voters == (1, 2, 3)  # type: ignore[attr-defined]  # a quorum layer

    async def asks() -> object:
        return await voters.client("a", IDS.__getitem__, print, lambda: None, lambda: (0, 0))

    assert run(asks()) is None


def test_every_incarnation_of_a_member_is_another_holder() -> None:
    async def holders() -> set[int]:
        lives = set()
        for _ in range(3):
            asks = await chosen("memory://x").client(
                "a", IDS.__getitem__, print, lambda: "b", lambda: (3, 4)
            )
            assert asks is not None
            assert asks.holder.name == "a"
            assert asks._successor() == "b"
            assert asks._known() == (3, 4)
            lives.add(asks.holder.incarnation)
            await asks.close()
        return lives

    lives = run(holders())
    assert len(lives) == 3
    assert 1 << 40 < max(lives) < 1 << 62


def test_tokens_of_voters_begin_above_the_date() -> None:
    voters, engine = chosen(VOTERS), chosen("memory://x")
    voters.begin_above(77)
    engine.begin_above(77)
    assert voters.quorum is not None
    assert voters.quorum.above == 77
    assert voters.quorum.around(LeaseLayer(Puppet(), LEASE)).quorum.above == 77


def test_what_cannot_work_is_refused_before_anybody_leads() -> None:
    chosen(VOTERS).check(LEASE, "a", kept=True)
    chosen(VOTERS).check(LEASE, "x", kept=False)  # it does not vote
    chosen(VOTERS).check(None, "a", kept=True)
    chosen("quorum://a,b,c?durable=no").check(LEASE, "a", kept=False)
    with pytest.raises(BadInput, match=r"must keep what it promises.*quorum://a,b,c\?durable=no"):
        chosen(VOTERS).check(LEASE, "a", kept=False)
    with pytest.raises(BadInput, match="must not exceed max_ttl=4s"):
        chosen("quorum://a,b,c?max_ttl=4s").check(LEASE, "x", kept=True)
    chosen("quorum://a,b,c?max_ttl=5s").check(LEASE, "x", kept=True)
    with pytest.raises(BadInput, match="ttl must lie between"):
        chosen("consul://h").check(LEASE, "a", kept=True)
    chosen("consul://h").check(None, "a", kept=True)


# Which engine it is


class Named(MemoryGuard):
    """An engine with an identity of its own, which may be hard to reach."""

    def __init__(self, tells: str | Exception, away: int = 0) -> None:
        super().__init__(Register())
        self.tells = tells
        self.away = away
        self.closed = 0

    async def open(self) -> None:
        if self.away:
            self.away -= 1
            raise Unreachable("it is away")

    async def close(self) -> None:
        self.closed += 1

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        assert kind == IDENTITY
        assert len(word) == 16
        assert not instead
        if isinstance(self.tells, Exception):
            raise self.tells
        return self.tells


def engine_field(guard: Guard, address: str = "there", named: bool = False) -> str:
    it = GroupGuard(
        "own://", guard.guarantees, {}, make=lambda: guard, address=address, named=named
    )

    async def asked() -> dict[str, str]:
        it.wait_s = 0.02
        fields = await it.agreed(5.0, print)
        await it.close()
        return {field.name: field.value for field in fields}

    return run(asked())["guard engine"]


def test_an_engine_is_known_by_what_it_says_it_is() -> None:
    guard = Named("cluster-7")
    assert engine_field(guard) == "cluster-7"
    assert guard.closed == 1
    assert engine_field(Named("")) == "there", "or by its address"
    assert engine_field(Named("cluster-7"), named=True) == "there", "or by the name it was given"
    assert engine_field(MemoryGuard(Register())) == "there"
    with pytest.raises(Unavailable, match=r"own:// did not answer for 20ms \(gone\)"):
        engine_field(Named(Unreachable("gone")))


def test_who_asks_the_engine_knows_what_it_was_called() -> None:
    guard = Named("cluster-7")
    it = GroupGuard("own://", guard.guarantees, {}, make=lambda: guard, address="there")

    async def story() -> None:
        await it.agreed(5.0, print)
        asks = await it.client("a", IDS.__getitem__, print, lambda: None, lambda: (0, 0))
        assert asks is not None
        assert asks.guard.known_as == "cluster-7"
        await asks.close()

    run(story())


def test_members_compare_the_kind_the_engine_and_the_part_of_it() -> None:
    plain = run(chosen("memory://x").agreed(5.0, print))
    assert [(field.name, field.value) for field in plain] == [
        ("guard", "memory"),
        ("guard engine", "x:"),
    ]
    part = run(chosen("nats://h/bucket?identity=prod").agreed(5.0, print))
    assert [(field.name, field.value) for field in part] == [
        ("guard", "nats"),
        ("guard engine", "prod"),
        ("guard path", "bucket"),
    ]
    voters = run(chosen("quorum://c,b,a?durable=no&max_ttl=9s").agreed(5.0, print))
    assert [(field.name, field.value) for field in voters] == [
        ("guard", "quorum"),
        ("voters", "a,b,c"),
        ("durable", "no"),
        ("longest lease", "9s"),
    ]
    assert all(field.must for field in (*plain, *part, *voters))
    assert run(chosen(VOTERS).agreed(5.0, print))[3].value == "5s"


@pytest.mark.parametrize(
    "url, address, scope",
    [
        ("etcd://u:p@b:7,a", "a:2379,b:7", ""),
        ("valkey://a:6379", "a:6379", ""),
        ("etcd://h/x?election=e", "h:2379", "x election=e"),
        ("consul://h?dc=east", "h:8500", "dc=east"),
        ("memory://", "this machine", ""),
    ],
)
def test_addresses_are_compared_without_what_does_not_matter(
    url: str, address: str, scope: str
) -> None:
    it = chosen(url)
    assert (it.address, it.scope, it.named) == (address, scope, False)


# Voters


@pytest.mark.parametrize(
    "url, says",
    [
        ("quorum://a,b", "needs 3, 5 or 7 voters, not 2"),
        ("quorum://a", "needs 3, 5 or 7 voters, not 1"),
        ("quorum://a,b,c,d,e,f,g,h,i", "needs 3, 5 or 7 voters, not 9"),
        ("quorum://a,b,b", "named once"),
        ("quorum://a:1,b,c", "no addresses"),
        ("quorum://u@a,b,c", "no addresses"),
        ("quorum://a,b,c/path", "no addresses"),
        ("quorum://a,b,c?durable=maybe", "must be yes or no, not 'maybe'"),
        ("quorum://a,b,c?odd=1", "odd"),
        ("quorum://a,b,c?max_ttl=soon", "max_ttl"),
        ("quorum://a,b,c?initial=a,b", "initial .* as many voters"),
        ("quorum://a,b,c?initial=a,b,c,d,e", "initial .* as many voters"),
        ("quorum://a,b,c?initial=a,b,b", "initial .* each once"),
        ("quorum://b,c,d?durable=no&initial=a,b,c", "keep nothing .* never are"),
    ],
)
def test_who_cannot_vote_together_is_told(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        VoterOptions(parse_url(url), lambda name: ord(name[0]))


def test_voters_promise_what_their_disks_do() -> None:
    kept = VoterOptions(parse_url("quorum://a,b,c,d,e,f,g"), IDS.__getitem__)
    unkept = VoterOptions(parse_url("quorum://b,a,c?durable=no&initial=c,a,b"), IDS.__getitem__)
    later = VoterOptions(parse_url("quorum://b,a,c?initial=c,a,d"), IDS.__getitem__)
    assert (kept.durable, kept.guarantees.monotone, kept.max_ttl) == (True, True, None)
    assert (unkept.durable, unkept.guarantees.monotone) == (False, False)
    assert "old copy" in kept.guarantees.proviso
    assert "keep nothing" in unkept.guarantees.proviso
    assert (kept.guarantees.clock, kept.above) == ("voters", 0)
    assert (kept.initial, unkept.initial) == (tuple("abcdefg"), tuple("abc"))
    assert later.initial == tuple("acd")
    assert later.around(LeaseLayer(Puppet(), LEASE)).quorum.origin.voters == (1, 3, 4)
    made = unkept.around(LeaseLayer(Puppet(), LEASE))
    assert made.electorate.voters == (1, 2, 3)
    assert (made.quorum.durable, made.quorum.delta, made.quorum.max_ttl) == (False, 0.05, None)


class Hosted:
    """What voters see of a member."""

    def __init__(self, me: int, url: str = VOTERS) -> None:
        with_quorum = VoterOptions(parse_url(url), IDS.__getitem__).around(
            LeaseLayer(Puppet(), LEASE)
        )
        self.layer = with_quorum
        self.ran: list[object] = []
        self.host = SimpleNamespace(
            stack=SimpleNamespace(inner=with_quorum),
            closed=False,
            runner=SimpleNamespace(me=SimpleNamespace(id=me), run=self.run),
        )
        host: Any = self.host
        self.voters = GroupVoters(host, IDS.__getitem__)

    def run(self, act: object) -> bool:
        self.ran.append(act)
        return True


def test_who_votes_is_known_and_who_does_not_says_why() -> None:
    hosted = Hosted(1)
    assert (hosted.voters.ids, hosted.voters.number) == ((1, 2, 3), 0)
    assert (hosted.voters.excuse() or "").startswith("this voter ")
    hosted.layer.acceptor.votes = True
    assert hosted.voters.excuse() is None
    assert Hosted(7).voters.excuse() is None, "it is no voter"


def test_a_voter_is_replaced_by_one_that_does_not_vote() -> None:
    hosted = Hosted(1)
    for old, new, says in (("d", "e", "'d' does not vote"), ("a", "b", "'b' votes already")):
        with pytest.raises(BadInput, match=says):
            hosted.voters.replace(old, new)
    with pytest.raises(BadInput, match="keep nothing cannot be replaced"):
        Hosted(1, "quorum://a,b,c?durable=no").voters.replace("a", "d")
    assert hosted.ran == []
    assert hosted.voters.replace("a", "d") is True
    assert len(hosted.ran) == 1


# Options


def test_options_are_read_with_care(tmp_path: Any) -> None:
    url = parse_url("etcd://h?timeout=2&tls=maybe&zero=0")
    assert (seconds(url, "timeout", 9.0), seconds(url, "other", 9.0)) == (2.0, 9.0)
    with pytest.raises(BadInput, match="option zero of etcd must be a positive time, not 0"):
        seconds(url, "zero", 1.0)
    with pytest.raises(BadInput, match="must be one of no, yes, not 'maybe'"):
        one_of(url, "tls", "no", "yes")
    assert one_of(url, "absent", "no", "yes") == "no"
    for ttl in (0.01, 86_400.0):
        check_bounds(ttl, "x")
    for ttl in (0.0099, 86_400.1):
        with pytest.raises(BadInput, match=r"between 0\.01 and 86400 seconds"):
            check_bounds(ttl, "x")


def test_certificates_need_tls_and_a_key_its_certificate() -> None:
    def asked(options: str) -> ssl.SSLContext | None:
        return client_tls(parse_url(f"consul://h?{options}"))

    assert asked("tls=no") is None
    assert client_tls(parse_url("consul://h")) is None
    for option in ("ca", "cert", "key"):
        with pytest.raises(BadInput, match="need tls=yes"):
            asked(f"{option}=x")
    with pytest.raises(BadInput, match="key of consul needs cert"):
        asked("tls=yes&key=x")
    with pytest.raises(BadInput, match="options ca, cert and key of consul: "):
        asked("tls=yes&ca=/nowhere/ca.pem")
    with pytest.raises(BadInput, match="options ca, cert and key of consul: "):
        asked("tls=yes&cert=/nowhere/cert.pem")
    context = asked("tls=yes")
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
