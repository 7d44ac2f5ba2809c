"""HTTP fences in real servers that share a ledger and are killed."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from hustings.fence import Ledger
from tests.fence.judging import Try, complaints
from tests.fence.serving import Server, serving
from tests.guard.engines.base import free_port


def test_servers_share_a_ledger_and_are_killed(tmp_path: Path) -> None:
    ledger = tmp_path / "tokens"
    asgi, wsgi = (Server(kind, ledger, free_port()) for kind in ("asgi", "wsgi"))
    tries, failures, over = list[Try](), list[BaseException](), threading.Event()

    def answered() -> int:
        return sum(each.accepted is not None for each in tries)

    def client(seed: int) -> None:
        rng = random.Random(seed)
        try:
            while not over.is_set():
                token = max(1, answered() // 10 + rng.randrange(-3, 3))
                tries.append(rng.choice([asgi, wsgi]).attempt(token))
        except BaseException as failure:
            failures.append(failure)
            over.set()

    def until(more: int) -> None:
        goal = answered() + more
        while answered() < goal and not over.wait(0.002):
            pass

    with serving(asgi, wsgi):
        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(3)]
        for each in threads:
            each.start()
        try:
            for victim in (asgi, wsgi, asgi):
                until(60)
                victim.kill()
                victim.start()
            until(60)
        finally:
            over.set()
            for each in threads:
                each.join()
        assert not failures, failures
        accepted = [each.token for each in tries if each.accepted]
        refused = [each for each in tries if each.accepted is False]
        assert len(accepted) > 50
        assert refused
        assert not complaints(tries)
        highest = Ledger(ledger).highest("http")
        assert highest >= max(accepted)
        for server in (asgi, wsgi):
            assert server.attempt(highest - 1).highest == highest
