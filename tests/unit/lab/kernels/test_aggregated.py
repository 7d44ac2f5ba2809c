"""Sets of places, as words."""

from __future__ import annotations

import numpy as np

from hustings.lab.kernels.probabilistic.aggregated import TRACKED, WORD, bit, lowest, parts


def test_every_bit_is_found() -> None:
    for place in range(WORD):
        one = np.uint64(1 << place)
        assert int(bit(place)) == int(bit(place + 3 * WORD)) == int(one)
        assert lowest(one) == place
        above = np.uint64((1 << 64) - (1 << place))  # with all higher ones
        assert lowest(above) == place


def test_a_set_takes_as_many_words_as_it_needs() -> None:
    assert [parts(places) for places in (0, 1, 64, 65, 128, TRACKED)] == [0, 1, 1, 2, 2, 32]
