"""The application `hustings.django`: `manage.py check` tells of jobs that cannot run."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core import checks

from hustings.core.errors import BadInput, HustingsError
from hustings.django.discovery import MODULE, find_jobs
from hustings.scheduled import ScheduledJob


class HustingsConfig(AppConfig):  # type: ignore[misc]  # Django comes without types
    """The entry in `INSTALLED_APPS`."""

    name = "hustings.django"
    label = "hustings"
    verbose_name = "Hustings"

    def ready(self) -> None:
        """Register the check; no job is loaded before it is asked for."""
        checks.register(_check_jobs, "hustings")


def _check_jobs(**options: Any) -> list[Any]:
    try:
        jobs = find_jobs()
    except BadInput as error:
        return [checks.Error(str(error), id="hustings.E001")]
    if jobs:
        return [error for job in jobs for error in _wrong_options(job)]
    hint = f"decorate a function in the module {MODULE} of an application with @hustings.once"
    return [checks.Warning("no installed application has a job", hint, id="hustings.W001")]


def _wrong_options(job: ScheduledJob[Any, Any]) -> list[Any]:
    """What would keep a job from running; nothing is made or asked for it."""
    try:
        job.check(make_key=False)
    except HustingsError as error:
        return [checks.Error(f"{job.group}: {error}", id="hustings.E002")]
    return []
