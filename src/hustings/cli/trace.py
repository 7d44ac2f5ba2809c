"""`hustings trace`: look at a recorded run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from hustings.cli.output import show_json, warn
from hustings.core.errors import BadInput
from hustings.sim.files import write_atomically
from hustings.sim.selection import Drawing, Heartbeats, Options
from hustings.sim.shiviz import draw_shiviz
from hustings.sim.svg import draw_svg
from hustings.sim.terminal import WIDTH, draw_text
from hustings.sim.trace_read import Trace, read_trace

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("file", type=FILE)
@click.option("--svg", type=FILE, metavar="OUT", help="Draw a space-time diagram as SVG.")
@click.option("--shiviz", type=FILE, metavar="OUT", help="Write a log for ShiViz.")
@click.option("--heartbeats", default="hidden", show_default=True, help="hidden, dimmed or shown.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with plain ASCII only.")
@click.option("--width", type=int, default=None, help="Columns. [default: the terminal's]")
@click.option("--json", "as_json", is_flag=True, help="What the trace holds, as one JSON object.")
def trace(
    file: Path,
    svg: Path | None,
    shiviz: Path | None,
    heartbeats: str,
    plain: bool,
    width: int | None,
    as_json: bool,
) -> None:
    """Check the trace FILE (seal and all) and show it: as text, as SVG, or for ShiViz.

    \b
    hustings sim bully -n 5 --scenario leader-crash --trace run.jsonl
    hustings trace run.jsonl
    hustings trace run.jsonl --svg run.svg --shiviz run.log
    """
    read = read_trace(file)
    options = Options(heartbeats=_heartbeats(heartbeats))
    written = []
    for path, draw in ((svg, draw_svg), (shiviz, draw_shiviz)):
        if path is not None:
            drawing = draw(read, options)
            _mention(drawing)
            write_atomically(path, drawing.text)
            written.append(path)
    if as_json:
        show_json(_summary(read, written))
    elif written:
        for path in written:
            click.echo(f"wrote {path}")
    else:
        _show(read, options, width, plain)


def _show(read: Trace, options: Options, width: int | None, plain: bool) -> None:
    if width is None:
        width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    drawing = draw_text(read, options, width=width, plain=plain or not encoding.startswith("utf"))
    click.echo(drawing.text, nl=False)


def _heartbeats(name: str) -> Heartbeats:
    try:
        return Heartbeats(name)
    except ValueError:
        names = ", ".join(each.value for each in Heartbeats)
        raise BadInput(f"--heartbeats must be one of {names}, not {name!r}") from None


def _mention(drawing: Drawing) -> None:
    for sentence in drawing.left_out:
        warn(f"left out: {sentence}")


def _summary(read: Trace, written: list[Path]) -> dict[str, object]:
    header, footer = read.header, read.footer
    return {
        "protocol": header.protocol,
        "members": header.members,
        "seed": header.seed,
        "settings": header.settings,
        "records": footer.records,
        "ended": footer.ended,
        "time": footer.t,
        "digest": footer.digest,
        "written": [str(path) for path in written],
    }
