"""Settings of the election by committees: what is refused or remarked upon, what they mean."""

from __future__ import annotations

from typing import Any

import pytest

from hustings.core.config import Surroundings, describe
from hustings.core.errors import BadInput
from hustings.protocols.committee.network import lay_out
from hustings.protocols.committee.profiles import profile
from hustings.protocols.committee.settings import (
    CommitteeConfig,
    knobs_of,
    messages_of,
    parse_layers,
    too_large,
)
from tests.unit.protocols.committee_groups import play

parse = CommitteeConfig.parse


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"b": -0.1}, "b must be a number >= 0 < 1, not -0.1"),
        ({"b": 1}, "b must be a number >= 0 < 1, not 1"),
        ({"b": "nan"}, "b must be a number"),
        ({"b": 1 / 3}, "b = 0.333333 must be below 1/3"),
        ({"b": 0.4}, "give --set experiment=true to run it anyway"),
        ({"profile": "leen"}, "unknown profile 'leen': did you mean 'lean'?"),
        ({"adversary": "gredy"}, "unknown adversary 'gredy': did you mean 'greedy'?"),
        ({"adversary": "greedy+pck"}, "unknown adversary 'pck': did you mean 'pack'?"),
        ({"adversary": "greedy+leaf"}, "names two corruptions: greedy and leaf"),
        ({"adversary": ""}, "unknown adversary ''"),
        ({"layers": "16"}, "layers '16' is not understood"),
        ({"layers": "16:16"}, "use children:neighbours:halvings"),
        ({"layers": "16:16:1,"}, "is not understood"),
        ({"layers": "a:b:c"}, "is not understood"),
        ({"layers": "16:-16:1"}, "is not understood"),
        ({"layers": "1:4:1"}, "layer '1:4:1' must have 2 children or more"),
        ({"layers": "16:8:1"}, "at least as many neighbours as children"),
        ({"layers": "4:4:0"}, "1 to 32 halvings"),
        ({"layers": "9" * 40 + ":4:1"}, "must have 2 children or more"),
        ({"layers": ",".join(["2:2:1"] * 9)}, "9 layers are too many: at most 8"),
        ({"c0": 0}, "c0 must be a whole number >= 1"),
        ({"d0": 100}, "d0 must be a whole number >= 1 <= 64"),
        ({"tau": 0}, "tau must be a whole number >= 1"),
        ({"endgame": "coin"}, "endgame must be one of full, small, baton, feige, not 'coin'"),
        ({"bins": "many"}, "bins must be one of halving, oneshot"),
        ({"final": "all"}, "final must be one of conjunction, printed"),
        ({"model": "quantum"}, "model must be one of unsigned, signed"),
        ({"experiment": "perhaps"}, "experiment must be true or false"),
        ({"size": 9}, "size goes with profile=single, not with lean"),
        ({"profile": "single", "c0": 9}, "c0 goes with a network, and profile single has none"),
        ({"N": 10}, "profile lean is for 16 members or more, not 10"),
        ({"N": 30, "c0": 31}, "c0 = 31 is more than the group of 30 has members"),
        ({"N": 30, "profile": "single", "size": 31}, "size = 31 is more than the group of 30"),
        ({"N": 30, "layers": "9:9:1"}, "layer 1 wants 9 neighbours for a node, and the layer "),
        ({"N": 30, "layers": "2:2:1,6:6:1"}, "layer 2 wants 6 neighbours for a node"),
        ({"N": 30, "layers": "2:2:9"}, "layer 1 halves its committees away: h = 9 is too much"),
        ({"N": 40, "profile": "printed", "layers": "4:4:1"}, "to force layers, give c0 too"),
        ({"B": 0.1}, "unknown setting 'B'"),
    ],
)
def test_what_is_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(settings)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_all_broken_rules_come_at_once() -> None:
    with pytest.raises(BadInput) as refused:
        parse({"b": 0.5, "profile": "fat", "layers": "x"})
    for part in ("b = 0.5 must", "unknown profile 'fat'", "layers 'x'"):
        assert part in str(refused.value)


def test_an_experiment_runs_with_a_remark() -> None:
    config = parse({"b": 0.4, "experiment": "true"})
    assert "b = 0.4 is a third or more: an experiment, nothing is promised" in config.warnings()
    assert parse({"b": 0.3}).warnings() == []


def test_printed_says_what_it_is() -> None:
    (remark,) = parse({"profile": "printed"}).warnings()
    assert "no layers below n = 3.4e15, so all members elect together" in remark
    (remark,) = parse({"profile": "printed", "c0": 4, "layers": "2:2:1"}).warnings()
    assert "its rule of silence at 8 may elect nobody" in remark
    (remark,) = parse({"final": "printed", "b": 0.1}).warnings()
    assert "take themselves for the leader" in remark


def test_knobs_are_the_profile_and_what_is_given() -> None:
    assert knobs_of(parse({}), 1000) == profile("lean", 1000)
    config = parse(
        {
            "profile": "robust",
            "c0": "8",
            "d0": 2,
            "layers": "8:10:1,4:4:2",
            "monitors": 5,
            "fan": 1,
            "path": 20,
            "r_end": 16,
            "poll": 7,
            "tau": 3,
            "endgame": "baton",
            "bins": "oneshot",
            "final": "printed",
            "model": "signed",
            "network_seed": 9,
        }
    )
    knobs = knobs_of(config, 1000)
    assert (knobs.c0, knobs.d0, knobs.layers) == (8, 2, ((8, 10, 1), (4, 4, 2)))
    assert (knobs.monitors, knobs.fan, knobs.depth, knobs.r_end, knobs.poll) == (5, 1, 20, 16, 7)
    assert (knobs.tau, knobs.endgame, knobs.bins, knobs.final) == (
        3,
        "baton",
        "oneshot",
        "printed",
    )
    assert knobs.signed
    assert knobs.network_seed == 9
    assert knobs.members == 1000


def test_nobody_is_polled_twice() -> None:
    assert knobs_of(parse({"poll": 500}), 40).poll == 39


def test_layers() -> None:
    assert parse_layers(" 32:32:2 , 16:16:4 ") == ((32, 32, 2), (16, 16, 4))
    assert parse_layers("none") == ()


def test_a_simulator_knows_the_size() -> None:
    assert CommitteeConfig.for_group(64, Surroundings()) == {"N": 64}


@pytest.mark.parametrize(
    "settings, n, sentence",
    [
        ({}, 64, None),
        ({}, 128, None),
        ({"profile": "single"}, 128, None),
        ({}, 1000, "a committee of 498 is too large to agree message by message (at most 64)"),
        ({"profile": "robust"}, 200, "is too large to agree message by message"),
        ({"profile": "printed"}, 65, "a committee of 65 is too large"),
        ({"endgame": "full", "path": 4000}, 64, "million messages are too many to be played one"),
        ({"endgame": "full", "path": 64}, 64, None),
        ({"model": "signed"}, 64, "model=signed is for the large-scale engine"),
        ({}, 1001, "1001 members are too many to be played message by message"),
    ],
)
def test_what_messages_cannot_do(settings: dict[str, object], n: int, sentence: str | None) -> None:
    refusal = too_large(parse(settings), n)
    if sentence is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert sentence in refusal
        assert "--engine fast" in refusal


@pytest.mark.parametrize("endgame", ["full", "small", "baton", "feige"])
def test_messages_are_foreseen(endgame: str) -> None:
    """To within a small factor: enough to refuse what would take hours."""
    given: dict[str, Any] = {"endgame": endgame, "path": 6, "r_end": 6}
    config = parse(given)
    network = lay_out(tuple(range(1, 33)), knobs_of(config, 32))
    sent = sum(play(32, 1, **given).world.sent.values())
    assert 0.6 * sent < messages_of(network) < 3 * sent


def test_every_setting_is_explained() -> None:
    for name, rule, _, text in describe(CommitteeConfig):
        assert text, name
        assert rule
