"""The witness of the machine's stalls sees one that is made for it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Any

import pytest

from bench.net import stalls


def test_a_lookout_that_is_stopped_tells_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    lookouts: list[subprocess.Popen[str]] = []

    class ObserverState(subprocess.Popen[str]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            lookouts.append(self)

    monkeypatch.setattr(subprocess, "Popen", ObserverState)
    with stalls.witness(30.0) as found:
        for _ in range(8):  # it takes a while to start
            time.sleep(0.2)
            os.kill(lookouts[0].pid, signal.SIGSTOP)
            time.sleep(0.08)
            os.kill(lookouts[0].pid, signal.SIGCONT)
        time.sleep(0.2)
    assert found.longest_ms >= 60.0
    assert all(each.poll() is not None for each in lookouts)
