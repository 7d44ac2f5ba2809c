"""Crashes and outages at random: how often, for how long, and who is reached meanwhile."""

from __future__ import annotations

from math import sqrt

import pytest

from hustings.sim.agenda import Agenda
from hustings.sim.delay import Delay, Fixed, Uniform
from hustings.sim.environment import CRASH, CUT, Crashes, Environment, Outages
from hustings.sim.failing import Failing
from hustings.sim.faults import Crash, Happening, Restart
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.pauses import Pauses, Pausing
from hustings.sim.sites import SiteDelay, Sites
from tests.unit.sim.worlds import Ear, Script, Stage, arm, ping

LONG = 4_000.0
TICK: Script = {"timer tick": arm("tick", LONG)}
SITES = Sites(("a", "b"), (2, 3))
BETWEEN = {(0, 1): Fixed(0.5), (1, 0): Fixed(0.5)}


def environment(crashes: Crashes | None, outages: Outages | None) -> Environment:
    delay: Delay = Fixed(0.25)
    if outages is None:
        return Environment(Network(delay=delay), crashes=crashes)
    delay = SiteDelay(SITES, delay, BETWEEN)
    return Environment(Network(delay=delay), sites=SITES, crashes=crashes, outages=outages)


def failing_in(stage: Stage, within: Environment) -> Failing:
    agenda = Agenda(stage)
    failing = Failing(within, stage, agenda, 0.0)
    agenda.arm()
    return failing


def staged(within: Environment, seed: int = 0) -> tuple[Stage, Ear, Failing]:
    """A world of five members in which something is always left to happen."""
    stage = Stage(5, TICK, within.network, seed=seed, careful=True)
    for member in stage.members.values():
        arm("tick", LONG)(member)
    stage.let(LONG - 1, 1, arm("last", 1.0))
    ear = Ear()
    stage.watch(ear)
    return stage, ear, failing_in(stage, within)


def played(within: Environment, *plan: Happening) -> tuple[Stage, Ear, Failing]:
    """A whole run of such a world."""
    stage, ear, failing = staged(within, seed=3)
    stage.plan(*plan)
    stage.run(LONG)
    return stage, ear, failing


def spells(ear: Ear, member: int) -> list[tuple[float, float]]:
    """When a member went down, and for how long it stayed down."""
    found, since = [], None
    for at, who, status, _ in ear.changes:
        if who != member:
            continue
        if status == "crashed":
            since = at
        elif status == "up" and since is not None:
            found.append((since, at - since))
            since = None
    return found


def test_members_crash_at_the_rate_and_come_back_by_the_law() -> None:
    stage, ear, failing = staged(environment(Crashes(0.05, Uniform(1.0, 3.0)), None))
    stage.run(LONG)
    found = [spell for member in range(1, 6) for spell in spells(ear, member)]
    # A member runs for 20 on average, then is down for 2.
    expected = 5 * LONG / 22.0
    assert failing.crashes == pytest.approx(expected, abs=4 * sqrt(expected))
    assert failing.metrics() == {"crashes": float(failing.crashes)}
    lengths = [length for _, length in found]
    assert len(lengths) > 700
    assert min(lengths) >= 1.0
    assert max(lengths) <= 3.0
    assert sum(lengths) / len(lengths) == pytest.approx(2.0, abs=0.1)
    assert stage.members[1].incarnation > 100


def test_a_member_that_something_else_brought_back_is_left_alone() -> None:
    """Not even if it is down again when it would have come back: that is another crash."""
    within = environment(Crashes(0.001, Fixed(500.0)), None)
    _, first, _ = played(within)
    at, member, _, _ = first.changes[0]
    again = (Restart(member=member, at=at + 10.0), Crash(member=member, at=at + 20.0))
    _, ear, _ = played(within, *again)
    told = [(round(t - at), status) for t, who, status, _ in ear.changes if who == member]
    assert told[:3] == [(0, "crashed"), (10, "up"), (20, "crashed")]
    assert told[3:] == []  # nobody brings it back from the second one


def test_a_cut_site_reaches_itself_only() -> None:
    stage, ear, failing = staged(environment(None, Outages(0.01, Fixed(20.0), CUT)))
    for number in range(390):
        stage.let(10.0 * number + 5.0, 1, ping(number, 2))
        stage.let(10.0 * number + 5.0, 1, ping(number, 4))
    stage.run(LONG)
    inside = {row for _, row in stage.heard(2) if row.startswith("PING")}
    across = {row for _, row in stage.heard(4) if row.startswith("PING")}
    assert len(inside) == 390
    # A site is cut for 20 of 120, and either of the two may be.
    assert len(across) == pytest.approx(390 * (1 / 1.2) ** 2, abs=60)
    assert failing.outages > 40
    assert ear.changes == []  # nobody crashes


def test_a_site_without_power_is_down_as_a_whole_and_comes_back_as_a_whole() -> None:
    stage, ear, failing = staged(environment(None, Outages(0.01, Fixed(20.0), CRASH)))
    stage.run(LONG)
    for member, other in ((1, 2), (3, 4), (3, 5)):
        assert spells(ear, member) == spells(ear, other)
    assert spells(ear, 1) != spells(ear, 3)
    assert {length for _, length in spells(ear, 1)} == {20.0}
    assert failing.outages == pytest.approx(len(spells(ear, 1)) + len(spells(ear, 3)), abs=2)


def test_a_member_that_crashed_comes_back_after_the_outage_of_its_site() -> None:
    within = environment(Crashes(0.01, Fixed(5.0)), Outages(0.02, Fixed(50.0), CRASH))
    stage, ear, _ = staged(within, seed=1)
    stage.run(LONG)
    statuses = dict.fromkeys(range(1, 6), "up")
    for at, who, status, _ in ear.changes:
        assert statuses[who] != status, f"member {who} was {status} already, at {at}"
        statuses[who] = status
    lengths = {round(length, 3) for _, length in spells(ear, 1)}
    assert {5.0, 50.0} <= lengths  # crashes, and outages of its site
    # A crash just before an outage lasts until the outage ends.
    assert any(5.0 < length < 50.0 or 50.0 < length < 55.0 for length in lengths)
    outages = {at for at, _ in spells(ear, 1)} & {at for at, _ in spells(ear, 2)}
    assert len(outages) > 5
    ups = [at for at, who, status, _ in ear.changes if who in (1, 2) and status == "up"]
    for began in outages:  # nobody at the site comes back while it is dark
        assert not [at for at in ups if began < at < began + 50.0 - 1e-6]


def test_chance_alone_keeps_no_run_going() -> None:
    """Not even pauses and crashes together, each of which sees the other in the queue."""
    stage = Stage(3)
    agenda = Agenda(stage)
    Pausing(Pauses(1.0, Fixed(0.5)), stage, agenda, 0.0)
    Failing(environment(Crashes(1.0, Fixed(0.5)), None), stage, agenda, 0.0)
    agenda.arm()
    stage.let(10.0, 1, ping(1, 2))
    stage.run()
    assert 10.0 < stage.now < 30.0
    assert all(member.status is Status.UP for member in stage.members.values())
