"""The picture of a group: members on a circle, messages between them, a cut if there is one.

The picture is a grid of characters, each with the name of a style; the terminal decides what a
style looks like. Every state also has a mark or a word of its own, so nothing depends on colour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby

from hustings.core.choice import MemberId
from hustings.demo.simulated.film import Film, FilmFrame, Moving, SeenMember
from hustings.sim.member import Status

LABEL = 9  # columns of a member that has two rows
STRETCH = 2.5  # columns that look as long as one row, with some room between labels

Point = tuple[float, float]  # column, row
Row = list[tuple[str, str]]  # pieces of text, each with the name of its style

_PLAIN = str.maketrans(
    {
        "\N{BLACK CHESS QUEEN}": "*",
        "\N{RIGHTWARDS ARROW}": ">",
        "\N{MIDDLE DOT}": ".",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{DOUBLE VERTICAL LINE}": "=",
        "\N{BLACK SQUARE}": "#",
        "\N{BOX DRAWINGS LIGHT HORIZONTAL}": "-",
        "\N{BOX DRAWINGS LIGHT VERTICAL}": "|",
        "\N{HEAVY CHECK MARK}": "+",
        "\N{HORIZONTAL ELLIPSIS}": "~",
        "\N{BLACK RIGHT-POINTING TRIANGLE}": ">",
    }
)


def plain(text: str) -> str:
    """The same text for a terminal that has only ASCII."""
    return text.translate(_PLAIN)


class Canvas:
    """A grid of characters with styles; characters outside the grid are not drawn."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells = [[(" ", "")] * width for _ in range(height)]

    def put(self, x: float, y: float, char: str, style: str) -> None:
        """One character at the nearest cell."""
        column, row = round(x), round(y)
        if 0 <= column < self.width and 0 <= row < self.height:
            self._cells[row][column] = (char, style)

    def write(self, x: float, y: float, text: str, style: str) -> None:
        """Write a text around its middle, moved inwards if it would leave the grid."""
        start = min(max(0, round(x - (len(text) - 1) / 2)), max(0, self.width - len(text)))
        for place, char in enumerate(text):
            self.put(start + place, y, char, style)

    def rows(self) -> list[Row]:
        """The rows, with neighbours of one style drawn together."""
        return [
            [
                ("".join(char for char, _ in cells), style)
                for style, cells in groupby(row, key=lambda cell: cell[1])
            ]
            for row in self._cells
        ]


@dataclass(frozen=True, slots=True)
class PicturePlaces:
    """Where members stand."""

    points: dict[MemberId, Point]
    roomy: bool  # whether each member has two rows


@lru_cache(maxsize=8)
def places(members: int, width: int, height: int) -> PicturePlaces:
    """Members clockwise by id, the first on top: on an ellipse if two rows fit, or a rectangle."""
    middle = ((width - 1) / 2, (height - 2) / 2)
    across, down = (width - LABEL - 1) / 2, (height - 2) / 2
    points: dict[MemberId, Point] = {}
    for place in range(members):
        angle = 2 * math.pi * place / members
        points[place + 1] = (
            middle[0] + across * math.sin(angle),
            middle[1] - down * math.cos(angle),
        )
    if all(_apart(one, other) for one, other in combinations(points.values(), 2)):
        return PicturePlaces(points, roomy=True)
    return PicturePlaces(_all_round(members, width - 5, height - 1), roomy=False)


def _apart(one: Point, other: Point) -> bool:
    """Whether two labels of two rows both have room."""
    columns = abs(round(one[0]) - round(other[0]))
    return columns > LABEL or abs(round(one[1]) - round(other[1])) > 2


def _all_round(members: int, across: int, down: int) -> dict[MemberId, Point]:
    """At equal distances along the edge of a rectangle, from the middle of its top."""
    top = across / STRETCH
    around = 2 * (top + down)
    points = {}
    for place in range(members):
        way = (top / 2 + around * place / members) % around
        if way < top:
            x, y = way * STRETCH, 0.0
        elif way < top + down:
            x, y = float(across), way - top
        elif way < 2 * top + down:
            x, y = across - (way - top - down) * STRETCH, float(down)
        else:
            x, y = 0.0, around - way
        points[place + 1] = (x + 2, y)
    return points


def draw(film: Film, frame: FilmFrame, width: int, height: int) -> list[Row]:
    """One picture as rows of styled text."""
    canvas = Canvas(width, height)
    where = places(len(frame.members), width, height)
    if frame.sides:
        _draw_cut(canvas, frame, where)
    if where.roomy:
        for sender, to, way in frame.beating:
            point = _between(where.points[sender], where.points[to], way)
            canvas.put(*point, "\N{MIDDLE DOT}", "trail")
    for moving in frame.moving:
        _draw_message(canvas, moving, where)
    for member in frame.members:
        _draw_member(canvas, film, frame, member, where)
    return canvas.rows()


def _between(start: Point, end: Point, way: float) -> Point:
    return start[0] + (end[0] - start[0]) * way, start[1] + (end[1] - start[1]) * way


def _draw_cut(canvas: Canvas, frame: FilmFrame, where: PicturePlaces) -> None:
    """A line between the two gaps in the circle."""
    ids = [member.id for member in frame.members]
    first_side = frame.sides[0]
    gaps = [
        _between(where.points[one], where.points[other], 0.5)
        for one, other in zip(ids, [*ids[1:], ids[0]], strict=True)
        if (one in first_side) != (other in first_side)
    ]
    start, end = gaps[0], gaps[-1]
    steps = max(1, round(max(abs(end[0] - start[0]) / 2, abs(end[1] - start[1]))))
    for step in range(steps + 1):
        canvas.put(*_between(start, end, step / steps), "\N{BLACK SQUARE}", "cut")


def _draw_message(canvas: Canvas, moving: Moving, where: PicturePlaces) -> None:
    start, end = where.points[moving.sender], where.points[moving.to]
    if moving.lost:
        canvas.put(*_between(start, end, moving.way), "\N{MULTIPLICATION SIGN}", "lost")
        return
    for behind in (0.12, 0.06):
        if moving.way > behind:
            canvas.put(*_between(start, end, moving.way - behind), "\N{MIDDLE DOT}", "trail")
    canvas.put(*_between(start, end, moving.way), moving.letter, moving.role.value)


def _draw_member(
    canvas: Canvas, film: Film, frame: FilmFrame, member: SeenMember, where: PicturePlaces
) -> None:
    x, y = where.points[member.id]
    mark, word, style = look(member)
    if member.leader is not None and style in ("leader", "follower"):
        style = f"{style} {film.colours.get(member.leader, 0)}"
    if where.roomy:
        canvas.write(x, y, f"[{mark}{member.id}]", style)
        canvas.write(x, round(y) + 1, word, "doubt" if member.doubts else "word")
        return
    if mark == " " and member.leader in frame.leading[1:]:
        mark = ":"  # no room for a word: it follows another leader than most do
    canvas.write(x, y, f"{mark}{member.id}", "doubt" if member.doubts else style)


def look(member: SeenMember) -> tuple[str, str, str]:
    """A member's mark, the word below it, and its style."""
    match member.status:
        case Status.OUT:
            return "\N{MIDDLE DOT}", "not yet", "gone"
        case Status.CRASHED | Status.LEFT:
            return "\N{MULTIPLICATION SIGN}", member.status.value, "crashed"
        case Status.PAUSED:
            return "\N{DOUBLE VERTICAL LINE}", "paused", "paused"
    if member.leads:
        return "\N{BLACK CHESS QUEEN}", f"term {member.term}", "leader"
    if member.leader is not None:
        doubt = "?" if member.doubts else ""
        return " ", f"\N{RIGHTWARDS ARROW} {member.leader}{doubt}", "follower"
    if member.electing:
        return "?", "electing", "electing"
    return " ", "no leader", "electing"
