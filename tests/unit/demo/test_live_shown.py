"""The live demo on a terminal, in a pipe, for a script; and what is typed to get it."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Sequence

import pytest
from rich.console import Console

from hustings.cli import demo_live
from hustings.cli.demo import demo
from hustings.cli.demo_live import screen
from hustings.core.errors import BadInput, HustingsError, UnknownName
from hustings.demo.live import acts
from hustings.demo.live.channel import FiguresReport, FollowingReport, Opened
from hustings.demo.live.measuring import Board, ProcessState
from hustings.demo.live.scene import NAMES, Audience, LiveAct, LivePlan, LiveScene
from tests.unit.demo.troupe import Clock, Obedient, Stubborn

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"  # the terminal's second screen


def scene_of(members: int, *, cut: bool = False) -> LiveScene:
    """A group in which m1 leads, and with a cut the last member too."""
    plan = LivePlan(members, "bully", 20.0, 1)
    board = Board()
    names = [plan.part(number, "demo").name for number in range(1, members + 1)]
    for place, name in enumerate(names):
        board.start(name, pid=4_000_000 + place)
        board.hear(name, Opened(0.5, ("127.0.0.1", 7400)))
        board.hear(name, FollowingReport(1.0, names[0], 123))
        for at in (1.0, 2.0):
            board.hear(name, FiguresReport(at, int(at * 500), members))
    scene = LiveScene(plan, board, "demo-1", act=5, elapsed=12.34, sentence="Something is. " * 20)
    board.put(names[1], ProcessState.KILLED)
    board.put(names[2], ProcessState.PAUSED)
    if cut:
        board.sides = (tuple(names[:2]), tuple(names[2:]))
        board.hear(names[-1], FollowingReport(3.0, names[-1], 124))
    return scene


def drawn(scene: LiveScene, width: int, height: int, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width, height=height, force_terminal=True)
    lines = console.render_lines(screen(console, scene), console.options, pad=False)
    return ["".join(segment.text for segment in line) for line in lines]


class Terminal(io.StringIO):
    """Takes what is written, and says that somebody looks."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let the command play with processes that are none."""
    clock = Clock()
    monkeypatch.setattr(acts, "time", clock)
    monkeypatch.setattr(demo_live, "time", clock)
    troupe(monkeypatch, Obedient(clock))
    return clock


def troupe(monkeypatch: pytest.MonkeyPatch, players: Obedient) -> None:
    def play(plan: LivePlan, audience: Audience) -> LiveScene:
        return acts.play_with(players, plan, audience)

    monkeypatch.setattr(demo_live, "play", play)


def run(*arguments: str) -> object:
    return demo.main(list(arguments), standalone_mode=False)


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int = 80, height: int = 24) -> Terminal:
    terminal = Terminal()

    def console(highlight: bool) -> Console:
        return Console(
            file=terminal,
            force_terminal=True,
            width=width,
            height=height,
            highlight=highlight,
            color_system="standard",
            legacy_windows=False,
            _environ={"TERM": "xterm"},
        )

    monkeypatch.setattr(demo_live, "Console", console)
    return terminal


# One screen


@pytest.mark.parametrize("members", [3, 15, 16, 17, 60, 100])
@pytest.mark.parametrize("width, height", [(64, 18), (80, 24), (120, 40)])
@pytest.mark.parametrize("cut", [False, True])
def test_every_screen_fits(members: int, width: int, height: int, cut: bool) -> None:
    lines = drawn(scene_of(members, cut=cut), width, height)
    assert len(lines) == height
    assert max(len(line) for line in lines) <= width


def test_each_member_has_its_row() -> None:
    lines = drawn(scene_of(15), 80, 24)
    assert "\N{BLACK CHESS QUEEN}m01" in lines[3]
    assert lines[3].split()[1:7] == ["4000000", "leads", "m01", "123", "15", "500.0"]
    assert lines[4].split() == ["m02", "4000001", "killed"]
    assert lines[5].split() == ["m03", "4000002", "paused"]
    assert lines[6].split()[2:4] == ["running", "m01"]
    assert "13 live" in lines[-1]
    assert "leader m01" in lines[-1]
    assert "6500 messages/s, 500.0 each" in lines[-1]


def test_members_that_do_not_fit_are_counted() -> None:
    shown = "\n".join(drawn(scene_of(100), 64, 18))
    assert "m001\N{RIGHTWARDS ARROW}m001 t123" in shown
    listed = sum(f"m{number:03}" in shown for number in range(1, 101))
    assert f"... and {100 - listed} more" in shown
    assert "more" not in "\n".join(drawn(scene_of(60), 80, 24))


def test_two_leaders_are_called_so() -> None:
    assert not any("LEADERS" in line for line in drawn(scene_of(15), 80, 24))
    lines = drawn(scene_of(15, cut=True), 80, 24)
    assert any("2 LEADERS: m01 and m15" in line for line in lines)
    [first] = [line for line in lines if line.startswith("\N{BLACK CHESS QUEEN}m01 ")]
    [last] = [line for line in lines if line.startswith("\N{BLACK CHESS QUEEN}m15 ")]
    assert "side A" in first
    assert "side B" in last


def test_a_terminal_that_knows_ascii_only_gets_ascii() -> None:
    for members in (15, 60):
        text = "".join(drawn(scene_of(members, cut=True), 80, 24, "ascii"))
        assert text.isascii()


def test_acts_that_missed_are_marked() -> None:
    scene = scene_of(5)
    one = LiveAct("start", "", 0.0, 0.1, 0.1, (), ("m1",), 1, 5)
    scene.acts = [one, LiveAct("kill", "", 0.0, 0.1, None, (), (), 1, 5, "no agreement")]
    strip = drawn(scene, 80, 24)[1]
    assert "\N{HEAVY CHECK MARK}start" in strip
    assert "\N{MULTIPLICATION SIGN}kill" in strip
    assert "\N{BLACK RIGHT-POINTING TRIANGLE}cut" in strip


# The command


def test_in_a_pipe_lines_tell_it(stage: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--members", "5", "--protocol", "bully") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    lines = out.splitlines()
    assert lines[0] == "hustings demo: bully, 5 processes on this machine"
    assert "SIGKILL" in out
    for name in NAMES:
        assert sum(line.split()[1:3] == ["s", name] for line in lines) == 2, name
        assert any(line.startswith(f" {name} ") for line in lines), name


def test_on_a_terminal_pictures_show_it(stage: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    assert run("--members", "5") == 0
    live, table = terminal.getvalue().split(LEAVE)
    assert live.count(ENTER) == 1
    assert "LEADERS: " in live
    assert "paused" in live
    assert "all agree" in table
    pictures = live.count("\x1b[H")
    assert 100 < pictures < 250  # 8 a second, and one for each sentence


def test_plain_lines_on_a_terminal_if_asked(
    stage: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = on_terminal(monkeypatch)
    assert run("--members", "5", "--no-tty") == 0
    assert ENTER not in terminal.getvalue()
    small = on_terminal(monkeypatch, 50, 12)
    assert run("--members", "5") == 0
    assert ENTER not in small.getvalue()
    assert "64 columns and 18 rows" in capsys.readouterr().err


def test_a_script_gets_one_object(stage: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--seed", "4", "--seconds", "6") == 0
    out, err = capsys.readouterr()
    shown = json.loads(out)
    assert err == ""
    assert (shown["protocol"], shown["members"], shown["seed"]) == ("le-s", 15, 4)
    assert [act["name"] for act in shown["acts"]] == list(NAMES)
    assert shown["fine"] is True


@pytest.mark.parametrize("how", ["--no-tty", "--json"])
def test_what_was_missed_makes_it_fail(
    how: str,
    stage: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    troupe(monkeypatch, Stubborn(stage))
    assert run(how, "--members", "5") == 1
    assert "no agreement within" in capsys.readouterr().out.lower()


def test_an_error_of_a_process_is_told(
    stage: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(Obedient):
        def kill(self, name: str) -> None:
            raise HustingsError("member m3 ended: no space left")

    troupe(monkeypatch, Broken(stage))
    assert run("--no-tty", "--members", "5") == 1
    assert capsys.readouterr().err == "hustings: note: member m3 ended: no space left\n"


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_end_it_in_good_order(
    number: signal.Signals,
    code: int,
    stage: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Hit(Obedient):
        def kill(self, name: str) -> None:
            signal.raise_signal(number)

    before = signal.getsignal(number)
    terminal = on_terminal(monkeypatch)
    troupe(monkeypatch, Hit(stage))
    assert run("--members", "5") == code
    assert capsys.readouterr().err == f"hustings: stopped by {number.name}\n"
    assert terminal.getvalue().count(ENTER) == terminal.getvalue().count(LEAVE) == 1
    assert signal.getsignal(number) is before


def test_ctrl_c_gives_the_terminal_back(
    stage: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Hit(Obedient):
        def kill(self, name: str) -> None:
            signal.raise_signal(signal.SIGINT)

    terminal = on_terminal(monkeypatch)
    troupe(monkeypatch, Hit(stage))
    assert run("--members", "5") == 130
    assert capsys.readouterr().err == "hustings: interrupted\n"
    shown = terminal.getvalue()
    assert shown.count(ENTER) == shown.count(LEAVE) == 1
    assert "all agree" not in shown


# Wrong input


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("--members", "0"), "members must lie between 3 and 100, not 0"),
        (("--members", "1"), "members must lie between 3 and 100, not 1"),
        (("--members", "10000"), "members must lie between 3 and 100, not 10000"),
        (("--seconds", "0"), "seconds must lie above 0 and be at most 3600, not 0"),
        (("--seconds", "inf"), "seconds must lie above 0 and be at most 3600, not inf"),
    ],
)
def test_wrong_input_gets_a_sentence(arguments: Sequence[str], sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        run(*arguments)
    assert str(caught.value) == sentence


def test_an_unknown_protocol_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'bully'"):
        run("--protocol", "buly")
    with pytest.raises(BadInput, match="is for study"):
        run("--protocol", "le-s-printed")
