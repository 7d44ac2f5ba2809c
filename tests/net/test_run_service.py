"""`hustings run` for those who operate it: HTTP, logs for machines, and hooks, as processes."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hustings.agent.supervisor import SETTLE_S
from tests.agent.processes import agents_in, wait_agreed
from tests.net.running import WAITING, Running, Runs, command_line, processes_of
from tests.waiting import PATIENCE_S, until

HTTP = ("--http", "127.0.0.1:0")
BUSY_S = 2.0  # what a busy machine may add to a bound before it counts as broken


def web_of(one: Running) -> tuple[str, int]:
    until(lambda: "HTTP on http://" in one.said, f"HTTP: {one.said}")
    found = re.search(r"HTTP on http://(.+):(\d+)", one.said)
    assert found is not None
    return found[1], int(found[2])


def get(one: Running, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*web_of(one), timeout=PATIENCE_S)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def is_ready(one: Running) -> bool:
    return get(one, "/readyz")[0] == 200


def events_of(one: Running) -> list[dict[str, Any]]:
    """The log as objects; every whole line is one."""
    whole, _, _ = one.said.rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


# --- HTTP ----------------------------------------------------------------------------------------


def test_health_and_metrics_of_a_leader_and_of_one_that_waits(runs: Runs) -> None:
    for _ in range(2):
        runs.start(WAITING, *HTTP)
    leader = runs.leader()
    (other,) = runs.others(leader)
    for one in runs.all:
        until(partial(is_ready, one), f"{one.name} is ready")
        assert get(one, "/healthz")[0] == 200
        status, page = get(one, "/metrics")
        assert status == 200
        assert re.search(rf"hustings_is_leader{{.*}} {float(one is leader)}", page), page
        asked = f"/v1/groups/{runs.group}/is-leader"
        assert get(one, asked)[0] == (200 if one is leader else 503)
        assert get(one, asked, Host="evil.example")[0] == 421
    leader.signal(signal.SIGTERM)
    assert leader.wait() == 143
    until(lambda: other.leads, "the other one leads")


def test_before_it_has_joined_it_is_healthy_and_not_ready(runs: Runs) -> None:
    """The one that it would join is stopped, and does not answer."""
    first = runs.start(WAITING)
    assert first.address
    first.signal(signal.SIGSTOP)
    second = runs.start(WAITING, *HTTP)
    assert get(second, "/healthz")[0] == 200
    status, body = get(second, "/readyz")
    assert (status, json.loads(body)) == (503, {"ready": False, "groups": {runs.group: False}})
    assert get(second, "/metrics")[0] == 200
    second.signal(signal.SIGTERM)
    assert second.wait() == 0


def test_attackers_end_neither_the_command_nor_its_end(runs: Runs) -> None:
    one = runs.start(WAITING, *HTTP)
    until(lambda: one.leads, "it leads")
    where = web_of(one)
    with ExitStack() as stack:
        for number in range(300):
            silent = stack.enter_context(socket.create_connection(where, PATIENCE_S))
            silent.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" if number % 2 else b"")
        assert get(one, "/healthz")[0] == 200
        for garbage in (
            b"nonsense\r\n\r\n",
            b"\0" * 20_000,
            b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 900,
        ):
            with socket.create_connection(where, PATIENCE_S) as garbled:
                garbled.sendall(garbage)
                assert garbled.recv(4096).startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
        with socket.create_connection(where, PATIENCE_S) as listener:
            listener.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert listener.recv(4096).startswith(b"HTTP/1.1 200")
            assert one.leads
            one.signal(signal.SIGTERM)
            assert one.wait() == 143


def test_an_order_over_http_needs_the_token(runs: Runs) -> None:
    token = runs.folder / "token"
    token.write_text("open-sesame-open-sesame")
    token.chmod(0o600)
    one = runs.start("trap 'exit 9' TERM; sleep 600 & wait", *HTTP, "--token-file", str(token))
    until(lambda: one.leads, "it leads")
    order = f"/v1/groups/{runs.group}/resign"
    connection = http.client.HTTPConnection(*web_of(one), timeout=PATIENCE_S)
    connection.request("POST", order)
    assert connection.getresponse().status == 401
    connection.close()
    assert one.leads
    connection = http.client.HTTPConnection(*web_of(one), timeout=PATIENCE_S)
    connection.request("POST", order, headers={"Authorization": f"Bearer {token.read_text()}"})
    assert connection.getresponse().status == 200
    connection.close()
    until(lambda: not one.leads, "its command ends")
    assert "ending the command first" in one.said


def test_a_port_of_http_that_is_taken_is_refused_before_anything_starts(runs: Runs) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        one = runs.start("echo ran >> ran", "--http", f"127.0.0.1:{port}")
        assert one.wait() == 2
    assert one.said.startswith(f"hustings: HTTP address 127.0.0.1:{port} is in use")
    assert one.said.count("\n") == 1
    assert not (runs.folder / "ran").exists()


# --- the log -------------------------------------------------------------------------------------


def test_a_log_for_machines(runs: Runs) -> None:
    one = runs.start("exit 7", "--log", "json", *HTTP)
    assert one.wait() == 7
    events = events_of(one)
    assert {(each["group"], each["member"]) for each in events} == {(runs.group, one.name)}
    assert [each["event"] for each in events if each["event"] != "notice"] == [
        *("listening", "joined", "guarantee", "command-start", "command-ended"),
    ]
    (started,) = [each for each in events if each["event"] == "command-start"]
    assert (started["level"], started["term"], started["token"]) == ("info", 1, None)
    assert events[-1]["code"] == 7
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{12}Z", each["time"]) for each in events)


def test_a_log_for_machines_has_no_line_for_people(runs: Runs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        away = ("--guard", "etcd://127.0.0.1:1", "--guard-wait", "200ms")
        for options, said, code in (
            (("--http", place), f"HTTP address {place} is in use: ", 2),
            (("--bind", place), f"{place} is in use by another process: ", 2),
            (away, "guard etcd://127.0.0.1:1 did not answer for 200ms ", 75),
        ):
            one = runs.start(WAITING, "--log", "json", *options)
            assert one.wait() == code
            last = events_of(one)[-1]
            assert (last["event"], last["level"], last["code"]) == ("failed", "error", code)
            assert last["message"].startswith(said)
            assert (last["group"], last["member"]) == (runs.group, one.name)


def test_quiet_says_nothing_and_a_closed_stderr_ends_nothing(runs: Runs) -> None:
    one = runs.start("exec 2>&-; exit 7", "--quiet")
    assert one.wait() == 7
    assert one.said == ""


def test_lines_for_people_begin_with_the_time(runs: Runs) -> None:
    one = runs.start("exit 7")
    assert one.wait() == 7
    for line in one.said.splitlines():
        assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]{12}Z (info   |warning) hustings: ", line), line


# --- hooks ---------------------------------------------------------------------------------------

NOTES = 'echo "$HUSTINGS_EVENT $HUSTINGS_MEMBER" >> told'
HANGS = "trap '' TERM; echo begun >> begun; setsid sleep 600 & (sleep 600 &); sleep 600"


def working(one: Running) -> bool:
    """Whether its command runs, and not a hook."""
    return any(b"sleep" in command_line(each) for each in processes_of(one.name))


def told(runs: Runs) -> list[str]:
    try:
        return (runs.folder / "told").read_text().splitlines()
    except FileNotFoundError:
        return []


def test_hooks_of_members_that_take_over(runs: Runs) -> None:
    for _ in range(2):
        runs.start(WAITING, "--on-lead", NOTES, "--on-lose", NOTES)
    first = runs.leader()
    (second,) = runs.others(first)
    until(lambda: working(first), "its command runs")
    assert second.address, "it has met the first"
    assert told(runs) == [f"on-lead {first.name}"]
    first.signal(signal.SIGTERM)
    assert first.wait() == 143
    until(lambda: working(second), "the other one's command runs")
    assert told(runs)[1:] == [f"on-lose {first.name}", f"on-lead {second.name}"]
    second.signal(signal.SIGKILL)  # no time for a hook
    until(lambda: not processes_of(second.name), "its command ends")
    assert len(told(runs)) == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_a_hook_that_hangs_goes_with_its_member(runs: Runs, number: signal.Signals) -> None:
    """It ignores SIGTERM, and what it started is in sessions of its own."""
    one = runs.start(WAITING, "--on-lead", HANGS, "--hook-timeout", "10m", "--on-lose", NOTES)
    until((runs.folder / "begun").exists, "the hook runs")
    until(lambda: len(processes_of(one.name)) >= 5, "what it started runs")
    one.signal(number)
    sent_at = time.monotonic()
    until(lambda: not processes_of(one.name), "the hook ends")
    assert time.monotonic() - sent_at < 0.87 + 0.3 + SETTLE_S + BUSY_S
    if number is signal.SIGTERM:
        assert one.wait() == 0
        assert told(runs) == [f"on-lose {one.name}"]
    else:
        assert told(runs) == []


def test_ctrl_c_again_and_again_ends_command_and_hook(runs: Runs) -> None:
    """The first asks the command to end, the second kills it, the fourth ends on-lose."""
    deaf = "trap '' TERM INT; echo $HUSTINGS_EVENT >> told; sleep 600 & wait; sleep 600"
    options = ("--on-lose", deaf, "--hook-timeout", "10m")
    one = runs.start(deaf, *options, grace="60s")
    until(lambda: told(runs) == [""], "the command runs")
    one.signal(signal.SIGINT)
    until(lambda: "a second signal kills it now" in one.said, "the first is passed on")
    one.signal(signal.SIGINT)
    until(lambda: told(runs) == ["", "on-lose"], "the hook runs")
    one.signal(signal.SIGINT)
    until(lambda: "a further signal ends it" in one.said, "the third is answered")
    one.signal(signal.SIGINT)
    assert one.wait() == 137


def test_an_agent_has_hooks_too(tmp_path: Path) -> None:
    """One that hangs keeps neither the agent nor the other member from what they do."""
    notes = (
        f"cd {tmp_path}; echo $HUSTINGS_EVENT $HUSTINGS_MEMBER $HUSTINGS_TERM >> told; echo said"
    )
    fast = ("--group", "billing", "--no-local", "--on-lead", notes, "--hook-timeout", "4s")
    with agents_in(tmp_path) as agents:
        one = agents.start(*fast, "--name", "web-1", "--on-lose", f"{notes}; exec sleep 600")
        one.wait_said("hook-ended")
        agents.start(*fast, "--name", "web-2", "--on-lose", notes, "--join", one.address)
        wait_agreed(agents.all)
        one.signal(signal.SIGTERM)
        assert one.wait_end() == 0
        assert [each["message"] for each in one.said("hook-output")] == [
            *("on-lead: said", "on-lose: said"),
        ]
        (failed,) = one.said("hook-failed")
        assert failed["message"] == "on-lose did not end within 4s: it was ended"
        assert failed["code"] == 124
        agents.all[1].wait_said("hook-ended")
        lines = (tmp_path / "told").read_text().splitlines()
        assert [line.rsplit(" ", 1)[0] for line in lines] == [
            *("on-lead web-1", "on-lose web-1", "on-lead web-2"),
        ] or [line.rsplit(" ", 1)[0] for line in lines] == [
            *("on-lead web-1", "on-lead web-2", "on-lose web-1"),
        ]


def test_a_hook_that_fails_lets_another_member_lead(runs: Runs) -> None:
    fails = f'case "$HUSTINGS_MEMBER" in *-0) exit 4;; esac; {NOTES}'
    first = runs.start(WAITING, "--on-lead", fails, "--on-lose", NOTES)
    assert first.wait() == 4
    assert "on-lead failed with 4; the command is not started" in first.said
    second = runs.start(WAITING, "--on-lead", fails, "--on-lose", NOTES)
    until(lambda: working(second), "the other one's command runs")
    assert told(runs) == [f"on-lose {first.name}", f"on-lead {second.name}"]
