"""The commands that ask an agent: what they print, their exit codes, and no agent to ask."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hustings.agent.client import AgentClient, NoAnswer, Refusal
from hustings.core.errors import BadInput
from tests.unit.agent.fake import TOKEN, Agent, served
from tests.unit.cli.commands import Hustings, in_process
from tests.waiting import until


@pytest.fixture
def hustings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Hustings:
    for name in ("AGENT", "GROUP", "TOKEN_FILE", "HTTP_TOKEN", "TIMEOUT"):
        monkeypatch.delenv(f"HUSTINGS_{name}", raising=False)
    return in_process(capsys)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    with served("billing") as one:
        monkeypatch.setenv("HUSTINGS_AGENT", one.url)
        yield one


@pytest.fixture
def token(tmp_path: Path) -> tuple[str, str]:
    file = tmp_path / "agent.token"
    file.write_text(TOKEN, encoding="utf-8")
    file.chmod(0o600)
    return "--token-file", str(file)


def test_the_leader(hustings: Hustings, agent: Agent) -> None:
    address = agent.members["billing"].address
    shown = hustings("leader")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == f"billing: web-1 ({address}) leads in term 1\n"
    told = hustings("leader", "--json", "--group", "billing")
    assert (told.code, json.loads(told.out)["leader"]["name"]) == (0, "web-1")


def test_nobody_leads(hustings: Hustings, agent: Agent) -> None:
    agent.lead("billing", None, 2, "electing")
    shown = hustings("leader")
    assert (shown.code, shown.out, shown.err) == (3, "billing: no leader: electing\n", "")
    told = hustings("leader", "--json")
    assert (told.code, json.loads(told.out)["leader"]) == (3, None)
    assert hustings("members").code == 3


def test_members(hustings: Hustings, agent: Agent) -> None:
    shown = hustings("members")
    assert shown.code == 0
    lines = [line.split() for line in shown.out.splitlines() if "web-" in line]
    assert [(line[0], "leader" in line) for line in lines] == [("web-1", True), ("web-2", False)]
    assert shown.out.startswith("billing: 2 members")
    told = json.loads(hustings("members", "--json").out)
    assert [one["name"] for one in told["members"]] == ["web-1", "web-2"]


def test_which_group(hustings: Hustings, monkeypatch: pytest.MonkeyPatch) -> None:
    with served("billing", "search") as agent:
        monkeypatch.setenv("HUSTINGS_AGENT", agent.url)
        assert hustings("leader").complaint == (
            "the agent has 2 groups: choose one with --group (billing, search)"
        )
        assert hustings("leader", "--group", "serch").complaint.startswith(
            "unknown group 'serch': did you mean 'search'?"
        )
        assert hustings("leader", "--group", "search").code == 0
        monkeypatch.setenv("HUSTINGS_GROUP", "search")
        assert hustings("leader").out.startswith("search: ")


def test_orders(hustings: Hustings, agent: Agent, token: tuple[str, str]) -> None:
    member = agent.members["billing"]
    assert hustings("elect", *token).code == 0
    resigned = hustings("resign", *token)
    assert resigned.out.startswith("billing: web-2 (")
    assert hustings("resign", "--undo", *token, "--json").code == 0
    assert member.did == ["elect", "resign", "stand"]


def test_a_transfer(hustings: Hustings, agent: Agent, token: tuple[str, str]) -> None:
    done = hustings("transfer", "web-2", "--drain", "5s", *token)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("leads in term 2\n")
    assert agent.members["billing"].did == [("transfer", "web-2", 5.0)]
    again = hustings("transfer", "web-2", *token)
    assert again.complaint == "the agent says: web-1 does not lead group 'billing'"
    assert hustings("transfer", "web-2", "--drain", "soon", *token).complaint.startswith("--drain")


def test_a_transfer_that_does_not_come_about(
    hustings: Hustings, agent: Agent, token: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent.members["billing"], "lead", lambda *_: None)
    done = hustings("transfer", "web-2", "--timeout", "200ms", *token)
    assert done.code == 1
    assert done.err == "hustings: note: web-2 was asked to lead and does not\n"


def test_an_order_waits_for_a_leader(
    hustings: Hustings, agent: Agent, token: tuple[str, str]
) -> None:
    agent.lead("billing", None, 2, "electing")
    none = hustings("elect", "--timeout", "150ms", *token)
    assert (none.code, none.out) == (3, "billing: no leader: electing\n")
    later = threading.Timer(0.1, lambda: agent.lead("billing", "web-2", 3))
    later.start()
    assert hustings("elect", *token).code == 0
    later.join()


def test_orders_without_a_token(
    hustings: Hustings, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hustings("elect").complaint.startswith(
        "the agent says: an order needs the agent's token"
    )
    assert hustings("elect", "--token-file", str(tmp_path / "none")).complaint.startswith(
        "cannot read token file"
    )
    monkeypatch.setenv("HUSTINGS_HTTP_TOKEN", "x" * 20)
    assert "needs the agent's token" in hustings("elect").complaint
    monkeypatch.setenv("HUSTINGS_HTTP_TOKEN", TOKEN)
    assert hustings("elect").code == 0


@pytest.mark.parametrize("command", ["leader", "members", "observe", "elect", "resign"])
def test_no_agent_to_ask(command: str, hustings: Hustings) -> None:
    with socket.socket() as bound:  # bound, and not listening: nobody answers there
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        complaint = hustings(command, "--agent", url).complaint
    assert complaint.startswith(f"cannot reach the agent at {url}: connection refused")


@pytest.mark.parametrize(
    "url", ["127.0.0.1:7401", "ftp://x", "http://", "http://x:99999", "http://[", "http://x?y=1"]
)
def test_what_is_no_url(url: str, hustings: Hustings) -> None:
    assert hustings("leader", "--agent", url).complaint.startswith(f"agent {url!r} is not")


def test_what_is_no_timeout(hustings: Hustings) -> None:
    assert hustings("leader", "--timeout", "5").complaint.startswith("--timeout '5' is not")
    assert hustings("leader", "--timeout", "0s").complaint.startswith("--timeout must be longer")
    assert "user name" in hustings("leader", "--agent", "http://me@x").complaint


@pytest.mark.parametrize(
    "answer, complaint",
    [
        (b"", "Remote end closed connection"),
        (b"SSH-2.0-x\r\n", "cannot reach the agent"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "is not an agent of hustings"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "is not an agent of hustings"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "went away"),
        (b'HTTP/1.1 500 No\r\nContent-Length: 13\r\n\r\n{"error":"x"}', "the agent says: x"),
    ],
)
def test_something_else_answers(answer: bytes, complaint: str, hustings: Hustings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(answer)

        thread = threading.Thread(target=talk)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert complaint in hustings("leader", "--agent", url).complaint
        thread.join()


def test_an_agent_that_does_not_answer_in_time(hustings: Hustings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        complaint = hustings("leader", "--agent", url, "--timeout", "100ms").complaint
    assert "no answer in time" in complaint


# observe


def test_observe_prints_one_line_per_change(hustings: Hustings, agent: Agent) -> None:
    def happen() -> None:
        until(lambda: len(agent.broadcast) == 1, "the listener")
        agent.lead("billing", None, 1, "electing")
        agent.lead("billing", "web-2", 2)

    thread = threading.Thread(target=happen)
    thread.start()
    shown = hustings("observe", "--count", "3")
    thread.join()
    assert (shown.code, shown.err) == (0, "")
    first, second, third = shown.out.splitlines()
    assert first.startswith("1970-01-01T00:00:00.000Z billing: web-1 (")
    assert second.endswith(" billing: no leader: electing")
    assert third.endswith("leads in term 2")


def test_observe_as_json_lines(hustings: Hustings, agent: Agent) -> None:
    agent.lead("billing", None, 4, "electing")
    shown = hustings("observe", "--json", "--count", "1", "--group", "billing")
    assert shown.code == 3
    (line,) = shown.out.splitlines()
    assert (json.loads(line)["term"], json.loads(line)["leader"]) == (4, None)
    assert hustings("observe", "--group", "biling").complaint.startswith("unknown group")


def test_observe_asks_again_when_the_agent_is_back(hustings: Hustings) -> None:
    with served("billing") as first:
        port = int(first.url.rpartition(":")[2])

        def happen() -> None:
            until(lambda: len(first.broadcast) == 1, "the listener")
            first.loop.call_soon_threadsafe(first.end)
            until(first.loop.is_closed, "the end")
            with served("billing", port=port) as second:
                until(lambda: len(second.broadcast) == 1, "the listener again")
                second.lead("billing", "web-2", 9)  # the state it knows already is not told again
                until(lambda: len(second.broadcast) == 0, "the end of the command")

        thread = threading.Thread(target=happen)
        thread.start()
        shown = hustings("observe", "--agent", first.url, "--count", "2")
        thread.join()
    assert shown.code == 0
    assert [line.rpartition(" ")[2] for line in shown.out.splitlines()] == ["1", "9"]
    assert "asking again until" in shown.err


def test_a_client_that_is_one_too_many() -> None:
    with served("billing", streams=1) as agent:
        client = AgentClient(agent.url)
        first = client.events(None)
        assert next(first)["group"] == "billing"
        with pytest.raises(Refusal, match="as many listen as may"):
            next(client.events(None))
        first.close()
        until(lambda: len(agent.broadcast) == 0, "the end of the stream")
        assert next(client.events("billing"))["term"] == 1


def test_errors_are_bad_input() -> None:
    assert issubclass(NoAnswer, BadInput)
    assert issubclass(Refusal, BadInput)
