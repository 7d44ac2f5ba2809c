"""Golden scripts: what each command does, and what a mistake is told."""

import textwrap

import pytest

from hustings.testing import BadScript, play
from tests.unit.testing.toys import find_toy


def played(script: str) -> str:
    return play(textwrap.dedent(script).lstrip("\n"), find_toy, "tale.txt")


def told(*commands: str) -> list[str]:
    """What the last of these commands prints."""
    text = "\n\n".join(f"> {command}" for command in commands)
    return play(text, find_toy, "tale.txt").split("\n\n")[-1].splitlines()[1:]


def complaint(*commands: str) -> str:
    with pytest.raises(BadScript) as caught:
        told(*commands)
    return str(caught.value)


GROUP = ("nodes 3 toy", "start")


def test_a_whole_story() -> None:
    story = """
    # Comments and blank lines stay where they are.

    > nodes 3 toy attr.cpu=1,2,3 choice=highest:cpu leader=3 set.wait=2
    1..3: toy, highest:cpu, leader 3
    > start
    1 2 3 start

    > call 1
    1 calls
      1 stores at=0, calls=1
      1->* HAIL
      1 sets wait/1 to 2

    # 3 dies with the question under way.
    > crash 3
    3 is down

    > deliver all
    1->2 HAIL
      2->1 HERE(count=1)
    1->3 HAIL is lost: 3 is down

    > suspect 2 3
    2 suspects 3
      2 declares no leader: 3 is gone

    > pending
    2->1 HERE(count=1)
    1 wait/1 at 2

    > settle
    2->1 HERE(count=1)
    1 wait/1 fires at 2
      1 declares leader 1, term 2
    settled at 2

    > state
    1 leader=1 term=2
    2 leader=None term=1
    3 down

    > counts
    HAIL 1, HERE 1, in all 2
    """
    assert played(story) == textwrap.dedent(story).lstrip("\n").rstrip(" ")


def test_rewriting_replaces_output_and_nothing_else() -> None:
    outdated = """
    # Why.

    > nodes 1 toy
    something old
    and more of it
    >   start

    > state
    # A comment ends the output.
    """
    fresh = played(outdated)
    assert fresh == (
        "# Why.\n\n> nodes 1 toy\n1: toy, highest-id\n>   start\n1 start\n\n"
        "> state\n1 leader=None term=0\n# A comment ends the output.\n"
    )
    assert play(fresh, find_toy) == fresh


def test_the_same_script_plays_alike_each_time() -> None:
    story = "\n".join(f"> {line}" for line in (*GROUP, "call *", "settle", "state"))
    assert play(story, find_toy) == play(story, find_toy)


def test_nodes_say_who_is_down_and_what_the_configuration_warns_of() -> None:
    assert told("nodes 3 toy down=2,3 set.wait=101") == [
        "1..3: toy, highest-id, down 2,3",
        "warning: that is long",
    ]


def test_start_some_then_the_rest() -> None:
    assert told("nodes 4 toy", "start 2,3") == ["2 3 start"]
    assert told("nodes 4 toy", "start 2 3", "start") == ["1 4 start"]
    assert told("nodes 4 toy", "start 2", "state 1,2") == ["1 not started", "2 leader=None term=0"]


def test_a_restart_shows_the_incarnation_and_an_eager_timer() -> None:
    assert told(*GROUP, "crash 2", "restart 2") == [
        "2 restarts, incarnation 2",
        "  2 sets back to 1 (eager)",
    ]
    assert told("nodes 3 toy down=2", "start", "restart 2")[0] == "2 restarts, incarnation 2"


def test_cancelling_shows_only_if_the_timer_was_armed() -> None:
    story = (*GROUP, "restart 2", "call 1")
    assert told(*story, "deliver 1->2") == ["1->2 HAIL", "  2 cancels back", "  2->1 HERE(count=1)"]
    assert told(*story, "deliver 1->3") == ["1->3 HAIL", "  3->1 HERE(count=1)"]
    # Neither one of an earlier incarnation nor the timer that has just fired is armed.
    assert told(*GROUP, "call 2", "restart 2") == [
        "2 restarts, incarnation 2",
        "  2 sets back to 1 (eager)",
    ]
    assert told(*GROUP, "restart 2", "fire 2", "call 1", "deliver 1->2") == [
        "1->2 HAIL",
        "  2->1 HERE(count=1)",
    ]


def test_leaving_lets_the_last_messages_out_and_the_views_forget() -> None:
    assert told(*GROUP, "call 2", "leave 2") == ["2 leaves", "  2->* HERE(count=0)"]
    assert told(*GROUP, "call 2", "leave 2", "pending") == [
        "2->1 HAIL",
        "2->3 HAIL",
        "2->1 HERE(count=0)",
        "2->3 HERE(count=0)",
    ]
    assert told(*GROUP, "leave 2", "drop all", "call 1", "pending") == [
        "1->3 HAIL",
        "1 wait/1 at 3",
    ]
    assert told(*GROUP, "leave 2", "state 2") == ["2 gone"]


def test_deliver_chooses_by_link_kind_and_age() -> None:
    story = (*GROUP, "call 1,2", "deliver 1->2")
    assert told(*story, "pending")[:4] == [
        "1->3 HAIL",
        "2->1 HAIL",
        "2->3 HAIL",
        "2->1 HERE(count=1)",
    ]
    assert told(*story, "deliver HERE") == ["2->1 HERE(count=1)"]
    assert told(*story, "deliver 2->1 HERE") == ["2->1 HERE(count=1)"]
    assert told(*story, "deliver first") == ["1->3 HAIL", "  3->1 HERE(count=1)"]
    assert told(*story, "deliver first 2->*") == ["2->1 HAIL", "  1->2 HERE(count=1)"]
    assert told(*story, "deliver *->3") == [
        "1->3 HAIL",
        "  3->1 HERE(count=1)",
        "2->3 HAIL",
        "  3->2 HERE(count=1)",
    ]
    assert told(*story, "deliver 3->2") == ["no such message"]
    assert len(told(*story, "deliver all")) == 4 + 3  # each once; three of them are answered


def test_drop_and_duplicate() -> None:
    story = (*GROUP, "call 1")
    assert told(*story, "drop 1->2") == ["1->2 HAIL is dropped"]
    assert told(*story, "drop 1->2", "pending") == ["1->3 HAIL", "1 wait/1 at 3"]
    assert told(*story, "duplicate 1->2") == ["1->2 HAIL is doubled"]
    assert told(*story, "duplicate 1->2", "pending")[:3] == ["1->2 HAIL", "1->3 HAIL", "1->2 HAIL"]
    assert told(*story, "duplicate 1->2", "drop first 1->2", "pending")[:2] == [
        "1->3 HAIL",
        "1->2 HAIL",
    ]
    assert told(*story, "drop HERE") == ["no such message"]
    assert told(*story, "duplicate HERE") == ["no such message"]
    assert told(*story, "duplicate all", "counts") == ["HAIL 1, HERE 0, in all 1"]


def test_fire_moves_the_clock_and_never_back() -> None:
    story = ("nodes 2 toy set.wait=2", "start", "call 1", "fire 1", "call 1", "restart 2")
    assert told(*story, "pending")[-2:] == ["2 back at 3", "1 wait/1 at 4"]
    assert told(*story, "fire 1 wait/1") == [
        "1 wait/1 fires at 4",
        "  1 declares leader 1, term 2",
    ]
    assert told(*story, "fire 1 wait/1", "fire 2") == ["2 back fires at 4"]
    assert told(*story, "fire 2 other") == ["no such timer"]


def test_timers_settle_by_deadline_then_eager_first_then_as_armed() -> None:
    lines = told("nodes 3 toy set.wait=1", "start", "call 3,1", "drop all", "restart 2", "settle")
    fired = [line for line in lines if "fires" in line]
    assert fired == ["2 back fires at 1", "1 wait/1 fires at 1", "3 wait/3 fires at 1"]


def test_a_script_that_never_settles_is_stopped_by_name() -> None:
    lines = told("nodes 1 nag", "start", "call 1", "settle 5")
    assert lines[-1] == "not settled: stopped by the limit of 5 steps"
    assert len([line for line in lines if "fires" in line]) == 5
    assert told("nodes 1 nag", "start", "call 1", "settle")[-1].endswith("limit of 1000 steps")
    assert told("nodes 1 toy", "start", "call 1", "settle 1")[-1] == "settled at 3"


def test_suspect_and_alive_take_lists() -> None:
    assert told("nodes 3 toy leader=2", "start", "suspect * 2") == [
        "1 suspects 2",
        "  1 declares no leader: 2 is gone",
        "3 suspects 2",
        "  3 declares no leader: 2 is gone",
    ]
    assert told(*GROUP, "alive 1,3 2") == [
        "1 trusts 2 again",
        "  1->2 HERE(count=2)",
        "3 trusts 2 again",
        "  3->2 HERE(count=2)",
    ]
    assert told(*GROUP, "suspect 1 9") == ["1 suspects 9"]  # a detector may name a stranger


GUARDED = ["nodes 2 toy guard.ttl=30", "start", "call 1", "fire 1"]


def test_a_guard_answers_what_was_asked_last_or_an_older_request() -> None:
    assert told(*GUARDED)[:1] == ["1 wait/1 fires at 3"]
    assert told(*GUARDED, "fire 1", "grant 1 7 1")[-1] == "  1 declares leader 1, term 7"
    assert told(*GUARDED, "grant 1 7 9") == ["1 is granted token 7 for 30"]
    assert told(*GUARDED, "refuse 1 2 7 4.5")[:3] == [
        "1 is refused: 2 holds token 7 for 4.5",
        "  1 stores token=7",
        "  1 declares leader 2, term 7",
    ]


@pytest.mark.parametrize(
    "commands, message",
    [
        (["dance 1"], "unknown command 'dance' (known: nodes, start, crash"),
        (["setle"], "unknown command 'setle': did you mean 'settle'?"),
        (["start"], "there is no group yet: begin with `nodes`"),
        (["nodes 3"], "nodes needs a number of members and a protocol"),
        (["nodes x toy"], "the number of members must be a whole number, not 'x'"),
        (["nodes -1 toy"], "the number of members must be a whole number, not '-1'"),
        (["nodes 0 toy"], "the number of members must lie between 1 and 1000, not 0"),
        (["nodes 1001 toy"], "the number of members must lie between 1 and 1000, not 1001"),
        (["nodes 3 tox"], "unknown protocol 'tox': did you mean 'toy'?"),
        (["nodes 3 toy set.wait=0"], "wait must be a number > 0, not '0'"),
        (["nodes 3 toy set.weight=1"], "unknown setting 'weight'"),
        (["nodes 3 toy wait=1"], "unknown option 'wait': use choice, leader, down, seed, set.NAME"),
        (["nodes 3 toy leader"], "'leader' is not of the form NAME=VALUE"),
        (["nodes 3 toy leader="], "'leader=' is not of the form NAME=VALUE"),
        (["nodes 3 toy leader=4"], "unknown member '4' (known: 1, 2, 3)"),
        (["nodes 3 toy down=4"], "unknown member '4'"),
        (["nodes 3 toy choice=best"], "choice 'best' is not understood"),
        (["nodes 3 toy choice=highest:cpu"], "member 1 has no attribute 'cpu'"),
        (["nodes 3 toy attr.cpu=1,2"], "attribute cpu needs 3 values, one for each member"),
        (["nodes 3 toy attr.cpu=1,x,2"], "attribute cpu must be a number, not 'x'"),
        (["nodes 3 toy attr.cpu=1,nan,2"], "attribute cpu must be a number, not 'nan'"),
        ([*GROUP, "start"], "all members have been started"),
        ([*GROUP, "start 1"], "member 1 is up: use restart"),
        (["nodes 2 toy", "restart 1"], "member 1 has not been started: use start"),
        ([*GROUP, "call"], "which members?"),
        ([*GROUP, "call 4"], "unknown member '4'"),
        ([*GROUP, "call one"], "a member id must be a whole number, not 'one'"),
        (["nodes 2 toy", "call 1"], "member 1 is not started"),
        ([*GROUP, "crash 1", "call 1"], "member 1 is down"),
        ([*GROUP, "crash 1", "crash 1"], "member 1 is down"),
        ([*GROUP, "leave 1", "suspect 1 2"], "member 1 is gone"),
        ([*GROUP, "suspect 1"], "whose detector, and about whom?"),
        ([*GROUP, "suspect 1 1"], "only the member itself is meant"),
        (["nodes 3 toy guard.ttl=1"], "ttl must be at least three round trips"),
        (["nodes 3 toy guard.tll=9"], "unknown setting 'tll': did you mean 'ttl'?"),
        ([*GROUP, "grant 1"], "to whom, and which token?"),
        ([*GROUP, "grant 1 7"], "member 1 has asked the guard for nothing"),
        ([*GUARDED, "grant 1 7 1 1"], "'1' is one word too many"),
        ([*GUARDED, "grant 1 high"], "the token must be a whole number, not 'high'"),
        ([*GUARDED, "refuse 1 2 7"], "whom, who holds which token, and for how long?"),
        ([*GUARDED, "refuse 1 2 7 long"], "the remaining time must be a number, not 'long'"),
        ([*GROUP, "deliver"], "which messages?"),
        ([*GROUP, "deliver HEAL"], "unknown kind of message 'HEAL': did you mean 'HAIL'?"),
        ([*GROUP, "deliver 1->4"], "unknown member '4'"),
        ([*GROUP, "deliver all HAIL"], "'all' does not go together with 'all HAIL'"),
        ([*GROUP, "drop 1->2 1->3"], "'1->3' does not go together with '1->2 1->3'"),
        ([*GROUP, "drop first first"], "'first' does not go together with 'first first'"),
        ([*GROUP, "duplicate HAIL HERE"], "'HERE' does not go together with 'HAIL HERE'"),
        ([*GROUP, "fire"], "whose timer?"),
        ([*GROUP, "fire 4"], "unknown member '4'"),
        ([*GROUP, "fire 1 T1 now"], "'now' is one word too many"),
        ([*GROUP, "settle soon"], "the limit must be a whole number, not 'soon'"),
        ([*GROUP, "settle 1 2"], "'2' is one word too many"),
        ([*GROUP, "pending 1"], "'1' is one word too many"),
        ([*GROUP, "counts 1"], "'1' is one word too many"),
        ([*GROUP, "state 7"], "unknown member '7'"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(commands: list[str], message: str) -> None:
    line = 2 * len(commands) - 1
    found = complaint(*commands)
    assert found.startswith(f"tale.txt:{line}: {message}")


def test_a_mistake_in_the_arguments_shows_the_usage() -> None:
    assert complaint(*GROUP, "fire").endswith("(usage: fire M [TIMER])")


@pytest.mark.parametrize(
    "text, message",
    [
        (">\n", "tale.txt:1: a command is missing behind '>'"),
        ("stray\n", "tale.txt:1: output without a command above it: 'stray'"),
        (
            "> nodes 1 toy\n\nstray\n",
            "tale.txt:3: output without a command above it: 'stray'",
        ),
        (
            "> nodes 1 toy\n# note\n  stray\n",
            "tale.txt:3: output without a command above it: 'stray'",
        ),
    ],
)
def test_a_misshapen_script_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadScript) as caught:
        play(text, find_toy, "tale.txt")
    assert str(caught.value) == message


def test_an_error_of_the_protocol_says_where_the_script_was() -> None:
    with pytest.raises(RuntimeError) as caught:
        told("nodes 1 broken", "start", "call 1")
    assert caught.value.__notes__ == ["while playing tale.txt:5: call 1"]
