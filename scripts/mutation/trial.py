"""Try mutants on tests: a plug-in of pytest that takes the place of its loop over the tests.

The tests are collected once. They run once in a child process that notes which functions each test
calls and how long it takes. Then every mutant gets a child process of its own, forked from here:
there the mutated function's code takes the place of the real one, and the tests that call it run,
the quickest first, until one fails. A mutant costs a fork and a few tests, no start of Python.

A busy machine must not look like a test that notices a mutant. A test that fails runs once more,
and has to fail again. A mutant that runs too long, or ends its process, is tried once more at the
end, alone and for longer. The exception is a mutant that used far more processor time than its
tests do: a busy machine is never the reason for that.
"""

from __future__ import annotations

import ast
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from scripts.mutation.operators import Mutant

KILLED, SURVIVED, UNCALLED, TIMEOUT = "killed", "survived", "uncalled", "timeout"
ENDLESS = "endless"  # a loop without end: it used far more of the processor than the tests do
_SLOWER = 4.0  # the wait is this many times as long as without a mutant
_SPARE = 20.0  # and this many seconds
_LONGEST = 240.0
_ALONE = 2.0  # times as long when it is tried again
_LARGEST = 2 << 30  # bytes that a process with a mutant may take
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>


@dataclass(frozen=True)
class Called:
    """One test as it ran without a mutant."""

    number: int
    seconds: float
    functions: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Running:
    """A mutant under way."""

    mutant: Mutant
    deadline: float
    work: float  # seconds of the processor that it may use
    process: int


@dataclass
class Trial:
    """The plug-in: mutants in, verdicts out."""

    mutants: Sequence[Mutant]
    jobs: int = 1
    scripts: Mapping[str, str] = field(default_factory=dict)  # path: the function that runs it
    verdicts: dict[str, str] = field(default_factory=dict)
    live: list[FunctionType] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # tests that fail without any mutant
    tests: int = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the mutants, instead of running the tests once."""
        self.tests = len(session.items)
        tell = session.config.get_terminal_writer()
        tell.line(f"\n{self.tests} tests, {len(self.mutants)} mutants")
        known = self._baseline(session)
        if self.failed:
            return True
        _adopt()
        self.live = functions_in({each.path for each in self.mutants})
        gc.collect()
        gc.freeze()  # children share more of it
        self._all(self.mutants, self.jobs, 1.0, known, session)
        slow = [each for each in self.mutants if self.verdicts[each.key] == TIMEOUT]
        tell.line(f"\n{len(slow)} came to no end and are tried alone")
        self._all(slow, 1, _ALONE, known, session)
        return True

    def _all(
        self,
        mutants: Sequence[Mutant],
        jobs: int,
        patience: float,
        known: dict[tuple[str, str], list[Called]],
        session: pytest.Session,
    ) -> None:
        tell = session.config.get_terminal_writer()
        waiting = list(reversed(mutants))
        running: dict[int, Running] = {}  # by pipe
        ours, done = _children(), 0
        with selectors.DefaultSelector() as selector:
            while waiting or running:
                while waiting and len(running) < jobs:
                    self._begin(waiting.pop(), patience, known, session, running, selector)
                self._collect(running, selector)
                _end_orphans(ours, {each.process for each in running.values()})
                if done != len(mutants) - len(waiting) - len(running):
                    done = len(mutants) - len(waiting) - len(running)
                    tell.write(f"\r{done} of {len(mutants)} tried ", flush=True)

    def _baseline(self, session: pytest.Session) -> dict[tuple[str, str], list[Called]]:
        paths = {os.path.abspath(each.path) for each in self.mutants}
        paths |= {os.path.abspath(each.split()[0]) for each in self.scripts.values()}
        text = _in_child(lambda: _watched(session, paths))
        told = json.loads(text or "[]")
        if not told:
            self.failed.append("the run without a mutant ended before its end")
        known: dict[tuple[str, str], list[Called]] = {}
        for number, (seconds, passed, functions) in enumerate(told):
            if not passed:
                self.failed.append(session.items[number].nodeid)
                continue
            called = Called(number, seconds, frozenset((path, name) for path, name in functions))
            for function in called.functions:
                known.setdefault(function, []).append(called)
        return known

    def _begin(
        self,
        mutant: Mutant,
        patience: float,
        known: dict[tuple[str, str], list[Called]],
        session: pytest.Session,
        running: dict[int, Running],
        selector: selectors.BaseSelector,
    ) -> None:
        script = mutant.path in self.scripts
        callers = [(mutant.path, mutant.function)]
        if script:  # its functions are also called where the trial cannot see it
            path, function = self.scripts[mutant.path].split()
            callers.append((path, function))
        found = {
            each.number: each
            for path, function in callers
            for each in known.get((os.path.abspath(path), function), [])
        }
        if not found:
            self.verdicts[mutant.key] = UNCALLED
            return
        tests = sorted(found.values(), key=lambda each: each.seconds)
        usual = sum(each.seconds for each in tests)
        deadline = time.monotonic() + patience * min(_LONGEST, _SLOWER * usual + _SPARE)
        items = [session.items[each.number] for each in tests]
        pipe, process = _fork(lambda: _try(mutant, self.live, items, script))
        running[pipe] = Running(mutant, deadline, 2 * usual + _SPARE, process)
        selector.register(pipe, selectors.EVENT_READ)

    def _collect(
        self,
        running: dict[int, Running],
        selector: selectors.BaseSelector,
    ) -> None:
        for key, _ in selector.select(timeout=0.1):
            one = running.pop(key.fd)
            selector.unregister(key.fd)
            verdict = os.read(key.fd, 64).decode()
            self.verdicts[one.mutant.key] = verdict or TIMEOUT  # it ended the process it ran in
            _end(one.process, key.fd)
        for pipe, one in list(running.items()):
            endless = _seconds_of(one.process) > one.work
            if endless or time.monotonic() > one.deadline or _bytes_of(one.process) > _LARGEST:
                del running[pipe]
                selector.unregister(pipe)
                self.verdicts[one.mutant.key] = ENDLESS if endless else TIMEOUT
                _end(one.process, pipe)


def _fork(work: Any) -> tuple[int, int]:
    """A child in a session of its own that writes what `work` returns into a pipe."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return reader, process
    os.setsid()  # all that the tests start ends with it
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        with os.fdopen(writer, "w") as out:
            out.write(work())
    finally:
        os._exit(0)


def _in_child(work: Any) -> str:
    reader, process = _fork(work)
    with os.fdopen(reader) as stream:
        text = stream.read()
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return text


def _end(process: int, pipe: int) -> None:
    os.close(pipe)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)


def _bytes_of(process: int) -> int:
    """Return the memory in use: a mutant may also fill the memory without end."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _seconds_of(process: int) -> float:
    """Return the processor time in use, which does not depend on other load."""
    with open(f"/proc/{process}/stat") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _adopt() -> None:
    """Become the parent of orphans: what a test starts in a session of its own is found again."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _children() -> set[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return {int(each) for each in file.read().split()}


def _end_orphans(ours: set[int], running: set[int]) -> None:
    """Reap what tests have left, and kill it once it belongs to no mutant under way."""
    for process in _children() - ours - running:
        with suppress(ProcessLookupError, PermissionError, ChildProcessError):
            if not running:
                os.kill(process, signal.SIGKILL)
            os.waitpid(process, os.WNOHANG if running else 0)


def _watched(session: pytest.Session, paths: set[str]) -> str:
    """Return every test with its seconds, its result, and the functions that it called."""
    told = []
    items = session.items
    for item, following in zip(items, [*items[1:], None], strict=True):
        begin = time.monotonic()
        with _noting(paths) as called:
            passed = _passes(item, following)
        told.append([time.monotonic() - begin, passed, sorted(called)])
    return json.dumps(told)


@contextmanager
def _noting(paths: set[str]) -> Iterator[set[tuple[str, str]]]:
    called: set[tuple[str, str]] = set()
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code not in codes:
            codes.add(code)
            if code.co_filename in paths:
                called.add((code.co_filename, code.co_qualname.partition(".<locals>")[0]))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _try(
    mutant: Mutant, live: Sequence[FunctionType], items: Sequence[pytest.Item], by_path: bool
) -> str:
    """Try one mutant; other processes run a script by its path, and tests may call it here, too."""
    planted = plant(mutant, live)
    if not by_path:
        return _judged(items) if planted else UNCALLED
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, os.path.basename(mutant.path))
        with open(script, "w") as file:
            file.write(ast.unparse(mutant.planted()))
        _module(mutant.path).__file__ = script
        return _judged(items)


def _judged(items: Sequence[pytest.Item]) -> str:
    for item, following in zip(items, [*items[1:], None], strict=True):
        if not _passes(item, following) and not _passes(item, following):
            return KILLED
    return SURVIVED


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _module(path: str) -> ModuleType:
    name = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return importlib.import_module(name.removesuffix(".__init__"))


def functions_in(paths: set[str]) -> list[FunctionType]:
    """The functions of some modules; modules that are loaded when first used are loaded now."""
    for path in paths:
        if path.startswith("src/"):
            _module(path)
    places = {os.path.abspath(path) for path in paths}
    gc.unfreeze()  # frozen objects cannot be listed
    found = [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType) and each.__code__.co_filename in places
    ]
    gc.freeze()
    return found


def plant(mutant: Mutant, live: Sequence[FunctionType]) -> bool:
    """Give the live function the mutated code; return whether it was found."""
    path = os.path.abspath(mutant.path)
    code = _code_of(compile(mutant.planted(), path, "exec"), mutant)
    found = False
    for each in live:
        own = each.__code__
        if own.co_filename == path and own.co_qualname == mutant.function:
            if own.co_firstlineno == code.co_firstlineno:
                each.__code__ = _fitting(code, own)
                found = True
    return found


def _fitting(code: CodeType, own: CodeType) -> CodeType:
    """Give a mutant that has lost its only `super()` the cell for it."""
    return code if code.co_freevars else code.replace(co_freevars=own.co_freevars)


def _code_of(module: CodeType, mutant: Mutant) -> CodeType:
    """Find, among functions of one name (a property and its setter), the one of the mutant."""
    waiting, found = [module], []
    while waiting:
        code = waiting.pop()
        if code.co_qualname == mutant.function and code.co_firstlineno <= mutant.line:
            found.append(code)
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    if not found:
        raise LookupError(f"no code for {mutant.function}")
    return max(found, key=lambda code: code.co_firstlineno)
