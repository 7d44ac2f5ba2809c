"""The exhaustive search: what it tries, what it finds, and that it tells a shortest way."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.explore.locals import ExploredGroup, OrderMatters
from hustings.explore.search import Search
from hustings.explore.standing import Bystander
from hustings.explore.values import Ending, Laws, SearchLimits, SearchResult
from hustings.lab.checking import EAGER, explore_election, explore_quorum
from hustings.layers.lease import LeaseLayer
from hustings.protocols.registry import find
from hustings.quorum import QuorumConfig, QuorumLeaseLayer
from hustings.quorum.acceptor import Acceptor
from hustings.quorum.messages import Ballot


class Claim(Message, frozen=True, tag="CLAIM"):
    """I lead."""


class Grab(Bystander):
    """Leads until somebody else says that it does; no way to elect anybody."""

    messages = (Claim,)

    def start(self, ctx: Context) -> None:
        ctx.set_timer("grab", 1.0)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if self.leader is None:
            ctx.persist(grabbed=True)
            self.elect(ctx, ctx.me.id, self.term + 1)
            ctx.multicast(Claim())

    @upon(Claim)
    def _on_claim(self, ctx: Context, sender: MemberId, message: Claim) -> None:
        self.elect(ctx, sender, self.term + 1)


class Later(Grab):
    """As before, but each at a tick of its own: safe while nothing is late or lost."""

    def start(self, ctx: Context) -> None:
        ctx.set_timer("grab", float(ctx.me.id))


def group(kind: type[Election], members: int = 2) -> ExploredGroup:
    ids = range(1, members + 1)
    makers = dict.fromkeys(ids, lambda: kind(Config(), HighestId()))
    return ExploredGroup(makers, {member: Candidate(member) for member in ids})


def explore(kind: type[Election], limits: SearchLimits, members: int = 2) -> SearchResult:
    return Search(group(kind, members), limits, Laws(leased=True)).run()


def test_what_is_broken_is_found_in_the_fewest_steps() -> None:
    found = explore(Grab, SearchLimits(ticks=3))
    assert found.ending is Ending.BROKEN
    assert found.why == "member 2 leads with token 1 after member 1 led with 1"
    assert [step.what for step in found.steps] == [
        "all start",
        "1: timer grab fires",
        "2: timer grab fires",
    ]
    assert found.steps[1].said[0] == "declares Elected(leader=1, term=1)"


def test_what_is_not_broken_is_exhausted() -> None:
    found = explore(Later, SearchLimits(ticks=4))
    assert (found.ending, found.grants) == (Ending.EXHAUSTED, 1)
    assert found.states > 4


@pytest.mark.parametrize(
    "limits", [SearchLimits(ticks=4, losses=1), SearchLimits(ticks=4, delay=2)]
)
def test_a_lost_or_late_message_breaks_what_counts_on_it(limits: SearchLimits) -> None:
    assert explore(Later, limits).ending is Ending.BROKEN


def test_a_crash_between_storing_and_sending_is_tried() -> None:
    search = Search(group(Later, 3), SearchLimits(ticks=4, crashes=1), Laws())
    assert search.run().ending is Ending.EXHAUSTED
    stored = [state for state in search.group.states if not state.up and state.stored]
    assert stored


def test_more_states_than_the_limit_is_an_ending_of_its_own() -> None:
    found = explore(Later, SearchLimits(ticks=4, max_states=3))
    assert (found.ending, found.states) == (Ending.MAX_STATES, 3)


def test_limits_are_checked() -> None:
    with pytest.raises(BadInput, match="ticks must lie"):
        SearchLimits(ticks=-1)
    with pytest.raises(BadInput, match="wipes cannot exceed"):
        SearchLimits(wipes=1)
    with pytest.raises(BadInput, match="max-states"):
        SearchLimits(max_states=0)


class Orderly(Bystander):
    """Remembers in which order others spoke, and follows the first: order matters."""

    messages = (Claim,)

    def __init__(self, config: Config, choice: HighestId) -> None:
        super().__init__(config, choice)
        self.heard: dict[MemberId, int] = {}

    def start(self, ctx: Context) -> None:
        ctx.multicast(Claim())

    def call(self, ctx: Context) -> None:
        ctx.set_timer("decide", 1.0)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if self.heard:
            self.elect(ctx, next(iter(self.heard)), 1)

    @upon(Claim)
    def _on_claim(self, ctx: Context, sender: MemberId, message: Claim) -> None:
        self.heard[sender] = 1


def test_states_are_not_taken_for_one_if_they_behave_differently() -> None:
    with pytest.raises(OrderMatters):
        Search(group(Orderly, 3), SearchLimits(ticks=2), Laws(), calls=(1,)).run()


# Real elections


@pytest.mark.parametrize("name", ["bully", "ring"])
def test_three_members_agree_whatever_the_order(name: str) -> None:
    found = explore_election(find(name), 3, SearchLimits(ticks=20))
    assert found.ending is Ending.EXHAUSTED
    assert found.rests > 0


@pytest.mark.parametrize(
    "limits, states",
    [
        (SearchLimits(ticks=2), 1_000),
        (SearchLimits(ticks=1, losses=1), 1_000),
        (SearchLimits(ticks=1, crashes=1), 1_000),
    ],
)
def test_three_voters_and_two_candidates(limits: SearchLimits, states: int) -> None:
    found = explore_quorum(3, 2, limits)
    assert found.ending is Ending.EXHAUSTED, found.why
    assert found.states > states
    assert found.grants > 1


# One crash and one lost message at any point are 234,080 states. Chapter 3 of the guide shows how
# they end, and tests/test_examples.py plays what it shows.


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_first_ten_million_states_of_a_whole_lease() -> None:
    """Twice as long: all schedules are more than twenty million states."""
    limits = SearchLimits(ticks=2, crashes=1, losses=1, max_states=10_000_000)
    found = explore_quorum(3, 2, limits)
    assert found.ending in (Ending.EXHAUSTED, Ending.MAX_STATES), found.why


class Careless(Acceptor):
    """Does not look whether somebody else holds the lease."""

    def is_taken(self, ballot: Ballot, now: float) -> bool:
        return False


class CarelessQuorate(QuorumLeaseLayer):
    acceptor_class = Careless


def careless(inner: LeaseLayer, voters: tuple[MemberId, ...]) -> Election:
    config = QuorumConfig(delta=EAGER.delta, voters=voters, max_ttl=EAGER.asked)
    return CarelessQuorate(inner, config)


def test_a_careless_voter_is_caught_step_by_step() -> None:
    found = explore_quorum(3, 2, SearchLimits(ticks=2), quorum=careless, lease=EAGER)
    assert found.ending is Ending.BROKEN
    assert "lead at one time" in found.why
    assert 3 < len(found.steps) < 30
    assert any("declares Elected" in said for step in found.steps for said in step.said)


def test_the_same_search_finds_the_same() -> None:
    limits = SearchLimits(ticks=1)
    assert explore_quorum(3, 2, limits) == explore_quorum(3, 2, limits)


@pytest.mark.parametrize("protocol", ["broadcast", "bully", "bully-map", "bully-grant"])
def test_who_hears_from_the_dead_after_all_is_told_of_its_death_again(protocol: str) -> None:
    """A detector does not fall silent because it spoke before the last message arrived."""
    found = explore_election(find(protocol), 2, SearchLimits(ticks=20, crashes=1))
    assert (found.ending, found.why) == (Ending.EXHAUSTED, "")


def test_a_leader_that_nobody_buries_is_still_found() -> None:
    """Whoever does not heed its detector rests with a dead leader."""
    found = Search(group(Later, 2), SearchLimits(ticks=4, crashes=1), Laws(agreed=True)).run()
    assert found.ending is Ending.BROKEN
    assert "is down" in found.why
