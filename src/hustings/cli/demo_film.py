"""`hustings demo --simulated`: a simulated group elects, loses and regains its leader."""

from __future__ import annotations

import time

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hustings.cli.output import show_json, warn
from hustings.core.messages import Role
from hustings.demo.simulated.film import Film, FilmFrame, FilmPace
from hustings.demo.simulated.picture import Row, draw, plain
from hustings.demo.simulated.story import ONE, TWO, Play, play
from hustings.demo.simulated.telling import COLUMNS, note, row, title, to_json, transcript
from hustings.protocols.registry import find

PICTURES = 20  # a second
SMALLEST = (64, 18)  # columns and rows below which no picture is drawn
TICKER = 30  # columns
AROUND = 8  # rows around the picture

COLOURS = ("green", "cyan", "bright_blue", "bright_green", "bright_cyan", "blue")
STYLES = {
    "word": "default",
    "doubt": "bold yellow",
    "electing": "bold yellow",
    "crashed": "red",
    "paused": "bold white on grey30",
    "gone": "dim",
    "cut": "red",
    "lost": "bold red",
    "trail": "dim",
    Role.ELECTION.value: "bold yellow",
    Role.ANSWER.value: "bold bright_white",
    Role.COORDINATOR.value: "bold bright_magenta",
    Role.OTHER.value: "bold bright_red",
}
VERDICTS = {ONE: "green", TWO: "bold yellow"}


def film_demo(protocol: str, members: int, seed: int, seconds: float, no_tty: bool) -> None:
    """Play the simulated group, and show it in the way that this terminal supports."""
    console = Console(highlight=False)
    story = play(find(protocol), members, seed)
    film = Film(story)
    if no_tty or console.is_dumb_terminal or not console.file.isatty():
        tell(console, story)
    elif console.width < SMALLEST[0] or console.height < SMALLEST[1]:
        warn(f"a terminal of {SMALLEST[0]} columns and {SMALLEST[1]} rows would show it live")
        tell(console, story)
    else:
        show(console, film, seconds)
    summary(console, film)


def film_json(protocol: str, members: int, seed: int) -> None:
    """The same for a script."""
    show_json(to_json(play(find(protocol), members, seed)))


def tell(console: Console, story: Play) -> None:
    """Print plain lines."""
    for line in transcript(story):
        console.print(line, soft_wrap=True, markup=False)


def show(console: Console, film: Film, seconds: float) -> None:
    """Show the pictures at their pace, on a screen of their own."""
    pace = FilmPace(film, seconds)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        began = time.monotonic()
        elapsed = 0.0
        while elapsed < seconds:
            live.update(screen(console, film, film.at(pace.at(elapsed))), refresh=True)
            time.sleep(1.0 / PICTURES)
            elapsed = time.monotonic() - began


def summary(console: Console, film: Film) -> None:
    """The result of each act."""
    table = Table(
        title=f"hustings demo: {title(film.play)}",
        title_justify="left",
        caption=note(film.play, film.letters),
        caption_justify="left",
        box=box.ASCII if console.options.ascii_only else box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for column in COLUMNS:
        table.add_column(column, justify="right" if column == "time" else "left", overflow="fold")
    for act in film.play.acts:
        *cells, verdict = row(act, film.letters)
        table.add_row(*cells, Text(verdict, style=VERDICTS.get(verdict, "bold red")))
    console.print(table)


# One screen


def screen(console: Console, film: Film, frame: FilmFrame) -> Group:
    """Title, acts, picture beside the ticker, sentence, counts."""
    width, height = console.width, console.height - AROUND
    wide = width - TICKER - 1
    picture = [_text(pieces) for pieces in draw(film, frame, wide, height)]
    recent = _ticker(film, frame, height)
    body = [Text.assemble(left, " ", right) for left, right in zip(picture, recent, strict=True)]
    caption = Text(frame.caption, style="bold")
    lines = list(caption.wrap(console, width - 2))[:3]
    lines += [Text()] * (3 - len(lines))
    everything = [
        _heading(film, frame, width),
        _acts(film, frame),
        Text(),
        *body,
        _rule(frame, width),
        *(Text.assemble(" ", line) for line in lines),
        _counts(film, frame),
    ]
    for line in everything:
        line.no_wrap = True
        line.truncate(width)
        if console.options.ascii_only:
            line.plain = plain(line.plain)
    return Group(*everything)


def _text(pieces: Row) -> Text:
    return Text.assemble(*((text, style_of(name)) for text, name in pieces))


def style_of(name: str) -> str:
    """What a style's name means on this terminal."""
    kind, _, place = name.partition(" ")
    if place:
        colour = COLOURS[int(place) % len(COLOURS)]
        return f"bold reverse {colour}" if kind == "leader" else colour
    return STYLES.get(name, "")


def _heading(film: Film, frame: FilmFrame, width: int) -> Text:
    left = Text.assemble((" hustings demo ", "bold reverse"), f"  {title(film.play)}")
    clock = f"time {frame.t:6.1f} "
    left.append(" " * max(1, width - left.cell_len - len(clock)))
    return left.append(clock, style="bold")


def _acts(film: Film, frame: FilmFrame) -> Text:
    strip = Text(" ")
    for place, act in enumerate(film.play.acts):
        if place < frame.act:
            strip.append(f"\N{HEAVY CHECK MARK}{act.name}  ", style="dim")
        elif place == frame.act:
            strip.append(f"\N{BLACK RIGHT-POINTING TRIANGLE}{act.name}", style="bold reverse")
            strip.append("  ")
        else:
            strip.append(f" {act.name}  ")
    return strip


def _rule(frame: FilmFrame, width: int) -> Text:
    """A line; while there are two leaders, it says this."""
    if len(frame.leading) < 2:
        return Text("\N{BOX DRAWINGS LIGHT HORIZONTAL}" * width, style="dim")
    leaders = " and ".join(str(member) for member in frame.leading)
    sign = f" {len(frame.leading)} LEADERS: {leaders} "
    line = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * max(0, width - len(sign) - 2)
    return Text.assemble(
        ("\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 2, "dim"), (sign, "bold white on red"), (line, "dim")
    )


def _ticker(film: Film, frame: FilmFrame, height: int) -> list[Text]:
    """The latest events, the newest at the bottom."""
    bar = "\N{BOX DRAWINGS LIGHT VERTICAL} "
    lines = [Text().append(bar, style="dim") for _ in range(height)]
    for text, line in zip(lines[::-1], reversed(frame.lines), strict=False):
        text.append(f"{line.t:5.1f} ", style="dim")
        if line.kind and line.role is not None:
            text.append(f"{line.kind} ", style=STYLES[line.role.value])
            text.append(line.text, style="default")
        else:
            text.append(line.text, style="italic")
        text.truncate(TICKER, overflow="ellipsis")
    return lines


def _counts(film: Film, frame: FilmFrame) -> Text:
    """This act's messages by kind, with the letter of each kind; and heartbeats."""
    text = Text(" ")
    for kind, letter in film.letters.items():
        count = frame.counts.get(kind, 0)
        style = STYLES[film.roles[kind].value]
        text.append(letter, style=f"{style} reverse").append(f" {kind} {count}  ", style=style)
    return text.append(f"heartbeats {frame.heartbeats}", style="dim")
