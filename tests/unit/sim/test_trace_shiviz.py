"""The ShiViz log: its form, and that its clocks tell exactly what happened before what."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given

from hustings.core.outcome import Elected
from hustings.sim.selection import Heartbeats, Options
from hustings.sim.shiviz import PARSER, Stamped, draw_shiviz, member_of, stamp
from hustings.sim.trace import Changed, Declared, Fired, Received, Record, Sent
from hustings.sim.trace_read import Trace
from tests.unit.sim.traces import (
    Heartbeat,
    Note,
    leader_crash,
    read,
    records,
    trace_of,
    turmoil,
)

# The page's way of writing a named group is Python's but for one letter.
ENTRY = re.compile(PARSER.replace("(?<", "(?P<"))


def entries(text: str) -> list[tuple[str, str, dict[str, int]]]:
    """The log as ShiViz reads it."""
    parser, delimiter, rest = text.split("\n", 2)
    assert (parser, delimiter) == (PARSER, "")
    found = [(m["event"], m["host"], json.loads(m["clock"])) for m in ENTRY.finditer(rest)]
    assert len(found) * 2 == rest.count("\n"), "every line belongs to an entry"
    return found


def happened_before(trace: Trace) -> list[set[int]]:
    """For each event its causes, found without clocks: by following the edges backwards."""
    events = [event for event in trace.events if member_of(event) is not None]
    last: dict[int, int] = {}
    sends: dict[int, int] = {}
    causes: list[set[int]] = []
    for place, event in enumerate(events):
        member = member_of(event)
        assert member is not None
        direct = [last[member]] if member in last else []
        if isinstance(event, Received):
            direct.append(sends[event.n])
        if isinstance(event, Sent):
            sends[event.n] = place
        causes.append({*direct}.union(*(causes[one] for one in direct)))
        last[member] = place
    return causes


def precedes(one: Stamped, other: Stamped) -> bool:
    return one.clock[one.member] <= other.clock.get(one.member, 0)


def check_clocks(trace: Trace) -> None:
    stamped = list(stamp(trace.events))
    causes = happened_before(trace)
    assert len(stamped) == len(causes)
    for later, other in enumerate(stamped):
        for earlier, one in enumerate(stamped):
            if earlier != later:
                assert precedes(one, other) == (earlier in causes[later])


@given(records(most=25))
def test_clocks_tell_what_happened_before_what(made: list[Record]) -> None:
    check_clocks(trace_of(made, members=4))


@pytest.mark.parametrize("data", [leader_crash(4), turmoil()])
def test_clocks_of_real_runs(data: bytes) -> None:
    check_clocks(read(data))


@given(records())
def test_the_log_has_the_form_that_shiviz_reads(made: list[Record]) -> None:
    trace = trace_of(made, members=4)
    counted: dict[str, int] = {}
    for event, host, clock in entries(draw_shiviz(trace).text):
        assert event
        counted[host] = counted.get(host, 0) + 1
        assert clock[host] == counted[host], "a host's own clock counts its events from 1"
        assert all(0 < time <= counted[other] for other, time in clock.items())
    own = [event for event in trace.events if member_of(event) is not None]
    assert sum(counted.values()) == len(own)


def test_the_words() -> None:
    made: list[Record] = [
        Changed(0.0, 1, "up", 1),
        Sent(0.5, 1, 1, 2, Note("hi\nthere")),
        Sent(0.5, 1, 2, None, Note("all")),
        Received(1.5, 2, 1),
        Fired(2.0, 2, "T1"),
        Declared(2.0, 2, Elected(2, 3)),
    ]
    assert draw_shiviz(trace_of(made)).text.splitlines()[2:] == [
        "t=0 up, incarnation 1",
        'member-1 {"member-1":1}',
        't=0.5 sends #1 NOTE("hi\\nthere") to 2',
        'member-1 {"member-1":2}',
        't=0.5 sends #2 NOTE("all") to all',
        'member-1 {"member-1":3}',
        't=1.5 receives #1 NOTE("hi\\nthere") from 1',
        'member-2 {"member-1":2,"member-2":1}',
        "t=2 timer T1",
        'member-2 {"member-1":2,"member-2":2}',
        "t=2 leads, term 3",
        'member-2 {"member-1":2,"member-2":3}',
    ]


def test_what_does_not_fit_is_told() -> None:
    made: list[Record] = [Sent(0.0, 1, 1, 2, Heartbeat())]
    made += [Sent(1.0, m, n, 3, Note()) for n, m in ((2, 2), (3, 2), (4, 2))]
    made += [Received(2.0, 3, n) for n in (1, 2, 3, 4)]
    trace = trace_of(made)
    hidden = draw_shiviz(trace, Options(heartbeats=Heartbeats.HIDDEN))
    assert "HEARTBEAT" not in hidden.text
    assert hidden.left_out == ("failure detectors: 1 messages and 0 timers are hidden",)
    short = draw_shiviz(trace, Options(max_events=3, since=1.5))
    assert len(entries(short.text)) == 3
    assert short.left_out[0].startswith("only the first 3 events are drawn, to t = 1")
    few = draw_shiviz(trace, Options(max_members=2))
    assert {host for _, host, _ in entries(few.text)} == {"member-2", "member-3"}
    assert all("member-1" not in clock for _, _, clock in entries(few.text))
