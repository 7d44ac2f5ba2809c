"""HTTP fences in real servers, with leaders that are stopped in the middle of their requests.

The judge is the order of writes in what is protected: after a write with a token none with a
smaller one. And whoever has the newest token gets through, whatever hangs.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fence.halting import NO_ANSWER, Leader
from tests.fence.judging import falls
from tests.fence.serving import Server, serving
from tests.guard.engines.base import free_port

ROUNDS = 24
PATIENT = 20.0  # seconds of grace where the machine's own pauses are not what is tested
servers = pytest.mark.parametrize("kind", ["asgi", "wsgi", "werkzeug"])


@pytest.fixture
def leader() -> Iterator[Leader]:
    made = Leader()
    yield made
    made.end()


def pause(milliseconds: float) -> None:
    """Part of a schedule; nothing is awaited by it."""
    threading.Event().wait(milliseconds / 1000)


@servers
def test_a_leader_stopped_between_head_and_body(tmp_path: Path, kind: str, leader: Leader) -> None:
    """It is woken when its successor has written, is about to, or is in the application."""
    server, rng = Server(kind, tmp_path / "tokens", free_port()), random.Random(kind)
    seen = set[tuple[str, int]]()
    with serving(server), ThreadPoolExecutor() as pool:
        for turn in range(ROUNDS):
            old, new = 2 * turn + 1, 2 * turn + 2
            leader.send_half(server.port, old, f"/task/{rng.randrange(30)}")
            order = ("after", "before", "beside", "long before")[turn % 4]
            path = f"/task/{rng.randrange(10)}"
            if order == "long before":
                leader.wake()
                status = leader.status()
                assert server.ask(new, path=path, body=b"y")[0] == 200
            elif order == "after":
                assert server.ask(new, path=path, body=b"y")[0] == 200
                leader.wake()
            elif order == "before":
                leader.wake()
                pause(rng.uniform(0, 40))
                assert server.ask(new, path=path, body=b"y")[0] == 200
            else:
                asked = pool.submit(server.ask, new, path=path, body=b"y")
                pause(rng.uniform(0, 5))
                leader.wake()
                assert asked.result()[0] == 200
            if order != "long before":
                status = leader.status()
            assert status in (200, 412, NO_ANSWER)
            seen.add((order, status))
            written = server.written()
            assert not falls(written), (turn, order, status, written[-4:])
            assert written[-1] == new
            assert old in written or status != 200
            assert order != "after" or old not in written
    assert ("long before", 200) in seen
    assert ("after", 412) in seen


@servers
def test_a_thinking_application(tmp_path: Path, kind: str) -> None:
    """Requests of the old leader are in the application when its successor comes."""
    server = Server(kind, tmp_path / "tokens", free_port(), grace=PATIENT)
    rng = random.Random(kind)
    with serving(server), ThreadPoolExecutor() as pool:
        for turn in range(ROUNDS):
            old, new = 2 * turn + 1, 2 * turn + 2
            how = rng.choice(["task", "thread"])
            asked = [
                pool.submit(server.ask, old, path=f"/{how}/{rng.randrange(60)}") for _ in range(2)
            ]
            pause(rng.uniform(0, 60))
            assert server.ask(new, path=f"/task/{rng.randrange(5)}")[0] == 200
            statuses = {each.result()[0] for each in asked}
            assert statuses <= {200, 412}
            written = server.written()
            assert not falls(written), (turn, how, written[-4:])
            assert written[-1] == new


@pytest.mark.parametrize("kinds", [("asgi", "asgi"), ("asgi", "wsgi"), ("wsgi", "asgi")])
def test_two_processes_with_one_ledger(tmp_path: Path, kinds: tuple[str, str]) -> None:
    """As workers of one server: the old leader is in one of them, its successor asks another."""
    one, two = (Server(kind, tmp_path / "tokens", free_port(), grace=PATIENT) for kind in kinds)
    rng = random.Random("".join(kinds))
    with serving(one, two), ThreadPoolExecutor() as pool:
        for turn in range(ROUNDS // 2):
            old, new = 2 * turn + 1, 2 * turn + 2
            asked = pool.submit(one.ask, old, path=f"/thread/{rng.randrange(100)}")
            pause(rng.uniform(0, 60))
            assert two.ask(new, path="/task/0")[0] == 200
            assert asked.result()[0] in (200, 412)
            assert not falls(one.written()), (turn, one.written()[-4:])


@servers
def test_what_hangs_does_not_hold_up_a_newer_token(
    tmp_path: Path, kind: str, leader: Leader
) -> None:
    """Neither a half-sent body nor an application that never ends; and nobody gets a 503."""
    server = Server(kind, tmp_path / "tokens", free_port(), grace=0.2)
    with serving(server), ThreadPoolExecutor() as pool:
        leader.send_half(server.port, 5, "/task/0")
        assert server.ask(6, path="/task/0")[0] == 200
        deaf = pool.submit(server.ask, 6, path="/deaf")
        assert server.ask(6, path="/task/0")[0] == 200  # equal ones are together
        assert server.ask(7, path="/task/0")[0] == 200
        assert server.ask(7, path="/task/0")[0] == 200
        leader.wake()
        assert leader.status() in (412, NO_ANSWER)
        if kind == "asgi":  # its client is told, though the application never ends
            assert deaf.result()[0] == 412
        assert server.written() == [6, 6, 7, 7]
        server.kill()
