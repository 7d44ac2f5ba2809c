"""`hustings guards`: which guards there are, what each guarantees, and the state of one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import click

from hustings.cli.output import show_json, show_table
from hustings.core.errors import BadInput, printable

if TYPE_CHECKING:
    from hustings.guard.base import Guarantees, Guard, Holding

WITHIN_S = 10.0

T = TypeVar("T")


@click.command()
@click.argument("url", required=False)
@click.option("--group", metavar="GROUP", help="The group of the lease.  [default: group]")
@click.option("--install", is_flag=True, help="First create what the engine needs (PostgreSQL).")
@click.option(
    "--recover",
    is_flag=True,
    help="Let an engine that lost its data continue, with tokens above --above.",
)
@click.option(
    "--above",
    metavar="TOKEN",
    help="The highest known token: members write it to their logs.",
)
@click.option("--yes", is_flag=True, help="Recover without a question.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def guards(
    url: str | None,
    group: str | None,
    install: bool,
    recover: bool,
    above: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """List the guards, which grant leases so that there are never two leaders.

    With URL, connect to one engine, and show what it guarantees and which member holds GROUP's
    lease now.

    With --recover, all tokens of GROUP are larger than --above from now on. This is for an engine
    that lost its data: members refuse what it grants, and say so. Wait one lease after the loss,
    because a leader that the engine has forgotten may act for that long.

    \b
    hustings guards
    hustings guards etcd://127.0.0.1:2379 --group billing
    hustings guards postgres://app@db/app --install
    hustings guards etcd://127.0.0.1:2379 --group billing --recover --above 81733
    """
    if not recover and (above is not None or yes):
        raise BadInput("--above and --yes are for --recover")
    if url is None:
        if install or recover:
            word = "--install" if install else "--recover"
            raise BadInput(f"{word} needs the address of an engine")
        _list(as_json)
        return
    whose = "group" if group is None else group
    lifted: dict[str, object] = {}
    if recover:
        if group is None:
            raise BadInput("--recover needs --group: every group has tokens of its own")
        lifted["above"] = _recover(url, group, install, _token(above), sure=yes, asks=not as_json)
    guarantees, holding = asyncio.run(_look(url, whose, install))
    if as_json:
        held_now = {"group": whose, "holder": holding.holder, "token": holding.token}
        show_json({**held_now, **lifted, **to_json(guarantees)})
        return
    if recover:
        click.echo(f"all tokens of {whose} are larger than {lifted['above']} from now on")
    _show(whose, guarantees, holding)


def _list(as_json: bool) -> None:
    """A list of all guards."""
    from hustings.guard.registry import all_guarantees
    from hustings.guard.urls import NotInstalled

    rows = all_guarantees()
    if as_json:
        show_json(
            {
                "guards": [
                    {
                        "name": listed.name,
                        "example": listed.example,
                        "token": listed.token,
                        "shares": listed.shares,
                        "installed": not isinstance(guarantees, NotInstalled),
                        **_json_of(guarantees),
                    }
                    for listed, guarantees in rows
                ]
            }
        )
        return
    show_table(
        "Guards",
        ["guard", "guarantee", "token", "tokens grow", "shares elections with", "tested on"],
        [
            [listed.name, "-", listed.token, _why_not(guarantees), listed.shares, "-"]
            if isinstance(guarantees, BadInput)
            else [
                listed.name,
                guarantees.guarantee.value,
                listed.token,
                _growth(guarantees),
                listed.shares,
                _evidence(guarantees),
            ]
            for listed, guarantees in rows
        ],
        "hustings guards URL connects to one and tells more",
    )
    for listed, guarantees in rows:
        if isinstance(guarantees, BadInput):
            click.echo(f"! {listed.name}: {guarantees}")
        elif guarantees.monotone and guarantees.proviso:
            click.echo(f"* {listed.name}: {guarantees.proviso}")


def _json_of(guarantees: Guarantees | BadInput) -> dict[str, object]:
    return {"problem": str(guarantees)} if isinstance(guarantees, BadInput) else to_json(guarantees)


def _why_not(error: BadInput) -> str:
    from hustings.guard.urls import NotInstalled

    return "not installed" if isinstance(error, NotInstalled) else "cannot be used"


def _held(holding: Holding) -> str:
    """The holder according to the engine; the text may come from any writer, so it is made safe."""
    if holding.holder is None:
        return "nobody"
    return f"{printable(holding.holder)}, token {holding.token}"


def _show(group: str, guarantees: Guarantees, holding: Holding) -> None:
    """Show one guard, and its holder."""
    click.echo(f"{group} is held by: {_held(holding)}")
    click.echo(
        f"guarantee: {guarantees.guarantee.value}; leases hold while clocks' rates keep to 1 +- "
        f"{guarantees.drift:g} (measured by: {guarantees.clock})"
    )
    click.echo(f"tokens grow: {_growth(guarantees)}" + _proviso(guarantees))
    click.echo(f"out of reach: {guarantees.unreachable}")


def _token(text: str | None) -> int:
    if text is None:
        raise BadInput(
            "--recover needs --above: the highest token that members know (in their logs, and as "
            "the metric hustings_fencing_token), or that a fence does"
        )
    if not (text.isascii() and text.isdigit()):
        raise BadInput(f"--above is a token, a whole number, not {text!r}")
    return int(text)


def is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty()


def _recover(url: str, group: str, install: bool, above: int, *, sure: bool, asks: bool) -> int:
    """Lift the tokens of a group above a number, after a confirmation; return that number."""
    if not sure:
        if not (asks and is_terminal()):
            raise BadInput("--recover changes the tokens of a group: say --yes if that is meant")
        _, holding = asyncio.run(_look(url, group, install))
        click.echo(f"{group} is held by: {_held(holding)}", err=True)
        question = f"All tokens of {group} shall be larger than {above} from now on?"
        click.confirm(question, abort=True, err=True)
    asyncio.run(_lift(url, group, above))
    return above


def to_json(guarantees: Guarantees) -> dict[str, object]:
    """What a guard guarantees, as data."""
    return {
        "guarantee": guarantees.guarantee.value,
        "drift": guarantees.drift,
        "monotone": guarantees.monotone,
        "proviso": guarantees.proviso,
        "clock": guarantees.clock,
        "unreachable": guarantees.unreachable,
        "evidence": guarantees.evidence,
    }


def _growth(guarantees: Guarantees) -> str:
    always = "always *" if guarantees.proviso else "always"
    return always if guarantees.monotone else "not always"


def _proviso(guarantees: Guarantees) -> str:
    return f" ({guarantees.proviso})" if guarantees.proviso else ""


def _evidence(guarantees: Guarantees) -> str:
    return guarantees.evidence or "the engine itself"


async def _look(url: str, group: str, install: bool) -> tuple[Guarantees, Holding]:
    async def ask(guard: Guard) -> tuple[Guarantees, Holding] | None:
        async with guard.observe() as states:
            async for state in states:
                return guard.guarantees, state
        return None

    found = await _ask(url, group, ask, install=install)
    if found is None:
        raise BadInput(f"this guard has nothing to say about {group!r}")
    return found


async def _lift(url: str, group: str, above: int) -> None:
    await _ask(url, group, lambda guard: guard.recover(above))


async def _ask(
    url: str, group: str, ask: Callable[[Guard], Awaitable[T]], *, install: bool = False
) -> T:
    """Open a guard, ask it something, and close it; report a guard that does not answer."""
    from hustings.guard.base import Unreachable
    from hustings.guard.quorum import SCHEME
    from hustings.guard.urls import make_guard, parse_url

    place = parse_url(url)
    if place.scheme == SCHEME:
        raise BadInput("quorum:// is a group's own: ask one of its members, or its agent")
    try:
        if install:
            if not place.scheme.startswith("postgres"):
                raise BadInput(f"{place.scheme} needs nothing installed")
            make_guard(url, group)  # its client may be missing: this says so
            from hustings.guard.postgres import install as install_postgres

            await install_postgres(place)
        guard = make_guard(url, group)
        try:
            async with asyncio.timeout(WITHIN_S), guard:
                return await ask(guard)
        finally:
            with suppress(Exception):
                await guard.close()
    except (Unreachable, TimeoutError) as error:
        raise BadInput(
            f"guard {place.shown} does not answer ({error}): start it, or correct its address"
        ) from None
