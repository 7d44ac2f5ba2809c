"""`hustings protocols`: the catalogue."""

from __future__ import annotations

import click

from hustings.cli.output import show_json, show_table
from hustings.core.config import describe
from hustings.core.election import Election
from hustings.core.messages import kind_of
from hustings.protocols.reference import markdown
from hustings.protocols.registry import classes, names


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The reference page.")
def protocols(name: str | None, as_json: bool, as_markdown: bool) -> None:
    """List the protocols: what each assumes, costs and guarantees.

    With NAME, show everything about one protocol, with its settings.

    \b
    hustings protocols
    hustings protocols bully-map
    """
    chosen = classes(names() if name is None else [name])
    if as_json:
        show_json({"protocols": [to_json(kind) for kind in chosen]})
    elif as_markdown:
        click.echo(markdown(chosen), nl=False)
    elif name is not None:
        show_one(chosen[0])
    else:
        rows = [
            [
                kind.about.name,
                kind.about.family,
                kind.about.guarantee.value,
                kind.about.cost,
                kind.about.paper,
            ]
            for kind in chosen
        ]
        columns = ["protocol", "family", "guarantee", "cost", "paper"]
        show_table("Protocols", columns, rows, "hustings protocols NAME tells more")


def to_json(kind: type[Election]) -> dict[str, object]:
    """One entry."""
    about = kind.about
    return {
        "name": about.name,
        "family": about.family,
        "paper": about.paper,
        "idea": about.idea,
        "model": about.model,
        "guarantee": about.guarantee.value,
        "cost": about.cost,
        "promises": about.promises,
        "messages": [
            {"kind": kind_of(message), "role": message.role.value} for message in kind.messages
        ],
        "settings": [
            {"name": name, "rule": rule, "default": default, "meaning": meaning}
            for name, rule, default, meaning in describe(kind.Settings)
        ],
    }


def show_one(kind: type[Election]) -> None:
    """One entry for people."""
    about = kind.about
    for label, text in (
        ("protocol", about.name),
        ("family", about.family),
        ("paper", about.paper),
        ("idea", about.idea),
        ("model", about.model),
        ("cost", about.cost),
        ("guarantee", about.guarantee.value),
        ("promises", about.promises),
        ("messages", ", ".join(kind_of(message) for message in kind.messages)),
    ):
        click.echo(f"{label:10} {text}")
    rows = [
        [name, rule, default, meaning] for name, rule, default, meaning in describe(kind.Settings)
    ]
    show_table("Settings (--set)", ["setting", "value", "default", "meaning"], rows)
