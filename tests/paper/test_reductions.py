"""The lecture: consensus solves election, and election would solve consensus.

"Can use Consensus to solve Election": everybody proposes, the group agrees on one process's value.
"Why is Election so Hard?": elect a process, and use the last bit of its id as the decision.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.election import Election
from hustings.core.outcome import Elected
from hustings.protocols.broadcast import Broadcast
from hustings.protocols.bully import Bully
from hustings.protocols.consensus import (
    AcceptedMsg,
    AcceptMsg,
    Consensus,
    ConsensusConfig,
    DecidedMsg,
    OutbidMsg,
    PrepareMsg,
    PromiseMsg,
)
from hustings.protocols.ring import Ring
from hustings.protocols.stable import Stable
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Uniform
from hustings.sim.experiment import Description, build
from hustings.sim.faults import Crash, Happening, Heal, Partition, Restart, Suspect
from hustings.sim.loss import NoLoss, Uncorrelated
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play
from hustings.sim.scenarios import Scenario
from hustings.testing import Declare, RecordedMember, Send, view_of
from tests.paper.playing import played


def run(kind: type[Election], members: int, *faults: Happening, **more: Any) -> RunResult:
    """One run in which everybody calls, judged as consensus too."""
    scenario = Scenario(extra=faults, initiators=tuple(range(1, members + 1)))
    given: dict[str, Any] = {"scenario": scenario, "consensus": True, "until": 500.0, **more}
    return play(build(Description(kind=kind, members=members, **given)), 0)


# --- election from consensus ---------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 16, 64])
def test_one_proposer_takes_five_messages_for_each_other_member(n: int) -> None:
    """Five for each, but the dead leader does not give its two answers; 5 delays."""
    outcome = played(Consensus, n + 1, detectors=(1,))
    assert (outcome.messages, outcome.time, outcome.leader) == (5 * n - 2, 5.0, n)
    assert outcome.sound


TIMES = st.floats(0, 30, allow_nan=False)
MEMBERS = st.integers(1, 5)
FAULTS = st.one_of(
    st.builds(Crash, member=MEMBERS, at=TIMES),
    st.builds(Restart, member=MEMBERS, at=TIMES),
    st.tuples(MEMBERS, MEMBERS, TIMES)
    .filter(lambda each: each[0] != each[1])
    .map(lambda each: Suspect(member=each[0], about=each[1], at=each[2])),
)


@given(st.lists(FAULTS, max_size=12), st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
def test_a_term_never_has_two_leaders(faults: list[Happening], seed: int, p: float) -> None:
    """Whatever crashes, returns, is lost, late or suspected, and whoever proposes at once."""
    loss = Uncorrelated(p) if p else NoLoss()
    network = Network(delay=Uniform(0.1, 3.0), loss=loss)
    found = run(Consensus, 5, *faults, network=network, seed=seed, settings={"attempts": 5})
    verdict, reason = found.verdicts["terms"]
    assert verdict is not Verdict.VIOLATED or "both lead" not in reason, reason


def test_a_minority_decides_nothing_and_both_sides_agree_afterwards() -> None:
    cut = Partition(sides=((1, 2), (3, 4, 5)), at=0.0)
    early = run(Consensus, 5, cut, until=30.0, settings={"attempts": 40})
    assert "1, 2 hold no leader" in early.verdicts["agreement"][1]
    healed = run(Consensus, 5, cut, Heal(at=40.0), settings={"attempts": 40})
    assert healed.verdicts["agreement"][0] is Verdict.HOLDS
    assert healed.verdicts["terms"][0] is Verdict.HOLDS


def member(number: MemberId) -> RecordedMember:
    """One of five, started."""
    five = [Candidate(each) for each in range(1, 6)]
    made = RecordedMember(
        lambda: Consensus(ConsensusConfig(), HighestId()), five[number - 1], view_of(five)
    )
    made.start()
    return made


def sent(effects: list[Any]) -> list[Any]:
    return [each.message for each in effects if isinstance(each, Send)]


def test_a_value_that_may_be_decided_already_is_proposed_again() -> None:
    """The heart of Paxos: 2 wants 5, but somebody has accepted 4 in this term."""
    two = member(2)
    two.call()
    two.deliver(1, PromiseMsg(1, 1))
    accepts = sent(two.deliver(3, PromiseMsg(1, 1, (1, 1), 4)))
    assert accepts == [AcceptMsg(1, 1, 4)] * 4


def test_what_was_promised_outlives_a_crash() -> None:
    three = member(3)
    assert sent(three.deliver(5, PrepareMsg(1, 7))) == [PromiseMsg(1, 7)]
    three.restart()
    assert sent(three.deliver(4, PrepareMsg(1, 6))) == [OutbidMsg(1, 7)]
    assert sent(three.deliver(4, AcceptMsg(1, 6, 4))) == [OutbidMsg(1, 7)]
    assert sent(three.deliver(5, AcceptMsg(1, 7, 5))) == [AcceptedMsg(1, 7)]
    three.restart()
    assert sent(three.deliver(4, PrepareMsg(1, 8))) == [PromiseMsg(1, 8, (7, 5), 5)]


def test_a_ballot_that_was_sent_is_not_used_again() -> None:
    one = member(1)
    first = sent(one.call())[0]
    one.restart()
    assert sent(one.call())[0].attempt > first.attempt


def test_answers_to_an_attempt_that_is_over_count_for_nothing() -> None:
    two = member(2)
    two.call()
    two.deliver(1, PromiseMsg(1, 1))
    two.fire("wait")  # no majority: it rests
    assert sent(two.deliver(3, PromiseMsg(1, 1))) == []
    assert sent(two.deliver(4, AcceptedMsg(1, 1))) == []


def test_who_asks_about_a_term_that_is_over_is_told_its_leader() -> None:
    four = member(4)
    effects = four.deliver(1, DecidedMsg(3, 5))
    assert Declare(Elected(5, 3)) in effects
    assert sent(four.deliver(2, PrepareMsg(2, 9))) == [DecidedMsg(3, 5)]
    assert sent(four.deliver(2, AcceptMsg(3, 9, 1))) == [DecidedMsg(3, 5)]


# --- consensus from election ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Broadcast, Ring, Bully, Stable, Consensus])
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_an_election_without_faults_decides_one_bit(kind: type[Election], n: int) -> None:
    verdict, reason = run(kind, n).verdicts["consensus"]
    assert (verdict, reason) == (Verdict.HOLDS, f"all decided {n & 1}")


def test_two_leaders_are_two_decisions() -> None:
    """The best member of a broadcast crashes when it has told some: 6 for these, 5 for others."""
    crash = Crash(member=6, after_sends=3, at=0.0)
    scenario = Scenario(extra=(crash,), initiators=(1,))
    verdict, reason = run(Broadcast, 6, scenario=scenario).verdicts["consensus"]
    assert verdict is Verdict.VIOLATED
    assert "by 6" in reason
    assert "by 5" in reason


def test_a_decision_is_not_taken_back() -> None:
    """All follow 4 in the end, but while 5 led they had decided by it."""
    found = run(Bully, 5, Suspect(member=4, about=5, at=50.0), Crash(member=5, at=50.0))
    assert found.verdicts["agreement"][0] is Verdict.HOLDS
    assert found.verdicts["consensus"] == (Verdict.HOLDS, "all decided 1")


def test_who_has_heard_nothing_has_not_decided() -> None:
    cut = Partition(sides=((1, 2), (3, 4, 5)), at=0.0)
    verdict, reason = run(Consensus, 5, cut, settings={"attempts": 2}).verdicts["consensus"]
    assert (verdict, reason) == (Verdict.UNDECIDED, "members 1, 2 have not decided")
