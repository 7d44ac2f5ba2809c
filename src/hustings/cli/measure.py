"""`hustings measure`: an environment file from a live group."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hustings.cli import INTERRUPTED
from hustings.cli.options import RealRange
from hustings.cli.output import advancing, show_json, show_table, warn
from hustings.core.errors import BadInput

if TYPE_CHECKING:
    from hustings.lab.measuring import MeasuredGroup
    from hustings.lab.surveys.asking import SurveyProgress

FINE, FAILED = 0, 1


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="GROUP|SEED...")
@click.option(
    "--group",
    metavar="NAME",
    help="The group's name, where the arguments are addresses of members.",
)
@click.option(
    "--for",
    "seconds",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="How long to measure: rare things take long.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the environment file here. [default: to stdout]",
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    metavar="NAME=ADDRESS/PREFIX",
    help="The members in this network are at this site; may be given several times. [default: by "
    "the attribute `site` of members, if they have it]",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The group's key file.",
)
@click.option("--insecure", is_flag=True, help="The group has no key.")
@click.option(
    "--bind",
    metavar="HOST:PORT",
    help="The address to listen at. [default: one from which the seeds are reached]",
)
@click.option(
    "--protocol",
    metavar="NAME",
    help="The group's protocol, as file.py:Class; needed only for one of your own.",
)
@click.option(
    "--rate",
    type=RealRange(0.1, 5.0),
    default=2.0,
    show_default=True,
    help="Trains of four probes that each measured way gets in a second.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def measure(
    places: tuple[str, ...],
    group: str | None,
    seconds: str,
    output: Path | None,
    sites: tuple[str, ...],
    keys: tuple[Path, ...],
    insecure: bool,
    bind: str | None,
    protocol: str | None,
    rate: float,
    as_json: bool,
) -> int:
    """Measure a live group, and write the environment file that other commands take.

    An observer joins GROUP, which it finds on this machine, or by the addresses of members
    elsewhere. It has members send numbered probes to each other, at a bounded rate, and asks them
    for what they found: delays, losses and bursts of each pair of sites, pauses, clock drift and
    crashes. Each number in the file has a comment with its sample and its interval. What could not
    be measured is left out, and said. Ctrl-C ends it early, with what there is by then.

    Exits with 1 if no member answers.

    \b
    hustings measure billing --for 5m --output environment.toml
    hustings measure 10.0.0.2:7400 10.0.1.2:7400 --group billing --key billing.key
    hustings measure billing --site a=10.0.0.0/24 --site b=10.0.1.0/24
    """
    from hustings.lab.measuring import measure as lab_measure
    from hustings.lab.surveys.describing import NothingMeasured

    if group is None and len(places) > 1:
        raise BadInput("several addresses need the name of their group: add --group NAME")
    if group is None and _is_address(places[0]):
        raise BadInput(f"{places[0]} is an address: give the group's name, too, with --group NAME")
    if output is not None:
        _check_new(output)
    try:
        with advancing(_words, "of the time over") as tell:
            found = lab_measure(
                places[0] if group is None else group,
                seeds=() if group is None else places,
                seconds=seconds,
                sites=_sites(sites),
                key=keys or None,
                insecure=insecure,
                bind=bind,
                protocol=protocol,
                rate=rate,
                tell=tell,
            )
    except NothingMeasured as error:
        click.echo(f"hustings: {error}", err=True)
        return FAILED
    _show(found, output, as_json)
    return INTERRUPTED if found.stopped else FINE


def _words(reached: SurveyProgress) -> str:
    asked = f"{reached.answering} of {reached.members} members answer"
    return f"{asked}, {reached.probes:,} probes settled"


def _show(found: MeasuredGroup, output: Path | None, as_json: bool) -> None:
    from hustings.sim.files import write_atomically

    if output is not None:
        write_atomically(output, found.to_toml())
    if as_json:
        show_json(found.to_json())
    elif output is None:
        click.echo(found.to_toml(), nl=False)
    else:
        title = f"{found.group}, measured for {found.description.seconds:.0f} s: {output}"
        show_table(title, ["what", "value", "from", "to", "unit", "samples"], _rows(found))
    for sentence in found.missing:
        warn(f"not measured: {sentence}")
    if found.stopped:
        warn("stopped before its time: this is what there was by then")


def _rows(found: MeasuredGroup) -> list[list[object]]:
    keys = ("what", "value", "low", "high", "unit", "samples")
    return [[row[key] for key in keys] for row in found.rows()]


def _sites(texts: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, network = text.partition("=")
        if not equals or not name.strip() or not network.strip():
            raise BadInput(f"--site {text!r} is not understood: write NAME=ADDRESS/PREFIX")
        found.setdefault(name.strip(), []).append(network.strip())
    return found


def _is_address(text: str) -> bool:
    """Whether this is rather an address than the name of a group."""
    from hustings.net.addresses import parse_address

    host, colon, port = text.rpartition(":")
    try:
        parse_address(text, "seed")
    except BadInput:
        return False
    return bool(colon and host and port.isdigit())


def _check_new(output: Path) -> None:
    """Refuse before anything is measured what could not be written afterwards."""
    if os.path.lexists(output) and not os.path.exists(output):
        raise BadInput(f"--output {output} is a link to nothing: choose another name")
    if output.is_dir():
        raise BadInput(f"--output {output} is a folder: name a file")
    if output.is_file():
        raise BadInput(f"--output {output} exists: choose another name, or move it away first")
    if not output.parent.is_dir() or not os.access(output.parent, os.W_OK):
        raise BadInput(f"--output {output} cannot be written: its folder is missing or closed")
