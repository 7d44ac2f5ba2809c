"""Options that commands of every kind share: numbers, and where runs are played.

This module loads neither the laboratory nor the simulator, so that `hustings leader` or `run`
starts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from hustings.core.config import parse_number, parse_whole
from hustings.core.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])


# Numbers, read as `hustings.core.config` reads them everywhere


class _Whole(click.types.IntParamType):
    """Any whole number, also `1e9`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return super().convert(_whole(self, value, param, ctx), param, ctx)


class _Real(click.types.FloatParamType):
    """Any number, perhaps `inf`; not `nan`."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        return super().convert(_real(self, value, param, ctx), param, ctx)


class WholeRange(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return super().convert(_whole(self, value, param, ctx), param, ctx)


class RealRange(click.FloatRange):
    """A number within bounds; `nan` is refused."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        return super().convert(_real(self, value, param, ctx), param, ctx)


WHOLE = _Whole()
REAL = _Real()


def _whole(
    kind: click.ParamType[Any], value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> int:
    try:
        return parse_whole(value) if isinstance(value, str) else int(value)
    except ValueError:
        kind.fail(f"{value!r} is not a valid integer.", param, ctx)


def _real(
    kind: click.ParamType[Any], value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> float:
    try:
        return parse_number(value) if isinstance(value, str) else float(value)
    except ValueError:
        kind.fail(f"{value!r} is not a valid float.", param, ctx)


# Where runs are played


def _place(_: click.Context, __: click.Parameter, where: str | None) -> str | None:
    if where is not None:
        from hustings.lab.runs.executors import check_place

        check_place(where)
    return where


def on_option(usual: str) -> Callable[[F], F]:
    """`--on`, with its usual place."""
    return click.option(
        "--on",
        "where",
        default=None,
        metavar="PLACE",
        callback=_place,
        help="threads, processes, local-cluster (Dask on this machine) or dask://host:8786; the "
        f"numbers are the same everywhere.  [default: {usual}]",
    )


# What is installed


_AGENT_EXTRA = ("prometheus_client", "starlette", "uvicorn")


@contextmanager
def needs_agent_extra(what: str) -> Iterator[None]:
    """Around imports of an agent's HTTP: a missing package is bad input, with advice."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] not in _AGENT_EXTRA:
            raise
        from hustings.extras import install_command

        raise BadInput(f"{what} needs {missing.name}: {install_command('agent')}") from None
