"""Other releases of hustings, made from the present source: copies with other wire versions.

The present source is the first release. A later one has other numbers in `net/wire.py`, and from
its wire version on some messages have another form: a field more, which the earlier form has not.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import hustings
from hustings.net.wire import FIRST as FIRST_THAT_TELLS
from hustings.net.wire import VERSION

PACKAGE = Path(hustings.__file__).parent


class Versions(NamedTuple):
    """The wire versions of a release."""

    oldest: int
    written: int
    newest: int


BEFORE = Versions(*[FIRST_THAT_TELLS - 1] * 3)  # knows no notices
FIRST = Versions(VERSION, VERSION, VERSION)
SECOND = Versions(VERSION, VERSION, VERSION + 1)  # reads what the third writes
THIRD = Versions(VERSION, VERSION + 1, VERSION + 1)
FOURTH = Versions(VERSION + 1, VERSION + 1, VERSION + 1)  # does not read the first and the second
# Messages that have a further field from the second wire version on.
CHANGED = {
    "layers/gossip/messages.py": "JoinMsg",
    "layers/detector/heartbeat.py": "HeartbeatMsg",
    "protocols/bully.py": "CoordinatorMsg",
}


class Release(NamedTuple):
    """A release that processes can run."""

    name: str
    place: Path  # for PYTHONPATH: the folder that has the package


def release(folder: Path, versions: Versions, *, notices: bool = True) -> Release:
    """A release with these wire versions. Without notices it knows nothing about other versions."""
    notices = notices and versions.newest >= FIRST_THAT_TELLS
    name = "-".join(map(str, versions)) + ("" if notices else "-silent")
    made = Release(name, place := folder / name)
    if place.exists():
        return made
    # What is compiled comes along, and counts for files that stay as they are.
    shutil.copytree(PACKAGE, place / "hustings", ignore=shutil.ignore_patterns("kernels-*"))
    wire = place / "hustings/net/wire.py"
    text = wire.read_text(encoding="utf-8")
    for name, number in zip(("OLDEST", "VERSION", "NEWEST"), versions, strict=True):
        text, times = re.subn(rf"^{name} = \d+", f"{name} = {number}", text, flags=re.MULTILINE)
        assert times == 1
    wire.write_text(text, encoding="utf-8")
    if not notices:
        silence(place / "hustings/net/versions.py")
    if versions.newest > VERSION:
        for file, name in CHANGED.items():
            change(place / "hustings" / file, name)
    return made


def silence(path: Path) -> None:
    """Let a release neither write nor read anything about other wire versions."""
    text = path.read_text(encoding="utf-8")
    for name, answer in [("sent", None), ("took", False), ("refused", None), ("pass_on", None)]:
        head = rf"^(    def {name}\(.*\) -> .*:\n)"
        text, times = re.subn(head, rf"\1        return {answer}\n", text, flags=re.MULTILINE)
        assert times == 1
    path.write_text(text, encoding="utf-8")


def change(path: Path, name: str) -> None:
    """Give a message a further field, and keep its form of the first wire version beside it."""
    text = path.read_text(encoding="utf-8")
    begin = re.search(rf"^class {name}\((\w+), frozen=True, (tag=\S+)\):\n", text, re.MULTILINE)
    assert begin is not None
    body = re.split(r"\n\n\n(?=\S)", text[begin.end() :])[0]
    fields = re.findall(r"^    (\w+): (?!ClassVar).*$", body, re.MULTILINE)
    lines = re.findall(r"^    \w+: (?!ClassVar).*$", body, re.MULTILINE)
    assert fields
    before = [
        "from hustings.core.messages import Former",
        f"class _First{name}({begin[1]}, frozen=True, {begin[2]}):",
        *lines,
        "",
    ]
    read = ", ".join(f"{each}=old.{each}" for each in fields)
    write = ", ".join(f"{each}=new.{each}" for each in fields)
    after = [
        "    further: int = 7",
        "    formers: ClassVar[tuple[Former, ...]] = (",
        f"        Former({VERSION}, _First{name},",
        f"            lambda old: {name}({read}),",
        f"            lambda new: _First{name}({write})),",
        "    )",
    ]
    changed = "\n".join([*before, f"{begin[0]}{body}", *after])
    path.write_text(
        text[: begin.start()] + changed + text[begin.end() + len(body) :], encoding="utf-8"
    )
