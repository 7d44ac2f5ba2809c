"""`manage.py hustings_jobs`: processes that run the jobs of the project, and nothing else."""

from __future__ import annotations

import logging
import signal
from argparse import ArgumentParser
from contextlib import nullcontext
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hustings.core.errors import HustingsError
from hustings.django.discovery import Jobs, find_jobs
from hustings.net.logs import handled_by, unconfigured
from hustings.scheduled import run_jobs

FORM = "%(asctime)s %(levelname)s %(message)s"


class Command(BaseCommand):  # type: ignore[misc]  # Django comes without types
    """Run jobs until SIGTERM or Ctrl-C."""

    help = (
        "Run the jobs of the project, each in one process of its group. Start this several times, "
        "on one machine or, with a guard, on several."
    )

    requires_system_checks = ()  # what they would say of jobs, the command says itself

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options of the command line."""
        parser.add_argument("groups", nargs="*", metavar="GROUP", help="only these; else all jobs")
        parser.add_argument("--list", action="store_true", help="show the jobs, and run none")

    def handle(self, *words: Any, **options: Any) -> None:
        """Run the jobs; exit code 2 if the command line or a job cannot be understood."""
        try:
            jobs = self._chosen(options["groups"])
            if options["list"]:
                for job in jobs:
                    self.stdout.write(f"{job.group}  {job.__module__}.{job.log_name}")
                return
            for job in jobs:
                job.check()
        except HustingsError as error:
            raise CommandError(str(error), returncode=2) from None
        handler = logging.StreamHandler(self.stderr)
        handler.setFormatter(logging.Formatter(FORM))
        told = unconfigured() and options["verbosity"] > 0
        with handled_by(handler) if told else nullcontext():
            try:
                run_jobs(jobs)
            except KeyboardInterrupt:
                raise SystemExit(128 + signal.SIGINT) from None
            except Exception as error:  # the log has the trace
                raise CommandError(f"a job is over: {type(error).__name__}: {error}") from error

    def _chosen(self, groups: list[str]) -> Jobs:
        jobs = find_jobs()
        if not jobs:
            raise CommandError(
                "no installed application has a job: decorate a function in its module jobs with "
                "@hustings.once",
                returncode=2,
            )
        known = [job.group for job in jobs]
        if unknown := [group for group in groups if group not in known]:
            raise CommandError(
                f"no job has the group {unknown[0]!r}: the groups are {', '.join(known)}",
                returncode=2,
            )
        return [job for job in jobs if not groups or job.group in groups]
