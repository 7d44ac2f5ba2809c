"""`hustings check` from the command line."""

from __future__ import annotations

import json

import pytest

from hustings.core.choice import Choice
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.explore.search import NotExplorable
from hustings.explore.standing import Standing
from hustings.explore.values import SearchLimits
from hustings.lab.checking import explore_election
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.bully import Bully
from hustings.protocols.registry import BY_ROUNDS, EVERY, LARGE, classes
from tests.unit.cli.commands import Hustings


@pytest.mark.parametrize(
    "typed, complaint",
    [
        ("nobody", "unknown protocol 'nobody'"),
        ("quorum --voters 4", "3, 5 or 7 voters, not 4"),
        ("quorum --candidates 0", "candidates must lie between 1 and 9"),
        ("quorum --wipes 1", "wipes cannot exceed crashes"),
        ("bully -n 0", "0 is not in the range"),
        ("bully --ticks -1", "ticks must lie between"),
    ],
)
def test_a_mistake_gets_a_sentence(hustings: Hustings, typed: str, complaint: str) -> None:
    assert complaint in hustings("check", *typed.split()).complaint


def test_a_quorum_is_exhausted(hustings: Hustings) -> None:
    result = hustings("check", "quorum", "--ticks", "1")
    assert result.code == 0
    assert "exhausted: no schedule within these limits breaks anything" in result.out


def test_too_many_states_is_told_and_no_success(hustings: Hustings) -> None:
    result = hustings("check", "quorum", "--max-states", "50")
    assert result.code == 2
    assert "max-states: not all schedules were tried" in result.out
    assert "raise --max-states" in result.err


def test_json_is_one_object(hustings: Hustings) -> None:
    result = hustings("check", "ring", "-n", "3", "--json")
    told = json.loads(result.out)
    assert (told["ending"], told["steps"]) == ("exhausted", [])
    assert told["states"] > 0
    assert told["rests"] > 0


def test_what_is_broken_is_told_step_by_step(hustings: Hustings) -> None:
    """A program that counts on every message does not survive the loss of one."""
    result = hustings("check", "broadcast", "-n", "3", "--losses", "1")
    assert result.code == 1
    assert "a shortest way there:" in result.out
    assert "all start" in result.out


NEVER_AT_REST = ("al", "le-a", "le-m", "le-s", "le-s-printed", "sup-al", "sup-al-random")
REFUSED = (*NEVER_AT_REST, *(kind.about.name for kind in (*classes(LARGE), *classes(BY_ROUNDS))))


@pytest.mark.parametrize("crashes", ["0", "1"])
@pytest.mark.parametrize("members", ["1", "2", "3", "4"])
@pytest.mark.parametrize("protocol", [kind.about.name for kind in classes(EVERY)])
def test_every_protocol_is_explored_or_refused_with_a_sentence(
    hustings: Hustings, protocol: str, members: str, crashes: str
) -> None:
    """Exit code 1 means that a schedule breaks it, and then the schedule is shown."""
    typed = ["-n", members, "--crashes", crashes, "--max-states", "400", "--json"]
    result = hustings("check", protocol, *typed)
    if protocol in REFUSED:
        assert f"{protocol} cannot be explored: " in result.complaint
        return
    told = json.loads(result.out)
    assert result.code == {"exhausted": 0, "broken": 1, "max-states": 2}[told["ending"]]
    assert bool(told["steps"]) == bool(told["why"]) == (result.code == 1)


def test_a_schedule_that_is_cut_off_is_not_called_unbroken(hustings: Hustings) -> None:
    """Nothing is judged before a group comes to rest; whoever cuts that off is told so."""
    result = hustings("check", "bully-grant", "--ticks", "0")
    assert result.code == 2
    assert "unjudged: no schedule comes to rest within these ticks" in result.out
    assert "0 ticks were not enough: raise --ticks" in result.err
    told = json.loads(hustings("check", "bully-grant", "--ticks", "0", "--json").out)
    assert (told["ending"], told["rests"]) == ("unjudged", 0)
    assert told["cut"] > 0


def test_schedules_that_are_cut_off_beside_judged_ones_are_counted(hustings: Hustings) -> None:
    result = hustings("check", "ring", "-n", "3", "--crashes", "1", "--ticks", "4")
    assert result.code == 0
    assert "states were cut off after 4 ticks" in result.err
    assert hustings("check", "ring", "-n", "2").err == ""


class Hoarder(Standing):
    """Keeps something that no encoding can tell by its contents."""

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        self.words = iter("abc")


class Restless(Standing):
    """Never falls silent, and says nothing of it among its assumptions."""

    def start(self, ctx: Context) -> None:
        ctx.set_timer("again", 1.0)

    def on_timer(self, ctx: Context, key: object) -> None:
        ctx.set_timer("again", 1.0)


@pytest.mark.parametrize(
    "kind, why",
    [(Hoarder, "a state holds a"), (Restless, "announce themselves for ever")],
)
def test_an_election_of_ones_own_is_refused_with_a_sentence_too(
    kind: type[Election], why: str
) -> None:
    with pytest.raises(NotExplorable, match=f"cannot be explored: .*{why}"):
        explore_election(kind, 2, SearchLimits())


def test_python_is_told_the_same_as_the_command_line() -> None:
    with pytest.raises(NotExplorable, match="le-s cannot be explored"):
        explore_election(LeS, 3, SearchLimits())
    assert explore_election(Bully, 2, SearchLimits()).rests > 0
