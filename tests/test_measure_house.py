"""The script that measures the house counts what is there."""

from pathlib import Path

from scripts.measure_house import modules, statistics, used_once, walk


def house(tmp_path: Path) -> Path:
    room = tmp_path / "src" / "room"
    room.mkdir(parents=True)
    (room / "__init__.py").write_text("", encoding="utf-8")
    (room / "a.py").write_text("def one():\n    return 1\n", encoding="utf-8")
    (room / "b.py").write_text("from room.a import one\nX = one()\n", encoding="utf-8")
    (room / "c.py").write_text("from room import b\nimport room.d\n", encoding="utf-8")
    (room / "d.py").write_text("from room import b\n", encoding="utf-8")
    return tmp_path / "src"


def test_lengths_and_imports_are_counted(tmp_path: Path) -> None:
    rows = dict(statistics(house(tmp_path)))
    assert (rows["files"], rows["lines"], rows["functions"]) == (5, 7, 1)
    assert rows["lines of a function, largest, docstring included"] == 2


def test_a_module_with_one_user_is_found_and_one_with_two_is_not(tmp_path: Path) -> None:
    assert [module.name for module in used_once(modules(house(tmp_path)))] == ["room.a", "room.d"]


def test_a_walk_starts_at_the_door_and_enters_the_world() -> None:
    files = walk(["sim", "bully"])
    assert files[0] == "__main__.py"
    assert {"protocols/bully.py", "core/election.py"} < set(files)
    assert len(files) == len(set(files))
