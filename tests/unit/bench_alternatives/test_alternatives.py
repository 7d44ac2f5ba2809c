"""`python -m bench alternatives`: its words, its table, and one round with real processes."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from bench.alternatives import cli, rounds
from bench.alternatives.contenders import BY_CODE, CONTENDERS
from bench.alternatives.journal import Overlap
from bench.alternatives.recipes import RECIPES
from bench.alternatives.rounds import Round
from bench.report import RESULTS
from tests.guard.engines import ENGINES

NOTHING = Overlap(0, 0.0, 0)


def woken(beats: int, seconds: float = 0.0, refused: int = 0) -> Round:
    return Round(0.1, 0.2, 1.0, NOTHING, Overlap(beats, seconds, refused))


def test_every_way_has_a_recipe_an_engine_and_a_code_of_its_own() -> None:
    assert len(BY_CODE) == len(CONTENDERS)
    for way in CONTENDERS:
        assert way.recipe in RECIPES
        assert way.engine is None or way.engine in ENGINES
    assert {way.recipe for way in CONTENDERS} == set(RECIPES)


@pytest.mark.parametrize(
    "words,sentence",
    [
        (["--only", "nonsense"], "unknown way 'nonsense'; there are hustings, "),
        (["--rounds", "0"], "--rounds must be 1 to 100, not 0"),
        (["--rounds", "101"], "--rounds must be 1 to 100, not 101"),
        (["--json"], "--json goes with --only"),
    ],
)
def test_wrong_words_get_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_way_whose_packages_are_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert cli.main(["--only", "tooz"]) == 2
    assert "These ways need tooz, not installed here" in capsys.readouterr().err


def test_gaps_are_medians_with_extremes_and_a_missing_successor_is_not_hidden() -> None:
    assert cli.gaps([0.1]) == "100 ms"
    assert cli.gaps([3.0, 0.25, 2.0]) == "2.0 s (250 ms to 3.0 s)"
    assert cli.gaps([None, None]) == "none"
    assert cli.gaps([1.0, None, 2.0]) == "none in 1 of 3"


def test_the_row_shows_the_worst_that_a_former_leader_wrote() -> None:
    assert cli.beside([woken(0), woken(3, 0.2), woken(1)]) == "3 lines"
    assert cli.beside([woken(0), woken(1)]) == "1 line"
    assert cli.beside([woken(0)]) == "0"
    assert cli.beside([woken(290, rounds.WATCH_S)]) == "does not stop"
    ended = Round(0.1, 0.2, 1.0, Overlap(9, 0.1, 0), NOTHING)
    assert cli.beside([ended, woken(1)]) == "9 lines"


def test_lines_that_a_token_refuses_are_less_bad_than_those_that_none_does() -> None:
    assert cli.beside([woken(2, 0.1, 2)]) == "2 lines, refused"
    assert cli.beside([woken(9, 0.1, 9), woken(1)]) == "1 line"
    assert cli.beside([woken(9, 0.1, 8)]) == "9 lines, 8 refused"


def test_what_is_stored_comes_back() -> None:
    measured = {"tooz": [Round(None, 0.5, 2.5, NOTHING, Overlap(3, 0.5, 1))]}
    text = cli.as_json(measured, {"machine": "m"}, 1)
    assert cli.from_json(text) == (measured, {"machine": "m"}, 1)


def test_the_written_results_are_those_that_were_stored() -> None:
    measured, about, count = cli.from_json(cli.MEASURED.read_text(encoding="utf-8"))
    assert list(measured) == list(BY_CODE)
    assert all(len(found) == count for found in measured.values())
    assert cli.markdown(measured, about, count) in RESULTS.read_text(encoding="utf-8")
    page = cli.PAGE.read_text(encoding="utf-8")
    assert cli.with_table(page, measured) == page


def test_a_page_without_a_place_for_the_table_is_not_overwritten() -> None:
    with pytest.raises(ValueError, match="no place for the table"):
        cli.with_table("# A page\n", {})
    empty = f"# A page\n\n{cli.BEGIN}{cli.END}"
    filled = cli.with_table(empty, {"tooz": [woken(3)]})
    assert "| 3 lines |" in filled
    assert cli.with_table(filled, {}) == cli.with_table(empty, {})


def test_nothing_is_measured_that_has_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n")
    monkeypatch.setattr(cli, "PAGE", page)
    monkeypatch.setattr(cli, "missing", lambda _ways: [])
    assert cli.main([]) == 2
    assert "page.md has no place for the table" in capsys.readouterr().err


def test_one_round_with_real_processes_kills_ends_pauses_and_wakes_the_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, seconds in (("STEADY_S", 0.5), ("RESTED_S", 0.5), ("WATCH_S", 0.5)):
        monkeypatch.setattr(rounds, name, seconds)
    monkeypatch.setattr(rounds, "PATIENCE_S", 5.0)
    with rounds.groups([BY_CODE["hustings"]]) as found:
        (result,) = rounds.play(found).values()
    for gap in (result.killed_s, result.ended_s, result.paused_s):
        assert gap is not None
        assert 0 < gap < rounds.PATIENCE_S
    assert result.ended == NOTHING
    assert found[0].running == {}


def test_a_round_without_a_leader_says_what_the_workers_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "SETTLING_S", 2.0)
    group = rounds.Group(BY_CODE["hustings"], "nonsense://here", tmp_path)
    try:
        with pytest.raises(rounds.NoRound, match=r"led alone within 2 s; w0 said: .*'nonsense'"):
            rounds.settle([group])
    finally:
        group.close()
