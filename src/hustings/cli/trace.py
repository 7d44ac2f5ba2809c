"""`hustings trace`: check and draw a recorded run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from hustings.cli.options import WholeRange
from hustings.cli.output import show_json, warn
from hustings.core.errors import BadInput
from hustings.core.messages import Role, kind_of
from hustings.protocols.registry import EVERY, find
from hustings.sim.files import AtomicFile, shown
from hustings.sim.selection import Drawing, Heartbeats, Options
from hustings.sim.shiviz import draw_shiviz
from hustings.sim.svg import draw_svg
from hustings.sim.terminal import WIDTH, draw_text
from hustings.sim.trace_read import Trace, read_trace

FILE = click.Path(path_type=Path)
Draw = Callable[[Trace, Options], Drawing]


@click.command()
@click.argument("file", type=FILE)
@click.option("--svg", type=FILE, metavar="OUT", help="Draw a space-time diagram as SVG.")
@click.option("--shiviz", type=FILE, metavar="OUT", help="Write a log for ShiViz.")
@click.option("--heartbeats", default="hidden", show_default=True, help="hidden, dimmed or shown.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with plain ASCII only.")
@click.option(
    "--width", type=WholeRange(min=1), default=None, help="Columns. [default: the terminal's]"
)
@click.option(
    "--protocol",
    metavar="CLASS",
    help="The class that describes the messages, for a protocol of your own: module:Class or "
    "file.py:Class.",
)
@click.option("--json", "as_json", is_flag=True, help="A summary of the trace, as one JSON object.")
def trace(
    file: Path,
    svg: Path | None,
    shiviz: Path | None,
    heartbeats: str,
    plain: bool,
    width: int | None,
    protocol: str | None,
    as_json: bool,
) -> None:
    """Check the trace FILE and its digest, and draw it: as text, as SVG, or for ShiViz.

    \b
    hustings sim bully -n 5 --scenario leader-crash --trace run.jsonl
    hustings trace run.jsonl
    hustings trace run.jsonl --svg run.svg --shiviz run.log
    """
    read = read_trace(file)
    roles = _roles(read.header.protocol, protocol)
    options = Options(heartbeats=_heartbeats(heartbeats), roles=roles)
    written = _write(read, options, file, [(svg, draw_svg), (shiviz, draw_shiviz)])
    if as_json:
        show_json(_summary(read, written))
    elif written:
        for path in written:
            click.echo(f"wrote {path}")
    else:
        _show(read, options, width, plain)


def _roles(recorded: str, given: str | None) -> dict[str, Role]:
    """The role of each kind of message; nothing is known of protocols from other packages.

    A recording may come from anywhere, so no code is loaded because a recording names it.
    """
    if given is None and recorded not in EVERY:
        return {}
    kind = find(recorded if given is None else given)
    if kind.about.name != recorded:
        raise BadInput(f"the trace is of {recorded}, and --protocol names {kind.about.name}")
    return {kind_of(message): message.role for message in kind.handlers}


def _write(
    read: Trace, options: Options, source: Path, wanted: list[tuple[Path | None, Draw]]
) -> list[Path]:
    """Write all files or none: each is opened before any is written."""
    targets = [(path, draw) for path, draw in wanted if path is not None]
    real = [os.path.realpath(path) for path in (source, *(path for path, _ in targets))]
    for place, (path, _) in enumerate(targets, 1):
        if os.path.isfile(path) and real[place] == real[0]:
            raise BadInput(f"cannot write {shown(path)}: it is the trace itself")
        if real[place] in real[1:place]:
            raise BadInput(f"cannot write {shown(path)} twice: name two files")
    drawings = [draw(read, options) for _, draw in targets]
    with ExitStack() as stack:
        outs = [stack.enter_context(AtomicFile(path)) for path, _ in targets]
        for out, drawing in zip(outs, drawings, strict=True):
            out.write(drawing.text.encode())
    for drawing in drawings:
        _mention(drawing)
    return [path for path, _ in targets]


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
