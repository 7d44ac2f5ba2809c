"""What the picture is made of: colours, escaped text, numbers, and room for labels."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from hustings.core.messages import Role

REIGNS = 8  # colours of leaderships

# One colour per role, the same in all pictures, so that a reader learns them once.
_LIGHT_ROLES = {
    Role.ELECTION: "#1f63d1",
    Role.ANSWER: "#18794e",
    Role.COORDINATOR: "#b54708",
    Role.OTHER: "#7c3aed",
    Role.DETECTOR: "#4b5563",
}
_DARK_ROLES = {
    Role.ELECTION: "#79b0ff",
    Role.ANSWER: "#5fd39a",
    Role.COORDINATOR: "#f0a35e",
    Role.OTHER: "#bfa0ff",
    Role.DETECTOR: "#aab4c0",
}
_LIGHT_REIGNS = "#bfdcff #ffd9ad #bcebcb #e0d0ff #ffd0e2 #f1e6a0 #b3e7ea #d9dee5"
_DARK_REIGNS = "#234a7d #6e4413 #1f5c3c #4a3487 #6d2449 #5d5217 #18555c #3b434d"


def _palette(roles: Mapping[Role, str], reigns: str) -> str:
    rules = []
    for role, colour in roles.items():
        name = f".a.{role.value}"
        rules.append(f"{name}{{stroke:{colour}}}{name} .tip{{fill:{colour}}}")
        rules.append(f".label.{role.value}{{fill:{colour}}}")
    for place, colour in enumerate(reigns.split()):
        rules.append(f".r{place}{{fill:{colour}}}")
    return "".join(rules)


def _theme(page: str, ink: str, soft: str, faint: str, alarm: str, gold: str, cut: str) -> str:
    return (
        f".page{{fill:{page}}}.halo{{stroke:{page};fill:{page}}}"
        f"text{{fill:{ink}}}.small,.label.timer{{fill:{soft}}}"
        f".warn,.label.crashed,.label.gave-up{{fill:{alarm}}}"
        f".grid{{stroke:{faint}}}.break{{stroke:{soft}}}"
        f".life{{stroke:{ink}}}.life.crashed{{stroke:{soft}}}"
        f".any{{stroke:{ink}}}.cut{{fill:{cut}}}.cutname{{fill:{soft}}}"
        f".m path{{stroke:{ink};fill:{page}}}.m.timer path{{stroke:{soft}}}"
        f".m.leads path{{fill:{gold};stroke:{ink}}}.m.follows path{{fill:{ink}}}"
        f".m.crashed path{{stroke:{alarm}}}.m.gave-up path{{fill:{alarm};stroke:{alarm}}}"
        f".m.restarted path,.m.resumed path{{fill:{ink}}}"
    )


STYLE = (
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    ".head{font-size:17px;font-weight:600}.small,.label{font-size:10.5px}.name{font-size:12px}"
    ".middle{text-anchor:middle}.label.leads{font-weight:600}"
    ".halo{stroke-width:3.5;stroke-linejoin:round}"
    ".grid{stroke-width:1}.break{fill:none;stroke-width:1.3}"
    ".life{stroke-width:1.3}.life.paused{stroke-dasharray:7 5}"
    ".life.crashed{stroke-width:1;stroke-dasharray:1 5}"
    ".a path{fill:none;stroke-width:1.2}.a .tip{stroke:none}.dim{opacity:.28}"
    ".many path{stroke-width:.9;stroke-opacity:.65}"
    ".a .stub{stroke-dasharray:4 3}.a .cross{stroke-width:1.8}.a .open{fill:none}"
    ".m path{stroke-width:1.2}.m.timer path{stroke-width:1.6}"
    ".m.crashed path{fill:none;stroke-width:2.6}.m.paused path{stroke-width:2.4}"
    + _theme("#ffffff", "#1c2430", "#687383", "#e9ecf0", "#c62828", "#ffc53d", "#f3eadb")
    + _palette(_LIGHT_ROLES, _LIGHT_REIGNS)
    + "@media (prefers-color-scheme:dark){"
    + _theme("#12161c", "#e4e8ee", "#95a0af", "#232a33", "#ff7b72", "#e3a008", "#2c2618")
    + _palette(_DARK_ROLES, _DARK_REIGNS)
    + "}"
)


def escaped(text: str) -> str:
    """Text for an XML document, also inside an attribute.

    >>> escaped("a < b & c" + chr(0))
    'a &lt; b &amp; c\ufffd'
    """
    # XML 1.0 has no place for control characters, however they are written.
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return escape(clean)


def num(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough.

    >>> num(12.0), num(-0.04), num(3.14159)
    ('12', '0', '3.1')
    """
    rounded = round(value, 1)
    return str(int(rounded)) if rounded == int(rounded) else str(rounded)


SMALL = 6.0  # pixels of one character of small text, about


class Labels:
    """Keeps labels from lying upon each other: the first to come has the place."""

    CELL = 100.0
    HIGH = 11.0

    def __init__(self, width: float) -> None:
        self._width = width  # of the picture
        self._taken: dict[int, list[tuple[float, float, float, float]]] = {}

    def find(
        self, text: str, places: list[tuple[float, float]], *, centred: bool
    ) -> tuple[float, float] | None:
        """The first free place for a text's baseline, now taken; none if there is no room."""
        width = SMALL * len(text)
        for x, y in places:
            left = x - width / 2 if centred else x
            if self._free(left, y - 9, width, self.HIGH):
                self.take(left, y - 9, width, self.HIGH)
                return x, y
        return None

    def take(self, x: float, y: float, width: float, height: float) -> None:
        """Mark a box as taken."""
        for cell in self._cells(x, width):
            self._taken.setdefault(cell, []).append((x, y, x + width, y + height))

    def _free(self, x: float, y: float, width: float, height: float) -> bool:
        return x + width <= self._width and not any(
            x < right and left < x + width and y < bottom and top < y + height
            for cell in self._cells(x, width)
            for left, top, right, bottom in self._taken.get(cell, ())
        )

    def _cells(self, x: float, width: float) -> range:
        return range(int(x // self.CELL), int((x + width) // self.CELL) + 1)
