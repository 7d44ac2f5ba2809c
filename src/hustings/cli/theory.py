"""`hustings theory`: closed forms of a protocol, by name."""

from __future__ import annotations

import click

from hustings.cli.output import show_json, show_table
from hustings.core.config import parse_settings
from hustings.core.errors import BadInput
from hustings.lab.closed_forms.page import markdown
from hustings.lab.closed_forms.registry import evaluate, names, parameters


@click.command()
@click.argument("protocol", required=False)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A parameter: n, d (detectors), m or crashed, timers; N, l, loss_model for le-s and "
    "others; N, K, view_prob, p_ucastl, p_mcastl, p_fail, success for probabilistic; "
    f"{', '.join(key.key for key in parameters('committee'))} for committee; "
    f"{', '.join(key.key for key in parameters('quorum'))} for quorum. "
    "hustings theory lists the parameters of each.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The reference page of all forms.")
def theory(
    protocol: str | None, settings: tuple[str, ...], as_json: bool, as_markdown: bool
) -> None:
    """Show closed forms for PROTOCOL: what its papers print, and what is true.

    The parameters have the same meaning as for hustings sim: n counts the crashed leader, and
    member d notices the crash.

    \b
    hustings theory bully --set n=64 --set d=1
    hustings theory bully-map --set n=16 --set d=1,3 --set crashed=14,15
    hustings theory le-s --set N=500 --set l=0.7 --set loss_model=uncorrelated
    hustings theory quorum --set v=5 --set down=1 --set ttl=30
    hustings theory committee --set n=10000 --set b=0.1 --set profile=robust
    """
    if as_markdown:
        if protocol is not None or settings or as_json:
            raise BadInput("--markdown writes the page of all forms and takes nothing else")
        click.echo(markdown(), nl=False)
        return
    if protocol is None:
        _list(settings, as_json)
        return
    result = evaluate(protocol, parse_settings(settings))
    if as_json:
        show_json(result.to_json())
        return
    shown = ", ".join(f"{key}={value}" for key, value in result.params.items())
    rows = [
        [
            form.name,
            "printed" if form.printed else "corrected",
            form.to_json()["value"],
            form.formula,
            form.verdict,
        ]
        for form in result.forms
    ]
    columns = ["form", "kind", "value", "formula", "verdict"]
    show_table(f"{result.protocol}: {shown}", columns, rows)
    for note in result.notes:
        click.echo(note)


def _list(settings: tuple[str, ...], as_json: bool) -> None:
    if settings:
        raise BadInput(f"--set needs a protocol: one of {', '.join(names())}")
    table = {name: [parameter.key for parameter in parameters(name)] for name in names()}
    if as_json:
        show_json({"protocols": table})
    else:
        rows = [[name, ", ".join(keys)] for name, keys in table.items()]
        show_table("Closed forms", ["protocol", "parameters (--set)"], rows)
