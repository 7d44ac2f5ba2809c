"""`hustings keygen`: a key for the members of a group to share."""

from __future__ import annotations

from pathlib import Path

import click

from hustings.cli.output import show_json


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the key file, readable by its owner only; no file is overwritten. "
    "[default: stdout]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def keygen(out: Path | None, as_json: bool) -> None:
    """Make a key: members that share it read and trust each other, and no other process.

    Copy the file to every member, over a connection that is secure. With --out the key itself is
    not shown.

    \b
    hustings keygen --out billing.key
    hustings keygen --json
    """
    from hustings.net.files import shown
    from hustings.net.keys import new_key, write_key

    key = new_key()
    if out is None:
        if as_json:
            show_json({"id": key.id, "key": key.text()})
        else:
            click.echo(key.text(), nl=False)
        return
    write_key(out, key)
    if as_json:
        show_json({"id": key.id, "file": str(out)})
    else:
        click.echo(f"wrote {shown(out)}: key {key.id}")
