"""A command runs while its member leads, and not otherwise: real processes, a member played."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from hustings.agent.command import CommandSpec, Supervised, environment_for, secrets_of
from hustings.core.errors import BadInput
from hustings.net.restarts import Restart, RestartPolicy
from tests.unit.agent_command.playing import (
    DEAF,
    WAITS,
    Play,
    Played,
    PlayedMember,
    gone,
    until,
)

# --- leading and losing --------------------------------------------------------------------------


def test_it_runs_only_while_leading(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(WAITS)
        await asyncio.wait({running}, timeout=0.1)
        assert it.processes() == []
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        first = int(it.wrote("pid"))
        assert os.getsid(first) == os.getpgid(first) == first
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert gone(first)
        await it.member.lead()
        await until(lambda: it.wrote("pid") not in ("", f"{first}\n"))
        it.supervised.signal(signal.SIGTERM)
        assert await running == 128 + signal.SIGTERM
        assert it.processes() == []

    play(story)


@pytest.mark.parametrize("token, shown", [(None, ""), (41, "41")])
def test_what_the_command_is_told(play: Play, token: int | None, shown: str) -> None:
    async def story(it: Played) -> None:
        it.member.token = token
        it.member.terms = 6
        running = it.supervise(
            'echo "$HUSTINGS_GROUP|$HUSTINGS_TERM|${HUSTINGS_TOKEN-unset}|$HUSTINGS_MEMBER" > told'
        )
        await it.member.lead()
        assert await running == 0
        assert it.wrote("told") == f"billing|7|{shown}|{it.member.name}\n"

    play(story)


@pytest.mark.parametrize(
    "variable, passed_on",
    [
        ("HUSTINGS_HTTP_TOKEN", False),
        ("HUSTINGS_GUARD", False),  # an address may hold a password
        ("HUSTINGS_GUARD_PASSWORD", False),
        ("HUSTINGS_WHATEVER_COMES", False),
        ("hustings_http_token", False),
        ("HUSTINGS_TOKEN_FILE", True),  # where it is, not what it is
        ("HUSTINGS_AGENT", True),
        ("PGPASSWORD", True),  # not ours to judge: the command may use the same engine
    ],
)
def test_no_secret_of_ours_reaches_the_command(
    play: Play, monkeypatch: pytest.MonkeyPatch, variable: str, passed_on: bool
) -> None:
    monkeypatch.setenv(variable, "swordfish")

    async def story(it: Played) -> None:
        running = it.supervise(
            f"echo ${{{variable}-unset}} > told; tr '\\0' '\\n' < /proc/$PPID/environ > supervisor"
        )
        await it.member.lead()
        assert await running == 0
        assert it.wrote("told") == ("swordfish\n" if passed_on else "unset\n")
        assert ("swordfish" in it.wrote("supervisor")) == passed_on

    play(story)


def test_a_variable_that_holds_the_guards_password_stays_ours() -> None:
    given = {"DB_PASSWORD": "swordfish", "PGPASSWORD": "hm"}
    secrets = secrets_of("postgres://app@db/app?password_env=DB_PASSWORD")
    assert environment_for(given, {}, secrets) == {"PGPASSWORD": "hm"}
    assert secrets_of("quorum://a,b,c") == secrets_of(None) == frozenset()


def test_all_of_it_ends_also_what_is_deaf_and_what_has_fled(play: Play) -> None:
    """Grandchildren that ignore SIGTERM, in the process group, orphaned and in another session."""

    async def story(it: Played) -> None:
        deaf = "trap '' TERM; echo $$ >> {0}; while :; do sleep 0.05; done"
        it.supervise(
            f"""(({deaf.format("orphan")}) & )
            setsid sh -c '{deaf.format("fled").replace("'", '"')}' &
            {deaf.format("main")}""",
            grace_s=0.2,
        )
        await it.member.lead()
        await until(lambda: it.wrote("orphan") and it.wrote("fled") and it.wrote("main"))
        assert len(it.processes()) >= 4
        lost_at = time.monotonic()
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert 0.2 <= time.monotonic() - lost_at <= it.supervised.bound

    play(story)


def test_a_command_that_heeds_sigterm_has_its_grace(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise("trap 'sleep 0.3; echo done > end; exit 0' TERM; sleep 600 & echo > up; wait")
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert it.wrote("end") == "done\n"

    play(story)


def test_without_grace_it_is_killed_at_once(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise("trap 'echo heard > end; exit 0' TERM; sleep 600 & echo > up; wait", grace_s=0)
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert it.wrote("end") == ""

    play(story)


def test_a_stopped_command_is_ended_too(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise("trap 'echo heard > end; exit 0' TERM; sleep 600 & echo $$ > pid; wait")
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        os.kill(int(it.wrote("pid")), signal.SIGSTOP)
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert it.wrote("end") == "heard\n"

    play(story)


def test_it_is_not_started_again_before_the_last_run_is_gone(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise(f"echo $$ >> starts; {DEAF}", grace_s=0.3)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        first = int(it.wrote("pid"))
        await it.member.lose()
        await it.member.lead()  # it leads again while the command still has its grace
        await until(lambda: len(it.wrote("starts").split()) == 2)
        assert gone(first)
        assert it.member.bodies == 2

    play(story)


def test_lost_while_it_starts(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise(WAITS, grace_s=0.5)
        for _ in range(5):
            await it.member.lead()
            await until(lambda: it.member.bodies == it.member.terms)
            await it.member.lose()
            await until(lambda: it.processes() == [])

    play(story)


# --- hand-over -----------------------------------------------------------------------------------


def test_a_hand_over_waits_until_the_command_is_gone(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise("trap 'sleep 0.2; exit 0' TERM; sleep 600 & echo > up; wait", grace_s=2.0)
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        await it.member.hand_over()
        assert it.processes() == []
        assert it.member.bodies == 1
        assert it.member.drains[0] > 2.0  # the grace fits into the drain
        await it.member.lead()
        await until(lambda: it.member.bodies == 2)

    play(story)


def test_a_hand_over_during_the_delay_of_a_restart(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise("exit 1", restart=RestartPolicy(Restart.ALWAYS, delay_s=600.0))
        await it.member.lead()
        await until(lambda: "the command ended with 1: again in 600s" in it.said)
        await it.member.hand_over()
        assert it.member.bodies == 1

    play(story)


# --- how the command ends by itself --------------------------------------------------------------


@pytest.mark.parametrize(
    "script, code",
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_its_exit_code_is_the_commands(play: Play, script: str, code: int) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(script)
        await it.member.lead()
        assert await running == code
        assert it.processes() == []

    play(story)


def test_what_a_command_leaves_behind_ends_with_it(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise("sleep 600 & (sleep 600 &); setsid sleep 600 & exit 5")
        await it.member.lead()
        assert await running == 5
        assert it.processes() == []

    play(story)


def test_restarts_on_failure_end_with_success(play: Play) -> None:
    async def story(it: Played) -> None:
        policy = RestartPolicy(Restart.ON_FAILURE, delay_s=0.01)
        running = it.supervise("echo >> runs; [ $(wc -l < runs) -ge 3 ]", restart=policy)
        await it.member.lead()
        assert await running == 0
        assert len(it.wrote("runs")) == 3
        assert it.member.bodies == 1  # it led all the time

    play(story)


def test_restarts_are_bounded(play: Play) -> None:
    async def story(it: Played) -> None:
        policy = RestartPolicy(Restart.ALWAYS, delay_s=0.0, most=2)
        running = it.supervise("echo >> runs; exit 9", restart=policy)
        await it.member.lead()
        assert await running == 9
        assert len(it.wrote("runs")) == 3

    play(story)


def test_a_restart_stands_in_the_same_term_and_a_loss_ends_the_delay(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise("echo >> runs; exit 1", restart=RestartPolicy(Restart.ALWAYS, 600.0))
        await it.member.lead()
        await until(lambda: "the command ended with 1: again in 600s" in it.said)
        await it.member.lose()
        await it.member.lead()
        await until(lambda: len(it.wrote("runs")) == 2)
        await until(lambda: it.said[-1] == "the command ended with 1: again in 600s")
        it.supervised.signal(signal.SIGTERM)
        assert await running == 1

    play(story)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, sentence",
    [
        ((), "there is no command to run: write it after --"),
        (("",), "there is no command to run: write it after --"),
        (("no-such-program",), "command 'no-such-program' is not found on the PATH"),
        (("./no-such-program",), "command './no-such-program' is not found"),
        (("./plain",), "command './plain' is not an executable file"),
        (("./folder/",), "command './folder/' is not an executable file"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(
    command: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain").write_text("echo\n")
    Path("folder").mkdir()

    async def refused() -> None:
        with pytest.raises(BadInput) as caught:
            Supervised(PlayedMember(), CommandSpec(command))
        assert str(caught.value) == sentence

    asyncio.run(refused())


def test_what_turns_out_not_to_run_is_refused_when_it_starts(name: str, tmp_path: Path) -> None:
    """It looks like a program and is none: only the system can tell."""
    script = tmp_path / "script"
    script.write_text("no first line that names an interpreter\n")
    script.chmod(0o755)

    async def refused() -> None:
        member = PlayedMember(name)
        await member.lead()
        spec = CommandSpec((str(script),), restart=RestartPolicy(Restart.ALWAYS))
        with pytest.raises(BadInput, match="cannot be run: Exec format error"):
            await Supervised(member, spec).run()

    asyncio.run(refused())


def test_the_promise_says_how_long_and_that_it_is_advisory() -> None:
    async def promised() -> str:
        return Supervised(PlayedMember(), CommandSpec(("true",), grace_s=5.0)).promise()

    assert asyncio.run(promised()) == (
        "the command and all that it started end within 6.25s after leadership is lost, and within "
        "6.34s after this process is stopped or killed, unless all three processes that guard it "
        "are killed or stopped at once; the guarantee is advisory: a member that takes over waits "
        "until the command is gone, on another machine for that time; a member that is cut off may "
        "run the command, too"
    )
