"""The space-time diagram as a picture: SVG, time to the right, one line per member.

This module writes valid XML with no script, no font and no link, and with colours for light and
dark pages. Every arrow and mark has its text as a tooltip, so a label that finds no room is not
lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from math import hypot

from hustings.core.messages import Role
from hustings.sim.selection import Drawing, Options, cut, role_of
from hustings.sim.spacetime import Arrow, Fate, Layout, Mark, Reign, Scale, Sort, lay_out
from hustings.sim.trace import Header
from hustings.sim.trace_read import Trace

REIGNS = 8  # colours of leaderships

# One colour per role, the same in all pictures, so that a reader learns it once.
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
    # XML 1.0 does not allow control characters, not even as references.
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
    """Keeps labels from covering each other: the first label gets the place."""

    CELL = 100.0
    HIGH = 11.0

    def __init__(self, width: float) -> None:
        self._width = width  # of the picture
        self._taken: dict[int, list[tuple[float, float, float, float]]] = {}

    def find(
        self, text: str, places: list[tuple[float, float]], *, centred: bool
    ) -> tuple[float, float] | None:
        """The first free place for a text's baseline, which is then taken; None without room."""
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


_STEP = 120.0  # pixels for one usual message delay, at least
_WIDEST = 30_000.0  # pixels; a longer run is drawn smaller
_NARROWEST = 720.0
_TOP = 74.0
_MARGIN = 24.0
_LEGEND_LINE = 20.0
_TICKS_APART = 24.0  # between two numbers on the axis

_MANY = 200  # if there are more arrows than this, they are drawn thinner
_FAN = 3  # this many messages of one kind that leave or land together share a label
_SHARES = {  # of an arrow, where its label may lie
    "out": (0.3, 0.4, 0.2, 0.55),
    "into": (0.7, 0.6, 0.8, 0.45),
    "alone": (0.5, 0.35, 0.65, 0.22, 0.78),
}

_QUIET = (Sort.STARTED, Sort.FOLLOWS, Sort.NO_LEADER)  # too many for labels: see the legend
_NAMES = {
    Sort.TIMER: "timer",
    Sort.TOLD: "told from outside",
    Sort.LEADS: "declares itself leader",
    Sort.FOLLOWS: "accepts a leader",
    Sort.NO_LEADER: "declares no leader",
    Sort.GAVE_UP: "gives up",
    Sort.RESTARTED: "restarts",
    Sort.CRASHED: "crashes",
    Sort.PAUSED: "pauses",
    Sort.RESUMED: "goes on",
    Sort.LEFT: "leaves",
}


def draw_svg(trace: Trace, options: Options | None = None) -> Drawing:
    """The space-time diagram of a trace as an SVG document."""
    layout = lay_out(trace, options)
    picture = _Picture(trace, layout, options or Options())
    return Drawing(picture.draw(), tuple(layout.left_out))


class _Picture:
    """One picture: where things are, and the parts drawn so far."""

    def __init__(self, trace: Trace, layout: Layout, options: Options) -> None:
        self._trace = trace
        self._options = options
        self._layout = layout
        self._scale = Scale(layout)
        widest = max(len(str(member)) for member in layout.members)
        self._left = _MARGIN + 7.0 * (widest + len("member ")) + 28
        self._pitch = max(14.0, min(56.0, 800.0 / len(layout.members)))
        # A high diagram needs wide steps, or its arrows are too steep to be told apart.
        step = max(_STEP, 0.3 * self._pitch * len(layout.members))
        self._step = min(step, _WIDEST / max(self._scale.length, 1.0))
        self._first = _TOP + 14 * len(layout.left_out) + 52  # the first member's line
        self._row = {
            member: self._first + place * self._pitch for place, member in enumerate(layout.members)
        }
        self._foot = self._first + (len(layout.members) - 0.4) * self._pitch
        self._right = self._left + self._scale.length * self._step
        self._width = max(_NARROWEST, self._right + 110)
        reigns = dict.fromkeys((reign.leader, reign.term) for reign in self._in_order())
        self._reigns = {reign: place for place, reign in enumerate(reigns)}
        self._labels = Labels(self._width)
        self._parts: list[str] = []
        self._texts: list[str] = []  # labels lie above everything else

    def _in_order(self) -> list[Reign]:
        return sorted(self._layout.reigns, key=lambda reign: (reign.begin, reign.term))

    def _x(self, t: float) -> float:
        return self._left + self._scale.place(t) * self._step

    def _inside(self, t: float) -> float:
        """The place of an instant, or of the nearer end of the drawn part."""
        return self._x(min(max(t, self._layout.begin), self._layout.end))

    # The whole

    def draw(self) -> str:
        self._frame()
        self._cuts()
        self._axis()
        for reign in self._in_order():
            self._reign(reign)
        self._member_lines()
        for mark in self._layout.marks:
            self._reserve(mark)
        for arrow in self._layout.arrows:
            self._arrow(arrow)
        for mark in self._layout.marks:
            self._mark(mark)
        self._name_arrows()
        self._parts += self._texts
        height = self._legend()
        header, layout = self._trace.header, self._layout
        title = escaped(f"{cut(header.protocol)}: space-time diagram of one run")
        about = escaped(
            f"{len(layout.members)} members, t = {layout.begin:g} to {layout.end:g}, "
            f"{len(layout.arrows)} arrows; time runs to the right."
        )
        size = f'width="{num(self._width)}" height="{num(height)}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
                f'viewBox="0 0 {num(self._width)} {num(height)}" role="img" '
                'aria-labelledby="title about">',
                f'<title id="title">{title}</title>',
                f'<desc id="about">{about}</desc>',
                f"<style>{STYLE}</style>",
                '<rect class="page" width="100%" height="100%"/>',
                *self._parts,
                "</svg>",
                "",
            ]
        )

    def _frame(self) -> None:
        header, footer = self._trace.header, self._trace.footer
        scenario = header.settings.get("scenario")
        title = f"{cut(header.protocol)}, {len(header.members):,} members"
        if isinstance(scenario, str):
            title += f", {cut(scenario)}"
        self._text(_MARGIN, 32, title, "head")
        sent = Counter(arrow.fate for arrow in self._layout.arrows)
        told = (
            f"{_seed(header)} \N{MIDDLE DOT} ended: {cut(footer.ended)} at t = {footer.t:g} "
            f"\N{MIDDLE DOT} arrows: {sent[Fate.ARRIVED]:,} arrived, {sent[Fate.LOST]:,} lost"
        )
        self._text(_MARGIN, 50, told, "small")
        self._text(_MARGIN, 64, f"digest {cut(footer.digest)}", "small")
        for place, sentence in enumerate(self._layout.left_out):
            self._text(_MARGIN, 80 + 14 * place, sentence, "small warn")

    def _cuts(self) -> None:
        top, bottom = self._first - 0.6 * self._pitch, self._foot
        for place, one in enumerate(self._layout.cuts):
            x0, x1 = self._inside(one.begin), self._inside(one.end)
            box = f'x="{num(x0)}" y="{num(top)}" width="{num(max(x1 - x0, 1))}"'
            self._parts.append(
                f'<rect class="cut" {box} height="{num(bottom - top)}">'
                f"<title>{escaped(one.text)}</title></rect>"
            )
            self._text(x0 + 4, bottom + 11 + 11 * (place % 2), one.text, "small cutname")

    def _axis(self) -> None:
        y = self._first - 0.6 * self._pitch - 6
        line = f'y1="{num(y + 4)}" y2="{num(self._foot)}"'
        end = 0.0  # of the last number that was written
        for t in self._scale.instants:
            x, text = self._x(t), f"{t:.4g}"
            half = SMALL * len(text) / 2
            if x - half >= end + _TICKS_APART:
                self._text(x, y, text, "small middle")
                self._parts.append(f'<line class="grid" x1="{num(x)}" x2="{num(x)}" {line}/>')
                end = x + half
        for begin, end in self._scale.breaks:
            x = (self._x(begin) + self._x(end)) / 2
            self._parts.append(
                f'<path class="break" d="M{num(x - 4)} {num(y + 8)}l3 -10m2 10l3 -10">'
                f"<title>shortened: nothing happens from {begin:g} to {end:g}</title></path>"
            )
        self._text(max(self._right, end) + 20, y, "time", "small")

    # Lines

    def _member_lines(self) -> None:
        for member, row in self._row.items():
            self._text(_MARGIN, row + 4, f"member {member}", "name")
        for life in self._layout.lives:
            if life.status in ("out", "left"):
                continue
            y = num(self._row[life.member])
            x0, x1 = num(self._inside(life.begin)), num(self._inside(life.end))
            self._parts.append(
                f'<line class="life {life.status}" x1="{x0}" x2="{x1}" y1="{y}" y2="{y}"/>'
            )

    def _reign(self, reign: Reign) -> None:
        x0, x1 = self._inside(reign.begin), self._inside(reign.end)
        own = reign.leader == reign.member
        height = min(18.0 if own else 7.0, self._pitch - 4)
        y = self._row[reign.member] - height / 2
        colour = self._reigns[reign.leader, reign.term] % REIGNS
        words = f"{reign.member}: leader {reign.leader}, term {reign.term}"
        self._parts.append(
            f'<rect class="r{colour}" x="{num(x0)}" y="{num(y)}" '
            f'width="{num(max(x1 - x0, 1))}" height="{num(height)}" rx="3">'
            f"<title>{escaped(words)}</title></rect>"
        )

    # Arrows

    def _tip(self, arrow: Arrow) -> tuple[float, float]:
        """Where an arrow ends; if that is unknown, where it ends after one usual delay."""
        x0, y0 = self._x(arrow.left), self._row[arrow.sender]
        if arrow.receiver is None:
            return x0 + 0.4 * self._step, y0 - 0.6 * self._pitch
        y1 = self._row[arrow.receiver]
        known = arrow.fate is Fate.ARRIVED or (arrow.fate is Fate.LOST and arrow.ended > arrow.left)
        return (self._x(arrow.ended) if known else x0 + self._step), y1

    def _arrow(self, arrow: Arrow) -> None:
        x0, y0 = self._x(arrow.left), self._row[arrow.sender]
        x1, y1 = self._tip(arrow)
        length = hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        if arrow.fate is Fate.ARRIVED:
            shape = _arrow_path(x0, y0, x1, y1, dx, dy, arrow.sender == arrow.receiver)
        else:
            reached = arrow.fate is Fate.LOST and arrow.ended > arrow.left
            part = length - 9 if reached else min(0.45 * length, 60.0)
            shape = _stub_path(x0, y0, x0 + part * dx, y0 + part * dy, arrow.fate)
        role = role_of(arrow.kind, self._options).value
        thin = " many" if len(self._layout.arrows) > _MANY else ""
        extra = " dim" if arrow.dim else thin
        self._parts.append(
            f'<g class="a {role}{extra}">{shape}<title>{escaped(_story(arrow))}</title></g>'
        )

    def _name_arrows(self) -> None:
        """One label for a burst of messages of one kind, otherwise one each, if there is room."""
        fans: dict[tuple[object, ...], list[Arrow]] = {}
        drawn = [arrow for arrow in self._layout.arrows if not arrow.dim]
        out = Counter((arrow.kind, arrow.sender, arrow.left) for arrow in drawn)
        into = Counter((arrow.kind, arrow.receiver, arrow.ended) for arrow in drawn)
        for arrow in drawn:
            leaving = (arrow.kind, arrow.sender, arrow.left)
            landing = (arrow.kind, arrow.receiver, arrow.ended)
            if out[leaving] >= _FAN:
                fans.setdefault(("out", *leaving), []).append(arrow)
            elif into[landing] >= _FAN:
                fans.setdefault(("into", *landing), []).append(arrow)
            else:
                fans["alone", arrow.number, arrow.receiver, arrow.ended] = [arrow]
        for (way, *_), fan in fans.items():
            self._name(fan, _SHARES[str(way)])

    def _name(self, fan: list[Arrow], shares: tuple[float, ...]) -> None:
        text = fan[0].kind
        if len(fan) > 1:
            text += f" \N{MULTIPLICATION SIGN}{len(fan)}"
        places = []
        for arrow in dict.fromkeys((fan[len(fan) // 2], fan[0], fan[-1])):
            x0, y0 = self._x(arrow.left), self._row[arrow.sender]
            x1, y1 = self._tip(arrow)
            drawn = 1.0 if arrow.fate is Fate.ARRIVED else 0.6
            for share in shares:
                part = share * drawn
                places.append((x0 + part * (x1 - x0), y0 + part * (y1 - y0) + 3.5))
        found = self._labels.find(text, places, centred=True)
        if found:
            role = role_of(fan[0].kind, self._options).value
            self._label(found[0], found[1], text, f"label middle {role}")

    # Marks

    def _reserve(self, mark: Mark) -> None:
        if mark.sort not in (*_QUIET, Sort.TIMER):
            self._labels.take(self._x(mark.t) - 6, self._row[mark.member] - 6, 12, 12)

    def _mark(self, mark: Mark) -> None:
        x, y = self._x(mark.t), self._row[mark.member]
        words = f"t = {mark.t:g}, member {mark.member}: {_NAMES.get(mark.sort, 'starts')}"
        words += f" ({mark.text})"
        dim = " dim" if mark.dim else ""
        shape = _mark_path(mark.sort, x, y)
        kind = mark.sort.name.lower().replace("_", "-")
        self._parts.append(f'<g class="m {kind}{dim}">{shape}<title>{escaped(words)}</title></g>')
        if mark.sort not in _QUIET and not mark.dim:
            high, low = y - 10, y + 17
            places = [(x + 5, high), (x + 5, low), (x + 5, high - 10), (x + 5, low + 10)]
            places = places if self._pitch >= 24 else places[:2]
            found = self._labels.find(mark.text, places, centred=False)
            if found:
                self._label(found[0], found[1], mark.text, f"label {kind}")

    # Text and legend

    def _text(self, x: float, y: float, text: str, kind: str) -> None:
        self._parts.append(f'<text x="{num(x)}" y="{num(y)}" class="{kind}">{escaped(text)}</text>')

    def _label(self, x: float, y: float, text: str, kind: str) -> None:
        """A text with an outline in the page's colour, so that lines behind do not hide it."""
        at = f'x="{num(x)}" y="{num(y)}"'
        halo = "halo middle" if "middle" in kind else "halo"
        self._texts.append(f'<text {at} class="label {halo}">{escaped(text)}</text>')
        self._texts.append(f'<text {at} class="{kind}">{escaped(text)}</text>')

    def _legend(self) -> float:
        """The legend below the diagram; where it ends."""
        x, y = _MARGIN, self._foot + 44
        for shape, text in self._legend_items():
            width = 34 + 6.4 * len(text) + 18
            if x > _MARGIN and x + width > min(self._width, 1400.0) - _MARGIN:
                x, y = _MARGIN, y + _LEGEND_LINE
            self._parts.append(f'<g transform="translate({num(x)} {num(y)})">{shape}</g>')
            self._text(x + 34, y + 4, text, "small")
            x += width
        return y + _MARGIN

    def _legend_items(self) -> list[tuple[str, str]]:
        layout = self._layout
        items = []
        counts = Counter(arrow.kind for arrow in layout.arrows)
        for name, count in counts.items():
            shape = _arrow_path(2, 0, 28, 0, 1, 0, False)
            role = role_of(name, self._options).value
            items.append((f'<g class="a {role}">{shape}</g>', f"{name} ({count:,})"))
        fates = Counter(arrow.fate for arrow in layout.arrows)
        for fate, words in ((Fate.LOST, "lost"), (Fate.UNKNOWN, "still under way")):
            if fates[fate]:
                items.append((f'<g class="a any">{_stub_path(2, 0, 22, 0, fate)}</g>', words))
        sorts = Counter(mark.sort for mark in layout.marks)
        for sort, words in _NAMES.items():
            if sorts[sort]:
                kind = sort.name.lower().replace("_", "-")
                items.append((f'<g class="m {kind}">{_mark_path(sort, 15, 0)}</g>', words))
        for (leader, term), place in list(self._reigns.items())[:12]:
            box = '<rect x="2" y="-6" width="26" height="12" rx="3" '
            items.append((f'{box}class="r{place % REIGNS}"/>', f"leader {leader}, term {term}"))
        if len(self._reigns) > 12:
            items.append(("", f"and {len(self._reigns) - 12} later leaderships"))
        if layout.cuts:
            items.append(('<rect class="cut" x="2" y="-6" width="26" height="12"/>', "links cut"))
        return items


# --- shapes ---------------------------------------------------------------------------------------


_STAR = "m0 -8l2.4 5.2l5.6 .6l-4.2 3.8l1.2 5.6l-5 -2.9l-5 2.9l1.2 -5.6l-4.2 -3.8l5.6 -.6z"


def _arrow_path(
    x0: float, y0: float, x1: float, y1: float, dx: float, dy: float, loop: bool
) -> str:
    """A line with a head; for a message to the sender itself, a bow above its line."""
    if loop:
        over = f"C{num(x0)} {num(y0 - 22)} {num(x1 + 2)} {num(y1 - 22)} {num(x1)} {num(y1)}"
        return f'<path class="bow" d="M{num(x0)} {num(y0)}{over}"/>'
    tip = (x1 - 2 * dx, y1 - 2 * dy)
    back = (tip[0] - 8 * dx, tip[1] - 8 * dy)
    left = (back[0] - 3 * dy, back[1] + 3 * dx)
    right = (back[0] + 3 * dy, back[1] - 3 * dx)
    head = "L".join(f"{num(x)} {num(y)}" for x, y in (tip, left, right))
    return (
        f'<path d="M{num(x0)} {num(y0)}L{num(back[0])} {num(back[1])}"/>'
        f'<path class="tip" d="M{head}Z"/>'
    )


def _stub_path(x0: float, y0: float, x1: float, y1: float, fate: Fate) -> str:
    """A line that ends on the way: with a cross, or open."""
    line = f'<path class="stub" d="M{num(x0)} {num(y0)}L{num(x1)} {num(y1)}"/>'
    if fate is Fate.LOST:
        return line + f'<path class="cross" d="M{num(x1 - 4)} {num(y1 - 4)}l8 8m0 -8l-8 8"/>'
    return line + f'<circle class="open" cx="{num(x1)}" cy="{num(y1)}" r="2.5"/>'


def _mark_path(sort: Sort, x: float, y: float) -> str:
    at = f"M{num(x)} {num(y)}"
    match sort:
        case Sort.TIMER:
            d = f"{at}m0 -6v12"
        case Sort.TOLD:
            d = f"{at}m0 -5l5 5l-5 5l-5 -5z"
        case Sort.LEADS:
            d = f"{at}{_STAR}"
        case Sort.CRASHED:
            d = f"{at}m-6 -6l12 12m0 -12l-12 12"
        case Sort.PAUSED:
            d = f"{at}m-2.5 -6v12m5 -12v12"
        case Sort.RESTARTED | Sort.RESUMED:
            d = f"{at}m-4 -6l9 6l-9 6z"
        case Sort.LEFT | Sort.GAVE_UP:
            d = f"{at}m-4.5 -4.5h9v9h-9z"
        case Sort.STARTED:
            d = f"{at}m0 -4v8"
        case Sort.FOLLOWS | Sort.NO_LEADER:
            d = f"{at}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z"
    return f'<path d="{d}"/>'


def _seed(header: Header) -> str:
    """The seed that the user typed and the number of the run, or else the world's own seed."""
    typed, run = header.settings.get("experiment_seed"), header.settings.get("run")
    if isinstance(typed, int) and isinstance(run, int):
        return f"seed {typed}, run {run}"
    return f"seed {header.seed}"


def _story(arrow: Arrow) -> str:
    to = "all" if arrow.receiver is None else str(arrow.receiver)
    story = f"{arrow.text}, {arrow.sender} to {to}, sent at t = {arrow.left:g}"
    if arrow.fate is Fate.ARRIVED:
        return f"{story}, received at {arrow.ended:g}"
    return f"{story}, lost at {arrow.ended:g}: {arrow.why}" if arrow.fate is Fate.LOST else story
