"""The forms of all messages, as the wire version that is written now has them.

`wire_forms.txt` holds them. A message whose form differs from it cannot be read by members of
releases that have the same wire version. So a change of the file is a new wire version, unless
only names of fields have changed: docs/decisions/0056-wire-versions.md says how one is made.
`pytest --rewrite tests/net/test_wire_forms.py` writes the file.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, get_type_hints

import msgspec
import pytest

from hustings._version import __version__
from hustings.core.messages import Former, Message, kind_of
from hustings.net import wire
from hustings.net.limits import Reason
from hustings.net.versions import VersionNotice
from hustings.net.wire import NEWEST, OURS, VERSION, Envelope, WireCodec
from tests.net.kit.releases import SECOND, THIRD, Versions

FILE = Path(__file__).with_name("wire_forms.txt")
PLACES = ("hustings.core", "hustings.layers", "hustings.net", "hustings.protocols")
QUORUM = "hustings.quorum"


def kinds() -> list[type[Message]]:
    """All messages that members can send, by the file that they are in and by their tags."""
    for place in (*PLACES, QUORUM):
        package = importlib.import_module(place)
        for each in pkgutil.walk_packages(package.__path__, f"{place}."):
            importlib.import_module(each.name)
    found = [each for each in heirs(Message) if each.__module__.startswith((*PLACES, QUORUM))]
    return sorted(found, key=lambda each: (each.__module__, kind_of(each)))


def heirs(kind: type[Message]) -> Iterator[type[Message]]:
    for each in kind.__subclasses__():
        yield each
        yield from heirs(each)


def form(kind: type[msgspec.Struct]) -> str:
    """The fields in their order, with types and defaults; structs within are written out."""
    hints = get_type_hints(kind)  # without bounds: those are the reader's
    parts = []
    for each in msgspec.structs.fields(kind):
        default = "" if each.default is msgspec.NODEFAULT else f" = {each.default!r}"
        parts.append(f"{each.name}: {plain(hints[each.name])}{default}")
    return f"({', '.join(parts)})"


def plain(kind: object) -> str:
    """A type as text, without the modules that it comes from."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind.__name__ + form(kind)
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    for part in getattr(kind, "__args__", ()):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            text = text.replace(f"{part.__module__}.{part.__qualname__}", plain(part))
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def forms() -> str:
    lines = [f"wire version {VERSION}", f"frame {form(Envelope)}", f"notice {form(VersionNotice)}"]
    for each in kinds():
        place = each.__module__.removeprefix("hustings.")
        lines.append(f"{place} {kind_of(each)}{form(each)}")
    return "\n".join(lines) + "\n"


def test_the_forms_of_a_wire_version_do_not_change(rewrite: bool) -> None:
    if rewrite:
        FILE.write_text(forms(), encoding="utf-8")
    assert forms() == FILE.read_text(encoding="utf-8"), (
        "a message has another form: make a new wire version, as decision 0056 says"
    )


class _FirstVoteMsg(Message, frozen=True, tag="VOTE"):
    term: int


class VoteMsg(Message, frozen=True, tag="VOTE"):
    """A message that has a further field after this wire version."""

    term: int
    further: int = 7
    formers: ClassVar[tuple[Former, ...]] = (
        Former(
            VERSION,
            _FirstVoteMsg,
            lambda old: VoteMsg(old.term, 5),
            lambda new: _FirstVoteMsg(new.term),
        ),
    )


def codec(monkeypatch: pytest.MonkeyPatch, versions: Versions) -> WireCodec:
    """The codec of a release with these wire versions."""
    for name, number in zip(("OLDEST", "VERSION", "NEWEST"), versions, strict=True):
        monkeypatch.setattr(wire, name, number)
    return WireCodec("vote", (VoteMsg,))


@pytest.mark.parametrize("reader", [SECOND, THIRD])
def test_a_form_is_read_in_each_version_that_is_read(
    monkeypatch: pytest.MonkeyPatch, reader: Versions
) -> None:
    vote = VoteMsg(3, 9)
    before, after = (codec(monkeypatch, each) for each in (SECOND, THIRD))
    monkeypatch.undo()
    written = {}
    for name, made, versions in (("before", before, SECOND), ("after", after, THIRD)):
        monkeypatch.setattr(wire, "VERSION", versions.written)
        written[name] = (made.write(vote), made.write_body(vote))
    reading = codec(monkeypatch, reader)
    old, new = reading.readers(9)
    body = reading.body_reader(9)
    assert (old(written["before"][0]), new(written["after"][0])) == (VoteMsg(3, 5), vote)
    assert [body(written[each][1]) for each in ("before", "after")] == [VoteMsg(3, 5), vote]
    assert old(written["after"][0]) is new(written["before"][0]) is Reason.BAD_FIELDS


@pytest.mark.parametrize("first", [0, NEWEST + 1, 0x7F])
def test_a_body_of_a_version_that_is_not_read_is_refused(first: int) -> None:
    made = WireCodec("vote", (VoteMsg,))
    payload = made.write(VoteMsg(3))
    assert made.body_reader(9)(bytes((first,)) + payload) is Reason.UNKNOWN_VERSION
    assert isinstance(made.body_reader(9)(b""), Reason)


def test_the_page_tells_the_wire_versions_of_this_release() -> None:
    """docs/compatibility.md has a row for each release, the latest one last."""
    page = Path(__file__).parents[2] / "docs" / "compatibility.md"
    rows = re.findall(
        r"^\| (\S+) \| (\d+)(?: to (\d+))? \| (\d+) \|$", page.read_text("utf-8"), re.M
    )
    release, oldest, newest, written = rows[-1]
    assert release == __version__
    assert (int(oldest), int(written), int(newest or oldest)) == OURS
