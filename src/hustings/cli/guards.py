"""`hustings guards`: who can confirm leaders, what that promises, and a look at one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from hustings.cli.output import show_json, show_table
from hustings.core.errors import BadInput

if TYPE_CHECKING:
    from hustings.guard.seam import Holding, Promise

WITHIN_S = 10.0


@click.command()
@click.argument("url", required=False)
@click.option("--group", default="group", show_default=True, metavar="GROUP", help="Whose lease.")
@click.option("--install", is_flag=True, help="Make what the engine needs first (PostgreSQL).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def guards(url: str | None, group: str, install: bool, as_json: bool) -> None:
    """Who can confirm leaders, so that there are never two, and what each promises.

    With URL, connect to one, say what it promises there, and who holds GROUP's lease now.

    \b
    hustings guards
    hustings guards etcd://127.0.0.1:2379 --group billing
    hustings guards postgres://app@db/app --install
    """
    from hustings.guard.catalogue import promises

    if url is None:
        if install:
            raise BadInput("--install needs the address of an engine")
        rows = promises()
        if as_json:
            show_json(
                {
                    "guards": [
                        {
                            "name": listed.name,
                            "example": listed.example,
                            "token": listed.token,
                            "shares": listed.shares,
                            "installed": promise is not None,
                            **({} if promise is None else to_json(promise)),
                        }
                        for listed, promise in rows
                    ]
                }
            )
            return
        show_table(
            "Guards",
            ["guard", "guarantee", "token", "tokens grow", "shares elections with", "tested on"],
            [
                [
                    listed.name,
                    "-" if promise is None else promise.guarantee.value,
                    listed.token,
                    "not installed" if promise is None else _growth(promise),
                    listed.shares,
                    "-" if promise is None else _evidence(promise),
                ]
                for listed, promise in rows
            ],
            "hustings guards URL connects to one and tells more",
        )
        return
    promise, holding = asyncio.run(_look(url, group, install))
    if as_json:
        show_json(
            {
                "group": group,
                "holder": holding.holder,
                "token": holding.token,
                **to_json(promise),
            }
        )
        return
    held = "nobody" if holding.holder is None else f"{holding.holder}, token {holding.token}"
    click.echo(f"{group} is held by: {held}")
    click.echo(
        f"guarantee: {promise.guarantee.value}; leases hold while clocks' rates keep to 1 +- "
        f"{promise.drift:g} (measured by: {promise.clock})"
    )
    click.echo(f"tokens grow: {_growth(promise)}" + _proviso(promise))
    click.echo(f"out of reach: {promise.unreachable}")


def to_json(promise: Promise) -> dict[str, object]:
    """A promise, as data."""
    return {
        "guarantee": promise.guarantee.value,
        "drift": promise.drift,
        "monotone": promise.monotone,
        "proviso": promise.proviso,
        "clock": promise.clock,
        "unreachable": promise.unreachable,
        "evidence": promise.evidence,
    }


def _growth(promise: Promise) -> str:
    return "always" if promise.monotone else "not always"


def _proviso(promise: Promise) -> str:
    return f" ({promise.proviso})" if promise.proviso else ""


def _evidence(promise: Promise) -> str:
    return promise.evidence or "the engine itself"


async def _look(url: str, group: str, install: bool) -> tuple[Promise, Holding]:
    from hustings.guard.quorum import SCHEME
    from hustings.guard.seam import Unreachable
    from hustings.guard.urls import make_guard, parse_url

    place = parse_url(url)
    if place.scheme == SCHEME:
        raise BadInput("quorum:// is a group's own: ask one of its members, or its agent")
    try:
        if install:
            if not place.scheme.startswith("postgres"):
                raise BadInput(f"{place.scheme} needs nothing installed")
            make_guard(url, group)  # its client may be missing: then that is said
            from hustings.guard.postgres import install as install_postgres

            await install_postgres(place)
        guard = make_guard(url, group)
        try:
            async with asyncio.timeout(WITHIN_S), guard, guard.observe() as states:
                async for state in states:
                    return guard.promise, state
        finally:
            with suppress(Exception):
                await guard.close()
    except (Unreachable, TimeoutError) as error:
        raise BadInput(
            f"guard {place.shown} does not answer ({error}): start it, or correct its address"
        ) from None
    raise BadInput(f"guard {place.shown} has nothing to say about {group!r}")
