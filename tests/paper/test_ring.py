"""The lecture's chapter 15, "Ring Election", sentence by sentence.

N counts the live ring: the crashed coordinator is not in it. Where a slide leaves something open,
a variant of the ring plays the other reading, so that the difference can be seen.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import combinations, permutations
from math import fsum, inf
from statistics import fmean

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId, parse_choice
from hustings.core.context import Context
from hustings.core.outcome import Elected, GaveUp
from hustings.core.view import View
from hustings.lab.closed_forms import ring as theory
from hustings.protocols.ring import ElectedMsg, ElectionMsg, Ring, RingConfig, Run
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.faults import Alive, Call, Crash, Happening, Leave, Restart, Suspect, schedule
from hustings.sim.network import Network
from hustings.sim.world import Ended, World
from tests.paper.playing import Ids, Played, finish, played

# Rings in any order of ids


class Seats(View):
    """A view whose clockwise order is a seating and not the order of ids."""

    __slots__ = ("_after",)

    def __init__(self, members: dict[MemberId, Candidate], order: Sequence[MemberId]) -> None:
        super().__init__(members, sorted(order))
        self._after = {one: order[(place + 1) % len(order)] for place, one in enumerate(order)}

    def successor(self, member: MemberId, skip: Container[MemberId] = ()) -> MemberId | None:
        other = self._after[member]
        while other in skip:
            other = self._after[other]
        return other if other != member else None


def seated(
    order: Sequence[MemberId], initiators: Sequence[MemberId], kind: type[Ring] = Ring
) -> Played:
    """One election on a ring with this clockwise order, all initiators at once."""
    members = {member: Candidate(member) for member in order}
    config = RingConfig(T=inf)
    world = World(lambda: kind(config, HighestId()), list(members.values()))
    seats = Seats(members, order)
    for ctx in world.members.values():
        ctx.view = seats
    world.start()
    schedule(world, [Call(member=member) for member in sorted(initiators)])
    return finish(world, HighestId())


def rings(n: int) -> Iterator[Ids]:
    """Every ring of n members once."""
    for rest in permutations(range(2, n + 1)):
        yield (1, *rest)


def initiator_sets(n: int) -> Iterator[Ids]:
    for size in range(1, n + 1):
        yield from combinations(range(1, n + 1), size)


def cases(n: int) -> Iterator[tuple[Ids, Ids]]:
    for order in rings(n):
        for initiators in initiator_sets(n):
            yield order, initiators


UP_TO_SIX = [3, 4, 5, pytest.param(6, marks=pytest.mark.soak)]


# "The Ring Election Protocol"


def test_the_lecture_s_example() -> None:
    """Example: ids 3, 5, 6, 12, 32 and 80 on a ring; whoever initiates, 80 is elected by all."""
    order = (3, 32, 5, 80, 6, 12)
    for initiator in order:
        run = seated(order, [initiator])
        assert run.outcomes == dict.fromkeys(sorted(order), Elected(80, 1))
        assert run.sound


def test_an_election_message_with_a_better_candidate_is_forwarded_unchanged() -> None:
    """Protocol: the arrived attribute is greater, so the message goes on as it is.

    The best initiates: N hops of ELECTION, none of them changed, since nobody else stands.
    """
    run = played(Ring, 7, initiators=(7,))
    assert run.kinds == {"ELECTION": 7, "ELECTED": 7}
    assert run.claims == [7]


def test_a_process_overwrites_a_worse_candidate_once() -> None:
    """Protocol: smaller, and not forwarded before: overwrite it, and forward.

    From 1 every member overwrites the one before it: N - 1 hops until the best stands.
    """
    run = played(Ring, 7, initiators=(1,))
    assert run.kinds == {"ELECTION": 6 + 7, "ELECTED": 7}


def test_a_worse_candidate_is_dropped_the_second_time() -> None:
    """Gap 4: smaller and already forwarded is not on the slide; it is dropped.

    Every message arrives twice, and the second copy starts nothing: as many are sent as else.
    """
    twice = played(Ring, 7, initiators=(1,), network=Network(Fixed(1.0), duplicate=1.0))
    assert twice.kinds == played(Ring, 7, initiators=(1,)).kinds
    assert twice.sound


def test_who_receives_itself_is_the_coordinator() -> None:
    """Protocol: an arrived id that is one's own has beaten everybody."""
    for order, initiators in cases(4):
        run = seated(order, initiators)
        assert set(run.claims) == {4}


def test_elected_is_forwarded_unless_by_the_coordinator() -> None:
    """Protocol (2): ELECTED goes round once and ends where it began: N messages."""
    for N in range(2, 20):
        assert played(Ring, N, initiators=(1,)).sent("ELECTED") == N


# "Analysis", "Worst-case Analysis", "Best Case?"


@pytest.mark.parametrize("N", range(2, 65))
def test_one_initiator_at_every_distance(N: int) -> None:
    """2N + d messages and transmission times, the would-be leader d hops clockwise."""
    runs = [played(Ring, N, initiators=(N - d,)) for d in range(N)]
    for d, run in enumerate(runs):
        assert (run.messages, run.time, run.leader) == (2 * N + d, 2 * N + d, N)
        assert run.sound
    counts = [run.messages for run in runs]
    assert max(counts) == 3 * N - 1 == theory.printed_worst(N)
    assert min(counts) == 2 * N == theory.printed_best(N)
    assert fmean(counts) == (5 * N - 1) / 2


def test_the_worst_case_is_the_successor_of_the_would_be_leader() -> None:
    """Analysis: N6 follows N80; (N-1) + N + N messages."""
    order = (6, 12, 3, 32, 5, 80)
    costs = {member: seated(order, [member]).messages for member in order}
    assert max(costs, key=costs.__getitem__) == 6
    assert costs[6] == 5 + 6 + 6
    assert costs[80] == 6 + 6 == min(costs.values())


def test_n_leaves_the_crashed_coordinator_out() -> None:
    """Verdict: 3N-1 with the live ring; with n counting the dead leader it is 3(n-1)-1."""
    run = played(Ring, 9, detectors=(1,))
    assert (run.messages, run.leader) == (3 * 8 - 1, 8)


@pytest.mark.parametrize("N", UP_TO_SIX)
def test_one_initiator_on_every_ring(N: int) -> None:
    """Best, worst and mean over all orders of ids, one initiator."""
    counts = [seated(order, [one]).messages for order in rings(N) for one in order]
    assert (min(counts), max(counts)) == (2 * N, 3 * N - 1)
    assert fmean(counts) == pytest.approx((5 * N - 1) / 2)


# "Multiple Initiators?"


@pytest.mark.parametrize("N", UP_TO_SIX)
def test_the_most_messages_of_all_rings_and_all_initiators(N: int) -> None:
    """Cache and per-run flag: N(N+1)/2 + 2N - 2 at most, and every case elects the best."""
    most, dearest = 0, None
    for order, initiators in cases(N):
        run = seated(order, initiators)
        assert run.leader == N
        assert run.sound
        if run.messages > most:
            most, dearest = run.messages, (order, initiators)
    assert most == N * (N + 1) // 2 + 2 * N - 2 == theory.most_with_cache(N)
    assert dearest == ((1, *range(N, 1, -1)), tuple(range(1, N)))


@pytest.mark.parametrize("N", UP_TO_SIX)
def test_all_initiate_in_random_order(N: int) -> None:
    """All initiate: N H_N + N messages on average over all orders."""
    counts = [seated(order, order).messages for order in rings(N)]
    harmonic = fsum(1 / j for j in range(1, N + 1))
    assert fmean(counts) == pytest.approx(N * harmonic + N)
    assert fmean(counts) == pytest.approx({3: 8.5, 4: 12.333, 5: 16.417, 6: 20.7}[N], abs=1e-3)


@pytest.mark.parametrize("N", range(2, 17))
def test_all_initiate_in_order(N: int) -> None:
    """Ids increasing clockwise 3N - 1 messages, decreasing N(N+1)/2 + N."""
    ids = tuple(range(1, N + 1))
    assert seated(ids, ids).messages == 3 * N - 1
    assert seated(ids[::-1], ids).messages == N * (N + 1) // 2 + N


def test_only_the_highest_initiator_s_run_completes() -> None:
    """Result: of concurrent runs one completes, so ELECTED goes round once."""
    for order, initiators in cases(5):
        run = seated(order, initiators)
        assert run.sent("ELECTED") == 5
        assert {ctx.election.state().split("run=")[1] for ctx in run.world.live()} == {
            f"(1, {max(initiators)}) pending=None"
        }


def test_a_lower_run_may_complete_before_a_higher_one_starts() -> None:
    """Error 5: then ELECTED goes round twice, with the same leader."""
    late = Call(member=4, at=30.0)
    run = played(Ring, 6, initiators=(1,), extra=(late,))
    assert (run.sent("ELECTED"), run.leader) == (12, 6)
    assert run.sound


class OneFlag(Ring):
    """ "Has not forwarded an election message earlier", read without regard to the run."""

    __slots__ = ()

    def enter(self, run: Run) -> None:
        forwarded = self.pending
        super().enter(run)
        self.pending = forwarded


@pytest.mark.parametrize(
    "N, stuck",
    [(3, 1), (4, 13), (5, 154), pytest.param(6, 1946, marks=pytest.mark.soak)],
)
def test_one_flag_for_all_runs_dead_locks(N: int, stuck: int) -> None:
    """Error 1: with run tags and a single flag some cases elect nobody; per run none does."""
    runs = [seated(order, initiators, OneFlag) for order, initiators in cases(N)]
    hung = [run for run in runs if run.verdicts["termination"] is Verdict.VIOLATED]
    assert (len(hung), len(runs)) == theory.dead_locked(N)
    assert len(hung) == stuck
    assert all(not run.claims for run in hung)


def test_the_example_of_the_dead_lock() -> None:
    """Error 1: ring 1, 2, 4, 3 with initiators 1 and 3."""
    assert not seated((1, 2, 4, 3), (1, 3), OneFlag).claims
    assert seated((1, 2, 4, 3), (1, 3)).leader == 4


class OneEpoch(Ring):
    """Suppresses lower initiators "all the time": runs carry the initiator only."""

    __slots__ = ()

    def initiate(self, ctx: Context, epoch: int) -> None:
        super().initiate(ctx, 1)


def test_without_an_epoch_a_later_lower_initiator_is_suppressed_for_ever() -> None:
    """Error 2: 4 initiated the first election; its successor in office dies, and 2 notices."""
    story: tuple[Happening, ...] = (
        Leave(member=5, at=20.0),
        Suspect(member=2, about=5, at=21.0),
    )
    stuck = played(OneEpoch, 5, initiators=(4,), extra=story, T=inf)
    assert stuck.outcomes == dict.fromkeys(range(1, 5), Elected(5, 1))  # dead
    assert stuck.verdicts["validity"] is Verdict.VIOLATED
    run = played(Ring, 5, initiators=(4,), extra=story, T=inf)
    assert run.outcomes == dict.fromkeys(range(1, 5), Elected(4, 2))


class LateCache(Ring):
    """Remembers the initiator of each message it RECEIVES, not of the one it sends."""

    __slots__ = ()

    def initiate(self, ctx: Context, epoch: int) -> None:
        super().initiate(ctx, epoch)
        self.cache = (0, 0)


@pytest.mark.parametrize("N", [4, 5])
def test_the_cache_must_be_set_at_the_send(N: int) -> None:
    """Gap 3: set at the first reception it costs N - 1 more (mean of N = 5: 20.417)."""
    early = fmean(seated(order, order).messages for order in rings(N))
    late = fmean(seated(order, order, LateCache).messages for order in rings(N))
    assert late == pytest.approx(early + N - 1)
    assert late == pytest.approx({4: 15.333, 5: 20.417}[N], abs=1e-3)


# "Effect of Failures", "Fixing for failures"


class NoRepeat(Ring):
    """Does not send its last message again when its successor dies."""

    __slots__ = ()

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.relayed = None
        super().on_suspect(ctx, member)


def leader_dies(kind: type[Ring], n: int, suspecting: Sequence[MemberId]) -> Played:
    """1 initiates; n dies, and the ring is mended, one hop after n has put itself forward.

    Suspicion comes 2 units later, after the arrivals of that instant.
    """
    suspicions = [Suspect(member=one, about=n, at=n + 2.5) for one in suspecting]
    return played(kind, n, initiators=(1,), extra=(Leave(member=n, at=n), *suspicions), T=inf)


@pytest.mark.parametrize(
    "n, alone, everybody",
    [(4, 15, 15), (5, 16, 19), (8, 28, 31), (16, 60, 63), (64, 252, 255)],
)
def test_the_leader_dies_one_hop_after_launching(n: int, alone: int, everybody: int) -> None:
    """First option: its predecessor starts a new run; second: everybody that notices does."""
    first = leader_dies(NoRepeat, n, [n - 1])
    second = leader_dies(NoRepeat, n, range(1, n))
    assert (first.messages, second.messages) == (alone, everybody)
    assert theory.leader_dies_predecessor_reruns(n) == alone
    assert theory.leader_dies_all_rerun(n) == everybody
    for run in (first, second):
        assert run.leader == n - 1
        assert run.sound


@pytest.mark.parametrize("n", [5, 8, 16, 64])
def test_sending_again_to_the_next_costs_a_little(n: int) -> None:
    """Decision: the predecessor cannot know how far its last message came, and repeats it.

    The copy walks the ring of n-1 once if nobody else runs anew, and one hop if all do.
    """
    assert (
        leader_dies(Ring, n, [n - 1]).messages == theory.leader_dies_predecessor_reruns(n) + n - 1
    )
    assert leader_dies(Ring, n, range(1, n)).messages == theory.leader_dies_all_rerun(n) + 1


def test_without_sending_again_a_dead_successor_would_take_the_run_with_it() -> None:
    """Why it is repeated: n dies before ELECTION reaches it, so nobody waits for n."""
    story: tuple[Happening, ...] = (
        Crash(member=5, at=3.5),
        *(Suspect(member=one, about=5, at=6.0) for one in range(1, 5)),
    )
    assert not played(NoRepeat, 5, initiators=(1,), extra=story, T=inf).claims
    assert played(Ring, 5, initiators=(1,), extra=story, T=inf).leader == 4


@pytest.mark.parametrize("n", [3, 5, 8, 16])
def test_an_undetected_candidate_goes_round_for_ever(n: int) -> None:
    """Effect of failures: the ring is mended, nobody is told: 20N + 1 messages after 20N time."""
    gone = Leave(member=n, at=1.0)
    run = played(Ring, n, initiators=(n,), extra=(gone,), until=20.0 * n, T=inf)
    assert (run.ended, run.messages) == (Ended.UNTIL, 20 * n + 1)
    assert theory.orphan_messages(20 * n) == run.messages
    assert not run.claims


@pytest.mark.parametrize("n", [3, 5, 8, 16])
def test_waiting_for_the_result_ends_it(n: int) -> None:
    """Fixing for failures: who times out waiting for ELECTED starts a new run (the default)."""
    run = played(Ring, n, initiators=(n,), extra=(Leave(member=n, at=1.0),))
    assert (run.ended, run.leader) == (Ended.QUIESCENT, n - 1)
    assert run.sound


@pytest.mark.parametrize("n", [3, 5, 8])
def test_a_gap_that_nobody_mends_ends_in_giving_up(n: int) -> None:
    """Neither detector nor repair: the message is lost at the gap, again and again."""
    lost = played(Ring, n, initiators=(n,), extra=(Crash(member=n, at=1.0),), T=inf)
    assert lost.verdicts["termination"] is Verdict.VIOLATED
    run = played(Ring, n, initiators=(n,), extra=(Crash(member=n, at=1.0),))
    assert run.ended is Ended.QUIESCENT
    assert set(run.outcomes.values()) == {GaveUp("no lasting result after 16 runs")}


@pytest.mark.parametrize("also", [1, 2, 3])
def test_the_predecessor_fails_too(also: int) -> None:
    """ "But what if predecessor also fails? (and so on)": with a detector at all, others run."""
    n = 8
    dead = range(n - also, n + 1)
    run = played(
        Ring,
        n,
        initiators=(1,),
        extra=tuple(Crash(member=one, at=n - 0.5) for one in dead),
        oracle=2.0,
    )
    assert run.leader == n - also - 1
    assert run.sound


def test_a_crash_that_the_detector_misses_violates_safety() -> None:
    """Incompleteness: 5 dies after its election, and all hold a dead leader."""
    run = played(Ring, 5, initiators=(1,), extra=(Crash(member=5, at=20.0),))
    assert run.outcomes == dict.fromkeys(range(1, 5), Elected(5, 1))
    assert run.verdicts["validity"] is Verdict.VIOLATED


def test_a_wrong_suspicion_starts_new_runs_as_long_as_it_is_repeated() -> None:
    """Inaccuracy: each false alarm is one more election, of the same leader."""
    alarms = [Suspect(member=1, about=5, at=20.0 * k) for k in range(1, 11)]
    run = played(Ring, 5, initiators=(1,), extra=tuple(alarms))
    assert run.sent("ELECTED") == 5 * 11
    assert set(run.outcomes.values()) == {Elected(5, 11)}


def test_suspicions_that_never_let_a_run_complete_end_in_giving_up() -> None:
    """Inaccuracy, "new election runs initiated forever": here a member stops, and says so.

    1 suspects 5 in every unit of time, so that no run of its own lives to its result.
    """
    alarms = [Suspect(member=1, about=5, at=20.5 + k) for k in range(200)]
    run = played(Ring, 5, initiators=(1,), extra=tuple(alarms))
    assert run.ended is Ended.QUIESCENT
    outcomes = [entry.outcome for entry in run.diary if entry.member == 1]
    assert GaveUp("no lasting result after 16 runs") in outcomes
    assert run.sent("ELECTION") < 16 * 20


def test_a_suspicion_taken_back_leaves_one_leader() -> None:
    story: tuple[Happening, ...] = (
        Suspect(member=4, about=5, at=20.0),
        Alive(member=4, about=5, at=22.0),
    )
    run = played(Ring, 5, initiators=(1,), extra=story)
    assert run.leader == 5
    assert run.sound


def test_the_best_comes_back() -> None:
    """A returning best member takes part again, and is elected."""
    story = (Crash(member=5, at=20.0), Restart(member=5, at=60.0))
    run = played(Ring, 5, initiators=(1,), extra=story, oracle=2.0)
    assert run.leader == 5
    assert run.sound


# Other attributes, other networks


@pytest.mark.parametrize("choice", ["lowest-id", "highest:rank", "highest:kind,lowest:load"])
def test_any_attribute_gives_the_same_counts(choice: str) -> None:
    """ "Or fastest cpu, or most disk space": 2N + hops to the best, whatever makes it best."""
    N = 8
    attributes = (
        ("kind", (1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0)),
        ("load", (0.5, 0.1, 0.7, 0.2, 0.3, 0.3, 0.9, 0.0)),
        ("rank", (3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 5.0)),
    )
    best = {"lowest-id": 1, "highest:rank": 5, "highest:kind,lowest:load": 5}[choice]
    for initiator in range(1, N + 1):
        run = played(
            Ring, N, initiators=(initiator,), choice=parse_choice(choice), attributes=attributes
        )
        assert (run.messages, run.leader) == (2 * N + (best - initiator) % N, best)
        assert run.sound


@pytest.mark.parametrize("seed", range(20))
def test_delays_change_the_time_and_not_the_count(seed: int) -> None:
    """One initiator, one message under way at any time: asynchrony costs no message."""
    low = 0.01 * (seed + 1)
    run = played(Ring, 9, initiators=(1,), network=Network(Uniform(low, 1.0)))
    assert run.messages == 3 * 9 - 1
    assert 26 * low <= run.time <= 26


def test_messages_have_two_kinds() -> None:
    assert Ring.messages == (ElectionMsg, ElectedMsg)
