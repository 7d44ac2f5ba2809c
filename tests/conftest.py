"""What every test may use: the rewrite switch of golden files, hypothesis profiles, usual signals.

`pytest --hypothesis-profile=NAME` chooses: `default` draws new cases each time, `ci` always the
same ones, so that a change is judged by itself, and `soak` very many.
"""

import gc
import os
import signal
import sys
import tempfile

import pytest
from hypothesis import settings

# Members without a key share one that is made on first use: not in the home of who runs the tests.
_FOLDER = tempfile.TemporaryDirectory(prefix="hustings-tests-")
os.environ["XDG_STATE_HOME"] = _FOLDER.name

# Compiled modules are kept, whatever the shell says: the tests start hundreds of processes, and
# without a cache each of them compiles the whole package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadlines: a case that is slow because the machine is busy has not failed.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("soak", deadline=None, print_blob=True, max_examples=5_000)


# What collection makes, 17,000 items and all modules, lives until the end: a search for garbage
# need not look at it again.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


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


@pytest.fixture(autouse=True)
def usual_signals() -> None:
    """What a shell made us ignore (`nohup`, `&` in a script), our children would ignore, too.

    Tests send signals to processes that they start, so these begin with what is usual: each test,
    since an earlier one of the same process may have left signals blocked or ignored.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python's own
        if signal.getsignal(number) == signal.SIG_IGN:
            interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if interrupt else signal.SIG_DFL)
