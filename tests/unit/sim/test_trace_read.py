"""The reader: whatever the file holds, a trace or one sentence."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.core.outcome import Elected
from hustings.sim import trace_read
from hustings.sim.trace import (
    Changed,
    Declared,
    Fired,
    Footer,
    Heard,
    Linked,
    Lost,
    Missed,
    Received,
    Record,
    Sent,
    Told,
    new_digest,
    seal,
)
from hustings.sim.trace_read import Trace, kind, read_stream, read_trace, verify
from tests.unit.sim.traces import Note, leader_crash, read, records, trace_of, turmoil, written

EVERY: list[Record] = [
    Changed(0.0, 1, "up", 1),
    Told(0.0, 1, "suspect", 9),
    Sent(0.0, 1, 1, 2, Note("hello")),
    Sent(0.0, 1, 2, None, Note("all")),
    Received(1.0, 2, 1),
    Lost(1.0, 2, 3, "loss"),
    Fired(1.5, 1, "T1"),
    Declared(2.0, 1, Elected(1, 4)),
    Linked(2.0, "partition", "split", ((1,), (2, 3))),
]
GOOD = written(EVERY)
HEADER, *BODY, FOOTER = GOOD.splitlines(keepends=True)


def refusal(data: bytes) -> str:
    with pytest.raises(BadInput) as caught:
        read(data)
    sentence = str(caught.value)
    assert sentence.isprintable(), "a sentence is one line, whatever the file holds"
    assert "t.jsonl" in sentence
    return sentence


def trace_or_sentence(data: bytes) -> Trace | None:
    """What reading gives; None stands for a sentence, and anything else fails the test."""
    try:
        return read(data)
    except BadInput as error:
        sentence = str(error)
    assert sentence.isprintable()
    return None


def resealed(*body: bytes) -> bytes:
    """A file with these lines whose seal is right, as a forger would make it."""
    digest = new_digest()
    for one in (HEADER, *body):
        digest.update(one)
    footer = Footer(t=1e9, ended="quiescent", records=len(body), digest="")
    footer = msgspec.structs.replace(footer, digest=seal(digest, footer))
    return b"".join([HEADER, *body, msgspec.json.encode(footer), b"\n"])


def line(**fields: object) -> bytes:
    """A record: an array of the values, in the order given."""
    return json.dumps(list(fields.values())).encode() + b"\n"


# --- what is accepted -----------------------------------------------------------------------------


def test_every_record_comes_back() -> None:
    trace = read(GOOD)
    assert trace.header.members == [1, 2, 3]
    sent = trace.events[2]
    assert isinstance(sent, Sent)
    assert sent.msg == ["NOTE", "hello"]
    assert kind(sent) == "NOTE"
    plain = [event for event in trace.events if not isinstance(event, Sent)]
    assert plain == [event for event in EVERY if not isinstance(event, Sent)]
    assert trace.footer.records == len(EVERY)


def test_a_forged_file_with_a_right_seal_is_read() -> None:
    """Or the tests below would refuse for the wrong reason."""
    assert len(read(resealed(*BODY)).events) == len(EVERY)


def test_what_befell_many_at_once_is_read_one_by_one() -> None:
    sent: Record = Sent(0.0, 1, 1, None, Note("all"))
    data = written([sent, Heard(1.0, 1, [2]), Missed(1.0, 1, [3, 1], "loss")])
    trace = read(data)
    assert trace.events[1:] == [
        Received(1.0, 2, 1),
        Lost(1.0, 1, 3, "loss"),
        Lost(1.0, 1, 1, "loss"),
    ]
    assert trace.footer.records == 3
    few = trace_read.TraceReader(io.BytesIO(data), "t.jsonl", max_records=3)
    with pytest.raises(BadInput, match="has more than 3 records, the limit"):
        list(few)


@given(records())
def test_whatever_is_written_is_read_back(made: list[Record]) -> None:
    trace = trace_of(made, members=4)
    assert len(trace.events) == len(made)
    for event, record in zip(trace.events, made, strict=True):
        assert type(event) is type(record)
        if not isinstance(record, Sent):
            assert event == record


@pytest.mark.parametrize("data", [leader_crash(2), leader_crash(5), turmoil()])
def test_real_runs_are_read_back(data: bytes) -> None:
    trace = read(data)
    assert trace.footer.records == len(data.splitlines()) - 2 == len(trace.events)


def test_a_file_is_read_and_verified(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(GOOD)
    assert read_trace(path) == read_trace(str(path)) == read(GOOD)
    assert verify(path) == read(GOOD).footer


def test_the_last_newline_may_be_missing() -> None:
    assert read(GOOD.rstrip(b"\n")) == read(GOOD)


# --- files that are no traces ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, why",
    [
        (b"", "it is empty"),
        (b"\n", "no trace header"),
        (b"id,name\n1,a\n", "no trace header"),
        (b"{}\n", "no trace header"),
        (b"[1, 2]\n", "no trace header"),
        (b'{"e": "recv", "version": 1}\n', "no trace header"),
        (b'{"e": 1, "version": 1}\n', "no trace header"),
        (b'{"e": "hustings-trace"}\n', "no trace header"),
        (b"[" * 100_000, "no trace header"),
        (b"\xff\xfe{}\n", "no trace header"),
        (b'{"e": "\xff"}\n', "not UTF-8"),
        (gzip.compress(GOOD), "gzip data, which must be unpacked first"),
        (b"PK\x03\x04...", "zip data, which must be unpacked first"),
        (GOOD[1:], "no trace header"),
        (b"".join(BODY), "no trace header"),
    ],
)
def test_a_foreign_file_is_not_a_trace(data: bytes, why: str) -> None:
    sentence = refusal(data)
    assert sentence.startswith("t.jsonl is not a hustings trace: ")
    assert why in sentence


def test_an_endless_first_line_is_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_read, "MAX_LINE", 1000)
    assert "is not a hustings trace: its first line is longer than" in refusal(b"\0" * 5000)


@pytest.mark.parametrize("version", [2, 10**30, 0, -1])
def test_another_version_is_named(version: int) -> None:
    data = HEADER.replace(b'"version":1', f'"version":{version},"new":[1]'.encode())
    expected = f"t.jsonl is a trace of version {version}; this hustings reads version 1"
    assert refusal(data + FOOTER) == expected


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda header: header.replace(b"[1,2,3]", b"[]"), "names no member, or one twice"),
        (lambda header: header.replace(b"[1,2,3]", b"[1,2,1]"), "names no member, or one twice"),
        (lambda header: header.replace(b"[1,2,3]", b'["1"]'), "the header is broken"),
        (lambda header: header.replace(b"[1,2,3]", b"[%d]" % 2**70), "64 bits"),
        (lambda header: header.replace(b'"seed":7', b'"seed":"7"'), "the header is broken"),
        (lambda header: header.replace(b'"seed":7', b'"seed":7,"x":1'), "the header is broken"),
    ],
)
def test_a_broken_header_is_line_1(change: Callable[[bytes], bytes], why: str) -> None:
    sentence = refusal(change(HEADER) + FOOTER)
    assert sentence.startswith("t.jsonl, line 1: ")
    assert why in sentence


# --- files that were cut short or changed ---------------------------------------------------------


def test_every_cut_is_noticed() -> None:
    for length in range(len(GOOD) - 1):
        sentence = refusal(GOOD[:length])
        if length > len(HEADER):
            assert "is cut short" in sentence


@pytest.mark.parametrize(
    "data, sentence",
    [
        (HEADER, "t.jsonl is cut short: it ends after line 1, without a footer"),
        (HEADER + BODY[0], "t.jsonl is cut short: it ends after line 2, without a footer"),
        (HEADER + BODY[0][:-9], "t.jsonl is cut short: line 2, its last, breaks off"),
        (GOOD + b"\n", "t.jsonl goes on after its footer in line 11"),
        (GOOD + GOOD, "t.jsonl goes on after its footer in line 11"),
        (
            b"".join([HEADER, *BODY[:-1], FOOTER]),
            "t.jsonl has 8 records where its footer, line 10, counts 9: "
            "some are missing or were added",
        ),
        (
            GOOD.replace(b"hello", b"hallo"),
            "t.jsonl was changed after it was written: "
            "the digest in its footer, line 11, does not match",
        ),
        (
            GOOD.replace(b"quiescent", b"until"),
            "t.jsonl was changed after it was written: "
            "the digest in its footer, line 11, does not match",
        ),
    ],
)
def test_damage_is_told_apart(data: bytes, sentence: str) -> None:
    assert refusal(data) == sentence


# --- lines that are no records --------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad, why",
    [
        (b"\n", "no trace record"),
        (b"not json\n", "no trace record: JSON is malformed"),
        (b'["timer",1.0,1,"\xff"]\n', "the line is not UTF-8 text"),
        (line(e="nonsense", t=1.0), "no trace record: Invalid value 'nonsense'"),
        (line(t=1.0), "Expected `str`"),
        (line(e="timer", t=1.0, m=1), "of at least length"),
        (line(e="timer", t=1.0, m=1, key=5), "Expected `str`"),
        (line(e="timer", t=1.0, m=1.5, key=""), "Expected `int`"),
        (line(e="timer", t=1.0, m=1, key="", more=1), "of at most length 3"),
        (line(e="timer", t=-1.0, m=1, key=""), "time runs backwards, from 0 to -1"),
        (b'["timer",1e999,1,""]\n', "out of range"),
        (line(e="timer", t=1.0, m=4, key=""), "the header names no member 4"),
        (line(e="timer", t=1.0, m=10**400, key=""), "the header names no member 1000"),
        (line(e="send", t=1.0, m=1, n=2, to=None, msg=["X"]), "message 1 is expected, not 2"),
        (line(e="send", t=1.0, m=1, n=1, to=7, msg=["X"]), "the header names no member 7"),
        (line(e="send", t=1.0, m=1, n=1, to=2, msg=[]), "a message must begin with its kind"),
        (line(e="send", t=1.0, m=1, n=1, to=2, msg=[1]), "a message must begin with its kind"),
        (b'["send",1.0,1,1,2,' + b"[" * 9999 + b"\n", "too deeply"),
        (line(e="recv", t=1.0, m=1, n=1), "message 1 was not sent before"),
        (line(e="recv", t=1.0, m=1, n=0), "message 0 was not sent before"),
        (line(e="lost", t=1.0, n=-1, to=None, why=""), "message -1 was not sent before"),
        (line(e="heard", t=1.0, n=1, ms=[2]), "message 1 was not sent before"),
        (line(e="heard", t=1.0, n=1, ms=2), "Expected `array`"),
        (line(e="missed", t=1.0, n=0, ms=[2], why=""), "message 0 was not sent before"),
        (line(e="status", t=1.0, m=1, status="asleep", incarnation=1), "no status 'asleep'"),
        (line(e="links", t=1.0, what="heal", name="", sides=[[8]]), "names no member 8"),
        (line(e="hustings-trace", version=1), "no trace record"),
    ],
)
def test_a_bad_line_is_named(bad: bytes, why: str) -> None:
    sentence = refusal(resealed(bad))
    assert sentence.startswith("t.jsonl, line 2: ")
    assert why in sentence


def test_time_may_stand_still_but_not_turn_back() -> None:
    first, second = line(e="timer", t=2.0, m=1, key=""), line(e="timer", t=1.0, m=1, key="")
    assert len(read(resealed(first, first)).events) == 2
    assert refusal(resealed(first, second)) == "t.jsonl, line 3: time runs backwards, from 2 to 1"


def test_what_a_hostile_file_says_is_not_repeated_raw() -> None:
    kind = "\x1b[2J" + "\u202e" + "x" * 10_000
    sentence = refusal(resealed(line(e=kind, t=1.0)))
    assert len(sentence) < 300


# --- bounds ---------------------------------------------------------------------------------------


def test_long_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_read, "MAX_LINE", 200)
    long = line(e="timer", t=1.0, m=1, key="k" * 200)
    assert refusal(resealed(long)) == "t.jsonl, line 2: the line is longer than 200 bytes"


def test_the_stream_is_never_asked_for_more_than_a_line() -> None:
    class Endless(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert 0 < size <= trace_read.MAX_LINE + 1
            return b"x" * size

    with pytest.raises(BadInput, match="is not a hustings trace"):
        read_stream(Endless())


def test_too_many_records_and_bytes_are_refused() -> None:
    many = trace_read.TraceReader(io.BytesIO(GOOD), "t.jsonl", max_records=8)
    with pytest.raises(BadInput, match="has more than 8 records, the limit"):
        list(many)
    long = trace_read.TraceReader(io.BytesIO(GOOD), "t.jsonl", max_bytes=300)
    with pytest.raises(BadInput, match="is longer than 300 bytes, the limit"):
        list(long)


# --- files that cannot be read --------------------------------------------------------------------


def test_paths_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for place, why in [
        ("missing", f"there is no file {tmp_path}/missing"),
        (".", f"{tmp_path} is a directory, not a trace"),
        ("file/below", f"cannot read {tmp_path}/file/below: Not a directory"),
        ("x" * 300, "File name too long"),
        ("nul\0", "embedded null byte"),
    ]:
        with pytest.raises(BadInput) as caught:
            read_trace(tmp_path / place)
        assert why in str(caught.value)


def test_a_forbidden_file_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(path: object, mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", forbid)  # for the superuser nothing is forbidden
    with pytest.raises(BadInput, match=r"^cannot read run\.jsonl: Permission denied$"):
        read_trace("run.jsonl")


def test_a_failing_disk_is_one_sentence() -> None:
    class Failing(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(BadInput, match=r"^cannot read t\.jsonl: Input/output error$"):
        read_stream(Failing(), "t.jsonl")


# --- anything -------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_any_bytes_give_a_sentence(data: bytes) -> None:
    refusal(data)


@given(st.lists(st.binary(max_size=60).map(lambda b: b + b"\n"), max_size=5))
def test_any_lines_after_a_header_give_a_trace_or_a_sentence(body: list[bytes]) -> None:
    trace_or_sentence(resealed(*body))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
TAGS = st.sampled_from(
    [
        "send",
        "recv",
        "heard",
        "missed",
        "lost",
        "timer",
        "declare",
        "told",
        "status",
        "links",
        "end",
    ]
)
FIELDS = st.sampled_from(
    [
        "t",
        "m",
        "n",
        "to",
        "msg",
        "why",
        "key",
        "outcome",
        "what",
        "about",
        "status",
        "name",
        "sides",
    ]
)
NEAR = st.builds(lambda tag, rest: {"e": tag, **rest}, TAGS, st.dictionaries(FIELDS, JSON))


@given(st.lists(NEAR, min_size=1, max_size=4))
def test_anything_like_records_gives_a_trace_or_a_sentence(body: list[dict[str, object]]) -> None:
    trace_or_sentence(resealed(*(line(**fields) for fields in body)))


@given(st.data())
def test_a_damaged_trace_is_refused(data: st.DataObject) -> None:
    """No edit goes unnoticed, unless it leaves the trace as it was."""
    at = data.draw(st.integers(0, len(GOOD)))
    until = data.draw(st.integers(at, min(len(GOOD), at + 40)))
    damaged = GOOD[:at] + data.draw(st.binary(max_size=10)) + GOOD[until:]
    assert trace_or_sentence(damaged) in (None, read(GOOD))


def test_lines_in_another_order_are_refused() -> None:
    shuffler = random.Random(5)
    for _ in range(50):
        body = shuffler.sample(BODY, len(BODY))
        if body != BODY:
            refusal(b"".join([HEADER, *body, FOOTER]))
