"""`hustings.join`: from a few arguments to a member of a group on a real network."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hustings.core.choice import Candidate, Choice, candidate, parse_choice
from hustings.core.durations import parse_duration
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.names import is_member_name, member_id
from hustings.core.outcome import Guarantee
from hustings.core.streams import Stream, derive
from hustings.layers.detector.registry import DetectorKind
from hustings.layers.leadership.standing import OBSERVER, with_attribute, with_standing
from hustings.net.addresses import Address, endpoints, parse_address, parse_seed, permit
from hustings.net.agreed_config import AgreedConfig, ConfigCheck, Field, agreed_config, label_of
from hustings.net.bootstrap import ANY_START, StartRule, start_rule
from hustings.net.composition import Configured, Design, compose, configure, multicast_policy
from hustings.net.discovery import Seeds
from hustings.net.duplicate_names import NewerIncarnation
from hustings.net.files import make_state_folder, shown, state_folder
from hustings.net.filter import FrameFilter
from hustings.net.keys import ring_of
from hustings.net.limits import Counters, Limits
from hustings.net.logs import WARNING, MemberLog
from hustings.net.member import Member, checked_attributes
from hustings.net.node import MemberNode
from hustings.net.peer_addresses import Place
from hustings.net.storage import Storage, VolatileStorage, incarnation_by_clock
from hustings.net.transport import Endpoint, Transport
from hustings.net.udp import open_udp, resolve
from hustings.net.wire import SIGNED, Wire, check_label
from hustings.protocols.registry import PROTOCOLS, Protocol, Use, find, is_ours, use_of

if TYPE_CHECKING:
    from pathlib import Path

    from hustings.guard.client import LeaseClient
    from hustings.guard.config import GroupGuard, GuardLike
    from hustings.net.keys import KeyLike
    from hustings.net.local_members import LocalMembers
    from hustings.net.seal import KeyRing
    from hustings.net.state_file import StateFile

PORT = 7400  # the port of seeds that are given without one
PROTOCOL = "le-s"
_INSTANT = 1024  # incarnations that may begin in one millisecond; a power of two
_INCARNATIONS = 3  # incarnations that one attempt to join may begin


@dataclass(frozen=True, slots=True)
class Places:
    """Where a member listens, and where it looks for others."""

    seeds: tuple[Address, ...]
    bind: Address
    advertise: Address | None
    multicast: Address | None
    transport: Transport | None  # use this existing transport instead
    local: bool  # look for the members of this user on this machine


@dataclass(frozen=True, slots=True)
class Wanted:
    """All arguments, read and checked."""

    group: str
    name: str
    design: Design
    config: Configured
    guard: GroupGuard | None
    me: Candidate
    places: Places
    state: str | None
    rule: StartRule = ANY_START
    ring: KeyRing | None = None
    insecure: bool = False
    seed: int = 0
    incarnation: int | None = None


def join(
    group: str,
    *,
    name: str | None = None,
    seeds: Sequence[str] = (),
    local: bool = True,
    expect: int | None = None,
    alone: bool | str | float | None = None,
    protocol: Protocol = PROTOCOL,
    settings: Mapping[str, object] | None = None,
    choice: str | Choice = "highest-id",
    attributes: Mapping[str, float] | None = None,
    bind: str = "127.0.0.1:0",
    advertise: str | None = None,
    key: KeyLike | Sequence[KeyLike] | None = None,
    insecure: bool = False,
    state: str | Path | None = None,
    observer: bool = False,
    multicast: str = "fan-out",
    detector: DetectorKind = "accrual",
    detector_settings: Mapping[str, object] | None = None,
    gossip_settings: Mapping[str, object] | None = None,
    leadership_settings: Mapping[str, object] | None = None,
    limits: Mapping[str, object] | None = None,
    preempt: bool = False,
    preempt_after: str | float | None = None,
    stall_bound: str | float | None = None,
    measure: str | Mapping[str, object] | None = None,
    guard: GuardLike | None = None,
    ttl: str | float | None = None,
    guard_settings: Mapping[str, object] | None = None,
    guard_wait: str | float | None = None,
    witness: bool = True,
    transport: Transport | None = None,
    seed: int | None = None,
    incarnation: int | None = None,
) -> Joining:
    """Join a group: `async with hustings.join("billing") as member:`.

    Members of one group find each other on one machine if the same user runs them, unless `local`
    is False. They find others by `seeds`: addresses of members that are up sooner or later. With
    `seeds` a member takes part in elections only after another one has answered, unless all seeds
    are itself. `expect` is the number of members, this one included, that must be in touch first;
    expect=1 may lead alone. `alone` is the time after which fewer will do; True waits for nobody,
    and with False a member without seeds waits, too.

    `protocol` is a name, `module:Class`, `file.py:Class` or the class of an election. `detector` is
    accrual, heartbeat, or one of your own, named in the same ways.

    `name` must be unique in the group. With a `key` traffic is sealed: a file of `hustings keygen`,
    or several files, of which the first key seals. Without a key the member listens only on this
    machine, and members sign with a key that is made on first use and that only this user can read.
    `insecure` members have no key, and may listen to other machines. With a `state` directory terms
    survive restarts.

    With `preempt` a better member displaces a live leader, if the protocol's paper does so. With
    `preempt_after` it does so when it has been up for this time. A leader that did not run for
    longer than `stall_bound` (650 ms with le-s) does not lead until it knows that no other member
    does. With measure='loss' or 'delay' members measure how well they hear each other, and `choice`
    ranks by the result (lowest:loss).

    Without a `guard` leadership is an opinion. With a guard (`etcd://127.0.0.1:2379`,
    `quorum://a,b,c`, ...) a member leads only with a lease of `ttl` from the guard, and has a token
    for the resource to check. All members have the same guard. A guard that does not answer is
    tried for `guard_wait` (10s); then `Unavailable` is raised. If a leader's process is killed,
    members of this machine give its lease back at once: what acts under the lease for it must
    inherit `member.witness()`, or say `witness=False`.

    Bad arguments raise `BadInput` here, before anything has started. What only the system can tell,
    for example a port in use, raises when the member is opened.
    """
    name = _named(group, name, state)
    made = _guard(guard, group, ttl, guard_settings, guard_wait, witness and local)
    policy, group_address = multicast_policy(multicast)
    design = Design(
        kind=_kind(protocol),
        choice=parse_choice(choice) if isinstance(choice, str) else choice,
        settings=settings or {},
        detector=detector,
        detector_settings=detector_settings or {},
        gossip_settings=gossip_settings or {},
        leadership_settings=_leadership(leadership_settings, stall_bound),
        multicast=policy,
        reaches_all=group_address is not None,
        preempt=preempt,
        preempt_after=preempt_after,
        observer=observer,
        limits=Limits.parse(limits or {}),
        measure=measure,
        **_guarded(made),
    )
    places = _places(seeds, bind, advertise, group_address, transport, local)
    wanted = _wanted(group, name, design, made, attributes or {}, places, state, insecure)
    return _joining(wanted, key, seed, incarnation, _rule(wanted, expect, alone))


def _joining(
    wanted: Wanted,
    key: KeyLike | Sequence[KeyLike] | None,
    seed: int | None,
    incarnation: int | None,
    rule: StartRule,
) -> Joining:
    """What is wanted, with its keys, its random numbers and its rule for the start."""
    ring = ring_of(key, wanted.places.bind, wanted.insecure)
    seed = _chance(63) if seed is None else seed
    return Joining(replace(wanted, ring=ring, seed=seed, rule=rule, incarnation=incarnation))


def _rule(wanted: Wanted, expect: int | None, alone: bool | str | float | None) -> StartRule:
    most = wanted.config.stack.view_size + 1
    return start_rule(expect, alone, guarded=wanted.guard is not None, most=most)


def _leadership(
    settings: Mapping[str, object] | None, stall_bound: str | float | None
) -> dict[str, object]:
    """Settings of the leadership layer, with the setting that is an argument of its own."""
    given = dict(settings or {})
    if stall_bound is not None:
        if "stall_bound" in given:
            raise BadInput("stall_bound is given twice, once among leadership_settings")
        given["stall_bound"] = parse_duration(stall_bound, "stall_bound")
    return given


def _guard(
    guard: GuardLike | None,
    group: str,
    ttl: str | float | None,
    settings: Mapping[str, object] | None,
    wait: str | float | None,
    witness: bool,
) -> GroupGuard | None:
    if guard is None:
        if ttl is not None or settings or wait is not None:
            raise BadInput(
                "ttl, guard_settings and guard_wait go with a guard: give one, as "
                "guard='quorum://a,b,c'"
            )
        return None
    # A member without a guard does not load the guard's code, a tenth of its memory.
    from hustings.guard.config import guard_for  # noqa: PLC0415 (memory: few have guards)

    made = guard_for(guard, group, member_id, ttl, settings, wait)
    made.witnessed = witness
    return made


def _guarded(made: GroupGuard | None) -> dict[str, Any]:
    """The part of a design that the guard decides."""
    if made is None:
        return {}
    return {"lease": made.lease, "voting": made.voting, "guard": made.kind}


def _wanted(
    group: str,
    name: str,
    design: Design,
    guard: GroupGuard | None,
    attributes: Mapping[str, float],
    places: Places,
    state: str | Path | None,
    insecure: bool,
) -> Wanted:
    """Check what depends on several arguments at once."""
    config = configure(design)
    attributes = design.with_measured(attributes)
    design.check_attributes(config.election, name, attributes)
    if guard is not None:
        guard.check(config.lease, name, kept=state is not None)
    return Wanted(
        group=group,
        name=name,
        design=design,
        config=config,
        guard=guard,
        me=_candidate(name, design, attributes),
        places=places,
        state=None if state is None else state_folder(state),
        insecure=insecure,
    )


def _named(group: str, name: str | None, state: str | Path | None) -> str:
    """The member's name; both names are checked."""
    check_label("group", group)
    if state is not None and name is None:
        raise BadInput("state needs a name: one that is made up is another one at each start")
    name = default_name() if name is None else name
    if not is_member_name(name):
        raise BadInput(f"name {name!r} does not do: 1 to 64 letters, digits, dots, - and _")
    return name


def _places(
    seeds: Sequence[str],
    bind: str,
    advertise: str | None,
    multicast: Address | None,
    transport: Transport | None,
    local: bool,
) -> Places:
    # A text is a sequence, too: an empty one would be no seeds, and a member that leads alone.
    given: object = seeds
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise BadInput(
            f"seeds must be a list of addresses, as ['10.0.0.1:7400'], not {given!r}; [] if there "
            "are none"
        )
    return Places(
        seeds=tuple(parse_seed(each, PORT) for each in seeds),
        bind=parse_address(bind, "bind address", 0),
        advertise=None if advertise is None else parse_address(advertise, "advertise", 0),
        multicast=multicast,
        transport=transport,
        local=local,
    )


def _kind(protocol: Protocol) -> type[Election]:
    kind = find(protocol)
    name, use = kind.about.name, use_of(kind)
    if name in PROTOCOLS and not is_ours(kind):
        raise BadInput(
            f"{kind.__qualname__} has the name {name}, which is another protocol's: members of the "
            "two would take each other for their own; give it another name in `about`"
        )
    if use is Use.GUARD:
        raise BadInput(
            f"on a network {name} stands behind an election, as its guard: join with guard="
            f"'{name}://a,b,c', naming the members that vote"
        )
    if use is Use.ROUNDS:
        raise BadInput(
            f"{name} needs rounds in which all members speak at one time, which a network does "
            "not keep: run it with hustings sim"
        )
    if use is Use.STUDY:
        raise BadInput(
            f"{name} is for study, not for use: run it with hustings sim, or join with another "
            "protocol (hustings protocols lists them)"
        )
    return kind


class Joining:
    """A member to be: open it with `async with`, or with `await joining.open()`."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self._member: Member | None = None

    @property
    def group(self) -> str:
        """The group to join."""
        return self.wanted.group

    @property
    def name(self) -> str:
        """The name of the member."""
        return self.wanted.name

    @property
    def is_guarded(self) -> bool:
        """Whether a guard grants leases to the group."""
        return self.wanted.guard is not None

    @property
    def is_local(self) -> bool:
        """Whether the member trusts the members of its user on its machine, and no others."""
        return self.wanted.ring is not None and self.wanted.ring.mode == SIGNED

    @property
    def record_key(self) -> str | None:
        """What tells this group's files on a machine from those of others of its name.

        None if an engine keeps what has to outlive the members.
        """
        wanted = self.wanted
        if wanted.guard is not None and wanted.guard.is_engine:
            return None
        return "" if wanted.ring is None else wanted.ring.ids[0]

    def mark(self, name: str, value: float) -> None:
        """Set one of the project's own attributes of the member, from its start on."""
        self.wanted = replace(self.wanted, me=with_attribute(self.wanted.me, name, value))

    def observe_guarded(self, kind: str) -> None:
        """Observe a group with a guard of this kind, without a guard of one's own to ask."""
        self.wanted = replace(self.wanted, design=replace(self.wanted.design, guard=kind))

    @property
    def preempts(self) -> bool:
        """Whether a better member takes over from a leader that did not offer it."""
        return self.wanted.design.preempt or self.wanted.design.preempt_after is not None

    async def __aenter__(self) -> Member:
        self._member = await self.open()
        return self._member

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._member is not None:
            await self._member.leave()

    async def open(self) -> Member:
        """Return a member that has found its group, or is alone for now and goes on looking.

        If the group has heard this member in a later incarnation than its clock gives, the member
        begins again in an incarnation after that.
        """
        wanted = self.wanted
        for last in range(_INCARNATIONS - 1, -1, -1):
            try:
                return await _settled(wanted)
            except NewerIncarnation as error:
                if not last or wanted.state is not None:
                    raise BadInput(
                        f"{error}: its state file was lost or is an old copy; put back the right "
                        "one, or give the member another name"
                    ) from None
                wanted = replace(wanted, incarnation=error.incarnation + 1)
        raise AssertionError("the last try returns or raises")


async def _settled(wanted: Wanted) -> Member:
    opened = _Opened()
    try:
        member = await _open(wanted, opened)
        await member.node.settled.wait()
    except BaseException:
        await opened.close()
        raise
    if member.error is not None:
        await opened.close()
        raise member.error
    member.opened = True
    return member


class _Opened:
    """What has to be closed together with a member."""

    def __init__(self) -> None:
        self.transport: Transport | None = None
        self.state: StateFile | None = None
        self.node: MemberNode | None = None
        self.guard: GroupGuard | None = None
        self.lease_client: LeaseClient | None = None
        self.local: LocalMembers | None = None

    async def close(self, crashed: bool = False) -> None:
        if self.node is not None:
            self.node.stop()
        if self.local is not None:
            self.local.close()
        if self.lease_client is not None:
            client = self.lease_client
            await (client.abandon() if crashed else client.close())
        if self.guard is not None:
            await self.guard.close()
        if self.transport is not None:
            await self.transport.close()
        if self.state is not None:
            self.state.close()


async def _open(wanted: Wanted, opened: _Opened) -> Member:
    counters, limits = Counters(), wanted.design.limits
    places, sealed = wanted.places, wanted.ring is not None
    warning = None if places.transport else permit(places.bind, sealed, wanted.insecure)
    own: Endpoint
    if wanted.places.transport is None:
        both = endpoints(wanted.places.bind, wanted.places.advertise)
        transport: Transport = await open_udp(places.bind, limits, counters, places.multicast)
        opened.transport = transport
        own = await _advertised(both.bound(transport.endpoint[1]).advertise, transport)
    else:
        transport, own = wanted.places.transport, wanted.places.transport.endpoint
        if wanted.places.advertise is not None:
            own = await _advertised(wanted.places.advertise, transport)
    storage, incarnation = _memory(wanted, opened)
    if wanted.guard is not None:
        wanted.guard.begin_above(_incarnation(wanted))
    place = Place(own, wanted.name)
    opened.guard = wanted.guard
    agreed = await _agreed(wanted)
    label = label_of(wanted.design.kind.about.name, wanted.design.guard, agreed.digest)
    made = compose(replace(wanted.design, label=label), wanted.config, place.text())
    wire = Wire(wanted.group, wanted.me.id, incarnation, made.codec, wanted.ring, limits)
    member = Member(
        name=wanted.name,
        group=wanted.group,
        address=str(Address(*own)),
        me=wanted.me,
        guarantee=_guarantee(wanted),
        bound=wanted.config.leadership.longest_stall,
        steady=wanted.config.steady,
        close=opened.close,
        guard="" if wanted.guard is None else wanted.guard.kind,
    )
    if wanted.places.local:
        opened.local = _register(wanted, transport, member)
    opened.node = node = MemberNode(
        transport=transport,
        filter=FrameFilter(wire, counters),
        stack=made.stack,
        leadership=made.leadership,
        detector=made.detector,
        me=wanted.me,
        rng=Stream(derive(wanted.seed, "member", wanted.name, incarnation)),
        storage=storage,
        seeds=Seeds(wanted.places.seeds, resolve, member.note, opened.local),
        listener=member,
        pause=wanted.config.pause,
        join_wait=wanted.config.join_wait,
        start_rule=wanted.rule,
        lease_layer=made.lease_layer,
    )
    node.config_check = ConfigCheck(node, agreed)
    node.measuring = made.measuring
    member.attend(node)
    await _ask_guard(wanted, opened, member)
    for sentence in [*([warning] if warning else []), *wanted.config.warnings]:
        member.note(sentence)
    node.start()
    return member


def _register(wanted: Wanted, transport: Transport, member: Member) -> LocalMembers | None:
    """Tell the members of this machine of this one, and look for them.

    If that is impossible, and nothing else can say whether there are other members, the member must
    not lead: it would lead beside them.
    """
    from hustings.net.local_members import LocalMembers  # noqa: PLC0415 (memory: not all look)

    ring = wanted.ring
    local = LocalMembers(
        wanted.group,
        wanted.name,
        lambda: () if ring is None else ring.ids,
        observer=wanted.design.observer,
    )
    try:
        local.register(transport.endpoint)
        local.look()
    except BadInput as error:
        local.close()
        if not (wanted.places.seeds or wanted.guard or transport.reaches_all):
            raise
        member.note(f"{error}: members on this machine are not looked for")
        return None
    if (other := local.earlier()) is not None:
        local.close()
        raise BadInput(
            f"{wanted.name!r} is the name of a member of group {wanted.group!r} on this machine "
            f"(process {other.process}): give this one another name, or stop that one"
        )
    return local


async def _agreed(wanted: Wanted) -> AgreedConfig:
    """What all members of the group have in common, or should have."""
    guard, lease = wanted.guard, wanted.config.lease
    fields: tuple[Field, ...] = ()
    if guard is not None and lease is not None and not wanted.design.observer:
        log = MemberLog(wanted.group, wanted.name)
        if guard.is_engine:
            await guard.open(partial(log.say, WARNING, "guard-waits"))
        fields = await guard.agreed(lease.asked, log.note)
    return agreed_config(wanted.design, wanted.config, wanted.places.multicast, fields)


def _guarantee(wanted: Wanted) -> Guarantee:
    """The guarantee of the guard, or without one of the election."""
    if wanted.guard is None:
        return wanted.design.kind.about.guarantee
    return wanted.guard.guarantees.guarantee


async def _ask_guard(wanted: Wanted, opened: _Opened, member: Member) -> None:
    """Connect the member to its lease engine, if it has one and may lead."""
    if wanted.guard is None:
        return
    node = member.node
    if wanted.design.observer and wanted.guard.is_engine:
        if node.lease_layer is not None:
            node.lease_layer.bystander = True
        return

    def successor() -> str | None:
        leader = node.leadership.leader
        place = None if leader in (None, member.id) else node.address_book.place(leader)
        return None if place is None else place.name

    def known() -> tuple[int, int]:
        lease_layer = node.lease_layer
        return (0, 0) if lease_layer is None else (lease_layer.term, lease_layer.heard)

    client = await wanted.guard.client(wanted.name, member_id, member.note, successor, known)
    if client is None:
        member.voters = voters = wanted.guard.voters(node, member_id)
        voters.watch(member.note)
    else:
        opened.lease_client = node.lease_client = client
        member.engine = client.guard
        client.answer = node.hear
        if node.lease_layer is not None:
            node.lease_layer.check = client.check
        member.known = client.names


def _memory(wanted: Wanted, opened: _Opened) -> tuple[Storage, int]:
    incarnation = _incarnation(wanted)
    if wanted.state is None:
        return VolatileStorage(), incarnation
    if make_state_folder(wanted.state):
        said = f"state directory {shown(wanted.state)} was not there and is made"
        MemberLog(wanted.group, wanted.name).note(said)
    from urllib.parse import quote  # noqa: PLC0415 (memory: few keep a state)

    from hustings.net.state_file import (  # noqa: PLC0415 (memory: likewise)
        StateFile,
        refuse_absurd,
    )

    file = f"{quote(wanted.group, safe='')}.{wanted.name}.state"
    path = os.path.join(wanted.state, file)
    opened.state = StateFile(path, wanted.group, wanted.me.id, first=incarnation)
    refuse_absurd(opened.state.stored, path, time.time())
    return opened.state, opened.state.incarnation


def _incarnation(wanted: Wanted) -> int:
    """A number that grows with the date; two starts at one instant get different numbers."""
    by_clock = incarnation_by_clock(time.time()) * _INSTANT + _chance(_INSTANT.bit_length() - 1)
    return by_clock if wanted.incarnation is None else wanted.incarnation


async def _advertised(address: Address, transport: Transport) -> Endpoint:
    found = await resolve(Address(address.host, address.port or transport.endpoint[1]))
    if not found:
        raise BadInput(f"advertise address {address} cannot be resolved: give it by number")
    return found[0]


def _candidate(name: str, design: Design, attributes: Mapping[str, float]) -> Candidate:
    me = candidate(member_id(name), **checked_attributes(attributes))
    if design.observer:
        return with_standing(me, OBSERVER)
    if not design.choice.can_rank(me):
        raise BadInput(
            f"{name!r} lacks what the choice {design.choice.name} ranks by: give it as an attribute"
        )
    return me


def default_name() -> str:
    """A name that no other process has."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname().partition(".")[0])[:32] or "member"
    return f"{host}-{os.getpid()}-{_chance(16):04x}"


def _chance(bits: int) -> int:
    """Random bits from the system."""
    return int.from_bytes(os.urandom(8), "big") >> (64 - bits)
