"""`hustings demo`: draws the group of real processes, or describes it in plain lines."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import click
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hustings.cli.demo_film import COLOURS, SMALLEST
from hustings.cli.output import show_json, warn
from hustings.demo.live.acts import play
from hustings.demo.live.measuring import ProcessState, Sight
from hustings.demo.live.scene import NAMES, LivePlan, LiveScene
from hustings.demo.live.telling import COLUMNS, listed, note, row, title, to_json
from hustings.demo.simulated.picture import plain

PICTURES = 8  # a second: drawing takes time from the members
AROUND = 7  # rows around those of the members
CELL = 9  # columns of a member without a row of its own, beside two names
HEADER = f" {'member':8}{'pid':>8}  {'process':10}{'follows':9}{'term':>6}{'knows':>7}  messages/s"
STANDING = {
    ProcessState.STARTING: "yellow",
    ProcessState.RUNNING: "",
    ProcessState.PAUSED: "bold white on grey30",
    ProcessState.KILLED: "bold red",
}
FINE, FAILED = 0, 1


class Stopped(BaseException):
    """A signal asked the demo to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._number = number

    def tell(self) -> int:
        """Print why; return the exit code."""
        click.echo(f"hustings: stopped by {signal.Signals(self._number).name}", err=True)
        return 128 + self._number


def live_demo(plan: LivePlan, no_tty: bool) -> int:
    """Play, and show it in the way that this terminal supports; return the exit code."""
    console = Console(highlight=False)
    lively = not (no_tty or console.is_dumb_terminal or not console.file.isatty())
    if lively and (console.width < SMALLEST[0] or console.height < SMALLEST[1]):
        warn(f"a terminal of {SMALLEST[0]} columns and {SMALLEST[1]} rows would show it live")
        lively = False
    try:
        with stopping():
            scene = show(console, plan) if lively else tell(console, plan)
    except Stopped as stopped:
        return stopped.tell()
    summary(console, scene)
    return verdict(scene)


def live_json(plan: LivePlan) -> int:
    """Play, and print the numbers for a script; return the exit code."""
    try:
        with stopping():
            scene = play(plan, Nobody())
    except Stopped as stopped:
        return stopped.tell()
    show_json(to_json(scene))
    return verdict(scene)


def verdict(scene: LiveScene) -> int:
    """The exit code, with a note if it is not 0."""
    if scene.failure:
        warn(scene.failure)
    return FINE if scene.fine else FAILED


@contextmanager
def stopping() -> Iterator[None]:
    """Let signals that end a program end the demo in good order."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise Stopped(number)

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


# Audiences


class Nobody:
    """Ignores everything."""

    def hear(self, scene: LiveScene) -> None:
        pass

    def look(self, scene: LiveScene) -> None:
        pass


class Reader(Nobody):
    """Prints plain lines."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def hear(self, scene: LiveScene) -> None:
        line = f"{scene.elapsed:7.2f} s  {NAMES[scene.act]:9} {scene.sentence}"
        self._console.print(line, soft_wrap=True, markup=False)


class Viewer(Nobody):
    """Draws a screen."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live
        self._next = 0.0

    def hear(self, scene: LiveScene) -> None:
        self._next = 0.0

    def look(self, scene: LiveScene) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1.0 / PICTURES
            self._live.update(screen(self._console, scene), refresh=True)


def tell(console: Console, plan: LivePlan) -> LiveScene:
    """Print plain lines, as things happen."""
    console.print(f"hustings demo: {title(plan)}", soft_wrap=True, markup=False)
    return play(plan, Reader(console))


def show(console: Console, plan: LivePlan) -> LiveScene:
    """Show pictures, on a screen of their own."""
    # No thread may draw them: the demo forks processes meanwhile.
    with Live(console=console, screen=True, auto_refresh=False) as live:
        return play(plan, Viewer(console, live))


def summary(console: Console, scene: LiveScene) -> None:
    """The measured times."""
    table = Table(
        title=f"hustings demo: {title(scene.plan)}",
        title_justify="left",
        caption=note(scene),
        caption_justify="left",
        box=box.ASCII if console.options.ascii_only else box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for column in COLUMNS:
        number = column in ("term", "noticed", "all agree")
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    for act in scene.acts:
        *cells, last = row(act)
        style = "bold red" if act.agreed is None else "bold green"
        table.add_row(*(Text(cell) for cell in cells), Text(last, style=style))
    console.print(table)


# One screen


def screen(console: Console, scene: LiveScene) -> Group:
    """Title, acts, members, sentence, counts."""
    width = console.width
    sentence = list(Text(scene.sentence, style="bold").wrap(console, width - 2))[:2]
    sentence += [Text()] * (2 - len(sentence))
    everything = [
        _heading(scene, width),
        _acts(scene),
        *_members(scene, width, console.height - AROUND),
        _rule(scene, width),
        *(Text.assemble(" ", line) for line in sentence),
        Text(),
        _counts(scene),
    ]
    for line in everything:
        line.no_wrap = True
        line.truncate(width)
        if console.options.ascii_only:
            line.plain = plain(line.plain)
    return Group(*everything)


def _heading(scene: LiveScene, width: int) -> Text:
    left = Text.assemble((" hustings demo ", "bold reverse"), f"  {title(scene.plan)}")
    clock = f"{scene.elapsed:.1f} s "
    if scene.elapsed <= scene.plan.seconds:
        clock = f"{scene.elapsed:.1f} of {scene.plan.seconds:g} s "
    left.append(" " * max(1, width - left.cell_len - len(clock)))
    return left.append(clock, style="bold")


def _acts(scene: LiveScene) -> Text:
    strip = Text(" ")
    for place, name in enumerate(NAMES):
        if place < len(scene.acts):
            fine = scene.acts[place].agreed is not None
            mark = "\N{HEAVY CHECK MARK}" if fine else "\N{MULTIPLICATION SIGN}"
            strip.append(f"{mark}{name}  ", style="green" if fine else "bold red")
        elif place == scene.act:
            strip.append(f"\N{BLACK RIGHT-POINTING TRIANGLE}{name}", style="bold reverse")
            strip.append("  ")
        else:
            strip.append(f" {name}  ")
    return strip


def _members(scene: LiveScene, width: int, height: int) -> list[Text]:
    """A row for each member; if there are too few rows, several members in each."""
    members = list(scene.board.members.values())
    colours = {sight.name: COLOURS[place % len(COLOURS)] for place, sight in enumerate(members)}
    if scene.plan.members < height:
        lines = [Text(HEADER, style="dim")]
        lines += [_row(scene, sight, colours, width) for sight in members]
    else:
        name = len(str(scene.plan.members)) + 1
        cell = CELL + name + max(name, len("nobody"))
        across = max(1, width // cell)
        down = height - 1
        shown = members[: across * down]
        lines = [Text() for _ in range(min(down, len(shown)))]
        for place, sight in enumerate(shown):
            lines[place % down].append(_cell(scene, sight, colours, cell))
        if len(members) > len(shown):
            lines.append(Text(f" ... and {len(members) - len(shown)} more", style="dim"))
    return lines + [Text() for _ in range(height - len(lines))]


def _row(scene: LiveScene, sight: Sight, colours: dict[str, str], width: int) -> Text:
    style = _style(sight, colours)
    head = f"{_mark(sight)}{sight.name:8}{sight.pid:8}  "
    line = Text(head, style=style).append(f"{_doing(scene, sight):9}", style=style).append(" ")
    if not sight.up:
        return line
    knows = str(sight.knows) if sight.knows else "-"
    line.append(f"{sight.leader or 'nobody':9}{sight.term:6}{knows:>7}", style=style)
    bar = "\N{BLACK SQUARE}" * min(round(sight.rate), max(0, width - line.cell_len - 9))
    return line.append(f"  {sight.rate:5.1f} ", style=style).append(bar, style=f"dim {style}")


def _cell(scene: LiveScene, sight: Sight, colours: dict[str, str], width: int) -> Text:
    if sight.up:
        text = f"\N{RIGHTWARDS ARROW}{sight.leader or 'nobody'} t{sight.term}"
    else:
        text = f" {_doing(scene, sight)}"
    whole = f"{_mark(sight)}{sight.name}{text}"[: width - 1]
    return Text(whole, style=_style(sight, colours)).append(" " * (width - len(whole)))


def _mark(sight: Sight) -> str:
    return "\N{BLACK CHESS QUEEN}" if sight.leads else " "


def _doing(scene: LiveScene, sight: Sight) -> str:
    """The state of its process; in a partition, its side."""
    for place, side in enumerate(scene.board.sides):
        if sight.name in side:
            return f"side {'AB'[place]}"
    return "leads" if sight.leads else sight.standing.value


def _style(sight: Sight, colours: dict[str, str]) -> str:
    """Members that follow the same leader have the same colour."""
    if style := STANDING[sight.standing]:
        return style
    if not sight.leader:
        return "yellow"
    colour = colours.get(sight.leader, "")
    return f"bold reverse {colour}" if sight.leads else colour


def _rule(scene: LiveScene, width: int) -> Text:
    """A line; while there are several leaders, it says this."""
    leading = scene.board.leading()
    line = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    if len(leading) < 2:
        return Text(line * width, style="dim")
    sign = f" {len(leading)} LEADERS: {listed(leading)} "
    rest = line * max(0, width - len(sign) - 2)
    return Text.assemble((line * 2, "dim"), (sign, "bold white on red"), (rest, "dim"))


def _counts(scene: LiveScene) -> Text:
    board = scene.board
    leading = listed(board.leading()) or "nobody"
    return Text.assemble(
        f" {len(board.up())} live  ",
        (f"leader {leading}  ", "bold"),
        f"term {board.term(board.leading())}  ",
        (f"{board.rate():.0f} messages/s, {board.rate_each():.1f} each", "dim"),
    )
