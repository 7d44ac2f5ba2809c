"""`hustings guards`: which guards there are, what each guarantees, and the state of one."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from hustings.cli.output import show_json, show_table
from hustings.core.errors import BadInput, printable

if TYPE_CHECKING:
    from hustings.guard.base import Guarantees, Holding
    from hustings.guard.inspection import GuardState


@click.command()
@click.argument("url", required=False)
@click.option("--group", metavar="GROUP", help="The group of the lease.")
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

    With URL, connect to one engine, and show what it guarantees and, with --group, which member
    holds that group's lease now.

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
    from hustings.guard import inspection

    whose = "group" if group is None else group
    token = None
    if recover:
        if group is None:
            raise BadInput("--recover needs --group: every group has tokens of its own")
        token = _token(above)
        _check_asks(sure=yes, asks=not as_json)
    if install:
        asyncio.run(inspection.install(url, whose))
    if token is not None:
        if not yes:
            _confirm(asyncio.run(inspection.look(url, whose)), token)
        asyncio.run(inspection.recover(url, whose, token))
    found = asyncio.run(inspection.look(url, whose))
    if as_json:
        show_json({**found.to_json(), **({} if token is None else {"above": token})})
        return
    if token is not None:
        click.echo(f"all tokens of {whose} are larger than {token} from now on")
    if install:
        click.echo("installed: the engine has what hustings needs")
    if group is None:
        click.echo("the engine answers; with --group GROUP you see which member holds that lease")
    else:
        click.echo(f"{found.group} is held by: {_held(found.holding)}")
    _show(found.guarantees)


def _list(as_json: bool) -> None:
    """A list of all guards."""
    from hustings.guard.inspection import all_guarantees
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
    return (
        {"problem": str(guarantees)} if isinstance(guarantees, BadInput) else guarantees.to_json()
    )


def _why_not(error: BadInput) -> str:
    from hustings.guard.urls import NotInstalled

    return "not installed" if isinstance(error, NotInstalled) else "cannot be used"


def _held(holding: Holding) -> str:
    """The holder according to the engine; the text may come from any writer, so it is made safe."""
    if holding.holder is None:
        return "nobody"
    return f"{printable(holding.holder)}, token {holding.token}"


def _show(guarantees: Guarantees) -> None:
    """Show what one guard guarantees."""
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


def _check_asks(*, sure: bool, asks: bool) -> None:
    """Refuse to change tokens where nobody has said yes, and nobody can be asked."""
    if not sure and not (asks and is_terminal()):
        raise BadInput("--recover changes the tokens of a group: say --yes if that is meant")


def _confirm(found: GuardState, above: int) -> None:
    """Show the present holder, and ask whether to go on."""
    click.echo(f"{found.group} is held by: {_held(found.holding)}", err=True)
    question = f"All tokens of {found.group} shall be larger than {above} from now on?"
    click.confirm(question, abort=True, err=True)


def _growth(guarantees: Guarantees) -> str:
    always = "always *" if guarantees.proviso else "always"
    return always if guarantees.monotone else "not always"


def _proviso(guarantees: Guarantees) -> str:
    return f" ({guarantees.proviso})" if guarantees.proviso else ""


def _evidence(guarantees: Guarantees) -> str:
    return guarantees.evidence or "the engine itself"
