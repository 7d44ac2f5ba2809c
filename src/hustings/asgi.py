"""Jobs beside an ASGI application, in exactly one of the server's workers.

    app = FastAPI(lifespan=hustings.asgi.lifespan(send_invoices))

Any application takes it whose lifespan is an asynchronous context manager: FastAPI, Starlette,
Litestar, Quart. The jobs begin after the application's own start and end before its own end, so
that they can use what it opens. A job that cannot run does not keep the application from serving.

An application that does not know the lifespan of ASGI, as Django's, gets one by `with_lifespan`.

Law: nothing here imports a web framework.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from hustings.core.errors import BadInput, printable
from hustings.net.logs import INFO, handled_by, unconfigured
from hustings.scheduled import ScheduledJob, check_groups

_SERVERS = ("uvicorn.error", "hypercorn.error", "gunicorn.error")  # logs of servers

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
            job.check()
        async with own(app) as state:
            with _told_by_the_server():
                tasks = [asyncio.create_task(_serve(job)) for job in jobs]
                try:
                    yield state
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.wait(tasks)

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


@contextmanager
def _told_by_the_server() -> Iterator[None]:
    """While this lasts, the server's log has our records, if the program has configured nothing."""
    server = next(
        (log for name in _SERVERS if (log := logging.getLogger(name)).hasHandlers()), None
    )
    if server is None or not unconfigured():
        yield
        return
    with handled_by(_ToServer(server)):
        yield
