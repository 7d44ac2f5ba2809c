"""One event per line, for programs or for people; and nobody waits for who does not read."""

from __future__ import annotations

import io
import json
import logging
import os
import threading

import pytest

from hustings.agent.logs import Bridge, Log
from tests.unit.agent.fake import PATIENCE_S
from tests.waiting import until


def test_json_lines() -> None:
    stream = io.StringIO()
    with Log(stream, "json") as diary:
        diary.info("joined", "web-1 is there\nand stays", group="billing", member="web-1")
        diary.debug("unheard", "nobody hears this")
        diary.error("broken", "ach", trace="a\nb")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "event": "joined",
        "message": "web-1 is there\nand stays",
        "group": "billing",
        "member": "web-1",
    }
    assert (second["level"], second["trace"]) == ("error", "a\nb")


def test_lines_for_people() -> None:
    stream = io.StringIO()
    with Log(stream, "text", "debug") as diary:
        diary.debug("heard", "hm", group="billing")
        diary.warning("note", "oh")
    first, second = stream.getvalue().splitlines()
    assert first.split(" ", 1)[1] == "debug   billing: hm"
    assert second.split(" ", 1)[1] == "warning oh"


def test_nothing_in_a_line_acts_on_a_terminal_or_forges_another() -> None:
    stream = io.StringIO()
    forged = "2026-01-01T00:00:00.000Z error   owned"
    with Log(stream, "text", "debug") as diary:
        diary.error(
            "bad", f"no\x1b[2J\u202e\n{forged}", group="g", trace=f"ValueError\n{forged}\x07"
        )
    first, *below = stream.getvalue().splitlines()
    assert first.endswith(rf"g: no\x1b[2J\u202e {forged}")
    assert below == ["    ValueError", rf"    {forged}\x07"]


def test_a_reader_that_is_stuck_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hustings.agent.logs._ROOM", 10)
    inside, go = threading.Event(), threading.Event()

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            inside.set()
            assert go.wait(PATIENCE_S)
            return super().write(text)

    stream = Stuck()
    with Log(stream, "json") as diary:
        diary.info("first", "1")
        assert inside.wait(PATIENCE_S)
        for number in range(25):
            diary.info("more", str(number))  # ten wait, the others are dropped, and this returns
        go.set()
        until(lambda: stream.getvalue().count("\n") == 11, "what waited")
        diary.info("last", "2")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["first", *["more"] * 10, "log-full", "last"]
    assert lines[-2]["dropped"] == 15


def test_a_reader_that_is_gone_ends_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w", buffering=1)
    with Log(stream) as diary:
        for number in range(100):
            diary.info("more", str(number))
    stream.close()  # nothing waits in it, which nobody could be given


def test_what_libraries_log() -> None:
    stream = io.StringIO()
    with Log(stream, "json") as diary:
        logger = logging.getLogger("tests.library")
        logger.propagate = False
        logger.addHandler(Bridge(diary))
        logger.warning("two\nlines %s", "here")
        try:
            raise ValueError("inside")
        except ValueError:
            logger.exception("bad")
        logger.info("not worth a line")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["message"], first["level"], first["logger"]) == (
        "two lines here",
        "warning",
        "tests.library",
    )
    assert "ValueError: inside" in second["trace"]
