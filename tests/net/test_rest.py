"""A member at rest: what it need not carry, and how seldom it wakes."""

from __future__ import annotations

import subprocess
import sys
from math import inf

import pytest

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.messages import Message
from hustings.layers.gossip.membership import GOSSIP_TICK
from hustings.layers.leadership.layer import TICK, LeadershipLayer
from hustings.net.runner import Armed, Runner
from hustings.testing import Group

PERIOD = 0.25  # seconds between two ticks of the leadership layer, by default

# What a member on one machine, without a guard or a state file, has no use for.
SUPERFLUOUS = (
    "cryptography",
    "difflib",
    "hashlib",
    "hustings.guard",
    "hustings.net.state_file",
    "hustings.protocols.bully",
    "hustings.protocols.plugins",
    "hustings.protocols.committee",
    "hustings.quorum",
    "hustings.sim",
    "hustings.layers.lease",
    "ipaddress",
    "pathlib",
    "random",
    "secrets",
)
MEMBER = """
import asyncio, sys, hustings

async def alone():
    async with hustings.join("group", name="a") as member:
        print(*sys.modules)

asyncio.run(alone())
"""


def test_a_member_loads_what_it_runs() -> None:
    words = [sys.executable, "-S", "-c", "import sys; sys.path[:] = sys.argv[1:]" + MEMBER]
    done = subprocess.run([*words, *sys.path], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "hustings.protocols.announce.le_s" in loaded
    assert [name for name in SUPERFLUOUS if name in loaded] == []


@pytest.mark.parametrize("protocol", ["le-s", "bully"])
def test_what_need_not_be_punctual_wakes_nobody_by_itself(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[TimerKey] = []
    ticks: list[str] = []
    fire, tick = Runner._fire, LeadershipLayer._tick

    def firing(self: Runner, key: TimerKey) -> None:
        woken.append(key)
        fire(self, key)

    def ticking(self: LeadershipLayer, ctx: Context) -> None:
        ticks.append(self.state())
        tick(self, ctx)

    monkeypatch.setattr(Runner, "_fire", firing)
    monkeypatch.setattr(LeadershipLayer, "_tick", ticking)
    with Group(seed=3, protocol=protocol) as group:
        for name in "abc":
            group.join(name)
        group.settle(steady=3.0)
        woken.clear()
        ticks.clear()
        group.advance(10.0)
    assert abs(len(ticks) - 3 * 10.0 / PERIOD) <= 3, "they are late, and no rarer for that"
    for key in (TICK, GOSSIP_TICK):
        assert woken.count(key) < 0.1 * len(ticks), "nearly all went with something else"


def test_the_gossip_of_a_newcomer_is_punctual(monkeypatch: pytest.MonkeyPatch) -> None:
    armed: dict[Runner, list[bool]] = {}
    arm = Runner._arm

    def arming(self: Runner, key: TimerKey, delay: float) -> None:
        arm(self, key, delay)
        if key == GOSSIP_TICK:
            armed.setdefault(self, []).append(self._timers[key].ripe < inf)

    monkeypatch.setattr(Runner, "_arm", arming)
    with Group(seed=3) as group:
        for name in "abc":
            group.join(name)
        group.settle(steady=1.0)
    assert len(armed) == 3
    for waits in armed.values():
        assert not waits[0], "it has not met anybody yet"
        assert waits[-1], "it is in the group, and need not be punctual"


def test_news_of_a_leader_are_not_held_up_by_what_can_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    went: list[TimerKey] = []
    with_news: list[list[TimerKey]] = []
    go, deliver = Runner._go, Runner.deliver

    def going(self: Runner, key: TimerKey, armed: Armed) -> None:
        went.append(key)
        go(self, key, armed)

    def delivering(self: Runner, sender: MemberId, message: Message) -> bool:
        before = self._said
        went.clear()
        handled = deliver(self, sender, message)
        if self._said is not before:
            with_news.append([*went])
        return handled

    monkeypatch.setattr(Runner, "_go", going)
    monkeypatch.setattr(Runner, "deliver", delivering)
    with Group(seed=3, protocol="bully") as group:
        members = [group.join(name) for name in "abcde"]
        group.settle(steady=3.0)
        for _ in range(20):
            leader = next(each for each in members if each.is_leader)
            group.run(leader.resign())
            group.settle(steady=1.0)
            group.run(leader.stand())
    assert len(with_news) >= 20 * 4
    assert [each for each in with_news if each] == []
