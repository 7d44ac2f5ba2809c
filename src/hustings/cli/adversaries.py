"""`hustings adversaries`: whom they corrupt, and what the bad then do."""

from __future__ import annotations

import click

from hustings.cli.output import show_json, show_table
from hustings.lab.byzantine.adversaries import load
from hustings.protocols.committee.adversary import WORST, catalogue


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def adversaries(as_json: bool) -> None:
    """List the parts of adversaries of committee, agreement and lightest-bin.

    One corruption says which members are bad, behaviours say what they do; + joins them.

    \b
    hustings adversaries
    hustings sim agreement -n 31 --set t=10 --set adversary=first+split
    """
    load()
    words = catalogue()
    if as_json:
        show_json(
            {
                "adversaries": [
                    {"name": name, "kind": kind, "idea": idea}
                    for name, (kind, idea) in words.items()
                ],
                "default_behaviours": list(WORST),
            }
        )
        return
    show_table(
        "Adversaries",
        ["word", "says", "idea"],
        [[name, kind, idea] for name, (kind, idea) in words.items()],
        f"with no behaviour named: {'+'.join(WORST)}; others by entry points hustings.adversaries",
    )
