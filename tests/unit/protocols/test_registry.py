"""The registry: ours by name, without loading the others; those of packages, modules and files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from hustings.core.election import Election
from hustings.core.errors import BadInput, ProtocolBug, UnknownName
from hustings.core.messages import (
    RESERVED_PREFIX,
    RESERVED_TAGS,
    LayerMessage,
    Message,
    kind_of,
)
from hustings.core.plugins import source_digest
from hustings.joining import join
from hustings.layers.gossip import layer as gossip
from hustings.net import control_messages
from hustings.protocols.bully import Bully
from hustings.protocols.registry import (
    BASELINES,
    BY_ROUNDS,
    CONSENSUS,
    EVERY,
    PRINTED,
    PROTOCOLS,
    Use,
    find,
    is_ours,
    names,
    use_of,
)

MINE = """
    from hustings.core.election import About
    from hustings.protocols.bully import Bully
    from dataclasses import replace

    class Mine(Bully):
        about = replace(Bully.about, name="mine")

    class Namesake(Bully):
        pass

    NUMBER = 7
    """


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; nothing that is loaded from it stays."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        found = getattr(sys.modules[name], "__file__", None) or ""
        if found.startswith(str(tmp_path)):
            del sys.modules[name]


def write(folder: Path, name: str, text: str = MINE) -> Path:
    path = folder / name
    path.write_text(dedent(text))
    return path


# --- ours ----------------------------------------------------------------------------------------


def test_the_table_and_the_families_list_the_same_in_the_same_order() -> None:
    assert tuple(PROTOCOLS) == EVERY
    assert [find(name).about.name for name in PROTOCOLS] == list(EVERY)
    assert names()[: len(EVERY)] == list(EVERY)


def test_what_an_election_is_for_follows_from_its_family() -> None:
    for name in PROTOCOLS:
        if name in CONSENSUS:
            wanted = Use.GUARD
        elif name in BY_ROUNDS:
            wanted = Use.ROUNDS
        elif name in PRINTED or name in BASELINES:
            wanted = Use.STUDY
        else:
            wanted = Use.JOIN
        assert use_of(name) is use_of(find(name)) is wanted, name
        assert is_ours(find(name))


def test_an_underscore_stands_for_a_hyphen() -> None:
    assert find("bully_map") is find("bully-map")
    assert use_of("le_s_printed") is Use.STUDY


@pytest.mark.parametrize("look", [find, use_of])
def test_an_unknown_name_is_told_with_the_nearest(look: object) -> None:
    assert callable(look)
    with pytest.raises(UnknownName, match="unknown protocol 'buly': did you mean 'bully'"):
        look("buly")


def test_only_the_one_that_is_asked_for_is_loaded() -> None:
    told = (
        "import sys; from hustings.protocols.registry import find; find('ring'); "
        "print(*(each for each in sys.modules if each.startswith('hustings.protocols.')))"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"hustings.protocols.registry", "hustings.protocols.ring"}


# --- others --------------------------------------------------------------------------------------


def test_a_class_a_module_and_a_file_name_the_same(folder: Path) -> None:
    write(folder, "mine_of_mine.py")
    by_file = find("mine_of_mine.py:Mine")
    assert by_file is find(f"{folder}/mine_of_mine.py:Mine")
    assert by_file is find("mine_of_mine:Mine")
    assert by_file is find(by_file)
    assert by_file.about.name == "mine"
    assert use_of(by_file) is Use.JOIN
    assert not is_ours(by_file)


def test_a_module_in_the_present_folder_is_found(folder: Path) -> None:
    (folder / "of_mine").mkdir()
    write(folder / "of_mine", "elections.py")
    assert find("of_mine.elections:Mine").about.name == "mine"


def test_an_installed_package_brings_names(folder: Path) -> None:
    write(folder, "installed_elections.py")
    info = folder / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    entries = ["mine = installed_elections:Mine", "other = installed_elections:Mine"]
    entries += ["number = installed_elections:NUMBER", "bully = installed_elections:Mine"]
    (info / "entry_points.txt").write_text("\n".join(["[hustings.protocols]", *entries]) + "\n")
    sys.path.append(str(folder))
    assert find("mine").__name__ == "Mine"
    assert names() == [*EVERY, "mine", "number", "other"]
    assert find("bully") is Bully  # ours are not theirs to give
    with pytest.raises(BadInput, match=r"entry point 'other' .* calls itself 'mine'"):
        find("other")
    with pytest.raises(BadInput, match="calls itself None"):
        find("number")


@pytest.mark.parametrize(
    "protocol, told",
    [
        ("nowhere.py:Mine", "there is no file 'nowhere.py'"),
        ("nowhere:Mine", "there is no module 'nowhere'"),
        ("not a module:Mine", "names no module"),
        (":Mine", "names no module"),
        ("given.py", r"name the class in it, as given\.py:Claims"),
        ("given.py:Nobody", r"unknown class in given\.py 'Nobody' .*known: Mine, Namesake"),
        ("given.py:NUMBER", r"given\.py:NUMBER is no protocol: .* subclass of Election"),
        ("given.py:About", "is no protocol"),
        ("vague.py:Vague", "is not complete: a protocol says what it is in `about`"),
        ("wrong.py:Mine", r"wrong\.py, line 2, cannot be read"),
        ("raising.py:Mine", r"raising\.py cannot be loaded: ValueError: seven"),
        ("taken.py:Mine", "Taken has a message with the tag PROBE, which the network layer"),
        ("wanting.py:Mine", r"wanting\.py cannot be loaded: ModuleNotFoundError"),
        ("random.py:Mine", r"there is another module called random: give random\.py another name"),
        ("no-name.py:Mine", r"no-name\.py cannot be a module"),
        ("folder.py:Mine", "there is no file"),
    ],
)
def test_what_is_wrong_is_one_sentence(folder: Path, protocol: str, told: str) -> None:
    write(folder, "given.py")
    write(
        folder,
        "vague.py",
        "from hustings.core.election import Election\nclass Vague(Election): ...",
    )
    write(folder, "wrong.py", "\nclass Mine(:\n")
    write(folder, "raising.py", "raise ValueError('seven')")
    write(folder, "wanting.py", "import there_is_no_such_module")
    write(
        folder,
        "taken.py",
        """
        from hustings.core.election import Election, upon
        from hustings.core.messages import Message
        class ProbeMsg(Message, frozen=True, tag="PROBE"): ...
        class Taken(Election):
            messages = (ProbeMsg,)
            @upon(ProbeMsg)
            def on_probe(self, ctx, sender, message): ...
        """,
    )
    for name in ("random.py", "no-name.py"):
        write(folder, name)
    (folder / "folder.py").mkdir()
    with pytest.raises(BadInput, match=told) as caught:
        find(protocol)
    assert "\n" not in str(caught.value)


def test_a_file_that_was_wrong_can_be_mended(folder: Path) -> None:
    path = write(folder, "to_be_mended.py", "raise ValueError('seven')")
    with pytest.raises(BadInput):
        find("to_be_mended.py:Mine")
    path.write_text(dedent(MINE))
    assert find("to_be_mended.py:Mine").about.name == "mine"


def test_a_class_with_the_name_of_one_of_ours_does_not_join(folder: Path) -> None:
    write(folder, "namesakes_of_ours.py")
    kind = find("namesakes_of_ours.py:Namesake")
    assert use_of(kind) is Use.JOIN
    with pytest.raises(BadInput, match="Namesake has the name bully, which is another protocol's"):
        join("group", protocol=kind)


def test_the_source_of_a_class_from_elsewhere_has_a_digest(folder: Path) -> None:
    path = write(folder, "with_a_digest.py")
    kind = find("with_a_digest.py:Mine")
    first = source_digest(kind)
    assert len(first) == 32
    path.write_text(path.read_text() + "\n# changed\n")
    assert source_digest(kind) not in ("", first)
    assert source_digest(Bully) == ""


# --- tags ----------------------------------------------------------------------------------------


def subclasses(kind: type[Message]) -> set[type[Message]]:
    return {each for direct in kind.__subclasses__() for each in (direct, *subclasses(direct))}


def test_the_tags_of_all_layers_are_reserved_and_no_others() -> None:
    """By the classes that there are, once everything that defines some is loaded."""
    assert {control_messages.__name__, gossip.__name__} <= sys.modules.keys()
    tags = {
        kind_of(kind)
        for kind in subclasses(LayerMessage)
        if kind.__module__.startswith("hustings.")
    }
    assert {tag for tag in tags if not tag.startswith(RESERVED_PREFIX)} == RESERVED_TAGS


@pytest.mark.parametrize("tag", ["PROBE", "GOSSIP", "Q-ANYTHING"])
def test_a_reserved_tag_is_refused_when_the_class_is_made(tag: str) -> None:
    kind = type("SomeMsg", (Message,), {}, frozen=True, tag=tag)

    def handler(*_: object) -> None: ...

    handler.__dict__["_upon"] = (kind,)
    with pytest.raises(ProtocolBug, match=f"with the tag {tag}, which the network layer reserves"):
        type("Some", (Election,), {"messages": (kind,), "on_some": handler})
