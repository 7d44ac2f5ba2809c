"""NATS from its wheel, with a password, and with every write on disk before it is answered."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.guard.engines.base import Server

USER, PASSWORD = "hustings", "pa55-of-nats"


class Engine(Server):
    name = "nats"
    bad_ttls = (*Server.bad_ttls, 0.0001, 1e9)

    def prepare(self) -> None:
        (self.folder / "nats.conf").write_text(
            f"listen: 127.0.0.1:{self.port}\n"
            f'jetstream {{ store_dir: "{self.folder}/store", sync_interval: always }}\n'
            "accounts {\n"
            f"  ONE {{ jetstream: enabled, users: [{{user: {USER}, password: {PASSWORD}}}] }}\n"
            f"  TWO {{ users: [{{user: without, password: {PASSWORD}}}] }}\n"
            "}\n"
        )

    def command(self) -> list[str]:
        return [program(), "--config", str(self.folder / "nats.conf")]

    def ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as wire:
            return wire.recv(4) == b"INFO"

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return f"nats://{USER}:{PASSWORD}@127.0.0.1:{at or self.port}?synced=yes"

    def wrong_urls(self) -> Mapping[str, str]:
        place = f"127.0.0.1:{self.port}"
        return {
            "password": f"nats://{USER}:wr0ng-s3cret@{place}",
            "user": f"nats://nobody:{PASSWORD}@{place}",
            "no password": f"nats://{place}",
            "no JetStream": f"nats://without:{PASSWORD}@{place}",
            "tls": f"nats://{USER}:{PASSWORD}@{place}?tls=yes",
        }

    def secrets(self) -> tuple[str, ...]:
        return PASSWORD, "wr0ng-s3cret"


def program() -> str:
    return str(Path(sys.executable).parent / "nats-server")
