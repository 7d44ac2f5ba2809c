"""The catalogue as a page, written from the code, never by hand."""

from __future__ import annotations

from collections.abc import Sequence

from hustings.core.config import describe
from hustings.core.election import Election
from hustings.core.messages import kind_of
from hustings.protocols.registry import Use, use_of

OPENING = """\
# Protocols

Written by `make docs` from the catalogue; do not edit.
"""


def markdown(kinds: Sequence[type[Election]]) -> str:
    """Return a page with a table of all elections and a section for each."""
    lines = [OPENING, "| protocol | family | guarantee | cost |", "|---|---|---|---|"]
    for kind in kinds:
        about = kind.about
        cells = (
            f"[`{about.name}`](#{about.name})",
            about.family,
            about.guarantee.value,
            about.cost,
        )
        lines.append(_row(cells))
    for kind in kinds:
        lines += ["", *_section(kind)]
    return "\n".join(lines) + "\n"


def _section(kind: type[Election]) -> list[str]:
    about = kind.about
    lines = [
        f"## {about.name}",
        "",
        _sentence(about.idea),
        "",
        f"- **Paper**: {about.paper}",
        f"- **Model**: {about.model}",
        f"- **Cost**: {about.cost}",
        f"- **Guarantee**: {about.guarantee.value}. {_sentence(about.promises)}",
        f"- **Takeover**: {_takeover(kind)}",
        f"- **Source**: `{kind.__module__}`",
        "",
        "| message | counted as |",
        "|---|---|",
    ]
    lines += [_row((kind_of(message), message.role.value)) for message in kind.messages]
    lines += ["", "| setting | value | default | meaning |", "|---|---|---|---|"]
    for name, rule, default, meaning in describe(kind.Settings):
        lines.append(_row((f"`{name}`", rule, "" if default is None else str(default), meaning)))
    return lines


def _takeover(kind: type[Election]) -> str:
    """Say whether a better member displaces a live leader, and how to get that on a network."""
    if kind.assumptions.displaces:
        rule = "a better member that joins or returns displaces the leader."
        word = "On a network the leader stays, unless all members have `preempt` (`--preempt`)."
    else:
        rule = "a leader is not displaced while it lives."
        word = "On a network `preempt` changes nothing; with `preempt_after` the leader hands over."
    joins = use_of(kind.about.name) is Use.JOIN
    return f"By its own rule {rule}" + (f" {word}" if joins else "")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
