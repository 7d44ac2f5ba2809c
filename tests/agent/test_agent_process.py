"""Agents as processes on this machine: they elect, lose, hand over, leave, reload, and complain."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from hustings.extras import install_command
from hustings.net.keys import new_key, write_key
from tests.agent.processes import Agent, Agents, agents_in, wait_agreed
from tests.unit.cli.commands import COMMAND, Result, in_own_process, in_process
from tests.waiting import until

Ask = Callable[..., Result]
TOKEN = "open-sesame-open-sesame"


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """`ask(agent, "leader")` runs one of the commands."""
    hustings = in_process(capsys)
    return lambda agent, *arguments: hustings(*arguments, "--agent", agent.url)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    with agents_in(tmp_path) as found:
        yield found


def token_file(folder: Path) -> str:
    file = folder / "agent.token"
    file.write_text(TOKEN, encoding="utf-8")
    file.chmod(0o600)
    return str(file)


def named(agents: list[Agent], leader: str) -> tuple[Agent, list[Agent]]:
    """The leader's agent, and the others."""
    place = int(leader.removeprefix("web-")) - 1
    return agents[place], [each for each in agents if each is not agents[place]]


def number_of(agent: Agent, sample: str) -> float:
    """A number of the metrics page, of which this is how its line begins."""
    page = agent.get("/metrics")[1]
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(sample))


def test_three_agents_elect_lose_and_elect(agents: Agents) -> None:
    trio = agents.trio()
    leader, others = named(trio, wait_agreed(trio))
    assert [agent.get("/v1/groups/billing/is-leader")[0] == 200 for agent in trio] == [
        agent is leader for agent in trio
    ]
    assert all(agent.get("/readyz")[0] == agent.get("/healthz")[0] == 200 for agent in trio)
    assert number_of(leader, "hustings_is_leader") == 1
    assert number_of(others[0], "hustings_is_leader") == 0
    assert number_of(others[0], 'hustings_messages_total{direction="received"') > 0
    leader.signal(signal.SIGKILL)
    leader.wait_end()
    wait_agreed(others)
    counted = partial(number_of, others[0], "hustings_election_duration_seconds_count")
    until(lambda: counted() >= 2, "both elections")  # a page of metrics is kept for a moment


def test_agents_run_a_protocol_from_a_file(agents: Agents) -> None:
    own = Path(__file__).parents[2] / "examples" / "hirschberg_sinclair.py"
    trio = agents.trio("--protocol", f"{own}:HirschbergSinclair")
    leader, others = named(trio, wait_agreed(trio))
    leader.signal(signal.SIGTERM)
    assert leader.wait_end() == 0
    wait_agreed(others)


def test_sigterm_leaves_in_good_order(agents: Agents) -> None:
    trio = agents.trio()
    leader, others = named(trio, wait_agreed(trio))
    leader.signal(signal.SIGTERM)
    assert leader.wait_end() == 0
    assert [each["event"] for each in leader.events][-1] == "stopped"
    assert not leader.said("shutdown-timeout")
    wait_agreed(others)
    for each in others:
        each.signal(signal.SIGINT)
    assert [each.wait_end() for each in others] == [0, 0]


def test_the_commands_ask_and_order(agents: Agents, ask: Ask, tmp_path: Path) -> None:
    token = ("--token-file", token_file(tmp_path))
    trio = agents.trio(*token)
    name = wait_agreed(trio)
    leader, others = named(trio, name)
    shown = ask(leader, "leader")
    assert (shown.code, shown.out.split()[:2], shown.err) == (0, ["billing:", name], "")
    assert ask(others[0], "members").out.count("web-") == 3
    heir = "web-1" if name != "web-1" else "web-2"
    refused = ask(named(trio, heir)[0], "transfer", name, *token)
    assert "does not lead" in refused.complaint
    assert ask(leader, "transfer", heir).complaint.startswith("the agent says: an order needs")
    moved = ask(leader, "transfer", heir, *token, "--json")
    assert (moved.code, json.loads(moved.out)["leader"]["name"]) == (0, heir), moved
    wait_agreed(trio, heir)
    assert ask(named(trio, heir)[0], "resign", *token).code == 0
    assert wait_agreed(trio) != heir
    assert ask(leader, "elect", *token).code == 0
    wait_agreed(trio)


def test_observe_tells_what_happens(agents: Agents) -> None:
    trio = agents.trio()
    leader, others = named(trio, wait_agreed(trio))
    watching = subprocess.Popen(
        [*COMMAND, "observe", "--json", "--agent", others[0].url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert first["leader"] is not None
        leader.signal(signal.SIGTERM)
        state = first
        while state["leader"] is None or state["leader"]["name"] == first["leader"]["name"]:
            state = json.loads(watching.stdout.readline())
        assert state["term"] > first["term"]
        others[0].signal(signal.SIGTERM)
        assert others[0].wait_end() == 0
        assert watching.stderr is not None
        assert "asking again until" in watching.stderr.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130
    finally:
        watching.kill()
        watching.communicate()


def test_several_groups_share_a_port(agents: Agents, ask: Ask, tmp_path: Path) -> None:
    text = "[groups.billing]\n{}\n[groups.search]\n{}\nprotocol = 'bully'\n"
    (tmp_path / "one.toml").write_text(text.format("", "") + "[agent]\nname = 'one'\n")
    one = agents.start("--config", "one.toml")
    seeds = f"seeds = ['{one.address}']"
    (tmp_path / "two.toml").write_text(text.format(seeds, seeds) + "[agent]\nname = 'two'\n")
    two = agents.start("--config", "two.toml")
    for group in ("billing", "search"):
        wait_agreed([one, two], group=group)
    assert ask(one, "leader").complaint.startswith("the agent has 2 groups")
    assert ask(one, "leader", "--group", "search").code == 0


def test_sighup_changes_attributes_and_keys(agents: Agents, tmp_path: Path) -> None:
    for name in ("old", "new"):
        write_key(tmp_path / f"{name}.key", new_key())

    def configure(keys: str, cpu: int) -> None:
        for name in ("web-1", "web-2"):
            text = f"[groups.billing]\nkey = {keys}\n[groups.billing.attributes]\ncpu = {cpu}\n"
            (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")

    def knows(agent: Agent, cpu: int) -> bool:
        members = json.loads(agent.get("/v1/groups/billing/members")[1])["members"]
        return [one["attributes"].get("cpu") for one in members] == [cpu, cpu]

    configure("'old.key'", 1)
    one = agents.start("--config", "web-1.toml", "--name", "web-1")
    two = agents.start("--config", "web-2.toml", "--name", "web-2", "--join", one.address)
    wait_agreed([one, two])
    for step, keys in enumerate(
        ("['old.key', 'new.key']", "['new.key', 'old.key']", "'new.key'"), 2
    ):
        configure(keys, step)
        for agent in (one, two):
            agent.signal(signal.SIGHUP)
            agent.wait_said("reloaded", step - 1)
        for agent in (one, two):
            until(partial(knows, agent, step), "the new attributes")
    wait_agreed([one, two])
    assert not one.said("reload-refused")
    (tmp_path / "web-1.toml").write_text("[groups.billing\n", encoding="utf-8")
    one.signal(signal.SIGHUP)
    assert "web-1.toml, line 1: this is not TOML" in one.wait_said("reload-refused")["message"]
    wait_agreed([one, two])


def test_another_key_is_seen_and_not_read(agents: Agents, tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        write_key(tmp_path / f"{name}.key", new_key())
    one = agents.start("--group", "billing", "--name", "web-1", "--key", "mine.key")
    two = agents.start(
        "--group", "billing", "--name", "web-2", "--key", "theirs.key", "--join", one.address
    )
    assert one.wait_said("notice")["group"] == "billing"
    until(lambda: one.leader() == "web-1", "the first one leads")
    until(lambda: "web-1 (process" in str(two.events), "the second one says why it does not lead")
    assert two.leader() != "web-2"


def test_a_log_that_nobody_reads_holds_up_nobody(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hustings = in_process(capsys)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:  # until the pipe is full
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = ("--group", "billing", "--name", "web-1", "--bind", "127.0.0.1:0")
    silent = subprocess.Popen(
        [*COMMAND, "agent", *flags, "--http", f"127.0.0.1:{port}"], stderr=writing, cwd=tmp_path
    )
    os.close(writing)
    try:
        url = f"http://127.0.0.1:{port}"
        until(lambda: hustings("leader", "--agent", url).code == 0, "a leader")
        silent.send_signal(signal.SIGTERM)
        assert silent.wait(30) == 0
    finally:
        silent.kill()
        silent.wait()
        os.close(reading)


def test_a_ctrl_c_that_was_ignored_stays_ignored(agents: Agents) -> None:
    """As in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        one = agents.start("--group", "billing", "--name", "web-1")
    finally:
        signal.signal(signal.SIGINT, before)
    one.wait_said("listening")
    one.signal(signal.SIGINT)
    assert one.get("/healthz")[0] == 200
    one.signal(signal.SIGTERM)
    assert one.wait_end() == 0
    assert [each["message"] for each in one.said("stopping")] == ["leaving: SIGTERM"]


# HTTP under attack


def test_silent_connections_do_not_silence_the_agent(agents: Agents) -> None:
    one = agents.start("--group", "billing", "--name", "web-1")
    wait_agreed([one])
    host, _, port = one.url.removeprefix("http://").partition(":")
    with ExitStack() as stack:
        for number in range(400):
            silent = socket.create_connection((host, int(port)), 30)
            stack.enter_context(silent)
            silent.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" if number % 2 else b"")
        for path in ("/healthz", "/readyz", "/v1/groups/billing/is-leader", "/v1/groups"):
            status, body = one.get(path)
            assert status == 200, body
            assert json.loads(body)
        assert number_of(one, "hustings_http_connections_refused_total") > 100
        for _ in range(20):
            with socket.create_connection((host, int(port)), 30) as garbled:
                garbled.sendall(b"nonsense\r\n\r\n")
                assert b"HTTP/1.1 400" in garbled.recv(4096)
    assert len(one.said("http-refused")) <= 3
    assert one.said("library") == []


@pytest.mark.parametrize(
    "host, status",
    [("evil.example", 421), ("evil.example:{port}", 421), ("localhost:{port}", 200)],
)
def test_a_page_that_is_rebound_to_us_gets_nothing(agents: Agents, host: str, status: int) -> None:
    one = agents.start("--group", "billing", "--name", "web-1")
    where, _, port = one.url.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(where, int(port), timeout=30)
    connection.request("GET", "/v1/groups", headers={"Host": host.format(port=port)})
    answer = connection.getresponse()
    assert answer.status == status
    assert ("error" in json.load(answer)) == (status == 421)
    connection.close()


# What is wrong is told in one sentence


def test_a_name_that_is_taken(agents: Agents) -> None:
    first = agents.start("--group", "billing", "--name", "web-1")
    second = agents.start("--group", "billing", "--name", "web-1", "--join", first.address)
    assert second.wait_end() == 2
    (line,) = second.lines
    assert line.startswith("hustings: --group billing: ")
    assert "web-1" in line
    assert first.get("/healthz")[0] == 200


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "starlette.py").write_text(
        "raise ModuleNotFoundError('no', name='starlette')\n", encoding="utf-8"
    )
    told = in_own_process("agent", "--group", "x", environment={"PYTHONPATH": str(tmp_path)})
    assert told.complaint == f"the agent needs starlette: {install_command('agent')}"
