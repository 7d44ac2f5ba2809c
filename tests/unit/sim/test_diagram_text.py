"""The run log: readable, as wide as asked for, and harmless whatever the trace says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.outcome import Elected, NoLeader
from hustings.sim.selection import Heartbeats, Options
from hustings.sim.terminal import draw_text
from hustings.sim.trace import Changed, Declared, Fired, Linked, Lost, Received, Record, Sent, Told
from tests.unit.sim.traces import (
    Heartbeat,
    Note,
    leader_crash,
    read,
    records,
    trace_of,
    turmoil,
)

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("plain", [False, True])
def test_the_bully_s_textbook_run(plain: bool, rewrite: bool) -> None:
    text = draw_text(read(leader_crash(4)), plain=plain).text
    golden = GOLDEN / ("bully-4-ascii.txt" if plain else "bully-4.txt")
    if rewrite:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


EVERYTHING: list[Record] = [
    Changed(0.0, 1, "up", 1),
    Changed(0.0, 2, "up", 1),
    Changed(0.0, 3, "up", 1),
    Told(0.0, 2, "call"),
    Sent(0.0, 2, 1, 1, Note()),
    Sent(0.0, 2, 2, 3, Note()),
    Sent(0.0, 2, 3, None, Note()),
    Lost(0.0, 3, None, "loss"),
    Received(1.0, 3, 2),
    Lost(1.0, 1, 1, "cut"),
    Declared(1.5, 3, Elected(3, 1)),
    Fired(2.0, 1, "T1"),
    Changed(2.0, 3, "paused", 1),
    Told(2.25, 1, "suspect", 3),
    Changed(3.0, 3, "up", 1),
    Linked(3.0, "partition", "split", ((1, 2), (3,))),
    Declared(3.5, 1, NoLeader("")),
    Changed(4.0, 3, "crashed", 1),
    Linked(4.0, "heal", "split"),
    Changed(5.0, 3, "up", 2),
    Changed(6.0, 2, "left", 1),
    Fired(7.0, 3, "T2"),
]


def test_every_sign() -> None:
    text = draw_text(trace_of(EVERYTHING), plain=True, width=80).text
    assert text == (
        "  time  1    2    3\n"
        " 0.000  ^    ^    ^    1-3 start\n"
        "        |    !    |    2 calls an election\n"
        "        <----o---->    2 sends NOTE to 1, 3\n"
        "        <----o---->    2 sends NOTE to all\n"
        "        |    x    |    lost: NOTE from 2 to all (loss)\n"
        " 1.000  |    |    v    3 receives NOTE from 2\n"
        "        x    |    |    lost: NOTE from 2 to 1 (cut)\n"
        " 1.500  |    |    *    3 leads, term 1\n"
        " 2.000  t    |    H    1: timer T1\n"
        "        |    |    =    3 pauses\n"
        " 2.250  !    |    :    1 suspects 3\n"
        " 3.000  |    |    ^    3 goes on\n"
        "        |~~~~|~~~~H    links cut: split: 1, 2 | 3\n"
        " 3.500  0    |    H    1 has no leader\n"
        " 4.000  |    |    X    3 crashes\n"
        "        |~~~~|~~~~.    links healed: split\n"
        " 5.000  |    |    ^    3 restarts as incarnation 2\n"
        " 6.000  |    _    |    2 leaves\n"
        " 7.000  |         t    3: timer T2\n"
        "ended: quiescent at t = 7\n"
    )


def test_messages_in_one_go_share_a_row() -> None:
    made: list[Record] = [Sent(0.0, 1, n, n + 1, Note()) for n in (1, 2, 3)]
    made += [Sent(1.0, n + 1, n + 3, 1, Note()) for n in (1, 2, 3)]
    made += [Received(2.0, 1, n) for n in (4, 5, 6)]
    rows = draw_text(trace_of(made, members=4), plain=True).text.splitlines()
    assert rows[1].endswith("1 sends NOTE to 2-4")
    assert rows[1].split()[1] == "o---->---->---->"
    assert [row[-17:] for row in rows[2:5]] == [
        "2 sends NOTE to 1",
        "3 sends NOTE to 1",
        "4 sends NOTE to 1",
    ]
    assert rows[5].endswith("1 receives NOTE from 2-4")


def test_a_long_arrow_crosses_lifelines() -> None:
    made: list[Record] = [Changed(0.0, m, "up", 1) for m in (1, 2, 3)]
    made.append(Sent(1.0, 3, 1, 1, Note()))
    assert "<----+----o    3 sends NOTE to 1" in draw_text(trace_of(made), plain=True).text
    assert "◂────┼────●    3 sends NOTE to 1" in draw_text(trace_of(made)).text


@pytest.mark.parametrize(
    "members, width, head",
    [
        (3, 100, "  time  1    2    3"),
        (9, 80, "  time  1   2   3   4   5   6   7   8   9"),
        (12, 80, "  time  1  2  3  4  5  6  7  8  9  10 11 12"),
        (20, 80, "                          1 1 1 1 1 1 1 1 1 1 2"),
        (30, 80, "  time"),
    ],
)
def test_columns_draw_together_as_the_group_grows(members: int, width: int, head: str) -> None:
    text = draw_text(read(leader_crash(members)), width=width).text
    assert text.startswith(head)
    assert max(map(len, text.splitlines())) <= width


def test_a_part_of_a_run_begins_with_the_state_of_that_time() -> None:
    text = draw_text(trace_of(EVERYTHING), Options(since=5.0, until=6.0), plain=True).text
    assert text.splitlines()[1:] == [
        " 5.000  |    |    ^    3 restarts as incarnation 2",
        " 6.000  |    _    |    2 leaves",
        "ended: quiescent at t = 7",
    ]


def test_what_is_left_out_is_told() -> None:
    made: list[Record] = [Sent(0.0, 1, 1, 2, Heartbeat()), Received(1.0, 2, 1)]
    made += [Fired(2.0, 1, "T") for _ in range(5)]
    options = Options(heartbeats=Heartbeats.HIDDEN, max_events=3, max_members=1)
    drawing = draw_text(trace_of(made), options)
    assert len(drawing.left_out) == 3
    for sentence in drawing.left_out:
        assert f"left out: {sentence}" in drawing.text.splitlines()
    assert "HEARTBEAT" not in drawing.text


def test_only_ascii_is_written_when_asked() -> None:
    assert draw_text(read(turmoil()), plain=True).text.isascii()
    assert not draw_text(read(turmoil())).text.isascii()


@given(records(), st.integers(0, 120), st.booleans())
def test_any_trace_gives_clean_rows_within_the_width(
    made: list[Record], width: int, plain: bool
) -> None:
    drawing = draw_text(trace_of(made, members=4), width=width, plain=plain)
    *rows, end = drawing.text.splitlines()
    assert "\n".join([*rows, end, ""]) == drawing.text
    assert all(row.isprintable() for row in rows)
    assert all(len(row) <= max(width, 40) for row in rows if not row.startswith("left out"))
    assert end.startswith("ended: ")


def test_escape_sequences_wide_and_combining_characters_are_kept_out() -> None:
    evil = "\x1b[2J\u202ea\u0301\u4e16"
    text = draw_text(trace_of([Fired(0.0, 1, evil)])).text
    assert "timer \ufffd[2J\ufffda??" in text
