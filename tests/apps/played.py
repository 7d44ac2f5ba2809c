"""Plays a setup of `scripts.measure_apps` in a test, and says what went wrong with the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.measure_apps import Round, Running, Setup, running


@contextmanager
def served(setup: Setup, folder: Path) -> Iterator[Running]:
    """The example runs; if the test fails, what its processes printed is part of the failure."""
    with running(setup, folder) as app:
        try:
            yield app
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"{error}\n{app.log()[-6000:]}") from error


def nobody_twice(rounds: Sequence[Round]) -> None:
    """The job never ran in two processes at one time."""
    wrong = [each for each in rounds if each.duplicates]
    assert not wrong, f"two processes ran the job at one time: {wrong}"


def ends_well(app: Running) -> None:
    """All processes end when they are asked to, and the last leader says why it leads no longer."""
    codes = app.end()
    assert set(codes) == {app.setup.code}, f"exit codes {codes}"
    assert app.members() == set(), "members are left"
    assert "leads in term" in app.log(), "nobody said that it leads"
    told = "this member le" in app.log()  # leaves, or left
    assert app.setup.code < 0 or told, "nobody said that it leads no longer"
