"""One run of an election in synchronous rounds, message by message, with an adversary in the group.

Every member is of the same class that would run anywhere; the adversary speaks for the bad members.
Only messages of good members are counted: what bad members send has no bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.protocols.committee.adversary import parse_adversary
from hustings.protocols.committee.election import Committee, CommitteeResult, cast
from hustings.protocols.committee.extensions import CommonCoin, GroupAgreement
from hustings.protocols.committee.lockstep import Lockstep
from hustings.protocols.committee.misbehaving import AdversaryScene, infiltrated
from hustings.protocols.committee.roster import Roster
from hustings.protocols.committee.settings import CommitteeConfig, too_large
from hustings.protocols.committee.single import Agreement, CommitteeOfAll, LightestBin
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment
from hustings.sim.play import RunResult
from hustings.sim.trace import Tracer
from hustings.sim.world import World

Metrics = dict[str, float | None]
Verdicts = dict[str, tuple[Verdict, str]]
Judge = Callable[[Mapping[MemberId, Lockstep], AdversaryScene], tuple[Metrics, Verdicts]]
Casting = Callable[
    [Experiment, Sequence[MemberId], int], tuple[Callable[[], Lockstep], AdversaryScene]
]

ONE_THIRD = 3
MOST_IN_ONE = 256  # members of one committee that is played message by message


def play(experiment: Experiment, run: int, tracer: Tracer | None = None) -> RunResult:
    """Play one run to its end and judge it."""
    casting, judge = _part_of(experiment)
    if tracer is None and experiment.digest:
        tracer = Tracer(experiment.header(run))
    seed = derive(experiment.seed, "run", run)
    candidates = experiment.candidates(seed)
    make, scene = casting(experiment, [each.id for each in candidates], seed)
    world = World(
        make,
        candidates,
        seed=seed,
        network=experiment.network,
        tracer=tracer,
        debug=experiment.debug,
    )
    world.start()
    ended = world.run(experiment.until, experiment.max_events)
    digest = None if tracer is None else tracer.close(world.now, ended.value)
    metrics, verdicts = judge(scene.members, scene)
    metrics |= _costs(scene)
    return RunResult(metrics=metrics, verdicts=verdicts, ended=ended, digest=digest)


def check(experiment: Experiment) -> None:
    """Refuse what cannot be played message by message."""
    config = experiment.config
    if isinstance(config, CommitteeConfig):
        refusal = too_large(config, experiment.members)
        if refusal is not None:
            raise BadInput(refusal)
    if isinstance(config, CommitteeOfAll):
        if experiment.members > MOST_IN_ONE:
            raise BadInput(
                f"a committee of {experiment.members:,} is too large to agree message by message: "
                f"at most {MOST_IN_ONE}"
            )
        config.seat(1, tuple(range(1, experiment.members + 1)))
        parse_adversary(config.adversary)
        if config.liars(experiment.members) > experiment.members:
            raise BadInput(f"bad = {config.bad} is more than the group of {experiment.members} has")


def _part_of(experiment: Experiment) -> tuple[Casting, Judge]:
    for kind, casting, judge in _PARTS:
        if experiment.kind is kind:
            return casting, judge
    raise BadInput(f"{experiment.kind.about.name} is no election in synchronous rounds")


def _costs(scene: AdversaryScene) -> Metrics:
    """What good members sent."""
    good = [one for member, one in scene.members.items() if not scene.is_bad(member)]
    if not good:
        return dict.fromkeys((*_COSTS, "rounds"))
    found: Metrics = {"rounds": float(max(one.rounds for one in good))}
    for name, attribute in (("bits", "bits"), ("wire", "wire"), ("messages", "said")):
        spent = [int(getattr(one, attribute)) for one in good]
        found[f"{name}_mean"] = sum(spent) / len(spent)
        found[f"{name}_max"] = float(max(spent))
    return {name: found[name] for name in (*_COSTS, "rounds")}


_COSTS = ("bits_mean", "bits_max", "wire_mean", "wire_max", "messages_mean")


# The election by committees


def _cast_committee(
    experiment: Experiment, ids: Sequence[MemberId], seed: int
) -> tuple[Callable[[], Lockstep], AdversaryScene]:
    config = experiment.config
    assert isinstance(config, CommitteeConfig)
    kind = experiment.kind
    assert issubclass(kind, Committee)
    return cast(config, experiment.choice, ids, seed, kind)


def _judge_committee(
    members: Mapping[MemberId, Lockstep], scene: AdversaryScene
) -> tuple[Metrics, Verdicts]:
    """Judge by the results of good members; the elected member is the one that most of them saw."""
    standings: dict[MemberId, CommitteeResult] = {}
    for member, one in members.items():
        assert isinstance(one, Committee)
        standings[member] = one.result()
    good = {member: each for member, each in standings.items() if not scene.is_bad(member)}
    root = [member for member, each in standings.items() if each.in_root]
    chosen = elected(good.values())
    fine = chosen is not None and not scene.is_bad(chosen)
    knowing = 0 if chosen is None else sum(each.believed == chosen for each in good.values())
    leading = [member for member, each in good.items() if each.leads]
    false = [member for member in leading if member != chosen]
    metrics: Metrics = {
        "good_leader": float(fine),
        "confirmed": float(chosen in leading),
        "informed": knowing / len(good) if good else None,
        "false_leaders": float(len(false)),
        "root_bad": sum(map(scene.is_bad, root)) / len(root) if root else None,
        "root_size": float(len(root)),
        "broken": _broken(members, scene),
    }
    if len(leading) > 1:
        verdict = Verdict.VIOLATED, f"members {leading} each take themselves for the leader"
    else:
        verdict = Verdict.HOLDS, "no two good members take themselves for the leader"
    return metrics, {"uniqueness": verdict}


def elected(standings: Iterable[CommitteeResult]) -> MemberId | None:
    """The member that the root elected: what most good participants saw; none if they disagree."""
    seen: Counter[MemberId | None] = Counter()
    for each in standings:
        if each.in_root:
            seen[each.chosen] += 1
    if not seen:
        return None
    winner, votes = max(seen.items(), key=lambda pair: (pair[1], -(pair[0] or 0)))
    return winner if 2 * votes > seen.total() else None


def _broken(members: Mapping[MemberId, Lockstep], scene: AdversaryScene) -> float | None:
    """The share of first-layer elections in which a third or more of the participants are bad."""
    some = next(iter(members.values()))
    assert isinstance(some, Committee)
    rows = some.network.roster.electorates
    if not rows:
        return None
    owned = sum(ONE_THIRD * sum(map(scene.is_bad, row)) >= len(row) for row in rows)
    return owned / len(rows)


# Other uses of the same committees


def _judge_word(
    members: Mapping[MemberId, Lockstep], scene: AdversaryScene
) -> tuple[Metrics, Verdicts]:
    """Whether good members decided the same bit; it must be the common input, if there was one."""
    good: list[GroupAgreement] = []
    for member, one in members.items():
        assert isinstance(one, GroupAgreement)
        if not scene.is_bad(member):
            good.append(one)
    deciders = [member for member, one in members.items() if _decides(one)]
    wanted = Counter(one.wanted for one in good)
    ends = Counter(one.decided for one in good)
    bit, votes = max(ends.items(), key=lambda pair: (pair[1], str(pair[0])))
    valid = len(wanted) > 1 or bit in wanted
    metrics: Metrics = {
        "agreeing": votes / len(good) if bit is not None else 0.0,
        "undecided": ends[None] / len(good),
        "valid": float(valid),
        "set_size": float(len(deciders)),
        "set_bad": sum(map(scene.is_bad, deciders)) / len(deciders) if deciders else None,
        "broken": _broken(members, scene),
    }
    verdict = Verdict.HOLDS, "what all good members wanted is what most of them decided"
    if not valid:
        verdict = Verdict.VIOLATED, f"all good members wanted the same, and most decided {bit}"
    return metrics, {"validity": verdict}


def _decides(one: Lockstep) -> bool:
    return isinstance(one, GroupAgreement) and one.in_set


def _judge_coin(
    members: Mapping[MemberId, Lockstep], scene: AdversaryScene
) -> tuple[Metrics, Verdicts]:
    """Judge as an election, and count the good members that saw the coin that most of them saw."""
    metrics, verdicts = _judge_committee(members, scene)
    seen = Counter(
        one.coin
        for member, one in members.items()
        if isinstance(one, CommonCoin) and not scene.is_bad(member)
    )
    tossed = {coin: count for coin, count in seen.items() if coin is not None}
    coin = max(tossed, key=lambda each: (tossed[each], each)) if tossed else None
    metrics["seen"] = tossed[coin] / seen.total() if coin is not None else 0.0
    metrics["coin"] = None if coin is None else float(coin)
    return metrics, verdicts


# One committee of all members


def _cast_all(
    experiment: Experiment, ids: Sequence[MemberId], seed: int
) -> tuple[Callable[[], Lockstep], AdversaryScene]:
    config, kind = experiment.config, experiment.kind
    assert isinstance(config, CommitteeOfAll)
    assert issubclass(kind, Lockstep)
    members = tuple(sorted(ids))
    roster = Roster(members, (members,))
    adversary = parse_adversary(config.adversary)
    rng = Stream(derive(seed, "adversary"))
    scene = AdversaryScene(adversary.corrupt(roster, config.liars(len(members)), rng), rng, roster)
    return infiltrated(lambda: kind(config, experiment.choice), adversary, scene), scene


def _judge_agreement(
    members: Mapping[MemberId, Lockstep], scene: AdversaryScene
) -> tuple[Metrics, Verdicts]:
    """Whether good members decided the same bit; it must be the common input, if there was one."""
    good: dict[MemberId, Agreement] = {}
    for member, one in members.items():
        assert isinstance(one, Agreement)
        if not scene.is_bad(member):
            good[member] = one
    decided = Counter(one.decided for one in good.values())
    missed = [
        place
        for place, wanted in enumerate(zip(*(one.inputs for one in good.values()), strict=True))
        if len(Counter(wanted)) == 1
        and any(one.decided is None or one.decided[place] != wanted[0] for one in good.values())
    ]
    agreement = Verdict.HOLDS, "all good members decided the same"
    if len(decided) > 1:
        camps = " and ".join(str(count) for count in sorted(decided.values(), reverse=True))
        agreement = Verdict.VIOLATED, f"good members decided differently: {camps} of {len(good)}"
    validity = Verdict.HOLDS, "what all good members wanted was decided"
    if missed:
        validity = (
            Verdict.VIOLATED,
            f"instance {missed[0]}: all good members wanted the same, and not all decided it",
        )
    return (
        {
            "bad": float(len(scene.bad)),
            "violated": float(len(decided) > 1 or bool(missed)),
            "camps": float(len(decided)),
        },
        {"agreement": agreement, "validity": validity},
    )


def _judge_bins(
    members: Mapping[MemberId, Lockstep], scene: AdversaryScene
) -> tuple[Metrics, Verdicts]:
    """Whether good members hold the same elected members, and how many of these are bad."""
    seen: Counter[tuple[MemberId, ...] | None] = Counter()
    leaders: Counter[MemberId | None] = Counter()
    for member, one in members.items():
        assert isinstance(one, LightestBin)
        if not scene.is_bad(member):
            seen[one.chosen] += 1
            leaders[one.leader] += 1
    same = len(seen) == 1 and len(leaders) == 1
    chosen = next(iter(seen), None) if same else None
    leader = next(iter(leaders), None) if same else None
    verdict = Verdict.HOLDS, "all good members hold the same elected"
    if not same:
        verdict = Verdict.VIOLATED, f"good members hold {len(seen)} different sets of elected"
    metrics: Metrics = {
        "bad": float(len(scene.bad)),
        "elected": None if chosen is None else float(len(chosen)),
        "elected_bad": sum(map(scene.is_bad, chosen)) / len(chosen) if chosen else None,
        "good_leader": float(leader is not None and not scene.is_bad(leader)),
        "violated": float(not same),
    }
    return metrics, {"agreement": verdict}


_PARTS: tuple[tuple[type[Lockstep], Casting, Judge], ...] = (
    (Committee, _cast_committee, _judge_committee),
    (GroupAgreement, _cast_committee, _judge_word),
    (CommonCoin, _cast_committee, _judge_coin),
    (Agreement, _cast_all, _judge_agreement),
    (LightestBin, _cast_all, _judge_bins),
)
BY_ROUNDS: tuple[type[Lockstep], ...] = tuple(kind for kind, _, _ in _PARTS)
