"""What every test may use: the rewrite switch of golden files, hypothesis profiles, usual signals.

`pytest --hypothesis-profile=NAME` chooses: `default` draws new cases each time, `ci` always the
same ones, so that a change is judged by itself, and `soak` very many.
"""

import fcntl
import gc
import itertools
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from tests.ordering import ordered

# Members without a key share one that is made on first use: not in the home of who runs the tests.
_FOLDER = tempfile.TemporaryDirectory(prefix="hustings-tests-")
os.environ["XDG_STATE_HOME"] = _FOLDER.name

# Compiled modules are kept, whatever the shell says: the tests start hundreds of processes, and
# without a cache each of them compiles the whole package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadlines: a case that is slow because the machine is busy has not failed.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, max_examples=60)
settings.register_profile("soak", deadline=None, print_blob=True, max_examples=5_000)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What it makes, 17,000 items and all modules, lives long: no search for garbage needs it."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = [items[place] for place in ordered([item.nodeid for item in items], workers)]


class OnlyWhereExamplesAre:
    """Looks for examples in docstrings only in modules that have one.

    pytest would load each module a second time, and search all docstrings of the tests.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[Any], list[Any]]:
        found = yield
        if file_path.suffix != ".py" or b">>>" in file_path.read_bytes():
            return found
        return [each for each in found if not isinstance(each, DoctestModule)]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(OnlyWhereExamplesAre())  # for src, too
    # Tests make few cycles: a search for every 700 objects takes a tenth of the time of some.
    gc.set_threshold(20_000, 20, 20)
    if "PYTEST_XDIST_WORKER" in os.environ:
        one_compiles_at_a_time()


def one_compiles_at_a_time() -> None:
    """A kernel that several workers want is compiled by one, and kept for the others."""
    from numba.core.dispatcher import Dispatcher  # noqa: PLC0415 (half a second; workers need it)

    kind: Any = Dispatcher
    compile_kernel = kind.compile
    folder = os.open(Path(__file__).parents[1] / "src/hustings/lab/kernels", os.O_RDONLY)
    own = threading.RLock()
    depth = 0  # a kernel that calls others has them compiled, too

    def compile_alone(dispatcher: Any, signature: Any) -> Any:
        nonlocal depth
        with own:
            if depth == 0:
                fcntl.flock(folder, fcntl.LOCK_EX)
            depth += 1
            try:
                return compile_kernel(dispatcher, signature)
            finally:
                depth -= 1
                if depth == 0:
                    fcntl.flock(folder, fcntl.LOCK_UN)

    kind.compile = compile_alone


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what golden scripts produce now over what they expect; review the diff",
    )


@pytest.fixture(scope="session")
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten rather than compared."""
    return bool(request.config.getoption("--rewrite"))


_PLACES = itertools.count()


@pytest.fixture(autouse=True)
def own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of different tests do not find each other: many have groups of the same name."""
    place = f"{_FOLDER.name}/{os.getpid()}-{next(_PLACES)}"
    monkeypatch.setenv("HUSTINGS_LOCAL_DIR", place)


# Python itself ignores two.
_SIGNALS = tuple(map(int, signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}))


@pytest.fixture(autouse=True)
def usual_signals() -> None:
    """What a shell made us ignore (`nohup`, `&` in a script), our children would ignore, too.

    Tests send signals to processes that they start, so these begin with what is usual: each test,
    since an earlier one of the same process may have left signals blocked or ignored.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in _SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if interrupt else signal.SIG_DFL)
