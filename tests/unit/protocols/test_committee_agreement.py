"""Byzantine agreement: thresholds to the vote, costs to the bit, and liars of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.core.streams import Stream, derive
from hustings.protocols.committee.agreement import (
    Batch,
    Method,
    Seat,
    agree_on,
    agreement_rounds,
    broadcast,
    broadcast_rounds,
    graded,
    recursive_king,
    tolerated,
)
from hustings.protocols.committee.bits import (
    Bits,
    Planes,
    bits_of_planes,
    planes_of,
    values_of,
    width_of,
)
from hustings.protocols.committee.lockstep import Inbox, Script, Spoken
from hustings.protocols.committee.misbehaving import (
    AdversaryScene,
    Edge,
    Minority,
    Noise,
    Silent,
    Split,
    Voice,
)
from tests.unit.protocols.committee_kit import Sat, sit

METHODS: tuple[Method, ...] = ("king", "recursive")
LIARS: tuple[type[Voice], ...] = (Silent, Noise, Split, Minority, Edge)

by_method = pytest.mark.parametrize("method", METHODS)
by_liar = pytest.mark.parametrize("liar", LIARS, ids=lambda kind: kind.name)


def ids(members: int) -> tuple[MemberId, ...]:
    return tuple(range(1, members + 1))


def spread(members: int, bad: int) -> tuple[MemberId, ...]:
    """So many bad ones, evenly among all: no half is better than the other."""
    return tuple(1 + place * members // bad for place in range(bad)) if bad else ()


def decide(
    wanted: dict[MemberId, Sequence[int]],
    options: int,
    method: Method = "recursive",
    bad: Sequence[MemberId] = (),
    liar: Voice | None = None,
    seed: int = 0,
) -> Sat[list[int]]:
    members = tuple(wanted)
    scripts = {
        each: agree_on(Seat(each, members, method=method), wanted[each], options)
        for each in members
    }
    return sit(scripts, bad, liar, seed)


def anything(members: int, count: int, options: int, seed: int) -> dict[MemberId, Sequence[int]]:
    rng = Stream(derive(seed, "wanted"))
    return {each: [rng.below(options) for _ in range(count)] for each in ids(members)}


# Costs


def total_bits(k: int, method: Method, options: int) -> int:
    """What all k participants send for one instance, by the formulas of the specification."""
    v, w = (options - 1).bit_length(), options.bit_length()
    t = (k - 1) // 3
    if method == "king" or k <= 16:
        return k * (t + 1) * (k - 1) * (v + w) + (t + 1) * (k - 1) * v
    one, other = (k + 1) // 2, k // 2
    mine = k * (2 * (k - 1) * (v + w) + (k - 1) * v)
    return mine + total_bits(one, method, options) + total_bits(other, method, options)


def test_the_numbers_of_the_specification() -> None:
    assert round(total_bits(128, "recursive", 2) / 128) == 1823
    assert round(total_bits(1024, "recursive", 2) / 1024) == 14346
    assert agreement_rounds(128) == 186
    assert agreement_rounds(1024) == 1530
    assert agreement_rounds(1024, "king") == 1026
    assert 1.04e6 < total_bits(1024, "king", 2) / 1024 < 1.06e6


def test_a_committee_of_128_costs_what_it_should() -> None:
    sat = decide(anything(128, 1, 2, 1), 2)
    assert set(sat.rounds.values()) == {186}
    assert sum(sat.bits.values()) == total_bits(128, "recursive", 2)
    assert round(sum(sat.bits.values()) / 128) == 1823
    assert sorted(set(sat.bits.values())) == [1817, 1832]  # the latter are kings of some sixteen
    assert sat.agreed


@by_method
@pytest.mark.parametrize(
    "k, options, count",
    [
        *[(1, 2, 1), (2, 2, 1), (3, 3, 2), (4, 2, 1), (7, 5, 3), (16, 2, 2), (17, 2, 1)],
        *[(18, 4, 1), (31, 2, 1), (33, 3, 2), (40, 2, 5)],
    ],
)
def test_rounds_and_bits_are_those_of_the_formulas(
    method: Method, k: int, options: int, count: int
) -> None:
    sat = decide(anything(k, count, options, 3), options, method)
    assert set(sat.rounds.values()) == {agreement_rounds(k, method)}
    if method == "king":
        assert agreement_rounds(k, method) == 3 * (tolerated(k) + 1)
    assert sum(sat.bits.values()) == count * total_bits(k, method, options)
    assert sat.agreed


def test_rounds_of_halves() -> None:
    assert [agreement_rounds(k) for k in (15, 16, 17, 31, 32, 33, 64)] == [
        15,
        18,
        24,
        39,
        42,
        48,
        90,
    ]
    assert agreement_rounds(10, "king", 1) == agreement_rounds(10, "recursive", 1) == 6
    assert broadcast_rounds(64) == 91


# Graded consensus, one member by hand


def by_hand(
    k: int, t: int, options: int, mine: int, votes: Sequence[int], proposals: Sequence[int]
) -> tuple[int, int, bool]:
    """What member 1 proposes, then holds, and whether it is sure, hearing this from the others."""
    seat = Seat(1, ids(k), t=t)
    script = graded(seat, Batch(1, options), planes_of([mine], width_of(options)), 0)
    next(script)
    spoken = script.send(heard(votes, width_of(options)))
    words = next(iter(spoken.outbox.values()))
    with pytest.raises(StopIteration) as end:
        script.send(heard(proposals, width_of(options + 1)))
    value, sure = end.value.value
    return words.value, values_of(value, 1)[0], bool(sure)


def heard(values: Sequence[int], width: int) -> Inbox:
    """Members 2, 3, ... say this; -1 is silence."""
    return {member: Bits(value, width) for member, value in enumerate(values, 2) if value >= 0}


@pytest.mark.parametrize("k, t", [(4, 1), (7, 2), (10, 3), (10, 1), (13, 4)])
def test_a_vote_proposes_with_exactly_k_minus_t(k: int, t: int) -> None:
    for value in (0, 1, 2):
        for mine in (value, (value + 1) % 3):
            for same in range(k):
                votes = [value] * same + [(value + 1) % 3] * (k - 1 - same)
                proposed, _, _ = by_hand(k, t, 3, mine, votes, [])
                count = Counter([mine, *votes])
                winner = [each for each in count if count[each] >= k - t]
                assert proposed == (winner[0] + 1 if winner else 0), (value, mine, same)


@pytest.mark.parametrize("k, t", [(4, 1), (7, 2), (10, 3), (10, 1), (13, 4)])
def test_a_value_is_adopted_with_more_than_t_and_sure_with_k_minus_t(k: int, t: int) -> None:
    for value in (0, 1):
        divided = [(value + place) % 2 for place in range(k - 1)]  # so that I propose nothing
        for number in range(k):
            proposals = [value + 1] * number + [0] * (k - 1 - number)
            proposed, held, sure = by_hand(k, t, 2, 1 - value, divided, proposals)
            assert proposed == 0
            assert held == (value if number > t else 1 - value), number
            assert sure == (number >= k - t), number


def test_an_own_proposal_counts() -> None:
    _, held, sure = by_hand(4, 1, 2, 1, [1, 1, 0], [2, 2, 0])
    assert (held, sure) == (1, True)
    _, held, sure = by_hand(4, 1, 2, 1, [1, 1, 0], [2, 0, 0])
    assert (held, sure) == (1, False)


def test_what_is_missing_or_no_value_reads_as_zero_or_as_nothing() -> None:
    assert by_hand(4, 1, 3, 0, [0, -1, 1], [])[0] == 1  # two zeros, and silence is one
    assert by_hand(4, 1, 3, 0, [0, 3, 1], [])[0] == 1  # 3 is none of three values
    assert by_hand(4, 1, 3, 1, [1, -1, 1], [2, -1, 2])[1:] == (1, True)
    # four codes fit into two bits; with two options the code 3 stands for nothing
    assert by_hand(4, 1, 2, 0, [1, 1, 0], [3, 3, 3])[1:] == (0, False)


def naive(
    k: int, t: int, mine: int, votes: Sequence[int], said: Sequence[int]
) -> tuple[int, int, bool]:
    """The dumb twin of graded consensus: one instance, counted with a dictionary."""
    value, enough = Counter([mine, *votes]).most_common(1)[0]
    proposal = value + 1 if enough >= k - t else 0
    made = [each for each in [proposal, *said] if each]
    favourite = sum(
        1 << bit for bit in range(8) if 2 * sum(each >> bit & 1 for each in made) > len(made)
    )
    number = made.count(favourite)
    return proposal, favourite - 1 if number > t else mine, number >= k - t


@given(st.data())
@settings(max_examples=90, deadline=None)
def test_counting_in_planes_is_counting(data: st.DataObject) -> None:
    k = data.draw(st.integers(2, 14))
    t = data.draw(st.integers(0, (k - 1) // 3))
    options = data.draw(st.integers(2, 6))
    count = data.draw(st.integers(1, 5))
    few = st.integers(0, data.draw(st.integers(0, options - 1)))  # often the same few values
    row = st.lists(few, min_size=count, max_size=count)
    votes = [data.draw(row) for _ in range(k)]
    codes = st.integers(0, data.draw(st.integers(0, options)))
    said = [data.draw(st.lists(codes, min_size=count, max_size=count)) for _ in range(k - 1)]
    v, w = width_of(options), width_of(options + 1)
    script = graded(Seat(1, ids(k), t=t), Batch(count, options), planes_of(votes[0], v), 0)
    next(script)
    spoken = script.send(vectors(votes[1:], v))
    words = next(iter(spoken.outbox.values()))
    with pytest.raises(StopIteration) as end:
        script.send(vectors(said, w))
    planes, sure = end.value.value
    for place in range(count):
        expected = naive(
            k, t, votes[0][place], [row[place] for row in votes[1:]], [row[place] for row in said]
        )
        code = sum((words.value >> bit * count + place & 1) << bit for bit in range(w))
        assert (code, values_of(planes, count)[place], bool(sure >> place & 1)) == expected


def vectors(rows: Sequence[Sequence[int]], width: int) -> Inbox:
    return {
        member: bits_of_planes(planes_of(row, width), len(row))
        for member, row in enumerate(rows, 2)
    }


# Liars


@by_method
@by_liar
def test_with_up_to_t_liars_nothing_is_violated(method: Method, liar: type[Voice]) -> None:
    for k in (4, 7, 10, 16, 19, 25):
        for bad in (ids(k)[: tolerated(k)], spread(k, tolerated(k))):  # the first are kings first
            for seed in range(2):
                options = 2 + seed * 3
                sat = decide(anything(k, 3, options, seed), options, method, bad, liar(), seed)
                assert sat.agreed, (k, bad, seed)
                assert all(0 <= value < options for value in sat.good[0])


@by_method
@by_liar
def test_what_all_good_ones_want_is_decided(method: Method, liar: type[Voice]) -> None:
    for k in (4, 13, 19, 22):
        for bad in (ids(k)[: tolerated(k)], spread(k, tolerated(k))):
            wanted: dict[MemberId, Sequence[int]] = {each: [0, 1, 2, 3, 4] for each in ids(k)}
            sat = decide(wanted, 5, method, bad, liar())
            assert all(result == [0, 1, 2, 3, 4] for result in sat.good)


@by_method
@pytest.mark.parametrize("liar", [Split, Edge], ids=lambda kind: kind.name)
def test_with_more_than_t_liars_it_breaks(method: Method, liar: type[Voice]) -> None:
    """The adversaries bite: else the tests above would show nothing."""
    broken = 0
    for k in (7, 13, 19, 31):
        for more in (1, 2, 3):
            bad = spread(k, tolerated(k) + more)
            broken += not decide(anything(k, 8, 2, k), 2, method, bad, liar()).agreed
    assert broken >= 8, broken


class Against:
    """Always for 0, whatever the others want."""

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> dict[MemberId, Bits]:
        word = Bits(1, 2) if mine.stage.kind == "propose" else Bits(0, 1)
        return dict.fromkeys(mine.outbox, word)


@by_method
def test_one_liar_too_many_can_overrule_everybody(method: Method) -> None:
    """All good ones want 1 and one too many propose 0: t+1 proposals look as if a good one did."""
    for k in (4, 7, 10, 13):
        for more, decided in ((0, 1), (1, 0)):
            wanted: dict[MemberId, Sequence[int]] = {each: [1] for each in ids(k)}
            sat = decide(wanted, 2, method, ids(k)[: tolerated(k) + more], Against())
            assert all(result == [decided] for result in sat.good), (k, more)


def test_a_rotten_half_does_no_harm() -> None:
    """Ten of 31 are bad and all in one half, where they are far more than a third."""
    for bad in (ids(31)[:10], ids(31)[-10:]):
        for liar in (Split(), Edge(), Noise()):
            assert decide(anything(31, 6, 2, 9), 2, "recursive", bad, liar).agreed


def test_all_of_a_half_must_be_heard() -> None:
    """Results count by the majority of a half, itself included: exactly more than half."""
    k, half = 18, 9
    for ones in range(half + 1):
        script = recursive_king(Seat(18, ids(k)), Batch(1, 2), (0,))
        next(script)
        divided = {each: Bits(each % 2, 1) for each in ids(k)}
        script.send(divided)  # nobody has enough votes
        script.send({})  # nobody proposes: nobody is sure
        for _ in range(agreement_rounds(half)):
            script.send({})
        spoken = script.send({each: Bits(int(each <= ones), 1) for each in ids(half)})
        vote = next(iter(spoken.outbox.values()))
        assert (spoken.stage.kind, vote.value) == ("vote", int(ones >= 5)), ones


# Batches and broadcast


def test_a_batch_is_as_many_agreements_side_by_side() -> None:
    k, count = 19, 6
    wanted = anything(k, count, 3, 4)
    together = decide(wanted, 3)
    for place in range(count):
        alone = decide({each: [wanted[each][place]] for each in wanted}, 3)
        assert [result[place] for result in together.good] == [each for (each,) in alone.good]


@by_method
@by_liar
def test_broadcast_delivers_good_words_and_one_version_of_bad_ones(
    method: Method, liar: type[Voice]
) -> None:
    k = 19
    members = ids(k)
    senders = (2, 3, 5, 8, 13, 19)
    bad = (1, 3, 4, 5, 6, 18)

    def script(me: MemberId) -> Script[list[int]]:
        return broadcast(Seat(me, members, method=method), senders, me % 5, 5)

    sat = sit({each: script(each) for each in members}, bad, liar())
    assert set(sat.rounds.values()) == {broadcast_rounds(k, method)}
    assert sat.agreed
    for sender, said in zip(senders, sat.good[0], strict=True):
        assert 0 <= said < 5
        if sender not in bad:
            assert said == sender % 5


class Garbage:
    """Says whatever it was given, of any length, to whomever."""

    def __init__(self, words: Sequence[tuple[MemberId, int, int]]) -> None:
        self.words = words
        self.said = 0

    def speak(self, scene: AdversaryScene, member: MemberId, mine: object) -> dict[MemberId, Bits]:
        self.said += 1
        count = len(self.words)
        chosen = [self.words[(self.said + each) % count] for each in range(min(count, 5))]
        return {to: Bits(value % (1 << length), length) for to, value, length in chosen}


WORDS = st.lists(st.tuples(st.integers(-1, 9), st.integers(0, 1 << 20), st.integers(0, 20)))


@given(WORDS, st.sampled_from(METHODS), st.integers(1, 9), st.integers(2, 4), st.integers(0, 99))
@settings(max_examples=36, deadline=None)
def test_hostile_words_never_raise_and_never_divide(
    words: list[tuple[MemberId, int, int]], method: Method, k: int, options: int, seed: int
) -> None:
    bad = Stream(seed).sample(ids(k), tolerated(k))
    wanted = anything(k, 2, options, seed)
    sat = decide(wanted, options, method, bad, Garbage(words) if words else Silent())
    assert sat.agreed
    for place in range(2):
        good = {wanted[each][place] for each in wanted if each not in bad}
        if len(good) == 1:
            assert sat.good[0][place] in good


@given(st.integers(1, 24), st.sampled_from(LIARS), st.sampled_from(METHODS), st.integers(0, 999))
@settings(max_examples=24, deadline=None)
def test_any_small_committee_agrees(k: int, liar: type[Voice], method: Method, seed: int) -> None:
    rng = Stream(seed)
    bad = rng.sample(ids(k), rng.below(tolerated(k) + 1))
    options = 1 + rng.below(4)
    assert decide(anything(k, 2, options, seed), options, method, bad, liar(), seed).agreed


@pytest.mark.soak
@by_method
@by_liar
def test_many_committees_agree(method: Method, liar: type[Voice]) -> None:
    for seed in range(100):
        k = 4 + seed % 37
        rng = Stream(derive(seed, "bad"))
        bad = ids(k)[: tolerated(k)] if seed % 2 else tuple(rng.sample(ids(k), tolerated(k)))
        options = 2 + seed % 3
        assert decide(anything(k, 4, options, seed), options, method, bad, liar(), seed).agreed


def test_planes_are_what_is_sent() -> None:
    """Vote of member 2: instance i is bit i of each plane, lowest plane first."""
    script = agree_on(Seat(2, ids(4)), [2, 0, 3], 4)
    spoken = next(script)
    planes: Planes = (0b100, 0b101)
    assert spoken.outbox == dict.fromkeys((1, 3, 4), bits_of_planes(planes, 3))
    assert (spoken.stage.width, spoken.stage.count, spoken.stage.options) == (2, 3, 4)
