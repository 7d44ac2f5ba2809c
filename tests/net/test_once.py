"""`hustings.once`: a job with its group, in an event loop, in a thread, and as a whole program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import hustings
from hustings.core.errors import BadInput, UnknownName
from tests import waiting
from tests.net.kit.loops import run, until
from tests.waiting import PATIENCE_S


@pytest.fixture
def group() -> str:
    return uuid.uuid4().hex[:12]


def test_a_call_is_the_plain_function() -> None:
    @hustings.once("billing", every="5m")
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    assert double(4) == 8
    assert (double.__doc__, double.group) == ("Twice as much.", "billing")


def test_decorating_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(tmp_path / "key"))
    before = set(threading.enumerate())

    @hustings.once("billing", key=tmp_path / "none")
    async def job(term: hustings.Term) -> None:
        raise AssertionError("it does not run")

    assert before.issuperset(threading.enumerate())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options, said",
    [
        ({"evry": "5m"}, "unknown option 'evry': did you mean 'every'"),
        ({"every": "often"}, "every 'often' is not a duration"),
        ({"restart": "no"}, "unknown restart 'no'"),
    ],
)
def test_wrong_options_are_refused_when_it_decorates(options: dict[str, object], said: str) -> None:
    with pytest.raises((BadInput, UnknownName, TypeError), match=said):
        hustings.once("billing", **options)  # type: ignore[arg-type]  # that is what is refused


def test_a_decorator_without_a_group_is_refused() -> None:
    with pytest.raises(BadInput, match=r"write @hustings\.once"):
        hustings.once(lambda term: None)  # type: ignore[arg-type]  # that is what is refused
    with pytest.raises(BadInput, match="cannot be called"):
        hustings.once("billing")("no function")  # type: ignore[arg-type]  # likewise


def test_an_event_loop_serves_a_job(group: str) -> None:
    async def story() -> None:
        ran: list[str] = []

        @hustings.once(group, every="10ms", name="a")
        async def job(term: hustings.Term) -> None:
            ran.append(term.member)

        serving = asyncio.create_task(job.serve())
        await until(lambda: len(ran) > 3, "it runs again and again")
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    run(story())


@pytest.mark.parametrize("plain", [False, True])
def test_an_event_loop_gets_the_result(group: str, plain: bool) -> None:
    async def job(term: hustings.Term) -> str:
        return f"done by {term.member}"

    def in_thread(term: hustings.Term) -> str:
        assert threading.current_thread() is not threading.main_thread()
        return f"done by {term.member}"

    async def story() -> None:
        chosen = in_thread if plain else job
        assert await hustings.once(group, name="a")(chosen).serve() == "done by a"

    run(story())


@pytest.mark.parametrize("plain", [False, True])
def test_a_thread_runs_a_job_and_stops_it(group: str, plain: bool) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def job(term: hustings.Term) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def in_thread(term: hustings.blocking.Term) -> None:
        begun.set()
        term.lost.wait()
        ended.set()

    with hustings.once(group, name="a")(in_thread if plain else job).start() as running:
        assert begun.wait(PATIENCE_S)
        assert running.running
        with pytest.raises(TimeoutError, match="goes on"):
            running.wait(0.0)
    assert ended.is_set()
    assert running.wait() is None
    running.stop()  # a second time does nothing


@pytest.mark.parametrize("plain", [False, True])
def test_a_thread_keeps_what_its_job_raised(group: str, plain: bool) -> None:
    async def job(term: hustings.Term) -> None:
        raise ValueError("no")

    def in_thread(term: hustings.Term) -> None:
        raise ValueError("no")

    running = hustings.once(group, name="a", restart="never")(in_thread if plain else job).start()
    with pytest.raises(ValueError, match="no"):
        running.wait(PATIENCE_S)


def test_a_thread_that_is_stopped_before_it_began_ends(group: str) -> None:
    running = hustings.once(group, name="a")(lambda term: term.lost.wait()).start()
    running.stop(PATIENCE_S)
    assert not running.running


PROGRAM = """
import asyncio, sys, time, hustings

def tell(said):
    print(said, flush=True)

place = {{"name": sys.argv[1], "seeds": sys.argv[2:3], "bind": sys.argv[3]}}

@hustings.once({group!r}, every="20ms", alone=True, **place)
{define} job(term):
    try:
        tell("runs " + term.member)
        {wait}
    finally:
        tell("ends")

job.run()
"""
FLAVOURS = {
    "async": {"define": "async def", "wait": "await asyncio.sleep(60)"},
    "plain": {"define": "def", "wait": "term.lost.wait(60)"},
}


@pytest.fixture
def programs() -> Iterator[list[subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []
    yield running
    for one in running:
        one.kill()
        one.communicate()


@pytest.mark.parametrize("flavour", sorted(FLAVOURS))
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_one_of_two_programs_runs_the_job(
    group: str,
    flavour: str,
    end: signal.Signals,
    tmp_path: Path,
    programs: list[subprocess.Popen[str]],
) -> None:
    port = 20_000 + os.getpid() % 20_000
    text = PROGRAM.format(group=group, **FLAVOURS[flavour])
    seed = f"127.0.0.1:{port}"
    for number, name in enumerate(("a", "b")):
        with (tmp_path / name).open("w") as errors:
            words = [sys.executable, "-c", text, name, seed, f"127.0.0.1:{port + number}"]
            started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
        programs.append(started)
        if not number:
            assert started.stdout is not None
            assert started.stdout.readline() == "runs a\n"
    first, second = programs
    with hustings.blocking.join(group, name="eye", seeds=[seed], observer=True) as eye:
        waiting.until(lambda: len(eye.members()) == 3 and eye.leader, "both are in the group")
    first.send_signal(end)
    assert second.stdout is not None
    assert second.stdout.readline() == "runs b\n"
    out, _ = first.communicate(timeout=PATIENCE_S)
    if end is not signal.SIGKILL:
        assert out == "ends\n", "the job cleans up"
    codes = {signal.SIGTERM: 143, signal.SIGKILL: -9}
    if end in codes:
        assert first.returncode == codes[end]
    if end is not signal.SIGINT:
        assert (tmp_path / "a").read_text() == ""
