"""The application `hustings.django`: `manage.py check` tells of jobs that cannot run."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core import checks

from hustings.core.errors import BadInput
from hustings.django.discovery import MODULE, find_jobs


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
        if find_jobs():
            return []
    except BadInput as error:
        return [checks.Error(str(error), id="hustings.E001")]
    hint = f"decorate a function in the module {MODULE} of an application with @hustings.once"
    return [checks.Warning("no installed application has a job", hint, id="hustings.W001")]
