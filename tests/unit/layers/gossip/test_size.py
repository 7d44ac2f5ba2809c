"""The estimate of the group's size: codes, the law of the estimate, and epochs."""

import math
import statistics

import pytest

from hustings.core.streams import Stream, derive
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.size import MAX_EPOCH, MAX_SIZE, TOP, Sizing, code_of, draw, size_of

EPOCH = 10.0


def member(seed: int, count: int = 64) -> tuple[Sizing, Stream]:
    """A member in its first epoch, begun at 0."""
    sizing, rng = Sizing(count, EPOCH), Stream(derive(seed, "sizing"))
    sizing.begin(0.0, rng)
    return sizing, rng


def tell(teller: Sizing, hearer: Sizing, rng: Stream, now: float) -> None:
    hearer.hear(now, rng, teller.epoch, teller.codes, teller.found)


@pytest.mark.parametrize("variate", [1e-9, 1e-3, 0.02, 0.5, 1.0, 3.0, 50.0])
def test_a_code_stands_for_its_variate_within_half_a_step(variate: float) -> None:
    code = code_of(variate)
    # The estimate from two equal codes is 1 / (2 x variate).
    assert 1 / (2 * size_of((code, code))) == pytest.approx(variate, rel=0.5 / 64 + 1e-4)


def test_smaller_variates_have_larger_codes_up_to_the_top() -> None:
    codes = [code_of(10.0**-power) for power in range(-3, 40)]
    assert codes == sorted(codes)
    assert codes[0] == 0
    assert codes[-1] == TOP


@pytest.mark.parametrize("members", [1, 7, 500, 10**6])
def test_the_estimate_is_right_on_average_and_errs_as_stated(members: int) -> None:
    # The minimum of N unit exponentials is an exponential of rate N: drawn as such.
    rng, count, runs = Stream(members), 34, 2000
    estimates = [
        size_of(tuple(code_of(rng.expovariate(members)) for _ in range(count))) / members
        for _ in range(runs)
    ]
    error = 1 / math.sqrt(count - 2)
    assert abs(statistics.mean(estimates) - 1) < 4 * error / math.sqrt(runs)
    assert statistics.stdev(estimates) == pytest.approx(error, rel=0.15)
    assert GossipConfig(minima=count).error == pytest.approx(error)


def test_merging_is_the_minimum_and_does_not_mind_repetition() -> None:
    one, other = member(1), member(2)
    tell(other[0], *one, now=1.0)
    merged = one[0].codes
    assert merged == tuple(map(max, member(1)[0].codes, other[0].codes))
    for _ in range(3):
        tell(other[0], *one, now=2.0)
    assert one[0].codes == merged


def test_an_epoch_ends_by_itself_and_what_it_found_is_in_force_in_the_next() -> None:
    (one, rng), (other, _) = member(1), member(2)
    tell(other, one, rng, now=1.0)
    running = one.estimate
    one.tick(EPOCH - 0.1, rng)
    assert (one.epoch, one.found) == (1, None)
    one.tick(EPOCH, rng)
    assert (one.epoch, one.found) == (2, running)
    assert one.estimate == running
    assert size_of(one.codes) != running  # drawn anew


def test_who_hears_of_a_later_epoch_follows_with_what_it_found_itself() -> None:
    (one, rng), (other, others) = member(1), member(2)
    tell(other, one, rng, now=1.0)
    tell(one, other, others, now=1.0)
    other.tick(EPOCH, others)
    tell(other, one, rng, now=EPOCH)
    assert one.epoch == 2
    assert one.found == other.found
    assert one.codes == tuple(map(max, one.codes, other.codes))


def test_who_was_not_there_takes_over_what_the_others_found() -> None:
    (group, _), (joiner, rng) = member(1), member(2)
    joiner.hear(0.5, rng, 5, group.codes, 42.0)
    assert joiner.epoch == 5
    assert joiner.estimate == 42.0
    (recent, rng) = member(4)
    recent.hear(0.5, rng, 2, group.codes, 41.0)  # one epoch behind, and hardly in that
    assert recent.estimate == 41.0
    (late, rng) = member(3)
    late.hear(EPOCH, rng, 5, group.codes, 43.0)  # there for long, but three epochs behind
    assert late.estimate == 43.0


def test_news_of_an_earlier_epoch_changes_nothing() -> None:
    (one, rng), (other, _) = member(1), member(2)
    one.tick(EPOCH, rng)
    before = (one.epoch, one.codes, one.found)
    tell(other, one, rng, now=EPOCH + 1)
    assert (one.epoch, one.codes, one.found) == before


@pytest.mark.parametrize(
    "codes",
    [(), (1, 2), (0,) * 65, (-1,) * 64, (TOP + 1,) * 64, (10**30,) * 64],
    ids=["none", "few", "many", "negative", "too-large", "huge"],
)
def test_codes_that_are_none_are_ignored(codes: tuple[int, ...]) -> None:
    (one, rng) = member(1)
    before = one.codes
    one.hear(1.0, rng, 1, codes, None)
    one.hear(1.0, rng, 2, codes, 7.0)
    assert one.codes == before
    assert one.epoch == 1


@pytest.mark.parametrize("found", [0.0, -1.0, math.inf, math.nan, 2 * MAX_SIZE])
def test_a_size_that_is_none_is_ignored(found: float) -> None:
    (one, rng) = member(1)
    one.hear(1.0, rng, 7, draw(rng, 64), found)
    assert one.epoch == 7
    assert one.found is None
    assert 1.0 <= one.estimate < math.inf


def test_epochs_have_an_end() -> None:
    (one, rng) = member(1)
    one.hear(1.0, rng, MAX_EPOCH + 1, draw(rng, 64), None)
    assert one.epoch == 1
    one.hear(1.0, rng, MAX_EPOCH, draw(rng, 64), None)
    one.tick(1.0 + EPOCH, rng)
    assert one.epoch == MAX_EPOCH
