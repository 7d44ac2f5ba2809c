"""A leader that stood still leads on in its term, and its job goes on, unless it was replaced."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import hustings
from hustings.layers.leadership.inquiry import Inquiry
from hustings.net.campaign import Term
from hustings.net.member import Member
from hustings.testing import Group

NAMES = "abcde"
PROTOCOLS = ("le-s", "le-a", "le-m", "bully", "ring", "probabilistic")
SEEDS = range(3)


class Stage:
    """A group whose members run a job, and what became of the jobs."""

    def __init__(self, seed: int, protocol: str, members: str = NAMES, **options: Any) -> None:
        self.group = Group(seed=seed, protocol=protocol, delay=(0.0005, 0.003), **options)
        self.starts: list[tuple[str, int, int | None]] = []
        self.terms: dict[str, Term] = {}
        for name in members:
            self.group.start([name], self._program)
        self.leader = self.group.settle(steady=6.0)
        self.began = len(self.starts)

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.group.close()

    async def _program(self, member: Member) -> None:
        async def job(term: Term) -> None:
            self.starts.append((member.name, term.number, term.token))
            self.terms[member.name] = term
            await asyncio.Event().wait()

        await member.run(job)

    @property
    def again(self) -> list[tuple[str, int, int | None]]:
        """The starts of the job since the group had its leader."""
        return self.starts[self.began :]

    def stand_still(self, seconds: float, after: float = 5.0) -> None:
        """The leader's process stands still, and then goes on."""
        self.group.pause(self.leader)
        self.group.advance(seconds)
        self.group.resume(self.leader)
        self.group.advance(after)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("protocol", ["le-s", "le-a", "le-m"])
def test_a_short_stall_changes_nothing(protocol: str, seed: int) -> None:
    with Stage(seed, protocol) as stage:
        before, seen = stage.group.member(stage.leader).state, len(stage.group.log)
        for _ in range(5):
            stage.stand_still(0.4, after=2.0)
        assert stage.again == []
        assert stage.group.member(stage.leader).state == before
        assert [each for each in stage.group.log[seen:] if each.member == stage.leader] == []
        stage.terms[stage.leader].check()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("protocol", ["le-s", "le-a", "le-m"])
def test_after_a_longer_one_the_job_goes_on_in_the_same_term(protocol: str, seed: int) -> None:
    """The others wait three seconds before they miss a leader."""
    with Stage(seed, protocol, settings={"T_L": 3.0}, stall_bound=0.65) as stage:
        term = stage.terms[stage.leader]
        leader = stage.group.member(stage.leader)
        checked: list[bool] = []

        async def ask() -> None:
            async for state in leader.observe():
                if not state.leading:
                    with pytest.raises(hustings.LeadershipLost, match="stood still"):
                        term.check()
                    assert (term.remaining, leader.is_leader) == (0.0, False)
                    checked.append(True)

        watching = stage.group.spawn(stage.leader, ask())
        stage.stand_still(1.2)
        assert stage.again == []
        assert checked == [True]
        term.check()
        assert not term.lost.is_set()
        assert (leader.term, leader.is_leader) == (term.number, True)
        watching.cancel()


def test_alone_any_stall_is_survived() -> None:
    with Stage(0, "le-s", members="a") as stage:
        stage.stand_still(30.0)
        assert stage.again == []
        assert not stage.terms["a"].lost.is_set()


@pytest.mark.parametrize("protocol", ["le-s", "bully"])
def test_a_leader_that_was_replaced_gives_its_job_up(protocol: str) -> None:
    for seed in SEEDS:
        with Stage(seed, protocol) as stage:
            term = stage.terms[stage.leader]
            stage.stand_still(4.0, after=0.5)
            assert term.lost.is_set()
            assert term.reason is not None
            assert term.reason.kind == "other-leader"
            assert [name for name, *_ in stage.again] == [stage.group.settle()]
            with pytest.raises(hustings.LeadershipLost):
                term.check()


def test_without_an_answer_the_job_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader whose inquiry never ends has lost its leadership."""
    with Stage(0, "le-s", settings={"T_L": 30.0}, stall_bound=0.65) as stage:
        leader = stage.group.member(stage.leader)
        monkeypatch.setattr(Inquiry, "conclude", lambda inquiry, ctx: None)
        stage.group.isolate(stage.leader)
        stage.stand_still(1.2, after=0.9)
        assert not stage.terms[stage.leader].lost.is_set()
        stage.group.advance(0.3)
        term = stage.terms[stage.leader]
        assert term.lost.is_set()
        assert term.reason is not None
        assert (term.reason.kind, term.reason.bound) == ("stalled", leader.bound)


@pytest.mark.parametrize(
    "options, bound",
    [
        ({"protocol": "le-s"}, 0.65),  # T_L - T_A - delta
        ({"protocol": "le-s", "settings": {"T_L": 3.0}}, 2.75),
        ({"protocol": "le-s", "settings": {"delta": "5ms"}}, 0.25),
        ({"protocol": "le-s", "settings": {"delta": "5ms"}, "stall_bound": 5}, 5.0),
        ({"protocol": "bully"}, 0.25),
        ({"protocol": "bully", "settings": {"delta": "100ms"}}, 0.5),
    ],
)
def test_the_default_is_shorter_than_what_the_others_wait(
    options: dict[str, Any], bound: float
) -> None:
    with Group(**options) as group:
        assert group.join("a").bound == pytest.approx(bound)


def test_the_bound_is_a_setting() -> None:
    for bound, paused in ((0.5, True), (2.0, False)):
        with Stage(0, "le-s", settings={"T_L": 3.0}, stall_bound=bound) as stage:
            seen = len(stage.group.log)
            stage.stand_still(1.2)
            said = [each.state for each in stage.group.log[seen:] if each.member == stage.leader]
            assert [state.leading for state in said] == ([False, True] if paused else [])
            assert stage.again == []


def test_what_happens_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="hustings")
    with Stage(0, "le-s", settings={"T_L": 3.0}, stall_bound=0.65) as stage:
        caplog.clear()
        stage.stand_still(1.2)
        said = [(each.levelname, each.getMessage()) for each in caplog.records]
        term = stage.terms[stage.leader].number
    assert [level for level, _ in said] == ["WARNING", "INFO"]
    asks = f"asks whether another member leads (term {term}): this process stood still for"
    assert asks in said[0][1]
    assert "its bound is 0.65 s" in said[0][1]
    assert f"leads on in term {term} after" in said[1][1]


@pytest.mark.parametrize("stall", [0.4, 0.8, 1.2, 2.5])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_with_a_guard_only_the_lease_decides(protocol: str, stall: float) -> None:
    for seed in SEEDS:
        guard = f"memory://stalls-{protocol}-{stall}-{seed}"
        with Stage(seed, protocol, guard=guard, ttl=5.0) as stage:
            before, seen = stage.group.member(stage.leader).state, len(stage.group.log)
            stage.stand_still(stall, after=8.0)
            assert stage.again == []
            assert stage.group.member(stage.leader).state == before
            said = [each.state for each in stage.group.log[seen:] if each.member == stage.leader]
            assert said == []
            assert stage.group.settle() == stage.leader
