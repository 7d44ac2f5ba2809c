"""Texts that are longer than any member's: refused before anything remembers them."""

from __future__ import annotations

import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hustings.core.choice import Candidate
from hustings.layers.gossip.messages import MAX_PLACE, Entry, GossipMsg
from hustings.net import peer_addresses
from hustings.net.control_messages import HelloMsg
from hustings.net.keys import new_key, write_key
from hustings.net.peer_addresses import read_place
from hustings.net.seal import KeyRing
from hustings.net.tcp import on_stream
from hustings.net.validation import is_address
from hustings.net.wire import ANY, MARK, Direction, Wire, WireCodec
from tests.net.test_streams import GROUP, MIB, SLACK, member_process


def long_text(wire: Wire, number: int) -> bytes:
    """A whole frame of about a mebibyte, nearly all of it where a member is said to be."""
    entry = Entry(Candidate(7), 5, 1, f"{number:06d}".ljust(MIB - 700, "x"))
    made = wire.write(GossipMsg((entry,), 1, (), None), None, Direction.QUESTION)
    assert not isinstance(made, str)
    return on_stream(made.data)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("who", ["clear", "member"])
def test_long_texts_are_not_remembered(who: str, tmp_path: Path) -> None:
    """Whoever may speak sends whole frames with texts that no member has: none of them is kept."""
    key, path = new_key(), tmp_path / "key"
    write_key(path, key)
    ring = None if who == "clear" else KeyRing([key])
    with member_process("" if who == "clear" else str(path)) as member:
        before = member.mib("VmRSS")
        dialect = WireCodec(f"le-s{MARK}{ANY}", (HelloMsg, GossipMsg))
        for number in range(60):  # a stream each: one that says such things is hung up on
            wire = Wire(GROUP, 1000 + number, 1, dialect, ring)
            first = wire.write(HelloMsg(), None, Direction.QUESTION)
            assert not isinstance(first, str)
            with socket.create_connection(member.endpoint, timeout=5) as stream:
                stream.sendall(on_stream(first.data) + long_text(wire, number))
                stream.shutdown(socket.SHUT_WR)
                with suppress(OSError):
                    stream.recv(1)  # until it has been read
        deadline = time.monotonic() + 10
        while member.mib("VmRSS") - before > SLACK:
            assert time.monotonic() < deadline, "texts that were refused still hold memory"
            time.sleep(0.05)


def test_what_is_no_place_by_its_length_is_not_remembered() -> None:
    before = peer_addresses._read_place.cache_info().currsize
    for number in range(10):
        assert read_place(f"{number}".ljust(MAX_PLACE + 1, "x")) is None
        assert not is_address(f"{number}".ljust(MAX_PLACE + 1, "x"), 7400)
    assert peer_addresses._read_place.cache_info().currsize == before
