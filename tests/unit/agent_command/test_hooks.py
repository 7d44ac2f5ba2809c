"""on-lead and on-lose around a command, with real processes and a played member."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from hustings.agent.command import CommandSpec, Supervised, lease_for
from hustings.agent.hooks import MOST_LINES, PIECE, SLOW_S, AgentHooks, HookOutput, Hooks
from hustings.core.errors import BadInput
from hustings.net.loss_reason import LossReason
from hustings.net.restarts import Restart, RestartPolicy
from tests.unit.agent_command.playing import PATIENCE_S, Heard, Play, Played, until

NOTES = 'echo "$HUSTINGS_EVENT $HUSTINGS_TERM ${HUSTINGS_TOKEN:-none}" >> told'


def supervised(
    it: Played,
    script: str = "echo command >> told; exec sleep 600",
    on_lead: str | None = NOTES,
    on_lose: str | None = NOTES,
    timeout_s: float = PATIENCE_S / 2,
    restart: RestartPolicy | None = None,
) -> asyncio.Task[int]:
    def there(line: str | None) -> str | None:
        return None if line is None else f"cd '{it.folder}'\n{line}"

    spec = CommandSpec(
        ("sh", "-c", there(script) or ""),
        grace_s=PATIENCE_S / 2,
        silence_s=PATIENCE_S,
        restart=restart or RestartPolicy(),
        hooks=Hooks(there(on_lead), there(on_lose), timeout_s),
    )
    it.supervised = Supervised(it.member, spec, it.log)
    return asyncio.create_task(it.supervised.run())


def lines(it: Played) -> list[str]:
    return it.wrote("told").splitlines()


def test_they_run_before_and_after_the_command_in_each_term(play: Play) -> None:
    async def story(it: Played) -> None:
        it.member.token = 7
        expected = [
            *("on-lead 1 7", "command", "on-lose 1 7"),
            *("on-lead 2 7", "command", "on-lose 2 7"),
        ]
        running = supervised(it)
        for term in (1, 2):
            await it.member.lead()
            await until(lambda: lines(it)[-1:] == ["command"])
            await it.member.lose()
            await until(said(it, *expected[: 3 * term]))
            await until(lambda: it.processes() == [] and not it.member.campaigns)
        it.supervised.signal(signal.SIGTERM)
        assert await running == 0

    play(story)


def test_what_a_hook_is_told(play: Play) -> None:
    async def story(it: Played) -> None:
        told = 'echo "$HUSTINGS_GROUP|$HUSTINGS_MEMBER|$HUSTINGS_LEADER|$HUSTINGS_REASON" >> told'
        supervised(it, "exec sleep 600", told, told)
        await it.member.lead()
        await until(lambda: len(lines(it)) == 1)
        for term in it.member.campaigns:
            term.reason = LossReason(kind="other-leader", words="b leads in term 7")
        await it.member.lose()
        await until(lambda: len(lines(it)) == 2)
        name = it.member.name
        assert lines(it) == [f"billing|{name}|{name}|", f"billing|{name}||b leads in term 7"]
        assert f"{name} leads billing no longer: b leads in term 7" in it.said

    play(story)


def test_without_a_secret(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSTINGS_HTTP_TOKEN", "swordfish")

    async def story(it: Played) -> None:
        running = supervised(it, "exit 0", "echo ${HUSTINGS_HTTP_TOKEN-unset} >> told", None)
        await it.member.lead()
        assert await running == 0
        assert lines(it) == ["unset"]

    play(story)


def test_a_command_does_not_start_if_on_lead_fails(play: Play) -> None:
    async def story(it: Played) -> None:
        running = supervised(it, on_lead="echo tried >> told; exit 3")
        await it.member.lead()
        assert await running == 3
        assert lines(it) == ["tried", "on-lose 1 none"]
        assert "on-lead failed with 3; the command is not started" in it.said

    play(story)


def test_a_failure_of_on_lead_is_tried_again_as_the_command_is(play: Play) -> None:
    async def story(it: Played) -> None:
        policy = RestartPolicy(Restart.ON_FAILURE, delay_s=0.01, most=5)
        running = supervised(
            it, "echo command >> told", "echo >> tries; [ $(wc -l < tries) -ge 3 ]", restart=policy
        )
        await it.member.lead()
        assert await running == 0
        assert lines(it) == ["command", "on-lose 1 none"]
        assert len(it.wrote("tries")) == 3
        assert "on-lead ended with 1: again in 20ms" in it.said

    play(story)


def test_a_restart_of_the_command_does_not_repeat_on_lead(play: Play) -> None:
    async def story(it: Played) -> None:
        policy = RestartPolicy(Restart.ON_FAILURE, delay_s=0.01, most=2)
        running = supervised(it, "echo command >> told; exit 6", restart=policy)
        await it.member.lead()
        assert await running == 6
        assert lines(it) == ["on-lead 1 none", *["command"] * 3, "on-lose 1 none"]

    play(story)


def test_each_has_a_time_limit_and_nothing_of_it_stays(play: Play) -> None:
    async def story(it: Played) -> None:
        long = "trap '' TERM; (sleep 600 &); setsid sleep 600 & sleep 600"
        running = supervised(it, on_lead=long, on_lose=long, timeout_s=0.3)
        await it.member.lead()
        assert await running == 124
        assert it.processes() == []
        assert "on-lead did not end within 300ms: it was ended; the command is not started" in (
            it.said
        )
        assert "on-lose did not end within 300ms: it was ended" in it.said

    play(story)


def test_a_loss_ends_on_lead(play: Play) -> None:
    async def story(it: Played) -> None:
        supervised(it, on_lead="echo begun >> told; exec sleep 600")
        await it.member.lead()
        await until(lambda: lines(it))
        await it.member.lose()
        await until(lambda: len(lines(it)) == 2)
        assert lines(it) == ["begun", "on-lose 1 none"]
        await until(lambda: it.processes() == [])

    play(story)


def test_a_signal_ends_on_lead_and_lets_on_lose_finish(play: Play) -> None:
    async def story(it: Played) -> None:
        running = supervised(
            it,
            on_lead="echo begun >> told; exec sleep 600",
            on_lose="echo losing >> told; until [ -e go ]; do sleep 0.02; done; echo lost >> told",
        )
        await it.member.lead()
        await until(lambda: lines(it))
        it.supervised.signal(signal.SIGTERM)
        await until(lambda: lines(it)[-1] == "losing")
        it.supervised.signal(signal.SIGTERM)
        (it.folder / "go").touch()
        assert await running == 0
        assert lines(it) == ["begun", "losing", "lost"]

    play(story)


def test_further_signals_end_on_lose(play: Play) -> None:
    async def story(it: Played) -> None:
        running = supervised(
            it,
            on_lead=None,
            on_lose="echo losing >> told; trap '' TERM; sleep 600 & wait; sleep 600",
            timeout_s=600.0,
        )
        await it.member.lead()
        await until(lambda: lines(it))
        it.supervised.signal(signal.SIGTERM)
        await until(lambda: lines(it)[-1] == "losing")
        it.supervised.signal(signal.SIGTERM)
        assert it.said[-1] == "on-lose runs for at most 600s; a further signal ends it"
        it.supervised.signal(signal.SIGTERM)
        assert await running == 143
        assert it.processes() == []
        assert "on-lose was ended before its time" in it.said

    play(story)


def test_what_a_hook_writes_is_in_the_log(play: Play) -> None:
    async def story(it: Played) -> None:
        running = supervised(
            it,
            "exit 0",
            on_lead="echo one; echo two >&2; printf 'three'; cat",  # `cat`: there is no input
            on_lose="printf '\\377\\000\\033[2J\\n'; seq 1 100000; echo last",
        )
        await it.member.lead()
        assert await running == 0
        wrote = [told for event, told in it.log.events if event == "hook-output"]
        assert wrote[:3] == ["on-lead: one", "on-lead: two", "on-lead: three"]
        assert wrote[4:6] == ["on-lose: 1", "on-lose: 2"]
        assert len(wrote) == 3 + MOST_LINES + 1
        left = 100_002 - MOST_LINES
        assert wrote[-1] == f"on-lose: (and {left} more lines, which are dropped)"
        ends = [told for event, told in it.log.events if event == "hook-ended"]
        assert [told.split(" after ")[0] for told in ends] == [
            "on-lead ended with 0",
            "on-lose ended with 0",
        ]

    play(story)


def test_output_without_end_does_not_hold_up_the_member(play: Play) -> None:
    async def story(it: Played) -> None:
        supervised(it, on_lead="yes & yes | tr -d '\\n'", on_lose=None, timeout_s=60.0)
        await it.member.lead()
        await until(lambda: len(it.log.events) > MOST_LINES)
        for _ in range(100):
            await asyncio.sleep(0)  # others have their turn
        await it.member.lose()
        await until(lambda: it.processes() == [])
        await until(lambda: "which are dropped)" in "".join(it.said))

    play(story)


def test_empty_lines_without_end_do_not_hold_up_the_member_either() -> None:
    async def story() -> None:
        said: list[str] = []
        output = HookOutput(said.append)
        os.set_blocking(output.write, False)
        rounds = taken = 0
        try:
            ends = asyncio.get_running_loop().time() + 20 * SLOW_S
            while asyncio.get_running_loop().time() < ends:
                rounds += 1
                with suppress(BlockingIOError):
                    taken += os.write(output.write, b"\n" * PIECE)
                await asyncio.sleep(0)
        finally:
            os.close(output.write)
            output.close()
        assert said == []
        assert taken <= 24 * PIECE, "the pipe is read slowly"
        assert rounds > 100, "others have their turn"

    asyncio.run(story())


def test_none_runs_for_a_member_that_never_led(play: Play) -> None:
    async def story(it: Played) -> None:
        running = supervised(it)
        await asyncio.sleep(0)
        it.supervised.signal(signal.SIGTERM)
        assert await running == 0
        assert lines(it) == []

    play(story)


def test_a_lease_leaves_time_for_on_lose() -> None:
    hooks = Hooks(None, "true", 3.0)
    asked = lease_for(CommandSpec(("true",), grace_s=5.0, hooks=hooks), "etcd://a", None)
    plain = lease_for(CommandSpec(("true",), grace_s=5.0), "etcd://a", None)
    assert asked["margin"] == plain["margin"] + hooks.lose_s  # type: ignore[operator] # a number
    with pytest.raises(BadInput, match="or lower --grace and --hook-timeout"):
        lease_for(CommandSpec(("true",), hooks=hooks), "etcd://a", 13.0)
    only_lead = CommandSpec(("true",), grace_s=5.0, hooks=Hooks("true"))
    assert lease_for(only_lead, "etcd://a", None) == plain


# --- an agent's ----------------------------------------------------------------------------------


@dataclass
class Peer:
    name: str


@dataclass
class State:
    """A member's state, as far as hooks look at it."""

    term: int
    leader: Peer | None
    leading: bool
    token: int | None = None
    reason: str = ""


@dataclass
class Agent:
    """The hooks of one agent, and what they wrote."""

    it: Played
    hooks: AgentHooks
    log: Heard = field(default_factory=Heard)

    def saw(self, term: int, leader: str | None, reason: str = "") -> None:
        peer = None if leader is None else Peer(leader)
        state = State(term, peer, leader == self.it.member.name, reason=reason)
        self.hooks.saw(state)  # type: ignore[arg-type] # as far as hooks look at it


def agent(it: Played, on_lead: str, on_lose: str, timeout_s: float = 10.0) -> Agent:
    there = f"cd '{it.folder}'\n"
    wanted = Hooks(there + on_lead, there + on_lose, timeout_s)
    environment = {"PATH": "/usr/bin:/bin"}
    log = Heard()
    made = AgentHooks(wanted, "billing", it.member.name, environment, log)
    return Agent(it, made, log)


AGENT_NOTES = 'echo "$HUSTINGS_EVENT $HUSTINGS_TERM ${HUSTINGS_LEADER:-nobody}" >> told'


def said(it: Played, *expected: str) -> Callable[[], bool]:
    return lambda: lines(it) == list(expected)


def test_an_agents_hooks_follow_its_member(play: Play) -> None:
    async def story(it: Played) -> None:
        one, me = agent(it, AGENT_NOTES, AGENT_NOTES), it.member.name
        one.saw(1, "web-2")
        one.saw(2, me)
        await until(said(it, f"on-lead 2 {me}"))
        one.saw(2, me)  # the same leadership
        one.saw(3, "web-2", "web-2 leads in term 3")
        await until(said(it, f"on-lead 2 {me}", "on-lose 2 web-2"))
        one.saw(4, me)
        one.saw(5, me)  # again, in a later term: perhaps another member led in between
        later = f"on-lose 4 {me}", f"on-lead 5 {me}"
        await until(lambda: lines(it)[-1] == later[1])
        await one.hooks.end()
        assert lines(it)[-2:] == [later[1], f"on-lose 5 {me}"]
        events = [line.split()[0] for line in lines(it)]
        assert events == ["on-lead", "on-lose"] * (len(events) // 2)

    play(story)


def test_an_agent_goes_on_when_a_hook_fails(play: Play) -> None:
    async def story(it: Played) -> None:
        one = agent(it, "exit 3", "sleep 600", timeout_s=0.2)
        one.saw(1, it.member.name)
        await until(lambda: "on-lead failed with 3" in one.log.said)
        one.saw(2, "web-2")
        await until(lambda: "on-lose did not end within 200ms: it was ended" in one.log.said)
        await one.hooks.end()
        assert it.processes() == []

    play(story)


def test_an_agents_on_lead_ends_when_leadership_is_lost(play: Play) -> None:
    async def story(it: Played) -> None:
        one = agent(it, "echo begun >> told; exec sleep 600", AGENT_NOTES)
        one.saw(1, it.member.name)
        await until(said(it, "begun"))
        one.saw(2, None, "electing")
        await until(said(it, "begun", "on-lose 1 nobody"))
        one.hooks.cancel()

    play(story)
