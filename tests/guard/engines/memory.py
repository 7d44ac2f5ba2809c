"""The guard in memory as an engine: there is no server, only registers that can be stopped."""

from __future__ import annotations

from hustings.guard.memory import registers_in
from tests.guard.engines.base import Engine as Base

SPACE = "conformance"


class Engine(Base):
    name = "memory"
    ttl = 0.5
    remote = False

    def start(self) -> None:
        self._set_stopped(False)

    def stop(self, *, kill: bool = False) -> None:
        self._set_stopped(True)

    def pause(self) -> None:
        self.stop()

    def resume(self) -> None:
        self.start()

    def close(self) -> None:
        self.start()

    def forget(self) -> None:
        for register in registers_in(SPACE):
            register.forget()

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return f"memory://{SPACE}"

    def _set_stopped(self, stopped: bool) -> None:
        for register in registers_in(SPACE):
            register.stopped = stopped
