"""On which line a key stands, and what is said of a file that is not TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from hustings.agent.config_file import read_document
from hustings.core.documents import LARGEST, Document
from hustings.core.errors import BadInput

TEXT = """# a comment with seeds = 1
[groups.billing]
seeds = [
    "seeds = 2",
]
key = '''
preempt-after = 1
'''
preempt-after = "5s"

[groups.search]
attributes.cpu = 8
seeds = "x"
[groups.search.settings]
"T A" = 3
"""


@pytest.mark.parametrize(
    "path, line",
    [
        ("groups", 2),
        ("groups billing", 2),
        ("groups billing seeds", 3),
        ("groups billing key", 6),
        ("groups billing preempt-after", 9),
        ("groups search", 11),
        ("groups search attributes cpu", 12),
        ("groups search seeds", 13),
        ("groups search settings", 14),
        ("groups search nothing", 11),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_key_has_a_line(path: str, line: int, ends: str) -> None:
    document = Document("x.toml", TEXT.replace("\n", ends))
    assert document.line_of(tuple(path.split())) == line


def test_a_quoted_key_has_a_line() -> None:
    document = Document("x.toml", TEXT)
    assert document.place(("groups", "search", "settings", "T A")) == (
        "x.toml, line 15: groups.search.settings.T A"
    )


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("[http]\nbind = \n", "x.toml, line 2: bind: this is not TOML: invalid value"),
        ("[http\n", "x.toml, line 1: this is not TOML: expected ']'"),
        ("a = 1\na = 2\n", "x.toml, line 2: a: this is not TOML: cannot overwrite a value"),
        ("a = '''\n", "x.toml, line 2: this is not TOML: "),
        ("a = " + "[" * 9000, "x.toml: values are nested too deeply"),
    ],
)
def test_what_is_not_toml(text: str, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        Document("x.toml", text)
    assert str(refused.value).startswith(sentence)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    with pytest.raises(BadInput, match=r"cannot read .*x\.toml: No such file"):
        read_document(file)
    with pytest.raises(BadInput, match="Is a directory"):
        read_document(tmp_path)
    file.write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(BadInput, match="line 2: this is not UTF-8"):
        read_document(file)
    file.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(BadInput, match="more than"):
        read_document(file)
    file.write_bytes(b"#" * LARGEST)
    assert read_document(file).data == {}
