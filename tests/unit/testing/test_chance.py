"""What chance does to members in memory: crashes, outages, clocks that drift; and bytes of TCP."""

from __future__ import annotations

import asyncio
from math import sqrt
from pathlib import Path
from statistics import fmean

import pytest

from hustings.core.errors import BadInput
from hustings.sim.environment import Environment, parse_environment
from hustings.testing import Group, NotQuiet
from hustings.testing.clock import DriftingClock, VirtualLoop
from hustings.testing.memory_network import HEADER, MemoryNetwork, MemoryTransport, stream_bytes

NAMES = ("a", "b", "c", "d")
CRASHES = """
[delay]
within = "1ms"
[crashes]
rate = "5/m"
back = "uniform:2s,4s"
"""
OUTAGES = """
[sites]
x = 2
y = 2
[delay]
within = "1ms"
between."x,y" = "5ms"
[outages]
rate = "1/m"
lasts = "20s"
kind = "%s"
"""


def joined(environment: str | Path | Environment, seed: int = 5) -> Group:
    group = Group(seed=seed, environment=environment, protocol="bully")
    for name in NAMES:
        group.join(name)
    return group


def rate_of(clock: object) -> float:
    assert isinstance(clock, DriftingClock)
    return clock.rate


def downs(group: Group) -> list[tuple[str, float, float]]:
    """Each time that a member was down, and came back: whose, when, how long."""
    found, since = [], {}
    for each in group.changes:
        if each.what == "killed":
            since[each.member] = each.time
        elif each.what == "joined" and each.member in since:
            began = since.pop(each.member)
            found.append((each.member, began, each.time - began))
    return found


def test_members_crash_and_come_back() -> None:
    with joined(CRASHES) as group:
        group.advance(240.0)
        killed = sum(each.what == "killed" for each in group.changes)
        # Each of 4 members is up for 12 s on average, then down for 3 s and the time of a restart.
        expected = 4 * 240 / 15
        assert killed == pytest.approx(expected, abs=4 * sqrt(expected))
        lengths = [length for _, _, length in downs(group)]
        assert min(lengths) >= 2.0
        assert max(lengths) < 4.5
        assert fmean(lengths) == pytest.approx(3.0, abs=0.35)
        assert len({state.state.term for state in group.log}) > 10
        assert group.network.tally["lost"] > 0  # a machine that is gone neither answers ...
        assert group.network.tally["refused"] == 0  # ... nor refuses


def test_the_same_seed_gives_the_same_run_and_another_one_does_not() -> None:
    def played(seed: int) -> list[tuple[object, ...]]:
        with joined(CRASHES, seed) as group:
            group.advance(40.0)
            return [tuple(each) for each in group.changes]

    assert played(5) == played(5)
    assert played(5) != played(6)


def test_a_member_that_the_test_has_restarted_is_left_alone() -> None:
    with joined(CRASHES.replace("uniform:2s,4s", "40s")) as group:
        while not any(each.what == "killed" for each in group.changes):
            group.advance(1.0)
        (name,) = [each.member for each in group.changes if each.what == "killed"]
        group.restart(name)
        group.kill(name)  # another end than the one that chance would put right
        done = len(group.changes)
        group.advance(45.0)
        assert name not in [each.member for each in group.changes[done:]]


def test_a_site_that_is_cut_off_reaches_itself_only() -> None:
    with joined(OUTAGES % "cut") as group:
        group.settle()
        laws = group.network.laws
        assert laws is not None
        dark = laws.dark
        while not dark:
            group.advance(1.0)
        assert group.network.has_cuts
        (site,) = dark
        ends = [group.inside.member(name).node.transport.endpoint for name in NAMES]
        for one, here in enumerate(ends):
            for other, there in enumerate(ends):
                assert group.network.is_cut(here, there) == ((one < 2) != (other < 2))
        group.advance(15.0)
        if set(dark) == {site}:  # the leader's site goes on, and the other one has its own
            assert len(group.leaders) == 2
        assert all(each.what == "joined" for each in group.changes)
        while dark:
            group.advance(1.0)
        group.settle()


def test_a_site_without_power_is_down_and_comes_back() -> None:
    with joined(OUTAGES.replace("20s", "5s").replace("1/m", "3/m") % "crash") as group:
        group.advance(150.0)
        found = downs(group)
        first = {name: [at for who, at, _ in found if who == name] for name in NAMES}
        assert first["a"] == first["b"] != first["c"] == first["d"]
        assert len(first["a"]) + len(first["c"]) > 3
        assert all(5.0 <= length < 6.0 for _, _, length in found)


def test_nobody_comes_back_while_its_site_has_no_power() -> None:
    outages = OUTAGES.replace("20s", "8s").replace("1/m", "3/m") % "crash"
    with joined(f"{outages}[crashes]\nrate = '6/m'\nback = '2s'\n") as group:
        group.advance(200.0)
        found = downs(group)
        begun = {at for who, at, length in found if who in ("a", "b") and 8.0 <= length < 8.5}
        assert len(begun) > 2
        back = [at + length for who, at, length in found if who in ("a", "b")]
        for began in begun:
            assert not [at for at in back if began < at < began + 8.0]
        # A crash just before an outage lasts until its end.
        assert any(2.5 < length < 7.9 or length > 8.6 for _, _, length in found)


def test_a_group_whose_members_are_all_down_may_settle_later() -> None:
    often = OUTAGES.replace("1/m", "10/m") % "crash"
    with joined(often) as group:
        while group.up:
            group.advance(0.5)
        assert group.settle(within=600.0) in NAMES


def test_each_member_has_a_clock_of_its_own() -> None:
    drifting = "[delay]\nwithin = '1ms'\n[clocks]\ndrift = '1%'"
    with joined(drifting) as group:
        group.advance(50.0)
        clocks = [group.member(name).node.runner._clock for name in NAMES]
        rates = [rate_of(clock) for clock in clocks]
        assert len(set(rates)) == 4
        assert all(0.99 <= rate <= 1.01 for rate in rates)
        assert [clock.time() for clock in clocks] == [group.now * rate for rate in rates]
        before = clocks[0]
        group.settle()
        group.restart("a")
        after = group.member("a").node.runner._clock
        assert after is not before
        assert rate_of(after) == rates[0]  # the machine is the same


def test_timers_of_a_drifting_clock_are_never_early() -> None:
    rate, dues = 1.3, [number * 0.7 for number in range(1, 400)]
    assert any(due / rate * rate < due for due in dues)  # rounding alone would be early
    loop = VirtualLoop()
    clock = DriftingClock(loop.member_clock, rate)
    fired: list[float] = []
    for when in dues:
        clock.call_at(when, lambda due: fired.append(clock.time() - due), when)
    loop.call_later(1000.0, loop.stop)
    loop.run_forever()
    loop.close()
    assert len(fired) == len(dues)
    assert all(0.0 <= late < 1e-9 for late in fired)


def test_fast_clocks_beat_faster() -> None:
    """Ten percent: a member's timers run at its own rate, so it sends that much more."""

    def sent(environment: str) -> list[int]:
        with Group(seed=1, environment=environment, protocol="bully") as group:
            for name in NAMES:
                group.join(name)
            group.settle()
            group.advance(60.0)
            return [group.member(name).metrics().frames_sent for name in NAMES]

    plain = "[delay]\nwithin = '1ms'\n"
    true, drifting = sent(plain), sent(plain + "[clocks]\ndrift = '30%'\n")
    ratios = [one / other for one, other in zip(drifting, true, strict=True)]
    assert max(ratios) / min(ratios) > 1.1
    assert 0.65 < min(ratios) < max(ratios) < 1.4


def test_quiet_time_is_not_skipped_where_chance_may_act() -> None:
    with joined(CRASHES.replace("5/m", "1/year")) as group:
        group.settle()
        with pytest.raises(NotQuiet, match="chance decides what happens"):
            group.advance(100.0, skip_quiet=True)


def test_a_group_takes_a_file_or_its_text(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text(CRASHES)

    def changes(environment: str | Path | Environment) -> list[tuple[object, ...]]:
        with joined(environment) as group:
            group.advance(20.0)
            return [tuple(each) for each in group.changes]

    value = parse_environment(CRASHES)
    assert changes(file) == changes(str(file)) == changes(CRASHES) == changes(value)
    with pytest.raises(BadInput, match="No such file"):
        Group(environment=tmp_path / "none.toml")
    with pytest.raises(BadInput, match=r"line 2: delay\.within"):
        Group(environment="[delay]\nwithin = 3e\n".replace("3e", "'3 parsecs'"))


@pytest.mark.parametrize("loss", ["model = 'correlated'", "collision = '1%'"])
def test_losses_that_members_in_memory_cannot_have(loss: str) -> None:
    with pytest.raises(BadInput, match="correlated losses or collisions is for the simulator"):
        Group(environment=f"[delay]\nwithin = '1ms'\n[loss]\nrate = '1%'\n{loss}\n")


def test_calm_weather_leaves_delays_and_clocks() -> None:
    rough = parse_environment(
        OUTAGES % "cut" + CRASHES.partition("[crashes]")[1] + "\nrate = '1/h'\nback = '3s'\n"
        "[loss]\nrate = '1%'\n[clocks]\ndrift = '1%'\n[pauses]\nrate = '1/h'\nlength = '1s'\n"
    )
    calm = rough.calm()
    assert calm.network.delay == rough.network.delay
    assert (calm.drift, calm.sites, calm.members) == (0.01, rough.sites, 4)
    assert calm.network.loss.p == 0.0
    assert (calm.pauses, calm.crashes, calm.outages) == (None, None, None)


def test_connections_count_their_segments() -> None:
    """Opened by three segments, 100 bytes that are confirmed, closed by two from either side."""
    loop = VirtualLoop()

    async def streamed() -> MemoryNetwork:
        network = MemoryNetwork(loop)
        here, there = (MemoryTransport(network, ("127.0.0.1", port)) for port in (7401, 7402))
        here.stream(there.endpoint, bytes(100))
        await asyncio.sleep(1.0)
        await here.close()
        await there.close()
        return network

    network = loop.run_until_complete(streamed())
    loop.close()
    caller, far = (network.sent[("127.0.0.1", port)] for port in (7401, 7402))
    assert caller == 2 * 40 + (100 + 40) + 2 * 40
    assert far == 40 + 40 + 2 * 40
    assert network.received[("127.0.0.1", 7402)] == caller
    assert stream_bytes(1461, HEADER) == 1461 + 2 * 40
