"""What `hustings run` refuses: one sentence, before anything has started."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hustings.cli.app import run


@pytest.mark.parametrize(
    "arguments, words",
    [
        ("", "GROUP"),
        ("group", "there is no command to run: write it after --"),
        ("group -- no-such-program", "command 'no-such-program' is not found on the PATH"),
        ("group --grace long -- true", "--grace 'long' is not a duration"),
        ("group --restart-delay -1s -- true", "--restart-delay '-1s' is not a duration"),
        ("group --restart often -- true", "--restart"),
        ("group --max-restarts -1 -- true", "--max-restarts"),
        ("group --join nowhere:x -- true", "seed 'nowhere:x' needs a port"),
        ("group --bind 0.0.0.0:0 -- true", "without a key only this machine may be listened to"),
        ("group --key no-such-file -- true", "no-such-file"),
        ("group --protocol le-z -- true", "unknown protocol 'le-z'"),
        ("group --set T_A -- true", "--set 'T_A' is not understood"),
        ("group --choice attribute:cpu -- true", "cpu"),
        ("group --attribute cpu -- true", "--attribute 'cpu' is not understood"),
        ("group --attribute cpu=x -- true", "attribute cpu must be a number"),
        ("group --attribute cpu=1 --attribute cpu=2 -- true", "--attribute cpu is given twice"),
        ("group --name a --state no-such/folder -- true", "run mkdir -p no-such/folder"),
        ("group --join 0.0.0.0:0 -- true", "stands for all interfaces"),
        ("group --join [::]:7400 -- true", "stands for all interfaces"),
        ("group --join 127.0.0.1:0 -- true", "has port 0"),
        ("group --join localhost:0 -- true", "has port 0"),
        ("group --join 239.1.2.3:7400 -- true", "is a multicast group"),
        ("group -q -v -- true", "--quiet and --verbose exclude each other"),
        ("group --state no-such -- true", "state needs a name"),
        ('group --on-lead "" -- true', "on-lead must be a command line for the shell"),
        ("group --hook-timeout 1ms -- true", "time limit of hooks must be from 100ms to 600s"),
        ("group --http-name web -- true", "--http-name goes with --http"),
        ("group --token-file token -- true", "--token-file goes with --http"),
        ("group --http nowhere:x -- true", "--http 'nowhere:x'"),
        ("group --http 0.0.0.0:0 -- true", "open to others and there is no token"),
        ("group --http 127.0.0.1:0 --token-file no-such -- true", "cannot read token file no-such"),
        ("group --log yaml -- true", "--log"),
    ],
)
def test_bad_input_gets_a_sentence(
    arguments: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["run", *shlex.split(arguments)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("hustings: ")
    assert words in shown.err
    assert len(shown.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_help_tells_the_environment_and_the_signals(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--help"]) == 0
    shown = capsys.readouterr().out
    told = ["GROUP", "TERM", "TOKEN", "MEMBER"]
    for word in [*(f"HUSTINGS_{each}" for each in told), "SIGHUP", "SIGUSR1", "128+N"]:
        assert word in shown
