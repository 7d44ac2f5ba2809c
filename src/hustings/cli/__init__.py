"""The command line: parsing and printing only.

The process starts here. This module also prepares the standard streams, even for a command that was
started without them. A closed stream is replaced before anything is opened. Otherwise the next
socket or file would become standard output, and text would be written into it. A failed write to
standard output raises `Unwritable`, and `hustings.cli.app` reports it in one sentence. A failed
write to standard error is ignored, and changes no exit code.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BAD_INPUT, INTERRUPTED = 2, 130


def main() -> None:
    """Entry point of `hustings`."""
    with ending_at_once():
        prepare_streams()
        try:
            from hustings.cli.app import run
        except ModuleNotFoundError as missing:
            _say(missing_package(missing))
            sys.exit(BAD_INPUT)
    code = run(sys.argv[1:])
    with ending_at_once():
        trouble = finish_streams()
        if trouble is not None:
            _say(f"cannot write to standard output: {trouble}")
            code = BAD_INPUT
        sys.exit(code)


def missing_package(error: ModuleNotFoundError) -> str:
    """How to install what the command line lacks; any other missing module is an error of ours."""
    name = (error.name or "").partition(".")[0]
    if name not in ("click", "rich"):
        raise error
    from hustings.extras import install_command

    return f"the command line needs {name}: {install_command('cli')}"


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process where there is nothing to clean up.

    While modules load, Ctrl-C would appear as an error of the module that is being loaded. A
    process that was told to ignore Ctrl-C continues to ignore it. Only the main thread gets Ctrl-C.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupted(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, b"hustings: interrupted\n")
    os._exit(INTERRUPTED)


def _say(sentence: str) -> None:
    with suppress(OSError):
        print(f"hustings: {sentence}", file=sys.stderr, flush=True)


# Standard streams


class Unwritable(Exception):
    """Standard output did not take what was written to it.

    This is not an `OSError`, so that no code takes it for an error of a file.
    """


class PipeClosed(Exception):
    """The reader of standard output has closed it."""


class _StandardOutput(io.FileIO):
    """Standard output; a failed write raises a different error from that of any other file."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise PipeClosed from None
        except BlockingIOError:
            raise
        except OSError as error:
            raise Unwritable(_why(error)) from None


class _StandardError(io.FileIO):
    """Standard error; failed writes are ignored, because the exit code tells the result."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(memoryview(data).cast("B"))


def _why(error: OSError) -> str:
    if error.errno == errno.EBADF:
        return "it is closed"
    return error.strerror or str(error)


def prepare_streams() -> None:
    """Prepare every standard stream."""
    closed = [number for number in range(3) if not _is_open(number)]
    for number in closed:
        # A closed standard output refuses writes, and so does a file opened for reading.
        mode = os.O_WRONLY if number == 2 else os.O_RDONLY
        opened = os.open(os.devnull, mode)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_StandardError(2, "w", closefd=False)),
        encoding=getattr(sys.stderr, "encoding", None),
        errors=getattr(sys.stderr, "errors", "backslashreplace"),
        line_buffering=True,
    )
    sys.stdout = _standard_output(sys.stdout)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _standard_output(before: TextIO | None) -> TextIO:
    raw = _StandardOutput(1, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None),
        errors=getattr(before, "errors", None),
        line_buffering=raw.isatty(),
    )


def finish_streams() -> str | None:
    """Write what is left; return why standard output did not take it, or None.

    Nothing is left afterwards that Python could complain about at exit.
    """
    trouble = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Unwritable as error:
            trouble = str(error)
            discard(stream)
        except (PipeClosed, OSError, ValueError):
            discard(stream)
    return trouble


def discard(stream: TextIO) -> None:
    """Discard everything that is still to be written to a stream."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
