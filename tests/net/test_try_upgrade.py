"""The script that tries an upgrade from another release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.try_upgrade import main, released, tried
from tests.net.kit.releases import FIRST, FOURTH, release
from tests.net.kit.rollouts import Refused, Rollout


def test_an_upgrade_is_told_in_a_line(tmp_path: Path) -> None:
    old = release(tmp_path, FIRST)
    done = tried(old, release(tmp_path, FIRST), seeded=True, leader_first=True)
    assert done.startswith("one group; ")
    done = tried(old, release(tmp_path, FOURTH), seeded=False, leader_first=False)
    assert done.startswith("the new members waited; ")


def test_an_upgrade_that_splits_the_group_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Rollout, "together", lambda self, since=0.0: [("0-old", "1-new")])
    assert main([str(release(tmp_path, FIRST).place)]) == 1
    assert "two led at one moment: [('0-old', '1-new')]" in capsys.readouterr().err


def test_a_release_is_a_folder_or_a_revision(tmp_path: Path) -> None:
    made = release(tmp_path / "made", FIRST)
    assert released(str(made.place), tmp_path).place == made.place
    tree = tmp_path / "tree"
    (tree / "src/hustings").mkdir(parents=True)
    (tree / "src/hustings/__init__.py").write_text("one = 1\n")
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
        subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True)
    (tree / "src/hustings/__init__.py").write_text("two = 2\n")
    assert released(str(tree), tmp_path).place == tree / "src"
    found = released("HEAD", tmp_path / "out", tree)
    assert (found.place / "hustings/__init__.py").read_text() == "one = 1\n"
    with pytest.raises(Refused, match="nosuch is no folder with hustings, and no revision: "):
        released("nosuch", tmp_path, tree)


def test_what_is_no_release_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no/such/folder"]) == 1
    assert "try_upgrade: no/such/folder is no folder with hustings" in capsys.readouterr().err
