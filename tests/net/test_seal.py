"""Seals: who has no key can do nothing, and keys change without a gap."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput, UnknownName
from hustings.net.keys import Key, new_key
from hustings.net.limits import Reason
from hustings.net.seal import MOST_KEYS, NONCE, OVERHEAD, KeyRing
from hustings.net.wire import HEADER, Direction, Frame, Received, Wire, group_tag
from tests.net.parts import GROUP, KEY, OTHER_KEY, PingMsg, wire

UDP = Direction.DATAGRAM


def sent(sender: Wire, to: int | None = None, direction: Direction = UDP) -> bytes:
    frame = sender.write(PingMsg(1), to, direction)
    assert isinstance(frame, Frame)
    return frame.data


# --- one seal ------------------------------------------------------------------------------------


@given(st.binary(max_size=300), st.binary(max_size=50))
def test_what_is_sealed_is_opened(plain: bytes, bound: bytes) -> None:
    ring = KeyRing([KEY])
    sealed = ring.seal(plain, bound)
    assert len(sealed) == len(plain) + OVERHEAD
    assert KeyRing([OTHER_KEY, KEY]).open(sealed, bound) == plain
    assert KeyRing([OTHER_KEY]).open(sealed, bound) is Reason.UNKNOWN_KEY
    assert ring.open(sealed, bound + b"x") is Reason.BAD_SEAL
    if len(plain) >= 16:
        assert plain not in sealed


def test_a_change_of_any_bit_is_refused() -> None:
    receiver = wire(2, KEY)
    data = sent(wire(1, KEY))
    for place, bit in product(range(len(data)), range(8)):
        changed = bytearray(data)
        changed[place] ^= 1 << bit
        assert isinstance(receiver.read(bytes(changed), UDP), Reason), (place, bit)
    assert isinstance(receiver.read(data, UDP), Received)


def test_a_frame_that_is_cut_or_lengthened_is_refused() -> None:
    receiver = wire(2, KEY)
    data = sent(wire(1, KEY))
    for cut in range(len(data)):
        assert isinstance(receiver.read(data[:cut], UDP), Reason)
    assert receiver.read(data + b"\x00", UDP) is Reason.BAD_SEAL


def test_a_frame_of_another_group_is_refused_even_under_the_same_tag() -> None:
    data = sent(wire(1, KEY, group="other"))
    receiver = wire(2, KEY)
    assert receiver.read(data, UDP) is Reason.OTHER_GROUP
    forged = data[: HEADER - 4] + group_tag(GROUP) + data[HEADER:]
    assert receiver.read(forged, UDP) is Reason.BAD_SEAL
    # The label itself is bound, not only its tag: two labels may share one.
    other = wire(1, KEY, group="other")
    other._tag = group_tag(GROUP)
    assert receiver.read(sent(other), UDP) is Reason.BAD_SEAL


def test_a_frame_is_good_for_its_direction_only() -> None:
    receiver = wire(2, KEY)
    for made, claimed in product(Direction, Direction):
        got = receiver.read(sent(wire(1, KEY), direction=made), claimed)
        assert isinstance(got, Received) == (made is claimed)


def test_a_frame_for_one_member_is_of_no_use_to_another() -> None:
    data = sent(wire(1, KEY), to=2)
    assert isinstance(wire(2, KEY).read(data, UDP), Received)
    assert wire(3, KEY).read(data, UDP) is Reason.MISDIRECTED
    assert wire(1, KEY).read(data, UDP) is Reason.ECHO


# --- nonces --------------------------------------------------------------------------------------


def test_equal_messages_are_sealed_differently() -> None:
    ring = KeyRing([KEY])
    sealed = [ring.seal(b"the same", b"") for _ in range(2000)]
    assert len({each[4 : 4 + NONCE] for each in sealed}) == len(sealed)
    assert len({each[4 + NONCE :] for each in sealed}) == len(sealed)


def test_every_bit_of_the_nonce_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were some of it ignored, nonces would repeat sooner than their length says."""
    ciphertexts = set()
    for place in range(NONCE * 8):
        nonce = (1 << place).to_bytes(NONCE, "big")
        monkeypatch.setattr("os.urandom", lambda size, nonce=nonce: nonce[:size])
        ciphertexts.add(KeyRing([KEY]).seal(b"a plain text", b"")[4 + NONCE :])
    assert len(ciphertexts) == NONCE * 8


# --- the ring ------------------------------------------------------------------------------------


def test_a_ring_says_what_it_has() -> None:
    ring = KeyRing([KEY])
    ring.install(OTHER_KEY)
    ring.install(OTHER_KEY)
    assert ring.ids == (KEY.id, OTHER_KEY.id)
    assert ring.in_use == KEY.id
    ring.use(OTHER_KEY.id)
    ring.remove(KEY.id)
    assert [ring.in_use] == list(ring.ids) == [OTHER_KEY.id]


def test_a_ring_refuses_what_would_leave_it_useless() -> None:
    ring = KeyRing([KEY])
    with pytest.raises(BadInput, match="in use: use another one before"):
        ring.remove(KEY.id)
    with pytest.raises(UnknownName, match="unknown key"):
        ring.use(OTHER_KEY.id)
    with pytest.raises(UnknownName, match="unknown key"):
        ring.remove(OTHER_KEY.id)
    with pytest.raises(BadInput, match="at least one"):
        KeyRing([])
    with pytest.raises(BadInput, match="at least one"):
        ring.replace([])
    many = [new_key() for _ in range(MOST_KEYS + 1)]
    with pytest.raises(BadInput, match="8 keys are installed"):
        ring.replace(many)
    assert ring.ids == (KEY.id,)
    assert ring.open(ring.seal(b"x", b""), b"") == b"x"


def test_two_keys_with_one_id_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = KeyRing([KEY])
    monkeypatch.setattr(Key, "mark", KEY.mark)
    with pytest.raises(BadInput, match="two different keys"):
        ring.install(Key(bytes(32)))


def test_a_reload_takes_the_first_key_for_sealing() -> None:
    ring = KeyRing([KEY])
    ring.replace([OTHER_KEY, KEY])
    assert ring.in_use == OTHER_KEY.id
    ring.replace([OTHER_KEY])
    assert ring.ids == (OTHER_KEY.id,)


# --- rotation ------------------------------------------------------------------------------------


def all_understand(members: list[Wire]) -> bool:
    return all(
        isinstance(reader.read(sent(writer), UDP), Received)
        for writer, reader in permutations(members, 2)
    )


def step(member: Wire, name: str) -> None:
    assert member.ring is not None
    if name == "install":
        member.ring.install(OTHER_KEY)
    elif name == "use":
        member.ring.use(OTHER_KEY.id)
    else:
        member.ring.remove(KEY.id)


ORDERS = list(permutations(range(3)))


@pytest.mark.parametrize("first", ORDERS, ids=str)
def test_three_members_change_keys_without_a_gap(first: tuple[int, ...]) -> None:
    """In every order of the members within each step, all understand all at any time."""
    for second, third in product(ORDERS, ORDERS):
        members = [wire(me, KEY) for me in (1, 2, 3)]
        for name, order in zip(("install", "use", "remove"), (first, second, third), strict=True):
            for place in order:
                step(members[place], name)
                assert all_understand(members), (first, second, third)
        assert wire(4, KEY).read(sent(members[0]), UDP) is Reason.UNKNOWN_KEY
        assert members[0].read(sent(wire(4, KEY)), UDP) is Reason.UNKNOWN_KEY


def test_a_member_that_uses_a_key_before_all_have_it_is_not_understood() -> None:
    members = [wire(me, KEY) for me in (1, 2, 3)]
    step(members[0], "install")
    assert all_understand(members)
    step(members[0], "use")
    assert not all_understand(members)
