"""Corners of the parameters, where witnesses part first: events, kernel, closed forms, in pairs.

Groups of one, two, three and twelve; nothing lost, half, almost all, all; nobody crashes, half,
almost all, all; tiny views; K above N. Every metric is compared: its mean, its law and how often it
has a value. All comparisons of a test are one family: with all of them right it fails by chance
with probability `LEVEL`, 1 in 1000 (judging.py); closed forms get the standard error of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pytest

from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.lab.closed_forms.probabilistic import messages
from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.closed_forms.probabilistic.sizing import fair_k
from hustings.lab.closed_forms.probabilistic.success import success
from hustings.lab.closed_forms.registry import evaluate
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.lab.kernels.probabilistic.play import play
from hustings.lab.runs.kernels import setting_of
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.messages import InitMsg
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.network import Network
from hustings.sim.play import play as play_events
from tests.agreement.announce.fastness import columns, compare, known
from tests.agreement.announce.judging import bound, judge, sample, score
from tests.agreement.probabilistic.enumeration import Case, law
from tests.agreement.probabilistic.places import Place, by_events, by_kernel, config_of

SIZES = (1, 2, 3, 12)
LOSSES = (0.0, 0.5, 0.99, 1.0)
FAILS = (0.0, 0.5, 0.9, 1.0)
VIEWS = (1e-6, 0.5, 1.0)
KS = (1, 7)
THINNINGS = ("delay", "hash", "all")
ESTIMATES = ("exact", "view", "gossip")
EVENTS, KERNEL = 15, 800  # runs of a corner
FAMILY = 25_000  # more than there are comparisons in a test here
Scores = dict[object, float]


def corners() -> Iterator[Place]:
    """All of them; thinning and estimate go round.

    Where N_i is the size of the own view, members wait different times in a round of all, and the
    kernel does not (fast/rounds.py): K doubles to the end then.
    """
    for number, (n, loss, fail, view, K) in enumerate(product(SIZES, LOSSES, FAILS, VIEWS, KS)):
        settings = {"thinning": THINNINGS[number % 3], "estimate": ESTIMATES[number // 3 % 3]}
        settings["strategy"] = "doubling" if settings["estimate"] == "view" else "paper"
        yield Place(n, loss, loss, view, fail, {"K": K, **settings})


def named(place: Place, scores: Scores) -> Scores:
    return {(*place[:-1], *place.settings.items(), name): z for name, z in scores.items()}


def test_events_and_kernel_in_every_corner() -> None:
    scores: Scores = {}
    for place in corners():
        scores |= named(place, compare(by_kernel(place, KERNEL), by_events(place, EVENTS)))
    assert 15_000 < len(scores) < FAMILY
    judge(scores, FAMILY)


# Closed forms, of one round


def round_of(place: Place, K: float) -> Round:
    """Finals leave 1.5 K + 1 delays after the call, of 1.5 K + 3 in which members crash."""
    tau2 = (1.5 * K + 1) / (1.5 * K + 3)
    return Round(
        K, place.view_prob, place.p_mcastl, place.p_ucastl, place.p_fail, place.members, tau2
    )


def beside_forms(place: Place, K: float) -> Scores:
    """What theory says exactly; beyond it, the caller always hears itself."""
    one, found = round_of(place, K), by_kernel(place, KERNEL)
    begins = 1 - one.p_fail / (1.5 * K + 3)  # not dead before the round begins
    speaks = 1 - one.crash_before
    caller = one.p_mcastl * one.passing
    finals = messages.finals(one) + caller * speaks
    told = messages.first_unicasts(one) + caller * (one.N - 1) * one.passing * one.view_prob
    exact = {
        "relay_members": (messages.relay_members(one) + caller) * begins,
        "coordinator_messages": finals,
        "mcasts": 1 + finals,
    }
    if one.p_ucastl == 1.0:  # nobody is answered
        exact["ucasts"] = told * begins
    if one.p_fail == 0.0:
        exact["time"] = messages.time_out_1(1.5 * K, 1.0) + 1
    scores: Scores = {}
    for name, value in exact.items():
        # What is rarer than 5 in all runs shows no spread that could be relied upon.
        slack = 5 / KERNEL if name != "time" else 0.0
        scores[name] = score(sample(known(found[name])), value, slack=slack)
    strong = sample(known(found["strong"]))
    assert success(one) <= strong.mean + bound(FAMILY) * max(strong.stderr, 1 / KERNEL), place
    return scores


def test_kernel_and_closed_forms_in_every_corner() -> None:
    scores: Scores = {}
    for number, (n, multicast, fail, view, K) in enumerate(
        product((*SIZES, 30), LOSSES, FAILS, VIEWS, (0.5, *KS))
    ):
        unicast = LOSSES[number % len(LOSSES)]
        place = Place(n, unicast, multicast, view, fail, {"K": K, "max_rounds": 1})
        scores |= named(place, beside_forms(place, K))
    judge(scores, FAMILY)


# Corners that were found


@pytest.mark.parametrize("n, p_fail", [(60, 0.9), (5, 0.6)])
def test_hardly_anybody_lives(n: int, p_fail: float) -> None:
    """A pause between two rounds is no part of either; who asks alone does not hear itself."""
    judge(hardly(n, p_fail))


def hardly(n: int, p_fail: float) -> Scores:
    place = Place(n, 0.0, 0.0, 1.0, p_fail, {"K": 7 if n > 7 else 1})
    return compare(by_kernel(place, 20_000), by_events(place, 800 if n > 7 else 1600))


def test_crashes_after_the_end_of_a_round_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: a round that was asked for went on for a whole window after the first Init."""
    judge(hardly(5, 0.6))

    def whole_window(self: Probabilistic, message: Message, members: int) -> tuple[float, float]:
        assert isinstance(message, InitMsg)
        config = self.config
        K = self.plan.K(message.round, float(members))
        window = config.window + config.delivery if message.round > 1 else 0.0
        return 0.0, window + config.relaying(K) + 3 * config.delivery

    monkeypatch.setattr(Probabilistic, "span", whole_window)
    found = hardly(5, 0.6)
    assert max(found.values()) > 2 * bound(len(found))


def own_preferences(n: int, sizes: tuple[int, ...]) -> float:
    """How likely one leader is if all know themselves only: some round has one relay member."""
    fails = 1.0
    for K in sizes:
        p = min(1.0, K / n)
        fails *= 1 - comb(n, 1) * p * (1 - p) ** (n - 1)
    return 1 - fails


@pytest.mark.parametrize("view_prob", [1e-3, 1e-6])
def test_a_leader_whom_only_itself_knows(view_prob: float) -> None:
    """N = 30: three runs in a thousand have a leader, and it may be anybody."""
    n, runs = 30, 20_000
    place = Place(n, 0.0, 0.0, view_prob, 0.0, {})
    kernel = by_kernel(place, runs)
    leaders = known(kernel["leader"])
    chance = own_preferences(n, (7, 14, 28, 30))
    have = sample(1.0 - np.isnan(kernel["leader"]))
    scores: Scores = {}
    knows = 60 * view_prob * (view_prob > 1e-4)  # of two relay members one knows the other
    scores["known"] = score(have, chance, slack=knows * chance)
    scores["mean"] = score(sample(leaders), (n + 1) / 2, slack=n * knows)
    scores |= compare(kernel, by_events(place, 120))
    judge(scores)


def test_three_members_that_hear_one_message_in_a_hundred() -> None:
    """The three witnesses: every fate, weighed, beside many runs and a few."""
    place = Place(3, 0.99, 0.99, 1.0, 0.0, {"max_rounds": 1})
    kernel, events = by_kernel(place, 100_000), by_events(place, 2000)
    fates = law(Case(3, (7.0,), 1.0, 0.99, 0.99, T_2=10.5))
    scores: Scores = compare(kernel, events)
    for name in ("weak", "strong", "leaderless", "mcasts", "messages"):
        mean = sum(float(value or 0.0) * often for value, often in fates[name].items())
        scores[name, "fates"] = score(sample(np.nan_to_num(kernel[name])), mean)
    chance = 1 - fates["leader"].get(None, 0.0)
    share = sample(1.0 - np.isnan(kernel["leader"]))
    scores["leader", "fates"] = score(share, chance)
    assert 0 < chance < 1e-3
    judge(scores)


def test_without_a_delay() -> None:
    """Nothing of one round depends on it but its unicasts and its length; the kernel asks for one.

    Unicasts that take no time are there before the next member has begun.
    """
    timed = ("time", "ucasts", "election_messages", "messages")
    scores: Scores = {}
    for n, loss, view in product((1, 3, 12), (0.0, 0.5), (0.5, 1.0)):
        place = Place(n, 0.0, loss, view, 0.3, {"max_rounds": 1, "K": 7})
        still = Experiment(
            Probabilistic, n, config_of(place), seed=4, network=Network(delay=Fixed(0.0))
        )
        results = [play_events(still, run).metrics for run in range(100)]
        kernel, events = (
            {name: column for name, column in each.items() if name not in timed}
            for each in (by_kernel(place, KERNEL), columns(results))
        )
        scores |= named(place, compare(kernel, events))
        with pytest.raises(BadInput, match="needs a --delay > 0"):
            setting_of(still)
    judge(scores)


# Hashes that are not fair

UNFAIR = [
    Place(40, 0.2, 0.2, 0.5, 0.05, {"hash_skew": 0.6}),
    Place(40, 0.2, 0.3, 0.5, 0.0, {"hash_skew": 0.8, "thinning": "hash"}),
    Place(25, 0.2, 0.2, 0.5, 0.0, {"hash_skew": 2.0, "estimate": "gossip", "K": 2}),
    Place(3, 0.3, 0.3, 1.0, 0.1, {"hash_skew": 5.0, "K": 1}),
]


def test_unfair_hashes_by_events_and_by_the_kernel() -> None:
    scores: Scores = {}
    for place in UNFAIR:
        scores |= named(place, compare(by_kernel(place, 3000), by_events(place, 200)))
    judge(scores)


@pytest.mark.parametrize("skew", [0.8, 1.25])
def test_an_unfair_hash_is_a_fair_one_with_another_k(skew: float) -> None:
    """Section 3.3's "similar analysis": F(K/N) for K/N, run by run."""
    n = 500
    unfair = ProbabilisticParameters(
        members=n,
        sizes=(7.0, 14.0, 28.0),
        view_prob=0.5,
        p_ucastl=0.2,
        p_mcastl=0.2,
        T_2=60.0,
        hash_skew=skew,
    )
    sizes = tuple(fair_k(Round(K=K, N=n), skew) for K in unfair.sizes)
    ours = play(unfair, 1, 0, 300).metrics
    theirs = play(replace(unfair, sizes=sizes, hash_skew=1.0), 1, 0, 300).metrics
    same = [
        all(ours[name][run] == theirs[name][run] for name in ("rounds", "messages", "strong"))
        for run in range(300)
    ]
    assert sum(same) >= 299  # a draw may fall between two roundings of one number


def test_unfair_hashes_beside_their_form() -> None:
    scores: Scores = {}
    for n, skew, K in product((3, 50, 10**6), (0.7, 1.0, 1.3), (1.0, 7.0)):
        found = play(
            ProbabilisticParameters(members=n, sizes=(K,), hash_skew=skew), 2, 0, 3000
        ).metrics
        form = evaluate(
            "probabilistic", {"N": str(n), "K": str(K), "hash_skew": str(skew)}
        ).corrected["fair_K"]
        relays = sample(found["relay_members"].tolist())
        scores[n, skew, K] = score(relays, form, slack=3 / 3000)
    judge(scores)


def test_what_no_kernel_and_no_form_takes() -> None:
    with pytest.raises(BadInput, match=r"view_prob must lie in \(0, 1\]"):
        ProbabilisticParameters(members=3, view_prob=0.0)
    with pytest.raises(BadInput, match="hash_skew must be finite and > 0, not 0"):
        ProbabilisticParameters(members=3, hash_skew=0.0)
    with pytest.raises(BadInput, match=r"unfair hash where N_i is the same .* estimate=view"):
        ProbabilisticParameters(members=3, hash_skew=2.0, estimate="view")
    with pytest.raises(BadInput, match=r"p_fail must lie in \[0, 1\]"):
        evaluate("probabilistic", {"p_fail": "1.01"})
