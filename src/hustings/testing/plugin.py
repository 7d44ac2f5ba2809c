"""The pytest plugin: groups on a virtual clock, seeds, and failures that become small.

    @pytest.mark.hustings(members=(2, 5), faults=4, loss=0.1, seeds=50)
    def test_one_leader_in_the_end(hustings_group, hustings_members, hustings_faults):
        hustings_group.start(hustings_members)
        hustings_group.inject(hustings_faults)
        hustings_group.settle(steady=3.0)

pytest loads this module in every project where hustings is installed. So the module imports nothing
but pytest, and a test that uses no fixture of it costs one look at its fixtures.

A test that uses one is played once for each seed, until a seed fails. Then smaller runs are tried
(`hustings.testing.seeded_run`). The report shows the smallest run that fails in the same way, with
the line that replays it. Each run of the test has fresh fixtures, except for those of a
module, a class or the session.
"""

from __future__ import annotations

import inspect
import shlex
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from hustings.testing.faults import Fault
    from hustings.testing.group import Group
    from hustings.testing.memory_network import MemoryNetwork
    from hustings.testing.seeded_run import Allowed, SeededRun

GROUP = "hustings_group"
NAMES = (GROUP, "hustings_network", "hustings_seed", "hustings_members", "hustings_faults")
SHRINK_S = 20.0  # real time for smaller runs
MOST_RUNS = 200  # of smaller ones
SHOWN = 12  # changes of leadership in a report

_MARK = (
    "hustings(members=3, faults=0, span=30, seeds=1, **options): what the seeds of this test may "
    "draw, and options of hustings.testing.Group"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    options = parser.getgroup("hustings", "groups that elect a leader")
    options.addoption(
        "--hustings-seeds",
        type=int,
        metavar="N",
        help="play each test that uses hustings_group for N seeds, whatever its mark says",
    )
    options.addoption(
        "--hustings-seed", type=int, metavar="FIRST", default=0, help="the first seed (0)"
    )
    options.addoption(
        "--hustings-replay",
        metavar="RUN",
        help="play only this, as a failure printed it: 'seed=17 members=2 faults=kill:leader@3+1'",
    )
    options.addoption(
        "--hustings-shrink",
        type=float,
        metavar="SECONDS",
        default=SHRINK_S,
        help=f"real time for making a failure smaller ({SHRINK_S:g}); 0 shows it as it is",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)


# Which runs a test plays


@dataclass
class _Marked:
    """What a test's mark and the command line say."""

    allowed: Allowed
    seeds: range
    options: dict[str, Any]  # of the group
    replay: SeededRun | None

    @property
    def rough(self) -> bool:
        """Whether the network loses, doubles or reorders anything, or an environment may do so."""
        rough = ("loss", "duplicate", "reorder", "environment")
        return any(self.options.get(name) for name in rough)

    def drawn_runs(self) -> list[SeededRun]:
        if self.replay is not None:
            return [self.replay]
        return [self.allowed.draw(seed) for seed in self.seeds]


def _plan(item: pytest.Item) -> _Marked:
    from hustings.core.errors import BadInput  # noqa: PLC0415 (only tests with groups need it)
    from hustings.testing.seeded_run import Allowed, parse_run  # noqa: PLC0415 (the same)

    marks: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers("hustings"))):  # the closest to the test is last
        if mark.args:
            raise pytest.UsageError(f"{item.nodeid}: the mark 'hustings' takes names: members=3")
        marks.update(mark.kwargs)
    if "seed" in marks:
        raise pytest.UsageError(f"{item.nodeid}: the seed comes from --hustings-seed, not a mark")
    members, faults = marks.pop("members", 3), marks.pop("faults", 0)
    span = {"span": marks.pop("span")} if "span" in marks else {}
    count, config = marks.pop("seeds", 1), item.config
    asked = config.getoption("--hustings-seeds")
    count = count if asked is None else asked
    first = config.getoption("--hustings-seed")
    text = config.getoption("--hustings-replay")
    try:
        if not isinstance(count, int) or count < 1:
            raise BadInput(f"seeds must be a positive number, not {count!r}")
        pair = members if isinstance(members, tuple) else (members, members)
        replay = None if text is None else parse_run(text)
        return _Marked(Allowed(pair, faults, **span), range(first, first + count), marks, replay)
    except (BadInput, TypeError, ValueError) as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


# Playing a test


@dataclass
class _Played:
    """One run of a test: what was drawn, how it ended, and what was seen."""

    drawn: SeededRun
    plan: _Marked
    reports: list[pytest.TestReport] = field(default_factory=list)
    failure: tuple[str, int] | None = None  # the error's type, and the line of the test
    log: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(report.passed for report in self.reports)


_RUN = pytest.StashKey[_Played]()


def _uses_groups(item: pytest.Item) -> bool:
    return any(name in NAMES for name in getattr(item, "fixturenames", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Play a test that uses a group: all seeds, and smaller runs of the first that fails."""
    if not _uses_groups(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _played(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _played(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    plan = _plan(item)
    drawn_runs = plan.drawn_runs()
    for drawn in drawn_runs:
        # Fixtures of the module stay up between the runs of one test.
        following = nextitem if drawn is drawn_runs[-1] else item.parent
        run = _play(item, plan, drawn, following)
        if not run.passed:
            return _failed(item, nextitem, run, apart=following is not nextitem)
    return run.reports


def _play(item: pytest.Item, plan: _Marked, drawn: SeededRun, following: Any) -> _Played:
    run = item.stash[_RUN] = _Played(drawn, plan)
    run.reports = runtestprotocol(item, log=False, nextitem=following)
    return run


def _failed(
    item: pytest.Item, nextitem: pytest.Item | None, first: _Played, apart: bool
) -> list[pytest.TestReport]:
    """The reports of a test that did not pass.

    `apart`: fixtures of the module are still up, and another run must end them.
    """
    if first.failure is None:  # skipped, or expected to fail
        return _play(item, first.plan, first.drawn, nextitem).reports if apart else first.reports
    smallest, tried = first, 0
    if first.plan.replay is None and not item.config.getoption("usepdb", False):
        smallest, tried = _shrunk(item, first)
    steady = True
    if apart or tried:
        again = _play(item, first.plan, smallest.drawn, nextitem)
        steady = again.failure == smallest.failure
        smallest = again if steady else smallest
    _explain(item, first, smallest, tried, steady)
    return smallest.reports


def _shrunk(item: pytest.Item, first: _Played) -> tuple[_Played, int]:
    """The smallest run found that fails in the same way, and how many were tried."""
    until = time.monotonic() + item.config.getoption("--hustings-shrink")
    smallest, tried = first, 0
    while True:
        least = min(first.plan.allowed.members[0], len(smallest.drawn.names))
        for drawn in smallest.drawn.smaller(least, first.plan.rough):
            if tried >= MOST_RUNS or time.monotonic() >= until:
                return smallest, tried
            run = _play(item, first.plan, drawn, item.parent)
            tried += 1
            if run.failure == first.failure:
                smallest = run
                break
        else:
            return smallest, tried


def _explain(
    item: pytest.Item, first: _Played, smallest: _Played, tried: int, steady: bool
) -> None:
    """Say in the report which run failed, and how to see it again."""
    lines = [f"this run fails: {smallest.drawn}"]
    if smallest.drawn != first.drawn:
        lines.append(f"it is the smallest of {tried} tried; the first to fail: {first.drawn}")
    if not steady:
        lines.append(
            "a second run with the same seed ended in another way: something in the test does not "
            "come from the seed (a real clock, a global random number, the order of a set)"
        )
    lines.append("replay it:")
    line = ["pytest", item.nodeid, "--hustings-replay", str(smallest.drawn)]
    lines.append("  " + shlex.join(line))
    if smallest.log:
        lines += ["the last changes of leadership:", *("  " + each for each in smallest.log)]
    for report in smallest.reports:
        if report.failed:
            report.sections.append(("hustings", "\n".join(lines)))
            return


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember how a run failed, so that another failure is not taken for the same."""
    report = yield
    run = item.stash.get(_RUN, None)
    if run is not None and report.failed and run.failure is None:
        kind, line = "", 0
        if call.excinfo is not None:
            kind = call.excinfo.type.__qualname__
            here = [entry for entry in call.excinfo.traceback if entry.path == item.path]
            line = here[-1].lineno if here else 0
        run.failure = (kind, line)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on the clock of its group."""
    if GROUP not in getattr(pyfuncitem, "fixturenames", ()):
        return None
    function = pyfuncitem.obj
    if type(pyfuncitem).__module__.startswith("pytest_asyncio"):
        function = inspect.unwrap(function)  # it would run on a real loop
    if not inspect.iscoroutinefunction(function):
        return None
    group: Any = pyfuncitem.funcargs[GROUP]
    names = pyfuncitem._fixtureinfo.argnames
    group.run(function(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Guards in memory that are closed leave nothing to the next test."""
    memory = sys.modules.get("hustings.guard.memory")
    if memory is not None:
        memory.drop_unused_registers()


# Fixtures


def _run(request: pytest.FixtureRequest) -> _Played:
    run: _Played | None = request.node.stash.get(_RUN, None)
    if run is None:
        raise pytest.UsageError(
            f"{request.node.nodeid}: another plugin runs this test, so it has no seed"
        )
    return run


@pytest.fixture
def hustings_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run, for what the test itself draws."""
    return _run(request).drawn.seed


@pytest.fixture
def hustings_members(request: pytest.FixtureRequest) -> list[str]:
    """The names of members that the seed has drawn: as many as the mark allows."""
    return list(_run(request).drawn.names)


@pytest.fixture
def hustings_faults(request: pytest.FixtureRequest) -> list[Fault]:
    """The faults that the seed has drawn, for `hustings_group.inject`."""
    return list(_run(request).drawn.faults)


@pytest.fixture
def hustings_group(request: pytest.FixtureRequest) -> Iterator[Group]:
    """A group on a virtual clock, with a network in memory. No member has joined it yet."""
    from hustings.core.errors import BadInput  # noqa: PLC0415 (only tests with groups need it)
    from hustings.testing.group import Group  # noqa: PLC0415 (the same)

    run = _run(request)
    options = dict(run.plan.options)
    try:
        if run.drawn.calm:
            options.update(_calmed(options))
        group = Group(seed=run.drawn.seed, **options)
    except BadInput as error:
        raise pytest.UsageError(f"{request.node.nodeid}: {error}") from None
    with group:
        try:
            yield group
        finally:
            run.log = [
                f"{time:.3f} s  {name} follows "
                f"{state.leader.name if state.leader else f'nobody ({state.reason})'}, "
                f"term {state.term}"
                for time, name, state in group.log[-SHOWN:]
            ]


def _calmed(options: dict[str, Any]) -> dict[str, Any]:
    """Options of the same group in calm weather."""
    if options.get("environment") is None:
        return {"loss": 0.0, "duplicate": 0.0, "reorder": 0.0}
    from hustings.sim.environment import environment_of  # noqa: PLC0415 (few need it)

    return {"environment": environment_of(options["environment"]).calm()}


@pytest.fixture
def hustings_network(hustings_group: Group) -> MemoryNetwork:
    """The network of the group: its conditions, and its counts of datagrams."""
    return hustings_group.network
