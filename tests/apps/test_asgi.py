"""`hustings.asgi.lifespan`: what begins and ends when, what is refused, what the log says."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import traceback
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import hustings
import hustings.asgi
import hustings.blocking
from hustings.core.errors import BadInput
from hustings.scheduled import ScheduledJob
from tests.net.kit.loops import run, throughout, until


@pytest.fixture
def group() -> str:
    return uuid.uuid4().hex[:12]


def test_a_job_begins_after_the_application_and_ends_before_it(group: str) -> None:
    told: list[str] = []

    @asynccontextmanager
    async def own(app: str) -> AsyncIterator[dict[str, int]]:
        told.append(f"{app} begins")
        yield {"pool": 3}
        told.append(f"{app} ends")

    @hustings.once(group)
    async def job(term: hustings.Term) -> None:
        told.append("job begins")
        try:
            await asyncio.Event().wait()
        finally:
            told.append("job ends")

    async def story() -> None:
        async with hustings.asgi.lifespan(job, around=own)("shop") as state:
            assert state == {"pool": 3}
            await until(lambda: "job begins" in told, "the job begins")
            assert job.state is not None
            assert job.state.leading
        assert job.state is None

    run(story())
    assert told == ["shop begins", "job begins", "job ends", "shop ends"]


def test_several_jobs_run_beside_each_other(group: str) -> None:
    ran: set[str] = set()

    @hustings.once(f"{group}-a", every="10ms")
    async def first(term: hustings.Term) -> None:
        ran.add("coroutine")

    @hustings.once(f"{group}-b", every="10ms")
    def second(term: hustings.blocking.Term) -> None:
        ran.add("thread")

    async def story() -> None:
        async with hustings.asgi.lifespan(first, second)(None):
            await until(lambda: ran == {"coroutine", "thread"}, "both jobs run")

    run(story())


@pytest.mark.parametrize("plain", [False, True])
def test_a_job_that_fails_is_told_and_the_application_goes_on(
    group: str, plain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def in_thread(term: hustings.blocking.Term) -> None:
        raise ValueError("no paper")

    async def on_loop(term: hustings.Term) -> None:
        raise ValueError("no paper")

    job: ScheduledJob[Any, Any] = hustings.once(group, restart="never")(
        in_thread if plain else on_loop
    )

    def failed() -> list[logging.LogRecord]:
        return [each for each in caplog.records if getattr(each, "event", "") == "job-failed"]

    async def story() -> None:
        async with hustings.asgi.lifespan(job)(None):
            await until(failed, "the log has it")
            await asyncio.sleep(0)

    run(story())
    (record,) = failed()
    assert record.levelno == logging.ERROR
    assert "does not run again: ValueError: no paper" in record.getMessage()


def test_a_thread_that_does_not_end_does_not_keep_the_application_from_ending(
    group: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun, end = threading.Event(), threading.Event()

    @hustings.once(group, grace="10ms")
    def job(term: hustings.blocking.Term) -> None:
        begun.set()
        end.wait()

    async def story() -> None:
        async with hustings.asgi.lifespan(job)(None):
            await until(begun.is_set, "the job begins")

    async def gone() -> None:
        await until(lambda: job.state is None, "it leaves when the job has ended")

    try:
        run(story())
        assert "the job goes on 10ms after it was asked to end" in caplog.text
        assert job.state is not None
        assert job.state.leading  # so no other process begins the job beside it
    finally:
        end.set()
    run(gone())


def test_a_finished_job_is_told(group: str, caplog: pytest.LogCaptureFixture) -> None:
    @hustings.once(group)
    async def job(term: hustings.Term) -> int:
        return 3

    async def story() -> None:
        async with hustings.asgi.lifespan(job)(None):
            await until(lambda: "the job has finished" in caplog.text, "the log has it")

    with caplog.at_level(logging.INFO, "hustings"):
        run(story())


@pytest.mark.parametrize("plain", [False, True])
def test_a_group_that_cannot_be_joined_is_tried_again(
    group: str, plain: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file stands where the state folder is to be. When it is gone, the job begins."""
    ran: list[int] = []

    def in_thread(term: hustings.blocking.Term) -> None:
        ran.append(term.number)

    async def on_loop(term: hustings.Term) -> None:
        ran.append(term.number)

    place = tmp_path / "state"
    place.write_text("in the way", "utf-8")
    job: ScheduledJob[Any, Any] = hustings.once(group, name="a", state=place, every="10ms")(
        in_thread if plain else on_loop
    )

    async def story() -> None:
        async with hustings.asgi.lifespan(job)(None):
            await until(lambda: "it is tried again in 1s" in caplog.text, "the log says so")
            assert ran == []
            place.unlink()
            await until(lambda: ran, "the job runs")

    run(story())


def test_a_wrong_option_stops_the_start_of_the_application(group: str) -> None:
    @hustings.once(group, seeds=["no address"])
    async def job(term: hustings.Term) -> None:
        raise AssertionError("it does not run")

    async def story() -> None:
        with pytest.raises(BadInput, match="no address"):
            async with hustings.asgi.lifespan(job)(None):
                raise AssertionError("it does not begin")

    run(story())


def test_what_is_no_job_is_refused(group: str) -> None:
    async def plain(term: hustings.Term) -> None: ...

    with pytest.raises(BadInput, match=r"decorate the function with @hustings\.once"):
        hustings.asgi.lifespan(plain)  # type: ignore[arg-type]  # that is what is refused
    with pytest.raises(BadInput, match="lifespan needs a job"):
        hustings.asgi.lifespan()
    with pytest.raises(BadInput, match=f"two jobs of group '{group}'"):
        hustings.asgi.lifespan(hustings.once(group)(plain), hustings.once(group)(lambda term: None))


def test_a_second_job_of_a_group_is_refused_where_the_first_one_runs(group: str) -> None:
    @hustings.once(group)
    async def first(term: hustings.Term) -> None:
        await asyncio.Event().wait()

    @hustings.once(group)
    async def second(term: hustings.Term) -> None: ...

    async def story() -> None:
        running = asyncio.create_task(first.serve())
        await until(lambda: first.state, "the first one runs")
        with pytest.raises(BadInput, match="first and second are two jobs"):
            await second.serve()
        running.cancel()
        await asyncio.wait([running])
        await second.serve()  # its place is free now

    run(story())


# A server that is told to stop


def waiting(group: str, plain: bool) -> ScheduledJob[Any, Any]:
    """A job that goes on until it is asked to end."""

    def in_thread(term: hustings.blocking.Term) -> None:
        term.lost.wait()

    async def on_loop(term: hustings.Term) -> None:
        await asyncio.Event().wait()

    return hustings.once(group)(in_thread if plain else on_loop)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("plain", [False, True])
def test_a_worker_that_waits_leaves_when_its_server_is_told_to_stop(
    group: str, number: signal.Signals, plain: bool, heard: list[int]
) -> None:
    """Its requests may go on for long: a leader that stops meanwhile must not hand over to it."""
    job = waiting(group, plain)

    async def story() -> None:
        async with hustings.join(group) as leader, leader.campaign():
            async with hustings.asgi.lifespan(job)(None):
                await until(lambda: len(leader.members()) == 2, "both are members")
                signal.raise_signal(number)
                await until(lambda: len(leader.members()) == 1, "the one that waits has left")
            assert leader.is_leader

    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    run(story())
    assert heard == [number]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


@pytest.mark.parametrize("plain", [False, True])
def test_a_worker_that_leads_goes_on_until_its_server_has_answered_all(
    group: str, plain: bool, heard: list[int]
) -> None:
    job = waiting(group, plain)

    def leads() -> bool:
        return job.state is not None and job.state.leading

    async def story() -> None:
        async with hustings.asgi.lifespan(job)(None):
            await until(leads, "it leads")
            signal.raise_signal(signal.SIGTERM)
            await throughout(0.3, leads, "it leads on")
        assert job.state is None

    run(story())
    assert heard == [signal.SIGTERM]


def test_a_signal_that_nobody_handles_does_what_it_did(group: str) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:

        async def story() -> None:
            async with hustings.asgi.lifespan(waiting(group, False))(None):
                assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

        run(story())
    finally:
        signal.signal(signal.SIGTERM, before)


# An application that knows no lifespan


def asked(application: Any, *answers: str) -> tuple[list[dict[str, Any]], Exception | None]:
    """What an application says when its server speaks of the lifespan."""
    said: list[dict[str, Any]] = []
    words = iter(answers)

    async def receive() -> dict[str, Any]:
        return {"type": next(words)}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    async def story() -> Exception | None:
        try:
            await application({"type": "lifespan"}, receive, send)
        except Exception as error:
            return error
        return None

    return said, run(story())


def test_an_application_without_a_lifespan_gets_one(group: str) -> None:
    told: list[str] = []

    async def plain(scope: Any, receive: Any, send: Any) -> None:
        told.append(scope["type"])

    @asynccontextmanager
    async def life(app: Any) -> AsyncIterator[None]:
        assert app is plain
        told.append("begins")
        yield
        told.append("ends")

    application = hustings.asgi.with_lifespan(plain, life)
    said, error = asked(application, "lifespan.startup", "lifespan.shutdown")
    assert error is None
    assert [each["type"] for each in said] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    untyped: Any = application
    run(untyped({"type": "http"}, None, None))
    assert told == ["begins", "ends", "http"]


@pytest.mark.parametrize("stage", ["startup", "shutdown"])
def test_a_lifespan_that_fails_is_told_to_the_server(stage: str) -> None:
    @asynccontextmanager
    async def life(app: Any) -> AsyncIterator[None]:
        if stage == "startup":
            raise BadInput("no address")
        yield
        raise BadInput("no address")

    application = hustings.asgi.with_lifespan(None, life)  # type: ignore[arg-type]  # not called
    said, error = asked(application, "lifespan.startup", "lifespan.shutdown")
    assert isinstance(error, BadInput)
    assert said[-1] == {"type": f"lifespan.{stage}.failed", "message": "BadInput: no address"}


# The log of the server


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextmanager
def server() -> Iterator[Kept]:
    """A server with a log, in a program that has configured no logging."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.root, "handlers", [])  # pytest adds its own when a test begins
        log, kept = logging.getLogger("uvicorn.error"), Kept()
        patch.setattr(log, "handlers", [kept])
        patch.setattr(log, "level", logging.INFO)
        patch.setattr(log, "_cache", {})
        yield kept


def test_the_servers_log_has_a_sentence_where_an_option_is_wrong(group: str) -> None:
    """A framework gives its server the trace as the reason; another error keeps its trace."""

    @hustings.once(group, seeds=["no address"])
    async def job(term: hustings.Term) -> None: ...

    said = "seed 'no address' names no host"

    async def story() -> None:
        for _ in range(2):
            try:
                async with hustings.asgi.lifespan(job)(None):
                    raise AssertionError("it does not begin")
            except BadInput:
                logging.getLogger("uvicorn.error").error(traceback.format_exc())
        try:
            raise ValueError(said)
        except ValueError:
            logging.getLogger("uvicorn.error").error(traceback.format_exc())

    with server() as log:
        run(story())
    first, second, other = log.texts
    assert first == second
    assert first.startswith(f"{group}/job: {said}")
    assert "\n" not in first
    assert other.startswith("Traceback")
    assert logging.getLogger("uvicorn.error").filters == []


def served(group: str) -> None:
    ran: list[int] = []

    @hustings.once(group, every="10ms")
    async def job(term: hustings.Term) -> None:
        ran.append(term.number)

    async def story() -> None:
        async with hustings.asgi.lifespan(job)(None):
            await until(lambda: ran, "the job runs")

    run(story())


def test_the_servers_log_says_who_leads(group: str) -> None:
    ours = logging.getLogger("hustings")
    before = list(ours.handlers), ours.level
    with server() as log:
        served(group)
    assert any("leads in term" in text for text in log.texts)
    assert (ours.handlers, ours.level) == before


def test_a_program_that_configured_its_log_is_left_alone(group: str) -> None:
    ours, own = logging.getLogger("hustings"), Kept()
    ours.addHandler(own)
    try:
        with server() as log:
            served(group)
    finally:
        ours.removeHandler(own)
    assert log.texts == []
