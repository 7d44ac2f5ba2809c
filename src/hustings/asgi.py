"""Jobs beside an ASGI application, in exactly one of the server's workers.

    app = FastAPI(lifespan=hustings.asgi.lifespan(send_invoices))

Any application takes it whose lifespan is an asynchronous context manager: FastAPI, Starlette,
Litestar, Quart. The jobs begin after the application's own start and end before its own end, so
that they can use what it opens. A job that cannot run does not keep the application from serving.

An application that does not know the lifespan of ASGI, as Django's, gets one by `with_lifespan`.

Whoever stops a server with several workers tells all of them at one time, and each ends when its
requests have ended. So a worker that waits to lead leaves the group at the signal. A leader, which
goes on until the end of its lifespan, then hands over to a worker that stays, or to nobody.

Law: nothing here imports a web framework.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any

from hustings.core.errors import BadInput, HustingsError, printable
from hustings.net.logs import INFO, handled_by, unconfigured
from hustings.scheduled import ScheduledJob, call_when_told_to_stop, check_groups

_SERVERS = ("uvicorn.error", "hypercorn.error", "gunicorn.error")  # logs of servers

Jobs = Mapping[ScheduledJob[Any, Any], asyncio.Task[None]]
Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def lifespan(*jobs: ScheduledJob[Any, Any], around: Lifespan | None = None) -> Lifespan:
    """The lifespan of an application that runs these jobs, each made by `@hustings.once`.

    `around` is a lifespan of the application's own: it begins before the jobs and ends after them.

    A program that configured no logging at all finds what the logger `hustings` says in the log of
    its server.
    """
    for job in jobs:
        if not isinstance(job, ScheduledJob):
            raise BadInput(
                f"{job!r} is no job: decorate the function with @hustings.once('name-of-the-group')"
            )
    check_groups(jobs)
    if not jobs:
        raise BadInput("lifespan needs a job: a function decorated with @hustings.once")
    own = _nothing if around is None else around

    @asynccontextmanager
    async def running(app: Any) -> AsyncIterator[Any]:
        for job in jobs:
            _check(job)
        async with own(app) as state:
            with _told_by_the_server():
                tasks = {job: asyncio.create_task(_serve(job)) for job in jobs}
                try:
                    with _heard_of_the_end(tasks):
                        yield state
                finally:
                    for task in tasks.values():
                        if not task.cancelling():  # asked twice, it would wait for nothing
                            task.cancel()
                    await asyncio.wait(tasks.values())

    return running


def with_lifespan(app: Application, around: Lifespan) -> Application:
    """An application that answers its server's `lifespan` by this one, and all else by `app`."""

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        await receive()  # lifespan.startup
        stage = "startup"
        try:
            async with around(app):
                await send({"type": "lifespan.startup.complete"})
                stage = "shutdown"
                await receive()
        except Exception as error:
            told = f"{type(error).__name__}: {printable(str(error))}"
            await send({"type": f"lifespan.{stage}.failed", "message": told})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    return application


@asynccontextmanager
async def _nothing(app: Any) -> AsyncIterator[None]:
    yield


def _check(job: ScheduledJob[Any, Any]) -> None:
    try:
        job.check()
    except HustingsError as error:
        if (server := _server()) is not None:
            for old in [each for each in server.filters if isinstance(each, _InOneSentence)]:
                server.removeFilter(old)  # of a start that no framework has told of
            server.addFilter(_InOneSentence(server, job, error))
        raise


class _InOneSentence(logging.Filter):
    """Puts a sentence where the server would show the whole way to it.

    Frameworks hand their server the trace of an error as the reason why they cannot start. That of
    an error which a sentence explains is twenty lines that hide the sentence.
    """

    def __init__(
        self, server: logging.Logger, job: ScheduledJob[Any, Any], error: Exception
    ) -> None:
        super().__init__()
        self._server = server
        self._end = f"{type(error).__qualname__}: {error}"
        self._said = f"{job.group}/{job.log_name}: {printable(str(error))}"

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.msg if isinstance(record.msg, str) else ""
        if text.startswith("Traceback") and text.rstrip().endswith(self._end.rstrip()):
            record.msg, record.args = self._said, ()
            self._server.removeFilter(self)
        return True


@contextmanager
def _heard_of_the_end(tasks: Jobs) -> Iterator[None]:
    """While this lasts, the jobs that wait to lead end when this process is told to stop."""
    loop = asyncio.get_running_loop()

    def tell() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_end_those_that_wait, tasks)

    undo = call_when_told_to_stop(tell)
    try:
        yield
    finally:
        undo()


def _end_those_that_wait(tasks: Jobs) -> None:
    for job, task in tasks.items():
        if job.state is None or not job.state.leading:
            task.cancel()


async def _serve(job: ScheduledJob[Any, Any]) -> None:
    """Run a job, and say how it ended."""
    try:
        await job.serve(retry=True)
    except Exception as error:
        if job.asynchronous:  # a thread says it itself
            job.tell_failed(error)
    else:
        job.log.say(INFO, "job-finished", "the job has finished, and does not run again")


class _ToServer(logging.Handler):
    def __init__(self, server: logging.Logger) -> None:
        super().__init__()
        self._server = server

    def emit(self, record: logging.LogRecord) -> None:
        if self._server.isEnabledFor(record.levelno):
            self._server.handle(record)


def _server() -> logging.Logger | None:
    """The log of the server that runs this program, if it is one that we know."""
    return next((log for name in _SERVERS if (log := logging.getLogger(name)).hasHandlers()), None)


@contextmanager
def _told_by_the_server() -> Iterator[None]:
    """While this lasts, the server's log has our records, if the program has configured nothing."""
    server = _server()
    if server is None or not unconfigured():
        yield
        return
    with handled_by(_ToServer(server)):
        yield
