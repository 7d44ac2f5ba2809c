"""Sweep files: what they span, and a line for everything that is wrong with them."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.lab.sweeps import gridfile
from hustings.lab.sweeps.gridfile import GridFile, Kind, line_of, read

KINDS = {
    "protocol": Kind.ONE,
    "members": Kind.ONE,
    "fifo": Kind.FLAG,
    "fault": Kind.SEVERAL,
    "set": Kind.TABLE,
    "runs": Kind.FIXED,
}


def written(folder: Path, text: str | bytes) -> GridFile:
    path = folder / "grid.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path, KINDS)


def refusal(folder: Path, text: str | bytes) -> str:
    with pytest.raises(BadInput) as refused:
        written(folder, text)
    told = str(refused.value).replace(str(folder) + "/", "")
    assert "\n" not in told
    return told


def test_lists_are_axes_and_the_last_moves_first(tmp_path: Path) -> None:
    found = written(tmp_path, 'protocol = ["a", "b"]\nruns = 7\n[set]\nT_A = [1, 2.5]\nok = true\n')
    assert [dict(point.labels) for point in found.points] == [
        {"protocol": name, "set.T_A": T_A, "set.ok": True} for name in "ab" for T_A in (1, 2.5)
    ]
    assert found.points[1].words == (
        ("protocol", "a"),
        ("runs", "7"),
        ("set", "T_A=2.5"),
        ("set", "ok=true"),
    )


def test_flags_and_options_that_may_be_given_several_times(tmp_path: Path) -> None:
    found = written(tmp_path, 'fifo = [false, true]\nfault = ["a", ["b", "c"], []]\n')
    assert [point.words for point in found.points[:3]] == [
        (("fault", "a"),),
        (("fault", "b"), ("fault", "c")),
        (),
    ]
    assert found.points[4].words[0] == ("fifo", None)
    assert found.points[4].labels == {"fifo": True, "fault": "b c"}


def test_several_grids_add_up_upon_what_they_share(tmp_path: Path) -> None:
    text = """
members = [3, 4]
set.T_A = 1
[[grid]]
protocol = "a"
set.T_B = 2
[[grid]]
protocol = "b"
members = 9
set.T_A = 5
[plot]
x = "members"
"""
    found = written(tmp_path, text)
    assert [dict(point.labels) for point in found.points] == [
        {"members": 3, "set.T_A": 1, "protocol": "a", "set.T_B": 2},
        {"members": 4, "set.T_A": 1, "protocol": "a", "set.T_B": 2},
        {"members": 9, "set.T_A": 5, "protocol": "b"},
    ]
    assert found.plot == {"x": "members"}


BAD = [
    ("members = 1\n\nmembrs = 2", "line 3: unknown key 'membrs': did you mean 'members'?"),
    ('x = """\nmembrs = 1\n"""', "line 1: unknown key 'x'"),
    (
        "members = [\n  1, # membrs\n]\n# membrs = 1\nmembrs = [\n 1]",
        "line 5: unknown key 'membrs'",
    ),
    ("[[grid]]\nmembers = 1\n[[grid]]\nmembers = 2\nmembrs = 3", "line 5: unknown key 'membrs'"),
    ("[[grid]]\nmembers = 1\n[[grid]]\nmembers = []", "line 4: members lists no value"),
    ('"mem\\u0062rs" = 1', "line 1: unknown key 'membrs'"),
    ("\n[grid.set]\nT_A = 1", "line 2: grid must be tables of its own: write [[grid]]"),
    ("grid = 3", "line 1: grid must be tables"),
    ("grid = []", "line 1: grid must be tables"),
    ("members = 1\nset = 3", "line 2: set must be a table of settings"),
    ("[set]\nT_A = 1\nT_B = {}", "line 3: set.T_B must be a value, or a list of values to try"),
    ("members = true", "line 1: members must be a value"),
    ("members = 1979-05-27", "line 1: members must be a value"),
    ("members = [[1]]", "line 1: members must be a value"),
    ("members = [1, [2]]", "line 1: members must be a value"),
    ('members = "a\\nb"', "line 1: members must be a value"),
    ('protocol = "\\u0000"', "line 1: protocol must be a value"),
    ("fault = [[[1]]]", "line 1: fault must be a value, or a list of values to try; an inner"),
    ("fifo = 1", "line 1: fifo must be true or false"),
    ("runs = [1, 2]", "line 1: runs must be one value"),
    ("plot = 3", "line 1: plot must be a table"),
    ("members = 1\nmembers = 2", "is no TOML: Cannot overwrite a value"),
    ("members = [1\n", "is no TOML"),
    ("members = " + "9" * 5000, "is no TOML"),
    ("members = " + "[" * 5000, "is nested too deeply"),
    (b"members = '\xff'", "is no text in UTF-8"),
    (b"#" * 70_000, "is larger than 64 kB"),
    (f"members = {list(range(101))}\nrunz = 1", "line 2: unknown key"),
    (f"members = {list(range(101))}\nfault = {list(range(100))}", "spans 10,100 points, more than"),
]


@pytest.mark.parametrize("text, told", BAD, ids=range(len(BAD)))
def test_what_is_wrong_is_told_with_its_line(text: str | bytes, told: str, tmp_path: Path) -> None:
    found = refusal(tmp_path, text) if "plot" not in told else _plot(tmp_path, str(text))
    assert found.startswith("grid.toml ")
    assert told in found


def _plot(folder: Path, text: str) -> str:
    with pytest.raises(BadInput) as refused:
        _ = written(folder, text).plot
    return str(refused.value).replace(str(folder) + "/", "")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*: No such file"):
        read(tmp_path / "none.toml", KINDS)
    with pytest.raises(BadInput, match=r"cannot read .*: Is a directory"):
        read(tmp_path, KINDS)


VALUES = ("1", "[\n 1,\n # k0 = 3\n 2\n]", "'''\nk0 = 1\n[t0]\n'''", "{a=1}")


def test_lines_of_drawn_files() -> None:
    """Keys in any order among comments, empty lines and values over several lines."""
    draw = random.Random(5)
    for _ in range(60):
        lines: list[str] = []
        places: dict[tuple[str, ...], int] = {}
        above: tuple[str, ...] = ()
        for number in range(draw.randrange(1, 12)):
            lines += draw.choices(["", "# k1 = 2", "  "], k=draw.randrange(3))
            if draw.random() < 0.2:
                above = (f"t{number}",)
                lines.append(f"[t{number}]")
            places[*above, f"k{number}"] = len(lines) + 1
            value = draw.choice(
                ["1", "[\n 1,\n # k0 = 3\n 2\n]", "'''\nk0 = 1\n[t0]\n'''", "{a=1}"]
            )
            lines += f"k{number} = {value}".split("\n")
        text = draw.choice(["\n", "\r\n"]).join(lines)
        assert tomllib.loads(text)
        for where, line in places.items():
            assert line_of(text, where) == line, text


def test_a_search_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a = [\n" + "1,\n" * 60 + "]\nb = 2"
    assert line_of(text, ("a",)) == 1
    monkeypatch.setattr(gridfile, "MOST_READINGS", 20)
    assert line_of(text, ("a",)) is None


@given(text=st.text(st.sampled_from("membrs=[]{}\n\"'#.1e-_,\\ "), max_size=60) | st.binary())
def test_whatever_is_written_is_read_or_refused(
    text: str | bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    told = ""
    try:
        written(folder, text)
    except BadInput as error:
        told = str(error)
    assert "\n" not in told
