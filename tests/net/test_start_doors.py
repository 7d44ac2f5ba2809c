"""Each way into a group waits for another member: run, agent, once; processes as users start them.

`test_fails_closed.py` tests the rule itself, and `hustings.join` and `blocking`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import hustings
import hustings.blocking
from tests.agent.processes import Agent, Agents, agents_in
from tests.net.kit.ports import free_address
from tests.net.running import WAITING, Running, Runs, processes_of
from tests.waiting import PATIENCE_S, until

QUIET_S = 1.5  # longer than a member takes that may lead
WHY = "nobody leads here until another member answers"
Rule = Mapping[str, str | int]
WAYS = ("options", "environment", "file")


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    with agents_in(tmp_path) as found:
        yield found


def quiet(*ones: Running) -> None:
    """None of them starts its command for longer than a member takes that may lead."""
    over = time.monotonic() + QUIET_S
    while time.monotonic() < over:
        assert not any(each.leads for each in ones)
        time.sleep(0.05)


def test_a_command_waits_for_another_member(runs: Runs) -> None:
    seed = free_address()
    one = runs.start(WAITING, "--no-local", "--join", seed)
    until(lambda: f"{WHY} ({seed}: " in one.said, "it says why")
    quiet(one)
    runs.start(WAITING, "--no-local", "--bind", seed)
    runs.leader()


@pytest.mark.parametrize("option", [("--expect", "1"), ("--alone", "yes"), ("--alone", "600ms")])
def test_a_command_that_may_be_alone_runs(runs: Runs, option: tuple[str, str]) -> None:
    one = runs.start(WAITING, "--no-local", "--join", free_address(), *option)
    assert runs.leader() is one


def test_two_commands_killed_at_once_and_started_at_once(runs: Runs) -> None:
    """Each is the other's seed, and neither is there when the other one starts."""
    here, there = free_address(), free_address()

    def both() -> list[Running]:
        return [
            runs.start(WAITING, "--no-local", "--bind", bind, "--join", seed, joins=False)
            for bind, seed in ((here, there), (there, here))
        ]

    first = both()
    runs.leader()
    for each in first:
        each.signal(signal.SIGKILL)
    for each in first:
        each.process.wait(PATIENCE_S)
    until(lambda: not any(processes_of(each.name) for each in first), "their commands end")
    again = both()
    leader = runs.leader()
    assert leader in again
    quiet(*[each for each in again if each is not leader])


def started(agents: Agents, way: str, seed: str, rule: Rule) -> Agent:
    """An agent that gets its seed, and what it must wait for, in one of three ways."""
    if way == "options":
        more = [text for key, value in rule.items() for text in (f"--{key}", str(value))]
        return agents.start("--group", "billing", "--no-local", "--join", seed, *more)
    if way == "environment":
        variables = {f"HUSTINGS_{key.upper()}": str(value) for key, value in rule.items()}
        variables |= {"HUSTINGS_GROUP": "billing", "HUSTINGS_JOIN": seed, "HUSTINGS_NO_LOCAL": "1"}
        return agents.start(variables=variables)
    lines = [f'seeds = ["{seed}"]', "no-local = true"]
    lines += [f"{key} = {value!r}" for key, value in rule.items()]
    file = agents.folder / "agent.toml"
    file.write_text("\n".join(["[groups.billing]", *lines, ""]), encoding="utf-8")
    return agents.start("--config", str(file))


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_waits_for_another_member(agents: Agents, way: str) -> None:
    seed = free_address()
    agent = started(agents, way, seed, {})
    until(lambda: any(WHY in line and seed in line for line in agent.lines), "it says so")
    time.sleep(QUIET_S)
    assert agent.leader() is None
    assert agent.get("/readyz")[0] == 503


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", [{"expect": 1}, {"alone": "600ms"}], ids=["expect", "alone"])
def test_an_agent_that_may_be_alone_leads(agents: Agents, way: str, rule: Rule) -> None:
    agent = started(agents, way, free_address(), rule)
    until(lambda: agent.leader() is not None, "it leads")


def test_a_job_waits_for_another_member() -> None:
    """`hustings.once` in a thread, as a web service starts it."""
    ran = threading.Event()
    seed = free_address()

    @hustings.once("once-waits", every="20ms", seeds=[seed], local=False)
    def job(term: hustings.blocking.Term) -> None:
        ran.set()

    with job.start() as running:
        assert not ran.wait(QUIET_S)
        assert running.running
