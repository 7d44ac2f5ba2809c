"""An engine that starts after those that need it: it is waited for, and given up with an exit code.

systemd is not at hand in a test. A few lines stand for it: they read the shipped unit, and start
its command again by the unit's own rules.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.agent.processes import Agent, agents_in
from tests.guard.engines import kind_of
from tests.guard.engines.base import Engine
from tests.net.running import WAITING, Running, group_of_runs
from tests.waiting import until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
UNIT = EXAMPLES / "agent" / "hustings.service"
RUN_UNIT = EXAMPLES / "systemd" / "hustings-run@.service"
GIVEN_UP = 75
STARTS = 20  # of one unit in a test, at most


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine that is ready to start, and is away."""
    made = kind_of("postgres")()
    try:
        made.start()
        made.stop()
        yield made
    finally:
        made.close()


def setting(name: str, unit: Path = UNIT, usual: str | None = None) -> str:
    found = re.search(rf"^{name}=(.*)$", unit.read_text(), re.MULTILINE)
    value = usual if found is None else found[1]
    assert value is not None, name
    return value


def starts_again(code: int, unit: Path = UNIT) -> bool:
    """Whether systemd starts the unit again after this exit code: `man systemd.service`."""
    assert setting("Restart", unit) == "on-failure"
    assert setting("StartLimitIntervalSec", unit) == "0"
    prevented = setting("RestartPreventExitStatus", unit).split()
    succeeded = ["0", *setting("SuccessExitStatus", unit, "").split()]
    return str(code) not in (*prevented, *succeeded)


def is_up_or_over(agent: Agent) -> bool:
    return agent.process.poll() is not None or bool(agent.said("joined"))


def leads_or_is_over(one: Running) -> bool:
    return one.leads or one.process.poll() is not None


def test_a_run_waits_for_its_engine(engine: Engine, tmp_path: Path) -> None:
    with group_of_runs(tmp_path) as runs:
        one = runs.start(WAITING, "--guard", engine.url(runs.group), "--guard-wait", "2m")
        until(lambda: "does not answer: trying for 120s" in one.said, f"the wait: {one.said}")
        assert one.process.poll() is None
        engine.start()
        until(lambda: one.leads, f"it leads: {one.said}")
        assert re.search(r"guard postgres://\S+ answers after", one.said)
        one.signal(signal.SIGTERM)
        assert one.wait() == 143


def test_a_run_gives_up_with_an_exit_code_of_its_own(engine: Engine, tmp_path: Path) -> None:
    with group_of_runs(tmp_path) as runs:
        one = runs.start(WAITING, "--guard", engine.url(runs.group), "--guard-wait", "300ms")
        assert one.wait() == GIVEN_UP
        assert "did not answer for 300ms" in one.said.splitlines()[-1]
        assert "start it, or correct its address" in one.said.splitlines()[-1]


def test_a_signal_ends_the_wait(engine: Engine, tmp_path: Path) -> None:
    with group_of_runs(tmp_path) as runs:
        one = runs.start(WAITING, "--guard", engine.url(runs.group), "--guard-wait", "10m")
        until(lambda: "does not answer" in one.said, f"the wait: {one.said}")
        one.signal(signal.SIGTERM)
        assert one.wait() == 0


def test_an_engine_that_can_never_do_is_a_mistake(tmp_path: Path) -> None:
    with group_of_runs(tmp_path) as runs:
        one = runs.start(WAITING, "--guard", "postgres://127.0.0.1:1/x?no-such=1")
        assert one.wait() == 2


def test_the_shipped_unit_comes_up_with_a_late_engine(engine: Engine, tmp_path: Path) -> None:
    """The first starts give up, by a short `guard-wait`; the last one finds the engine."""
    url = engine.url("billing")
    (tmp_path / "hustings.toml").write_text(
        "[agent]\nbind = '127.0.0.1:0'\n[http]\nbind = '127.0.0.1:0'\n"
        f"[groups.billing]\nno-local = true\nguard = '{url}'\nguard-wait = '300ms'\n"
    )
    _, _, *arguments = setting("ExecStart").split()
    line = tuple(arguments)
    assert line[:2] == ("--config", "/etc/hustings/hustings.toml")
    assert starts_again(GIVEN_UP)
    assert not starts_again(2)
    with agents_in(tmp_path) as agents:

        def started() -> Agent:
            agents.all.append(Agent(("--config", "hustings.toml", *line[2:]), tmp_path))
            return agents.all[-1]

        agent = started()
        codes: list[int] = []
        while len(codes) < 2:
            codes.append(agent.wait_end())
            assert starts_again(codes[-1])
            time.sleep(float(setting("RestartSec").removesuffix("s")))
            agent = started()
        assert codes == [GIVEN_UP, GIVEN_UP]
        engine.start()
        for _ in range(STARTS):
            until(partial(is_up_or_over, agent), "its start or its end")
            if agent.process.poll() is None:
                break
            assert starts_again(agent.wait_end())
            agent = started()
        until(lambda: agent.leader() is not None, "the agent's member leads")
        assert agent.get("/readyz")[0] == 200
        agent.signal(signal.SIGTERM)
        assert agent.wait_end() == 0


def test_the_shipped_unit_of_run_comes_up_with_a_late_engine(
    engine: Engine, tmp_path: Path
) -> None:
    """Its options but for the name, which a test needs to find the processes, and a short wait."""
    program, name, group, *options = setting("ExecStart", RUN_UNIT).split()
    assert (program, name, group) == ("/usr/bin/hustings", "run", "%i")
    assert options[-2:] == ["--", "$COMMAND"]
    at = options.index("--name")
    assert options[at + 1] == "%H"
    assert starts_again(GIVEN_UP, RUN_UNIT)
    assert not starts_again(2, RUN_UNIT)
    assert not starts_again(143, RUN_UNIT)
    with group_of_runs(tmp_path) as runs:
        url = engine.url(runs.group)
        given = [each.replace("${GUARD}", url) for each in (*options[:at], *options[at + 2 : -2])]

        def started() -> Running:
            return runs.start(WAITING, *given, "--guard-wait", "300ms")

        for _ in range(2):
            assert starts_again(started().wait(), RUN_UNIT)
        engine.start()
        for _ in range(STARTS):
            one = started()
            until(partial(leads_or_is_over, one), "its start or end")
            if one.process.poll() is None:
                break
            assert starts_again(one.wait(), RUN_UNIT)
        assert one.leads
        one.signal(signal.SIGTERM)
        assert one.wait() == 143


def test_an_agent_that_waits_is_healthy_and_not_ready(engine: Engine, tmp_path: Path) -> None:
    with agents_in(tmp_path) as agents:
        agent = agents.start("--group", "billing", "--guard", engine.url("billing"), "--no-local")
        told = agent.wait_said("guard-waits")
        assert told["group"] == "billing"
        assert "does not answer: trying for 60s" in told["message"]
        assert agent.get("/healthz")[0] == 200
        assert agent.get("/readyz")[0] == 503
        engine.start()
        until(lambda: agent.get("/readyz")[0] == 200, "the agent is ready")


@pytest.mark.parametrize("unit", [UNIT, RUN_UNIT], ids=lambda unit: unit.name)
def test_the_limit_of_starts_stands_where_systemd_reads_it(unit: Path) -> None:
    text = unit.read_text()
    assert text.index("[Unit]") < text.index("StartLimitIntervalSec") < text.index("[Service]")
