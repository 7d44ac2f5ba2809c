"""Gupta, van Renesse, Birman 2000, section 4, Theorem 5: the time of a round is O(NK + N).

The first N is the time of a message in a network of N nodes, the second the hashes of all members.
We hold that the time-outs bound the time of every round, whatever its luck; luck decides whether
the relay phase is over by then.
"""

from __future__ import annotations

from itertools import product
from math import comb

import pytest

from hustings.lab.closed_forms.probabilistic import times
from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.closed_forms.registry import evaluate
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.lab.kernels.probabilistic.play import play
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.network import Network
from hustings.sim.play import play as play_events
from tests.agreement.announce.judging import judge, sample, score


@pytest.mark.parametrize("N, K", list(product((3, 50, 200), (2, 7, 20))))
def test_every_round_takes_3k_over_2_delays_and_three_multicasts(N: int, K: int) -> None:
    """A message takes time in proportion to N: then the round does, and to K, run by run."""
    delay = N / 100
    given = {"N": N, "K": K, "max_rounds": 1, "delta": delay, "p_mcastl": 0.3, "p_ucastl": 0.3}
    config = ProbabilisticConfig.parse({**given, "view_prob": 0.5})
    network = Network(delay=Fixed(delay))
    experiment = Experiment(Probabilistic, N, config, network=network, seed=1)
    expected = times.round_time(Round(K=K, N=N), delay, delay)
    assert expected == pytest.approx(N * (1.5 * K + 3) / 100)
    for run in range(5):
        assert play_events(experiment, run).metrics["time"] == pytest.approx(expected)


def test_the_kernel_takes_as_long_in_any_group() -> None:
    for N, K in product((2, 10**4, 10**9), (3.0, 7.0, 40.0)):
        ballot = ProbabilisticParameters(
            members=N, sizes=(K,), p_mcastl=0.2, delay=0.5, view_prob=0.5
        )
        found = play(ballot, 1, 0, 50).metrics["time"].tolist()
        assert found == pytest.approx([times.round_time(Round(K=K, N=N), 0.5, 0.5)] * 50)


def test_what_is_printed_leaves_out_three_multicasts() -> None:
    for K in (1.0, 7.0, 40.0):
        one = Round(K=K, N=5000)
        printed = times.printed_round_time(one, 2.0, 0.01)
        assert times.round_time(one, 2.0, 3.0, 0.01) - printed == pytest.approx(9.0)


def test_the_order_is_that_of_the_theorem() -> None:
    """With a delay of order N the time over NK + N stays between two constants."""
    ratios = [
        times.round_time(Round(K=K, N=N), float(N), float(N), 1.0) / (N * K + N)
        for N, K in product((10, 10**3, 10**6, 10**9), (1, 7, 100, 1000))
    ]
    assert 1.0 <= min(ratios) <= max(ratios) <= 3.0


# Whether the time is long enough


def test_relay_members_few_enough_for_their_time() -> None:
    """Theorem 5's probability, as the share of runs with at most 3K/2 relay members."""
    scores: dict[object, float] = {}
    for N, K, loss in product((30, 2000, 10**9), (3.0, 7.0, 20.0), (0.0, 0.4)):
        ballot = ProbabilisticParameters(members=N, sizes=(K,), p_mcastl=loss)
        relays = play(ballot, 5, 0, 4000).metrics["relay_members"]
        one = Round(K=K, p_mcastl=loss, N=N)
        caller = loss * one.passing  # it always hears itself, and may be the one too many
        share = sample((relays <= 1.5 * K).astype(float))
        rare = 3 / 4000  # what is rarer may not be seen at all
        scores[N, K, loss] = score(share, times.in_time(one), slack=caller + rare)
    judge(scores)


def test_by_hand() -> None:
    """K = 1 of four: two relay members are too many for 3K/2, so none or one."""
    one = Round(K=1, N=4)
    assert times.in_time(one) == pytest.approx(sum(comb(4, r) * 3 ** (4 - r) for r in (0, 1)) / 256)
    assert times.in_time(Round(K=9, N=4)) == 1.0


def test_the_printed_probability_is_no_bound() -> None:
    """It exceeds 1 for few relay members, and the truth for a few more (E7)."""
    assert times.printed_in_time(Round(K=0.5, N=100)) > 1
    for K in (40, 100):
        one = Round(K=K, p_mcastl=0.01, p_fail=0.01, N=10**4)
        assert 0.99 < times.printed_in_time(one) < times.in_time(one)


def test_theory_says_it() -> None:
    given = {"N": "2000", "delta": "0.5", "work": "0.001"}
    found = evaluate("probabilistic", given)
    assert found.corrected["round_time"] == pytest.approx(5.25 + 1.5 + 2.0)
    assert found.printed["round_time"] == pytest.approx(5.25 + 2.0)
    sources = {form.source for form in found.forms if form.name in ("round_time", "in_time")}
    assert sources == {times.SOURCE}
