"""Numbers on the command line, read as `hustings.core.numbers` reads them everywhere."""

from __future__ import annotations

from typing import Any

import click

from hustings.core.numbers import parse_number, parse_whole


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
    """A number within bounds; `nan` is within none."""

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
