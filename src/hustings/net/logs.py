"""The log of members: the logger `hustings` of the standard library.

INFO      this member begins or ceases to lead, in the ordinary course of things
WARNING   somebody should look: a stall, a lease that ended, a job that raised, a seed that is wrong
ERROR     the member or its job cannot go on
DEBUG     what other members do

A record has `event`, `group`, `member`, `term`, `token` and `reason` beside its message, for
handlers that write structured logs. The package itself installs no handler but one that does
nothing: the program decides.

Law: a log record never harms a member. A handler of the program may be slow, and then it is slow
for the whole event loop; an error in it goes no further than here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

NAME = "hustings"
LOGGER = logging.getLogger(NAME)
LOGGER.addHandler(logging.NullHandler())

DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR

NOTE = "note"  # the event of a sentence about the member itself


class MemberLog:
    """Writes records about one member."""

    __slots__ = ("_group", "_member")

    def __init__(self, group: str, member: str) -> None:
        self._group = group
        self._member = member

    def say(
        self,
        level: int,
        event: str,
        sentence: str,
        *,
        term: int | None = None,
        token: int | None = None,
        reason: str | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Write one record."""
        if not LOGGER.isEnabledFor(level):
            return
        fields = {
            "event": event,
            "group": self._group,
            "member": self._member,
            "term": term,
            "token": token,
            "reason": reason,
            "sentence": sentence,
        }
        text = f"{self._group}/{self._member}: {sentence}"
        with suppress(Exception):
            try:
                LOGGER.log(level, "%s", text, extra=fields, exc_info=error)
            except KeyError:  # the program's own records have a field of one of these names
                LOGGER.log(level, "%s", text, exc_info=error)

    def note(self, sentence: str) -> None:
        """Write a sentence that somebody should read."""
        self.say(WARNING, NOTE, sentence)


def unconfigured() -> bool:
    """Whether the program has said nothing about what becomes of our records."""
    ours = [each for each in LOGGER.handlers if not isinstance(each, logging.NullHandler)]
    return not ours and not logging.root.handlers and LOGGER.level == logging.NOTSET


@contextmanager
def handled_by(handler: logging.Handler) -> Iterator[None]:
    """While this lasts, a handler gets our records, from INFO on."""
    LOGGER.addHandler(handler)
    LOGGER.setLevel(INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(logging.NOTSET)


class _Teller(logging.Handler):
    def __init__(self, group: str, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._group = group
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "group", None) == self._group and getattr(record, "event", "") == NOTE:
            self._tell(getattr(record, "sentence", record.getMessage()))


@contextmanager
def notes_of(group: str, tell: Callable[[str], None]) -> Iterator[None]:
    """While this lasts, `tell` gets each sentence that members of a group write as a note."""
    teller = _Teller(group, tell)
    LOGGER.addHandler(teller)
    try:
        yield
    finally:
        LOGGER.removeHandler(teller)
