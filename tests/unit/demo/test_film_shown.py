"""The simulated demo on a terminal, in a pipe, and for a script."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest
from rich.console import Console

from hustings.cli import demo_film as cli
from hustings.cli.demo import demo
from hustings.core.errors import BadInput, UnknownName
from hustings.demo.simulated.film import Film
from hustings.demo.simulated.picture import draw
from hustings.demo.simulated.story import play
from hustings.demo.simulated.telling import transcript
from hustings.protocols.bully import Bully

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"  # the terminal's second screen
SIZES = [(80, 24), (64, 18), (120, 40)]


def run(*arguments: str) -> object:
    return demo.main(["--simulated", *arguments], standalone_mode=False)


class Terminal(io.TextIOWrapper):
    """Takes what is written, and says that somebody looks."""

    def __init__(self, encoding: str) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding=encoding, newline="")

    def isatty(self) -> bool:
        return True

    def getvalue(self) -> str:
        self.flush()
        return self._bytes.getvalue().decode(self.encoding)


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, interrupt_at: float = float("inf")) -> None:
        self.now = 100.0
        self.stop = self.now + interrupt_at

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.stop:
            raise KeyboardInterrupt


def on_terminal(
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    size: tuple[int, int] = (80, 24),
    encoding: str = "utf-8",
) -> Terminal:
    """Let the demo find a terminal of this size and a clock of ours."""
    terminal = Terminal(encoding)

    def console(highlight: bool) -> Console:
        return Console(
            file=terminal,
            force_terminal=True,
            width=size[0],
            height=size[1],
            highlight=highlight,
            color_system="standard",
            legacy_windows=False,
            _environ={"TERM": "xterm"},
        )

    monkeypatch.setattr(cli, "Console", console)
    monkeypatch.setattr(cli, "time", clock)
    return terminal


# In a pipe


@pytest.mark.parametrize("arguments", [(), ("--no-tty",)])
def test_without_a_terminal_the_story_is_told_in_lines(
    arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 0
    out, err = capsys.readouterr()
    told = "\n".join(transcript(play(Bully, 9, 1)))
    assert out.startswith(told)
    assert "\x1b" not in out
    assert err == ""
    rest = out[len(told) :]
    assert "verdict" in rest
    for name in ("elect", "crash", "partition", "heal", "return", "pause", "resume"):
        assert f"\n {name} " in rest


def test_on_a_terminal_too_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch, Clock())
    assert run("--no-tty") == 0
    assert ENTER not in terminal.getvalue()
    assert "Act 7: resume" in terminal.getvalue()


def test_options_reach_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--protocol", "ring", "--members", "5", "--seed", "4", "--json") == 0
    out, err = capsys.readouterr()
    shown = json.loads(out)
    assert err == ""
    assert (shown["protocol"], shown["members"], shown["seed"]) == ("ring", 5, 4)
    assert shown["guarantee"] == "advisory"
    assert [act["name"] for act in shown["acts"]][:2] == ["elect", "crash"]
    crash = shown["acts"][1]
    assert crash["leaders_before"] == [5]
    assert crash["leaders_after"] == [4]
    assert crash["agreed"] is True
    assert crash["messages"].keys() == {"ELECTION", "ELECTED"}
    assert crash["time"] < crash["ended"] - crash["began"]
    assert shown["acts"][2]["verdict"] == "two leaders"


# On a terminal


def test_the_show_lasts_as_long_as_asked_and_leaves_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    terminal = on_terminal(monkeypatch, clock)
    assert run("--seconds", "5") == 0
    assert clock.now == pytest.approx(105.0, abs=0.1)
    shown = terminal.getvalue()
    assert shown.count(ENTER) == shown.count(LEAVE) == 1
    live, table = shown.split(LEAVE)
    assert "LEADERS: 8 and 7" in live
    assert "ADVISORY" in live
    assert "verdict" in table
    assert "two leaders" in table


def test_ctrl_c_gives_the_terminal_back_and_says_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = on_terminal(monkeypatch, Clock(interrupt_at=2.0))
    assert run() == 130
    assert capsys.readouterr().err == "hustings: interrupted\n"
    shown = terminal.getvalue()
    assert shown.count(ENTER) == shown.count(LEAVE) == 1
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back
    assert "verdict" not in shown


def test_a_terminal_too_small_for_the_picture_gets_the_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = on_terminal(monkeypatch, Clock(), (50, 12))
    assert run() == 0
    assert "64 columns and 18 rows" in capsys.readouterr().err
    assert ENTER not in terminal.getvalue()
    assert "Act 1: elect" in terminal.getvalue()


@pytest.mark.parametrize("members", [3, 9, 40])
@pytest.mark.parametrize("width, height", SIZES)
def test_every_screen_fits(members: int, width: int, height: int) -> None:
    film = Film(play(Bully, members, 1))
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True)
    for step in range(41):
        lines = console.render_lines(
            cli.screen(console, film, film.at(film.end * step / 40)), console.options, pad=False
        )
        assert len(lines) == height
        assert max(sum(segment.cell_length for segment in line) for line in lines) <= width


def test_every_kind_of_message_is_counted_on_the_screen() -> None:
    film = Film(play(Bully, 9, 1))
    act = film.play.acts[1]
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    with console.capture() as capture:
        console.print(cli.screen(console, film, film.at(act.ended)), no_wrap=True)
    shown = capture.get()
    for kind, count in act.messages.items():
        assert f"{kind} {count} " in shown


def test_the_newest_line_of_the_ticker_stands_at_the_bottom() -> None:
    film = Film(play(Bully, 9, 1))
    crash = film.play.acts[1]
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    lines = [
        "".join(segment.text for segment in line)
        for line in console.render_lines(cli.screen(console, film, film.at(crash.began + 0.1)))
    ]
    ticker = [line.partition("\N{BOX DRAWINGS LIGHT VERTICAL}")[2].strip() for line in lines]
    told = [line for line in ticker if line]
    assert told[-1] == f"{crash.began:.1f} 9 crashes"
    times = [float(line.split()[0]) for line in told]
    assert times == sorted(times)


def test_a_terminal_that_knows_ascii_only_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch, Clock(), encoding="ascii")
    assert run("--seconds", "3") == 0
    assert terminal.getvalue().isascii()
    assert "[*9]" in terminal.getvalue()


def test_every_style_has_a_meaning() -> None:
    film = Film(play(Bully, 9, 1))
    for step in range(200):
        rows = draw(film, film.at(film.end * step / 200), 49, 16)
        for _, name in (piece for row in rows for piece in row):
            assert name == "" or cli.style_of(name) != ""


# Wrong input


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("--members", "2"), "members must lie between 3 and 40, not 2"),
        (("--members", "41"), "members must lie between 3 and 40, not 41"),
        (("--seconds", "0"), "seconds must lie above 0 and be at most 3600, not 0"),
        (("--seconds", "-3"), "seconds must lie above 0 and be at most 3600, not -3"),
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
