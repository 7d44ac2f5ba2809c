"""The guard in memory: its law, how it is reached, and what the safety checkers make of it."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.guard import Granted, Held, Verdict
from hustings.core.outcome import Elected, NoLeader
from hustings.layers.lease import LeaseConfig
from hustings.protocols.registry import find
from hustings.sim.checkers import Checker, attach
from hustings.sim.checkers import Verdict as Judgement
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash, Happening, Heal, OneWay, Partition, Pause, Restart, Resume
from hustings.sim.faults import schedule as put
from hustings.sim.guarding import GUARD, Grant, Holder, MemoryGuard
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import Clocks
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.safety import Grants, Holders, Tokens, Windows, safety_checkers
from hustings.sim.world import Ended, World


class Asker(Election):
    """Asks nobody by itself; keeps what the guard answers, with the time."""

    def __init__(self) -> None:
        super().__init__(Config(), HighestId())
        self.answers: list[tuple[float, Verdict]] = []

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        self.answers.append((ctx.now(), verdict))


class Stage:
    """Three members and a guard."""

    def __init__(self, network: Network | None = None, rate: float = 1.0, seed: int = 1) -> None:
        candidates = [Candidate(member) for member in (1, 2, 3)]
        self.world = World(Asker, candidates, network=network, seed=seed, debug=True)
        self.guard = MemoryGuard(self.world, rate)
        self.world.start()

    def acquire(self, at: float, member: MemberId, request: int = 1, ttl: float = 10.0) -> None:
        ctx = self.world.members[member]
        self.world.at(at, lambda: ctx.acquire(ttl, request))

    def release(self, at: float, member: MemberId, request: int) -> None:
        ctx = self.world.members[member]
        self.world.at(at, lambda: ctx.release(request))

    def happen(self, *happenings: Happening) -> None:
        put(self.world, list(happenings))

    def pass_time(self, until: float) -> None:
        """Let it become so late, though nothing happens."""
        self.world.at(until, lambda: None)
        self.world.run(until=until)

    def answers(self, member: MemberId) -> list[tuple[float, Verdict]]:
        election = self.world.members[member].election
        assert isinstance(election, Asker)
        return election.answers


@pytest.fixture
def stage() -> Stage:
    return Stage()


# The law


def test_the_first_to_ask_holds_and_others_hear_who(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.acquire(4, 2)
    stage.world.run()
    assert stage.answers(1) == [(2.0, Granted(1, 1, 10.0))]
    assert stage.answers(2) == [(6.0, Held(1, 1, 1, 6.0))]
    assert stage.guard.grants == [Grant(1.0, 1, Holder(1, 1))]
    assert stage.guard.asked == 2


def test_the_holder_renews_with_the_same_token(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.acquire(8, 1, request=2)
    stage.acquire(15, 2)
    stage.world.run()
    assert stage.answers(1)[-1] == (10.0, Granted(2, 1, 10.0))
    assert stage.answers(2) == [(17.0, Held(1, 1, 1, 3.0))]
    assert len(stage.guard.grants) == 1


def test_a_renewal_for_less_does_not_shorten_the_lease(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.acquire(1, 1, request=2, ttl=2.0)
    stage.acquire(6, 2)
    stage.world.run()
    assert stage.answers(2) == [(8.0, Held(1, 1, 1, 4.0))]


@pytest.mark.parametrize("at, token", [(9.9, None), (10.0, 2)])
def test_at_its_end_a_lease_is_over(stage: Stage, at: float, token: int | None) -> None:
    stage.acquire(0, 1)
    stage.acquire(at, 2)
    stage.world.run()
    ((_, verdict),) = stage.answers(2)
    assert isinstance(verdict, Held if token is None else Granted)
    assert stage.guard.token == (token or 1)


def test_who_asks_too_late_gets_a_new_token(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.acquire(20, 1, request=2)
    stage.world.run()
    assert stage.answers(1)[-1][1] == Granted(2, 2, 10.0)


def test_leases_run_by_the_guards_clock() -> None:
    stage = Stage(rate=0.5)
    stage.acquire(0, 1)
    stage.acquire(18, 2)
    stage.acquire(20, 2, request=2)
    stage.world.run()
    assert [type(verdict) for _, verdict in stage.answers(2)] == [Held, Granted]


def test_a_lease_given_back_is_free_and_the_next_token_is_larger(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.release(3, 1, request=2)
    stage.acquire(4, 2)
    stage.world.run()
    assert stage.answers(2) == [(6.0, Granted(1, 2, 10.0))]


def test_only_the_holder_gives_back(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.release(3, 2, request=1)
    stage.acquire(4, 3)
    stage.world.run()
    assert stage.answers(3) == [(6.0, Held(1, 1, 1, 6.0))]


def test_another_incarnation_is_another_holder(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.happen(Crash(member=1, at=3), Restart(member=1, at=4))
    stage.acquire(5, 1)
    stage.acquire(12, 1, request=2)
    stage.world.run()
    assert stage.answers(1) == [(7.0, Held(1, 1, 1, 5.0)), (14.0, Granted(2, 2, 10.0))]
    assert stage.guard.grants[-1].holder == Holder(1, 2)


def answered(stage: Stage) -> list[int]:
    """The numbers of questions of member 1, in the order of their answers."""
    verdicts = [verdict for _, verdict in stage.answers(1)]
    return [each.request for each in verdicts if isinstance(each, Granted | Held)]


def test_an_outdated_request_is_ignored(stage: Stage) -> None:
    """A release that was overtaken by the next question must not end what that was granted."""
    stage.acquire(0, 1, request=1)
    stage.acquire(2, 1, request=3)
    stage.release(3, 1, request=2)
    stage.acquire(4, 1, request=2)
    stage.acquire(5, 2)
    stage.world.run()
    assert answered(stage) == [1, 3]
    assert isinstance(stage.answers(2)[0][1], Held)


# How it is reached


def test_a_world_without_a_guard_says_whose_mistake_it_is() -> None:
    world = World(Asker, [Candidate(1)])
    world.start()
    with pytest.raises(ProtocolBug, match="member 1 turns to a guard, and this world has none"):
        world.members[1].acquire(10.0, 1)
    with pytest.raises(ProtocolBug, match="this world has none"):
        world.members[1].release(1)


def test_questions_and_answers_get_lost() -> None:
    stage = Stage(Network(loss=Uncorrelated(0.5)), seed=3)
    for number in range(1, 401):
        stage.acquire(float(number), 1, request=number)
    stage.world.run()
    assert 150 < stage.guard.asked < 250
    assert 0.4 < len(stage.answers(1)) / stage.guard.asked < 0.6


def test_questions_and_answers_are_late_doubled_and_out_of_order() -> None:
    network = Network(delay=Uniform(0.0, 3.0), duplicate=0.5, reorder=0.2, hold_back=5.0)
    stage = Stage(network, seed=3)
    for number in range(1, 101):
        stage.acquire(number / 2, 1, request=number)
    stage.world.run()
    assert stage.guard.asked > 120
    numbers = [
        verdict.request for _, verdict in stage.answers(1) if isinstance(verdict, Granted | Held)
    ]
    assert len(numbers) > len(set(numbers))
    assert numbers != sorted(numbers)


def test_links_that_keep_their_order_do_so_here_too() -> None:
    stage = Stage(Network(delay=Uniform(0.0, 3.0), fifo=True), seed=3)
    for number in range(1, 101):
        stage.acquire(number / 2, 1, request=number)
    stage.world.run()
    numbers = [
        verdict.request for _, verdict in stage.answers(1) if isinstance(verdict, Granted | Held)
    ]
    assert numbers == list(range(1, 101))


def test_a_partition_may_have_the_guard_on_one_side(stage: Stage) -> None:
    stage.happen(Partition(sides=((GUARD, 1), (2, 3)), at=0), Heal(at=10))
    stage.acquire(1, 2)
    stage.acquire(2, 1)
    stage.acquire(20, 2, request=2)
    stage.world.run()
    assert stage.answers(2) == [(22.0, Granted(2, 2, 10.0))]
    assert stage.answers(1) == [(4.0, Granted(1, 1, 10.0))]


def test_a_guard_that_is_not_named_is_reached_from_every_side(stage: Stage) -> None:
    stage.happen(Partition(sides=((1,), (2, 3)), at=0))
    stage.acquire(1, 1)
    stage.acquire(2, 2)
    stage.world.run()
    assert stage.answers(1)
    assert stage.answers(2)


def test_a_cut_stops_what_is_under_way_and_one_direction_alone(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.happen(OneWay(senders=(GUARD,), to=(1,), at=1.5), Heal(name="one-way", at=5))
    stage.acquire(2, 2)
    stage.world.run()
    assert stage.answers(1) == []
    assert stage.answers(2) == [(4.0, Held(1, 1, 1, 8.0))]


def test_nobody_is_number_zero_where_there_is_no_guard() -> None:
    world = World(Asker, [Candidate(1)])
    with pytest.raises(BadInput, match="unknown member '0'"):
        put(world, [Partition(sides=((GUARD,), (1,)))])


def test_a_paused_member_finds_its_answers_when_it_goes_on(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.happen(Pause(member=1, at=1), Resume(member=1, at=9))
    stage.world.run()
    assert stage.answers(1) == [(9.0, Granted(1, 1, 10.0))]


def test_answers_to_a_former_incarnation_are_lost(stage: Stage) -> None:
    stage.acquire(0, 1)
    stage.acquire(0, 2)
    stage.happen(
        Crash(member=1, at=1),
        Restart(member=1, at=1.5),
        Pause(member=2, at=1),
        Crash(member=2, at=5),
    )
    stage.world.run()
    assert stage.answers(1) == []
    assert stage.answers(2) == []


def test_who_is_down_asks_nobody(stage: Stage) -> None:
    stage.happen(Crash(member=1, at=1))
    stage.acquire(2, 1)
    stage.release(2, 1, 2)
    stage.world.run()
    assert stage.guard.asked == 0


def test_the_guard_counts_towards_the_limit_of_events() -> None:
    stage = Stage(Network(delay=Fixed(0.0)))
    for number in range(1, 21):
        stage.acquire(1.0, 1, request=number)
    assert stage.world.run(max_events=10) is Ended.MAX_EVENTS
    assert stage.world.events == 10


def test_one_seed_makes_the_guard_too() -> None:
    def answers(seed: int) -> list[tuple[float, Verdict]]:
        stage = Stage(Network(delay=Uniform(0.0, 3.0)), seed=seed)
        for number in range(1, 11):
            stage.acquire(float(number), 1, request=number)
        stage.world.run()
        return stage.answers(1)

    assert answers(5) == answers(5) != answers(6)


# The checkers


def told(checker: Checker, stage: Stage) -> tuple[Judgement, str]:
    return checker.judge(stage.world, Ended.UNTIL)


def test_a_run_in_which_all_is_well(stage: Stage) -> None:
    checkers = safety_checkers()
    attach(checkers, stage.world)
    stage.guard.grants += [Grant(0.0, 1, Holder(1, 1)), Grant(0.0, 2, Holder(2, 1))]
    members = stage.world.members
    members[1].declare(Elected(1, 1))
    members[2].declare(Elected(1, 1))
    stage.pass_time(5)
    members[1].declare(NoLeader("over"))
    members[2].declare(Elected(2, 2))
    stage.pass_time(9)
    assert [told(checker, stage)[0] for checker in checkers] == [Judgement.HOLDS] * 4


def test_two_holders_of_one_token(stage: Stage) -> None:
    stage.guard.grants += [Grant(0.0, 1, Holder(1, 1)), Grant(0.0, 1, Holder(1, 2))]
    verdict, why = told(Holders(), stage)
    assert verdict is Judgement.VIOLATED
    assert "token 1 went to 1 (incarnation 1) and to 1 (incarnation 2)" in why


def test_a_token_that_is_not_larger(stage: Stage) -> None:
    stage.guard.grants += [Grant(0.0, 5, Holder(1, 1)), Grant(0.0, 4, Holder(2, 1))]
    assert "token 4 was granted after 5" in told(Holders(), stage)[1]


def test_two_leaders_for_one_token(stage: Stage) -> None:
    checker = Tokens()
    attach([checker], stage.world)
    stage.world.members[1].declare(Elected(1, 4))
    stage.world.members[2].declare(Elected(3, 4))
    assert "token 4 is held for 1's and for 3's" in told(checker, stage)[1]


def test_a_member_that_goes_back_even_across_a_restart(stage: Stage) -> None:
    checker = Tokens()
    attach([checker], stage.world)
    stage.world.members[1].declare(Elected(3, 5))
    stage.happen(Crash(member=1, at=1), Restart(member=1, at=2))
    stage.world.run()
    stage.world.members[1].declare(Elected(2, 4))
    assert "member 1 went back from token 5 to 4" in told(checker, stage)[1]


@pytest.mark.parametrize("grant", [None, Grant(0.0, 3, Holder(1, 1)), Grant(0.0, 4, Holder(2, 1))])
def test_a_leader_without_a_grant(stage: Stage, grant: Grant | None) -> None:
    checker = Grants()
    attach([checker], stage.world)
    stage.guard.grants += [] if grant is None else [grant]
    stage.world.members[1].declare(Elected(1, 4))
    assert "member 1 leads with token 4, not granted" in told(checker, stage)[1]


def test_two_at_one_time(stage: Stage) -> None:
    checker = Windows()
    attach([checker], stage.world)
    members = stage.world.members
    members[1].declare(Elected(1, 1))
    stage.pass_time(3)
    members[2].declare(Elected(2, 2))
    assert told(checker, stage)[0] is Judgement.HOLDS  # for no time yet
    stage.pass_time(5)
    assert told(checker, stage)[0] is Judgement.VIOLATED
    members[1].declare(NoLeader())
    assert "both led for 2" in told(checker, stage)[1]
    assert checker.longest == 2.0


def test_a_paused_leader_does_nothing(stage: Stage) -> None:
    checker = Windows()
    attach([checker], stage.world)
    members = stage.world.members
    members[1].declare(Elected(1, 1))
    stage.happen(Pause(member=1, at=3), Resume(member=1, at=8))
    stage.world.at(4, lambda: members[2].declare(Elected(2, 2)))
    stage.world.at(8, lambda: members[1].declare(NoLeader()))
    stage.pass_time(20)
    assert told(checker, stage)[0] is Judgement.HOLDS


# Experiments


def guarded() -> Experiment:
    kind = find("bully")
    return Experiment(
        kind=kind,
        members=5,
        config=kind.Settings(),
        clocks=Clocks(drift=0.05, offset=3.0),
        guard=LeaseConfig(drift=0.05),
        calm=50.0,
        seed=2,
        digest=True,
    )


def test_an_experiment_with_a_guard_has_a_leader_and_is_safe() -> None:
    result = play(guarded(), 0)
    assert result.ended is Ended.STOPPED
    assert result.metrics["leader"] == 5
    assert result.metrics["guard_requests"]
    assert {name: verdict for name, (verdict, _) in result.verdicts.items()} == dict.fromkeys(
        result.verdicts, Judgement.HOLDS
    )
    assert {"holders", "tokens", "grants", "windows"} <= set(result.verdicts)
    assert play(guarded(), 0).digest == result.digest != play(guarded(), 1).digest


def test_an_experiment_refuses_several_seats_under_a_guard() -> None:
    kind = find("le-s")
    with pytest.raises(BadInput, match="a guard confirms one leader"):
        Experiment(
            kind=kind,
            members=5,
            config=kind.Settings.parse({"leaders": 2}),
            guard=LeaseConfig(),
        )


def test_a_later_life_gives_back_nothing_that_an_earlier_one_holds(stage: Stage) -> None:
    """Another incarnation is another holder: its lease runs out, and is not given back."""
    stage.acquire(0.0, 1)
    stage.happen(Crash(member=1, at=3.0), Restart(member=1, at=4.0))
    stage.release(5.0, 1, 1)
    stage.pass_time(8.0)
    assert stage.guard.holder == Holder(1, 1)
    stage.acquire(8.0, 2)
    stage.pass_time(10.5)
    answer = stage.answers(2)[-1][1]
    assert isinstance(answer, Held)
    assert (answer.holder, answer.token) == (1, 1)
    stage.acquire(12.0, 2, request=2)
    stage.pass_time(15.0)
    assert stage.answers(2)[-1][1] == Granted(2, 2, 10.0)


def test_every_copy_of_a_question_is_answered_alike() -> None:
    """An answer may get lost; the copy's must not say that somebody else has the token."""
    stage = Stage(Network(duplicate=1.0))
    stage.acquire(0.0, 1)
    stage.pass_time(5.0)
    assert [verdict for _, verdict in stage.answers(1)] == [Granted(1, 1, 10.0)] * 4
