"""What follows from a configuration and an environment without playing anything.

Model      The leader's machine ends at a random instant, or the leader stands still, or messages
           are lost as the environment says. Members run the layers that `join` composes.
Promise    `low` ends are certain as far as the model holds: a configuration whose low end misses a
           goal cannot meet it, and a plan need not play it. `high` ends hold if each part takes as
           long as it may; they are infinite where no form is known.
Use        Prune candidates, choose their timers, and say how far an assumption may worsen. What a
           plan predicts is measured.

The parts of a failover: the followers miss the leader (patience since its last message), the
election takes its time, and with a guard the old lease must be over. The last two are counted from
the end of the leader, so the later of them counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hustings.core.durations import show_duration
from hustings.core.outcome import Guarantee
from hustings.guard.quorum import SCHEME as QUORUM
from hustings.lab.plans.chances import (
    all_lost,
    late,
    longest_delay,
    longest_pause,
    mean_pause,
    missed,
    pause_tail,
    shortest,
    unanswered,
    worst_loss,
)
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.goals import ENGINE, SITE, GroupGoals
from hustings.layers.detector.accrual import AccrualConfig
from hustings.layers.gossip.config import GossipConfig
from hustings.net.composition import Configured
from hustings.net.seal import OVERHEAD
from hustings.protocols.registry import find
from hustings.sim.environment import Environment
from hustings.sim.sites import SiteDelay, Sites

MEMBERS = 5  # of a group, if the environment does not say
P99 = 0.99
_RARE = (1.0 - P99) / 2.0  # what is left out of a 99th percentile, twice
_MOST_TIMES = 1000
# Bytes of frames before they are sealed, as members of the usual names and places write them.
_SIGN = 72  # an announcement, a heartbeat or a short message of the leadership layer
_HELD = 82  # the holder of a lease; a question to a voter, and its answer
_COPY = 109  # a multicast that is passed on
_DIGEST, _PER_ID = 85, 11  # a digest of buffered multicasts, and each of them
_GOSSIP, _PER_ENTRY = 80, 40  # a message of gossip, and each member in it
_WEIGHT = 61  # of an entry, as gossip itself estimates it


@dataclass(frozen=True, slots=True)
class Span:
    """The ends between which a value lies, with the reason for them."""

    low: float
    high: float
    because: str = ""


@dataclass(frozen=True, slots=True)
class Timers:
    """The times of a configuration that decide its failovers, in seconds."""

    delta: float
    period: float  # between two signs of life of a leader
    patience: float  # silence of a leader after which a member misses it, at least ...
    longest: float  # ... and at most
    election: float  # between the first that misses it and a leader that leads, at least ...
    elects: float  # ... and at most
    stall: float  # a leader that stood still for longer does not lead while it asks
    gossip: float  # period of the gossip
    forgotten: float  # silence after which gossip takes a member for gone; inf: never before that
    announces: bool
    ttl: float = 0.0  # 0: no guard
    window: float = 0.0  # of a grant in which its holder leads
    renewal: float = 0.0  # between two questions of a holder
    retry: float = 0.0  # between two questions without an answer

    @property
    def beats(self) -> int:
        """How many signs of life in a row a member can miss before it misses the leader."""
        return max(1, math.floor((self.patience - self.delta) / self.period + 1e-9))


def members_of(environment: Environment) -> int:
    """The size of the group."""
    return environment.members or MEMBERS


def sites_of(environment: Environment) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names and the sizes of the sites; one site without a name if there are none."""
    if environment.sites is None:
        return ("",), (members_of(environment),)
    return environment.sites.names, environment.sites.sizes


def site_of(environment: Environment, member: int) -> int:
    """The number of a member's site."""
    sites: Sites | None = environment.sites
    return 0 if sites is None else sites.of(member)


def timers(configuration: Configuration, environment: Environment) -> Timers:
    """All times that follow from a configuration."""
    made = configuration.configured()
    kind = find(configuration.protocol)
    election, delta = made.election, made.election.delta
    announces = kind.assumptions.announces
    period, patience, longest = _watching(made, announces, members_of(environment))
    sleep: float = getattr(election, "interval", 0.0) if announces else 0.0
    claim = made.leadership.claim_delay if made.lease is None else 0.0
    elects = 2.0 * sleep + claim + 4.0 * delta if announces else math.inf
    forgotten = made.stack.fail_time(members_of(environment))
    if made.stack.partial:
        forgotten = made.stack.leader_fail_time
    lease = made.lease
    guarded = {}
    if lease is not None:
        guarded = {
            "ttl": lease.asked,
            "window": lease.leading(lease.asked),
            "renewal": lease.renewal,
            "retry": lease.patience,
        }
    return Timers(
        delta=delta,
        period=period,
        patience=patience,
        longest=longest,
        election=claim,
        elects=elects,
        stall=made.leadership.longest_stall,
        gossip=made.stack.period,
        forgotten=forgotten,
        announces=announces,
        **guarded,
    )


def _watching(made: Configured, announces: bool, members: int) -> tuple[float, float, float]:
    """How often a leader is heard, and the least and the longest silence that is borne."""
    if announces:
        period: float = getattr(made.election, "T_A", math.inf)
        listen: float = getattr(made.election, "listen", math.inf)
        return period, listen, listen
    watch = made.detector
    if watch is None:  # partial views: gossip is the detector
        silence = made.stack.leader_fail_time
        return made.stack.period, silence, silence
    period = watch.period if watch.successor_period is None else watch.successor_period
    least = period + watch.margin
    longest = watch.longest if isinstance(watch, AccrualConfig) else watch.timeout
    asked = 2.0 * watch.ping_timeout + watch.successor_head_start
    return period, least, max(least, longest) + asked


# Failover


def failover(configuration: Configuration, environment: Environment) -> Span:
    """The 99th percentile of the time until all follow a new leader, if its machine has ended.

    The leader's last sign of life is up to a period old when the leader ends, its last renewal up
    to a third of the lease: at the 99th percentile both are nearly new.
    """
    at = timers(configuration, environment)
    way = longest_delay(environment)
    young = (1.0 - P99) * at.period
    gossip = max(0.0, at.forgotten - _news(configuration, environment))
    noticed = max(0.0, min(at.patience, gossip) - young)
    elected = noticed + at.election
    low, because = elected, "patience and election"
    high = at.longest + at.elects + way
    if at.ttl:
        held = at.ttl - (1.0 - P99) * at.renewal
        low, because = max((low, because), (held, "the lease of the leader that ended"))
        asks = round_trip(configuration, environment)
        again = _asked_again(configuration, environment, at)
        high = max(high, at.ttl * 1.01) + asks + again + way
    high += _told_late(configuration, environment, at)
    return Span(low + shortest(environment.network.delay), high, because)


def _asked_again(configuration: Configuration, environment: Environment, at: Timers) -> float:
    """How long a new leader asks in vain, because questions or answers are lost.

    Each time it waits twice as long as before. A majority of many voters hardly ever fails to
    answer.
    """
    for times in range(_MOST_TIMES):
        fails = unanswered(environment.network.loss, times + 1)
        voters = len(configuration.voters)
        if voters:
            out = voters - voters // 2
            fails = math.comb(voters, out) * fails**out
        if fails <= _RARE:
            return at.retry * (2.0**times - 1.0)
    return math.inf


def _told_late(configuration: Configuration, environment: Environment, at: Timers) -> float:
    """How much later than the others the last follower hears of the new leader.

    A leader says so again with each renewal, or with each sign of life. At the 99th percentile no
    follower misses more of these in a row than this time takes. Other messages use the same links
    meanwhile, so bursts end. A multicast with anti-entropy is repaired sooner, by other members.
    """
    if configuration.multicast in ("bimodal", "gossip") and at.announces:
        return _repaired(configuration, environment)
    again = at.renewal if at.ttl else at.period
    between = 1 + math.floor(again / at.period + 1e-9) if at.ttl and at.announces else 1
    followers = members_of(environment) - 1
    for times in range(_MOST_TIMES):
        if followers * all_lost(environment.network.loss, times + 1, between) <= _RARE:
            return times * again
    return math.inf


def _news(configuration: Configuration, environment: Environment) -> float:
    """How old the newest news of a member may be that others pass on."""
    stack = configuration.configured().stack
    return stack.reach_time(members_of(environment), 1e-2)


def round_trip(configuration: Configuration, environment: Environment) -> float:
    """How long a question to the guard takes, from the place from which it takes longest."""
    if configuration.guard is None:
        return 0.0
    way = longest_delay(environment)
    if configuration.guard != QUORUM:
        return 2.0 * way
    # A majority answers when the last of its voters does: the nearest majority counts. Two rounds
    # are needed for a new leader, one to hear of earlier votes and one to vote.
    worst = 0.0
    for place in range(len(sites_of(environment)[0])):
        ways = sorted(
            _between(environment, place, site_of(environment, each))
            for each in configuration.voters
        )
        worst = max(worst, ways[len(ways) // 2])
    return 4.0 * worst


def _between(environment: Environment, one: int, other: int) -> float:
    """The one-way delay between two sites."""
    delay, hold = environment.network.delay, environment.network.hold_back
    if not isinstance(delay, SiteDelay):
        return delay.bound + hold
    return delay.between.get((one, other), delay.within).bound + hold


def _repaired(configuration: Configuration, environment: Environment) -> float:
    """How long anti-entropy takes until the last member has a multicast.

    In each round a member that lacks it gets so many digests on average, from random members.
    Digest, request and copy may each be lost.
    """
    stack, loss = configuration.configured().stack, worst_loss(environment.network.loss).p
    followers = members_of(environment) - 1
    lacks = loss if not stack.spread else max(loss, math.exp(-stack.spread * (1.0 - loss)))
    stays = math.exp(-stack.digests * (1.0 - loss) ** 3)
    rounds = 0
    while followers * lacks > _RARE and rounds < stack.rounds:
        lacks *= stays
        rounds += 1
    if followers * lacks > _RARE:
        return math.inf
    return rounds * stack.round_time + (4.0 * longest_delay(environment) if rounds else 0.0)


# Wrong failovers


def wrong(configuration: Configuration, environment: Environment) -> Span:
    """How often a live leader loses its leadership, in a second of the group's time.

    The low end counts pauses of the leader that no member can bear. The high end adds pauses that
    begin at the worst moment, windows in which all signs of life or all renewals are lost, and, for
    a guard among members, voters that stand still together.
    """
    at = timers(configuration, environment)
    pauses, loss = environment.pauses, environment.network.loss
    rate = 0.0 if pauses is None else pauses.rate
    way = longest_delay(environment)
    if at.ttl:
        low = rate * pause_tail(pauses, at.window)
        spare = at.window - at.renewal - round_trip(configuration, environment)
        high = rate * pause_tail(pauses, max(0.0, spare))
        high += _unrenewed(configuration, environment, at, spare)
        high += _together(configuration, environment, spare)
        return Span(low, high, "pauses longer than the lease can bear")
    surely = max(at.longest + at.elects, at.stall) + way
    low = rate * pause_tail(pauses, surely) if math.isfinite(surely) else 0.0
    # Gossip forgets a silent leader, too, and passes older news on meanwhile.
    gossip = max(0.0, at.forgotten - _news(configuration, environment))
    spare = min(at.patience, gossip) - at.period - way
    followers = members_of(environment) - 1
    windows = followers * missed(loss, at.beats) / at.period
    high = rate * pause_tail(pauses, max(0.0, spare)) + windows
    high += followers * late(environment, at.patience - at.period) / at.period
    return Span(low, high, "pauses longer than the patience of the followers")


def _unrenewed(
    configuration: Configuration, environment: Environment, at: Timers, spare: float
) -> float:
    """How often all questions of a renewal are lost, or their answers, with so many voters.

    A leader that votes itself needs one answer fewer. Its announcements use the same links, so a
    burst may end between two questions.
    """
    if spare <= 0.0:
        return 1.0 / at.renewal
    tries = 1 + math.floor(spare / at.retry + 1e-9)
    between = 1 + math.floor(at.retry / at.period + 1e-9) if at.announces else 1
    fails = unanswered(environment.network.loss, tries, between)
    voters = len(configuration.voters)
    if not voters:
        return fails / at.renewal
    out = voters - voters // 2  # so many without an answer leave no majority
    alone = math.comb(voters, out) * fails**out
    return min(1.0, alone) / at.renewal


def _together(configuration: Configuration, environment: Environment, spare: float) -> float:
    """How often so many voters stand still at once that no majority answers for so long."""
    pauses = environment.pauses
    if pauses is None or not configuration.voters:
        return 0.0
    lost = (len(configuration.voters) + 1) // 2
    busy = min(1.0, pauses.rate * mean_pause(pauses))
    begin = len(configuration.voters) * pauses.rate * pause_tail(pauses, max(0.0, spare))
    return begin * math.comb(len(configuration.voters) - 1, lost - 1) * busy ** (lost - 1)


# Two leaders


def two_leaders(configuration: Configuration, environment: Environment) -> Span:
    """For how long two members may lead at one time.

    With leases never, as long as clocks keep their rates. Without, two sides of a network that is
    cut both have a leader for as long as the cut lasts. Otherwise it ends when the two hear each
    other: within a period of announcements, and longer if those are lost.
    """
    if configuration.guarantee is not Guarantee.ADVISORY:
        return Span(0.0, 0.0, "a lease has one holder at a time")
    outages = environment.outages
    if outages is not None and outages.rate > 0 and outages.kind == "cut":
        return Span(0.0, math.inf, "each side of a cut has a leader while the cut lasts")
    at = timers(configuration, environment)
    way = longest_delay(environment)
    heard = at.period + way if at.announces else at.longest + way
    return Span(0.0, heard + at.patience, "until the two have heard each other")


# Bytes


@dataclass(frozen=True, slots=True)
class ByteRates:
    """Bytes in a second that members send and receive, headers and seals included."""

    leader: float
    member: float

    @property
    def most(self) -> float:
        """Of the member that has most."""
        return max(self.leader, self.member)


def traffic(configuration: Configuration, environment: Environment) -> ByteRates:
    """The traffic of a group at rest: signs of life, gossip, and renewals of a lease."""
    at = timers(configuration, environment)
    stack = configuration.configured().stack
    head = environment.header + OVERHEAD
    others = members_of(environment) - 1
    named = min(stack.entries, others + 1, stack.view_size + 1)
    if stack.gossip_bytes is not None:
        named = max(2, min(named, stack.gossip_bytes // _WEIGHT))
    gossip = 2.0 * stack.fanout * (head + _GOSSIP + _PER_ENTRY * named) / at.gossip
    votes = 0.0
    rates = [(head + _SIGN, at.period)] if not stack.partial else []
    if at.ttl:
        rates.append((head + _HELD, at.renewal))
        votes = 2.0 * max(1, len(configuration.voters)) * (head + _HELD) / at.renewal
    multicasts = sum(size / period for size, period in rates)
    if configuration.multicast in ("gossip", "bimodal") and at.announces:
        passed = sum(_passed_on(stack, head, period) for _, period in rates)
        first = others * multicasts if configuration.multicast == "bimodal" else 0.0
        leader, member = first + passed, passed
    elif configuration.multicast.startswith("ip:"):
        leader = member = multicasts
    else:
        leader, member = others * multicasts, multicasts
    reconciles = 2.0 * (head + _SIGN) / configuration.configured().leadership.period
    return ByteRates(leader + gossip + votes + reconciles, member + gossip + votes / 2.0)


def _passed_on(stack: GossipConfig, head: int, period: float) -> float:
    """Bytes in a second of a member that passes multicasts on, one in each period.

    It sends and gets copies, and digests for as long as a multicast is buffered.
    """
    copies = 2.0 * stack.spread * (head + _COPY) / period
    buffered = stack.buffering_time / period
    size = head + _DIGEST + _PER_ID * min(stack.digest, max(1.0, buffered))
    return copies + min(1.0, buffered) * 2.0 * stack.digests * size / stack.round_time


# Survival


def survives(
    configuration: Configuration, environment: Environment, goals: GroupGoals
) -> list[str]:
    """Sentences about what the group is to survive and would not; none if it survives all of it.

    A group survives if the members that are left can elect a leader, and a guard can confirm it.
    """
    told = []
    members = members_of(environment)
    voters = len(configuration.voters)
    if ENGINE in goals.survive and configuration.guard not in (None, QUORUM):
        told.append(f"without {configuration.guard} no member leads when the lease is over")
    lost = goals.members_lost
    if lost >= members:
        told.append(f"of {members} members {lost} cannot be lost: nobody would be left")
    if voters and lost > (voters - 1) // 2:
        told.append(f"{voters} voters survive the loss of {(voters - 1) // 2}, not of {lost}")
    if SITE in goals.survive:
        told += _sites_lost(configuration, environment)
    return told


def _sites_lost(configuration: Configuration, environment: Environment) -> list[str]:
    """For each site that must not fail, why."""
    names, sizes = sites_of(environment)
    if len(names) == 1:
        return ["with one site nobody is left when it fails"]
    told = []
    for place, name in enumerate(names):
        here = sum(site_of(environment, each) == place for each in configuration.voters)
        voters = len(configuration.voters)
        if voters and voters - here < voters // 2 + 1:
            told.append(
                f"{here} of {voters} voters stand at {name}: without it no majority is left"
            )
        if sizes[place] == sum(sizes):
            told.append(f"all members stand at {name}")
        if configuration.guard_site == name:
            told.append(f"{configuration.guard} stands at {name}")
    return told


# Contradictions


def contradictions(configuration: Configuration, environment: Environment) -> list[str]:
    """Sentences about settings that contradict each other, or the environment."""
    at = timers(configuration, environment)
    made = configuration.configured()
    way, pause = longest_delay(environment), longest_pause(environment.pauses)
    told = []
    if way > at.delta:
        told.append(
            f"delta is {_s(at.delta)}, and a message takes up to {_s(way)}: answers come too late"
        )
    if at.patience < at.period + way:
        told.append(
            f"a leader is missed after {_s(at.patience)}, before its next sign of life is due "
            f"({_s(at.period + way)})"
        )
    if pause and not at.ttl and at.patience < pause + at.period:
        told.append(
            f"a leader is missed after {_s(at.patience)}, and pauses take up to {_s(pause)}: a "
            "pause is a failover"
        )
    if pause > at.stall and not at.ttl:
        told.append(
            f"the stall bound is {_s(at.stall)}, and pauses take up to {_s(pause)}: a leader that "
            "stood still does not lead until it has asked"
        )
    told += _lease_flaws(at, environment, pause)
    told += _voter_flaws(configuration, environment)
    if made.lease is not None and environment.drift > made.lease.drift:
        told.append(
            f"clocks differ by {environment.drift:g}, and the lease allows {made.lease.drift:g}: "
            "two members may lead at one time"
        )
    return told + _limit_flaws(configuration, environment)


def _lease_flaws(at: Timers, environment: Environment, pause: float) -> list[str]:
    if not at.ttl or not pause:
        return []
    told = []
    if at.ttl < 2.0 * pause:
        told.append(
            f"ttl is {_s(at.ttl)}, less than twice the longest pause ({_s(pause)}): a pause costs "
            "the lease"
        )
    elif at.window - at.renewal < pause:
        told.append(
            f"of a ttl of {_s(at.ttl)} a leader that pauses just before it renews has "
            f"{_s(max(0.0, at.window - at.renewal))} left, and pauses take up to {_s(pause)}: "
            "raise ttl, or lower the grace"
        )
    return told


def _voter_flaws(configuration: Configuration, environment: Environment) -> list[str]:
    voters, members = configuration.voters, members_of(environment)
    if not voters:
        return []
    told = []
    if max(voters) > members:
        told.append(f"member {max(voters)} is to vote, and there are {members}")
    names, _ = sites_of(environment)
    for place, name in enumerate(names):
        here = sum(site_of(environment, each) == place for each in voters)
        if len(names) > 1 and here == len(voters):
            told.append(f"all voters stand at {name}: without it no member leads")
        elif len(names) > 1 and here > len(voters) // 2:
            told.append(
                f"{here} of {len(voters)} voters stand at {name}: without it no member leads"
            )
    return told


def _limit_flaws(configuration: Configuration, environment: Environment) -> list[str]:
    limits, members = configuration.design().limits, members_of(environment)
    told = []
    for name, needed in (("members", members), ("view", members), ("connections", members - 1)):
        most = getattr(limits, name)
        partial = configuration.configured().stack.partial
        if most < needed and not (partial and name != "members"):
            told.append(f"the limit {name} is {most}, and {members} members need {needed}")
    return told


def _s(seconds: float) -> str:
    return show_duration(float(f"{seconds:.3g}"))
