"""Finds the jobs of a Django project, and begins them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import close_old_connections
from django.utils.module_loading import module_has_submodule

from hustings.asgi import Application, lifespan, with_lifespan
from hustings.net.job import is_coroutine_function
from hustings.scheduled import RunningJob, ScheduledJob, check_groups

MODULE = "jobs"  # of an application

Jobs = list[ScheduledJob[Any, Any]]


def find_jobs() -> Jobs:
    """All jobs in the modules `jobs` of the installed applications, in their order.

    `BadInput` if two of them have one group.
    """
    found: Jobs = []
    apps.check_apps_ready()
    for config in apps.get_app_configs():
        if module_has_submodule(config.module, MODULE):
            module = import_module(f"{config.name}.{MODULE}")
            jobs = [each for each in vars(module).values() if isinstance(each, ScheduledJob)]
            found += [job for job in dict.fromkeys(jobs) if job not in found]
    check_groups(found)
    for job in found:
        job.wrap(_with_connections)
    return found


def start_jobs() -> list[RunningJob]:
    """Run all jobs of the project beside the requests, each in a thread; this returns at once.

    For `wsgi.py`, or for a hook that runs in each worker after a fork.
    """
    return [job.start(until_signal=True) for job in find_jobs()]


def with_jobs(application: Application) -> Application:
    """An ASGI application that runs all jobs of the project while its server is up.

    For `asgi.py`. Django's own application is not told when its server stops.
    """
    return with_lifespan(application, lifespan(*find_jobs()))


def _with_connections(job: Callable[..., Any]) -> Callable[..., Any]:
    """A job whose runs treat database connections as requests do.

    A run does not meet a connection that is too old or broken, and it leaves none behind.
    """
    if is_coroutine_function(job):
        close = sync_to_async(close_old_connections)

        @functools.wraps(job)
        async def awaited(term: Any) -> Any:
            await close()
            try:
                return await job(term)
            finally:
                await close()

        return awaited

    @functools.wraps(job)
    def called(term: Any) -> Any:
        close_old_connections()
        try:
            return job(term)
        finally:
            close_old_connections()

    return called
