"""Engines whose time of day a test steps while they run; their monotonic clock is left alone."""

from __future__ import annotations

import os
import shutil

from tests.guard.engines.base import Server
from tests.guard.engines.postgres import Engine as Postgres
from tests.guard.engines.valkey import Engine as Valkey
from tests.net.kit.clocks import library


class Stepped(Server):
    """A server that is told another time of day, by libfaketime."""

    def prepare(self) -> None:
        # A copy, because the server may run as somebody who cannot enter the folder of the tests.
        shutil.copy(library(), self.folder / "faketime.so")
        self.step(0.0)
        super().prepare()

    def environment(self) -> dict[str, str]:
        return {
            **super().environment(),
            "LD_PRELOAD": str(self.folder / "faketime.so"),
            "FAKETIME_TIMESTAMP_FILE": str(self.folder / "time"),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def step(self, by_s: float) -> None:
        """From now on the time of day is so far from the machine's."""
        part = self.folder / "time.new"
        part.write_text(f"{by_s:+f}\n")
        part.chmod(0o644)
        os.replace(part, self.folder / "time")


class SteppedPostgres(Stepped, Postgres):
    """PostgreSQL whose time of day is stepped."""


class SteppedValkey(Stepped, Valkey):
    """Valkey that keeps every write, and whose time of day is stepped."""


class SteppedCache(SteppedValkey):
    """The same server, at an address that does not say that it keeps every write."""

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return super().url(group, at).partition("?")[0]
