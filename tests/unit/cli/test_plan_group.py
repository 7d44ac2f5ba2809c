"""`hustings plan` for a group: exit codes, JSON, files, judged configurations, and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hustings.agent.config import load
from hustings.lab.plans.search import EFFORTS, Effort, SearchRound
from tests.unit.cli.commands import Hustings

GROUP = ("plan", "--members", "3", "--within", "1ms", "--pause-max", "50ms", "--effort", "quick")
GOALS = ("--failover-p99", "4s", "--wrong", "1/month", "--two-leaders", "never")


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Little is played: nothing here is about how sure a plan is."""
    with monkeypatch.context() as patch:
        patch.setitem(EFFORTS, "quick", Effort(4, (SearchRound(2, 2, 2, 1e9),)))
        yield


def test_a_feasible_plan(hustings: Hustings, tmp_path: Path) -> None:
    shown = hustings(*GROUP, *GOALS, "--output", str(tmp_path / "plan"))
    assert shown.code == 0, shown.err
    for part in ("feasible", "failover-p99", "voters", "hustings.toml", "hustings_is_leader"):
        assert part in shown.out
    assert "assumed: no message is lost" in shown.out
    last = shown.out.strip().splitlines()[-1]
    assert last.startswith("replay: hustings plan --members=3 --within=1ms --pause-max=50ms")
    written = {path.relative_to(tmp_path / "plan").as_posix() for path in tmp_path.rglob("*.*")}
    names = ("plan.json", "environment.toml", "replay.sh", "plan.svg", "plan.png")
    assert written >= {*names, "A/hustings.toml", "A/run.txt"}
    load(tmp_path / "plan" / "A" / "hustings.toml", {}, {})
    told = json.loads((tmp_path / "plan" / "plan.json").read_text(encoding="utf-8"))
    assert told["verdict"] == "feasible"
    assert told["options"][0]["goals"][0]["verdict"] == "met"


def test_a_plan_that_misses_its_goals(hustings: Hustings) -> None:
    shown = hustings(*GROUP, "--two-leaders", "never", "--survive", "site", "--json")
    assert shown.code == 1
    told = json.loads(shown.out)
    assert told["verdict"] == "infeasible"
    assert told["impossible"][0]["nearest"] == "two sites"


def test_two_sites_need_a_third_vote(hustings: Hustings) -> None:
    sites = ("--sites", "a=20,b=20", "--between", "a,b=40ms")
    shown = hustings("plan", *sites, "--two-leaders", "never", "--survive", "site")
    assert shown.code == 1
    assert "never two leaders and survive any site with two sites" in shown.out
    assert "a third vote elsewhere (--sites a=20,b=20,c=1)" in shown.out


def test_a_file_of_goals(hustings: Hustings, tmp_path: Path) -> None:
    path = tmp_path / "goals.toml"
    path.write_text(
        'members = 3\n[goals]\nfailover-p99 = "4s"\n[delay]\nwithin = "1ms"\n', encoding="utf-8"
    )
    assert hustings("plan", str(path), "--effort", "quick").code == 0
    refused = hustings("plan", str(path), "--wrong", "1/day").complaint
    assert refused.endswith("says the goals: leave --wrong out")
    refused = hustings("plan", str(path), "--loss", "1%").complaint
    assert refused.endswith("says the environment: leave --loss out")


def test_an_environment_file(hustings: Hustings, tmp_path: Path) -> None:
    path = tmp_path / "environment.toml"
    path.write_text('[delay]\nwithin = "1ms"\n', encoding="utf-8")
    given = ("plan", "--environment", str(path), "--failover-p99", "4s", "--effort", "quick")
    assert "does not say how large the group is" in hustings(*given).complaint
    assert hustings(*given, "--members", "3").code == 0
    assert "leave --loss out" in hustings(*given, "--loss", "1%").complaint


def test_a_configuration_is_explained(hustings: Hustings, tmp_path: Path) -> None:
    path = tmp_path / "hustings.toml"
    path.write_text('[groups.jobs]\nguard = "quorum://m1,m2,m3"\nttl = "3s"\n', encoding="utf-8")
    shown = hustings(*GROUP, "--explain", str(path), "--failover-p99", "2s")
    assert shown.code == 1, shown
    assert "missed: le-s with quorum" in shown.out
    shown = hustings(*GROUP, "--explain", str(path), "--failover-p99", "5s", "--json")
    assert shown.code == 0, shown
    assert json.loads(shown.out)["contradictions"] == []
    longer = [word if word != "50ms" else "2s" for word in GROUP]
    shown = hustings(*longer, "--explain", str(path), "--failover-p99", "5s")
    assert "contradiction: ttl is 3s, less than twice the longest pause" in shown.out


@pytest.mark.parametrize(
    "line, words",
    [
        ("--members 3", "a plan needs a goal"),
        ("--failover-p99 5s", "how large is the group?"),
        ("--members 3 --failover-p99 5", "failover-p99 '5' is not a duration"),
        ("--members 3 --wrong 1", "wrong '1' is not a rate: write one as 6/h"),
        ("--members 3 --wrong 0/day", "no estimate shows that something never happens"),
        ("--members 3 --bytes 100", "bytes '100' is no number of bytes"),
        ("--members 3 --engines mysql --wrong 1/day", "unknown engine 'mysql'"),
        ("--members 3 --prefer luck --wrong 1/day", "unknown preference 'luck'"),
        ("--members 3 --two-leaders often", "write never, or a time as 10s"),
        ("--members 3 --survive all", "write site, engine, or a number of members"),
        ("--members 1 --wrong 1/day", "'--members'"),
        ("--members 3 --burst 0.5 --wrong 1/day", "'--burst'"),
        ("--members 3 --loss 5% --burst 1 --loss x --wrong 1/day", "loss.rate"),
        ("--sites a=3 --wrong 1/day", "sites are at least two"),
        ("--sites a=3,b=3 --between a,c=1ms --wrong 1/day", "c"),
        ("--sites a=3,b=3 --between ab --wrong 1/day", "write A,B=VALUE"),
        ("--members 3 --wrong 1/day --effort much", "unknown effort 'much'"),
        ("--members 3 --wrong 1/day --set b=1", "--set goes with hustings plan committee"),
        ("--members 3 --wrong 1/day --on threads", "--on goes with hustings plan committee"),
        ("--members 3 --wrong 1/day --group x", "--group goes with --explain"),
        ("none.toml", "cannot read none.toml: No such file"),
        ("--members 3 --wrong 1/day --explain none.toml", "cannot read none.toml"),
        ("--members 3 --wrong 1/day --environment none.toml --loss 1%", "leave --loss out"),
        ("committee -n 100 --wrong 1/day", "--wrong is about a group, and not about a committee"),
        ("committee -n 100 --output x", "--output is about a group"),
        ("committee", "Missing option '-n'"),
    ],
)
def test_bad_input(line: str, words: str, hustings: Hustings, tmp_path: Path) -> None:
    assert words in hustings("plan", *line.split()).complaint


def test_a_group_is_planned_without_an_extra_and_a_committee_asks_for_it() -> None:
    """As after an installation that has the command line alone."""
    told = (
        "import sys; sys.modules['numpy'] = None; sys.modules['numba'] = None; "
        "from hustings.__main__ import main; main()"
    )
    group = ["--sites", "a=2,b=2", "--between", "a,b=40ms", "--two-leaders", "never"]
    runs = [
        subprocess.run(
            [sys.executable, "-c", told, "plan", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        for words in ([*group, "--survive", "site"], ["committee", "-n", "60"])
    ]
    assert [each.returncode for each in runs] == [1, 2]
    assert runs[0].stdout.startswith("impossible: never two leaders and survive any site")
    assert "numba" in runs[1].stderr
    assert "Traceback" not in runs[1].stderr


def test_no_file_in_the_folder_of_a_plan_is_lost(tmp_path: Path, hustings: Hustings) -> None:
    kept = tmp_path / "plan.json"
    kept.write_text("mine")
    for folder, sentence in ((tmp_path, "has files"), (kept, "cannot be a folder")):
        told = hustings(*GROUP, *GOALS, "--output", str(folder))
        assert told.code == 2
        assert sentence in told.err
    assert kept.read_text() == "mine"


def test_without_the_library_of_pictures_the_rest_is_written(
    tmp_path: Path, hustings: Hustings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = hustings(*GROUP, *GOALS, "--output", str(tmp_path))
    assert told.code == 0
    assert "no picture: this needs matplotlib" in told.err
    assert (tmp_path / "plan.json").is_file()
