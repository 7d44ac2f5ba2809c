"""The log of an agent, and of `hustings run`: one event per line on stderr, as JSON or for people.

The reader of the log may be slow or stuck, and a member must not wait for it. So lines go through a
bounded queue to a thread of their own. Lines that do not fit are counted and dropped.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self, TextIO

from hustings.core.errors import printable
from hustings.net.logs import NAME, NOTE

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
_ROOM = 4096  # lines
_LAST_WORDS_S = 1.0  # seconds that an agent that ends waits for its log


def timestamp(seconds: float) -> str:
    """A moment as text, in universal time.

    >>> timestamp(0.25)
    '1970-01-01T00:00:00.250Z'
    """
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class EventLog(Protocol):
    """Where events are written."""

    def debug(self, event: str, message: str, **fields: object) -> None: ...
    def info(self, event: str, message: str, **fields: object) -> None: ...
    def warning(self, event: str, message: str, **fields: object) -> None: ...
    def error(self, event: str, message: str, **fields: object) -> None: ...


class SilentLog:
    """A log that nobody reads."""

    def debug(self, event: str, message: str, **fields: object) -> None:
        """Write nothing."""

    info = warning = error = debug


class Log:
    """`with Log(...) as log: log.info("joined", "web-1 has joined", group="billing")`."""

    def __init__(
        self,
        stream: TextIO,
        form: str = FORMATS[0],
        level: str = "info",
        source: str | None = None,
        common: Mapping[str, object] | None = None,
    ) -> None:
        """`source` begins each line for people, in place of the event's group.

        `common` are fields of every event.
        """
        self._source = source
        self._common = dict(common or {})
        self._stream = stream
        self._json = form == "json"
        self._least = LEVELS.index(level)
        self._lines: queue.Queue[str | None] = queue.Queue(_ROOM)
        self._dropped = 0
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._lines.put(None, timeout=_LAST_WORDS_S)
        except queue.Full:
            return  # the reader is stuck: the thread ends with the process
        self._writer.join(_LAST_WORDS_S)

    def debug(self, event: str, message: str, **fields: object) -> None:
        """Log details for the search of an error."""
        self._say(0, event, message, fields)

    def info(self, event: str, message: str, **fields: object) -> None:
        """Log an event."""
        self._say(1, event, message, fields)

    def warning(self, event: str, message: str, **fields: object) -> None:
        """Log something that may need attention."""
        self._say(2, event, message, fields)

    def error(self, event: str, message: str, **fields: object) -> None:
        """Log something that needs attention."""
        self._say(3, event, message, fields)

    def _say(self, level: int, event: str, message: str, fields: dict[str, object]) -> None:
        if level < self._least:
            return
        line = self._line(level, event, message, fields)
        if self._dropped:
            told = f"{self._dropped} lines of this log were dropped: nobody read them in time"
            line = f"{self._line(2, 'log-full', told, {'dropped': self._dropped})}\n{line}"
        try:
            self._lines.put_nowait(line)
            self._dropped = 0
        except queue.Full:
            self._dropped += 1

    def _line(self, level: int, event: str, message: str, fields: dict[str, object]) -> str:
        when = timestamp(time.time())
        if self._json:
            head = {"time": when, "level": LEVELS[level], "event": event, "message": message}
            return json.dumps({**head, **self._common, **fields}, default=str)
        source = self._source or fields.get("group")
        told = f"{source}: {message}" if source else message
        line = f"{when} {LEVELS[level]:7} {printable(told)}"
        # No line of a traceback can pass for a line of the log: those begin with the time.
        trace = str(fields.get("trace", "")).splitlines()
        return "\n".join([line, *(f"    {printable(each)}" for each in trace)])

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._put(line + "\n")
            except (OSError, ValueError):
                return  # the reader is gone for ever; the queue fills and lines are dropped

    def _put(self, text: str) -> None:
        """Write past the stream's buffer if the stream has a file.

        The interpreter flushes that buffer when it ends, and could wait for a reader for ever.
        """
        try:
            number = self._stream.fileno()
        except (OSError, ValueError, AttributeError):
            self._stream.write(text)
            self._stream.flush()
            return
        data = text.encode(errors="backslashreplace")
        while data:
            data = data[os.write(number, data) :]


@contextmanager
def bridged(log: EventLog) -> Iterator[None]:
    """While this lasts, warnings and errors of libraries are events of the log."""
    bridge = Bridge(log)
    logging.getLogger().addHandler(bridge)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(bridge)


class Bridge(logging.Handler):
    """Turns log records of libraries into our events."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one record. A member's notes come another way: its daemon asks for them."""
        event, told = "library", record.getMessage()
        say = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        fields: dict[str, object] = {"logger": record.name}
        if record.exc_info:
            fields["trace"] = logging.Formatter().formatException(record.exc_info)
        if record.name == NAME:
            event, told = record.__dict__.get("event", event), record.__dict__.get("sentence", told)
            fields = {"group": record.__dict__.get("group"), **fields}
        if event != NOTE:
            say(event, " ".join(told.split()), **fields)
