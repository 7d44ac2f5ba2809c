"""Settings of the announce-listen elections: what is refused, what is remarked upon, defaults."""

from __future__ import annotations

from math import inf

import pytest

from hustings.core.choice import HighestId
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.net.composition import Design, configure
from hustings.protocols.announce.le_a import LeA
from hustings.protocols.announce.le_m import LeM
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.settings import (
    AlConfig,
    AnnounceConfig,
    LeAConfig,
    LeMConfig,
    LeSConfig,
    SupConfig,
)
from hustings.protocols.registry import ANNOUNCING, classes


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"T_S": -1}, "T_S must be a number >= 0, not -1"),
        ({"T_S": "inf"}, "T_S must be finite"),
        ({"T_A": 0}, "T_A must be a number >= 1e-06, not 0"),
        ({"T_A": "inf"}, "T_A must be finite"),
        ({"T_A": "nan"}, "T_A must be a number >= 1e-06, not 'nan'"),
        ({"T_L": 0}, "T_L must be a number > 0, not 0"),
        ({"leaders": 0}, "leaders must be a whole number >= 1 <= 100, not 0"),
        ({"aged": 0}, "aged must be a whole number >= 1 <= 1000, not 0"),
        (
            {"aged": 2, "T_L": inf},
            "aged needs a finite T_L: a leader that never expires does not age",
        ),
        ({"law": "normal"}, "law must be one of uniform, exponential, not 'normal'"),
        ({"lam": 0}, "lam must be a number > 0 <= 500, not 0"),
        ({"lam": 501}, "lam must be a number > 0 <= 500, not 501"),
        ({"bye_loss": 1}, "bye_loss must be a number >= 0 < 1, not 1"),
        ({"bye_gap": inf, "bye": 2}, "bye_gap must be finite"),
        (
            {"bye": 1, "bye_loss": 0.1},
            "bye and bye_loss both say how many Byes to send: give one of them",
        ),
        (
            {"query": "query", "T_Q": 0.1, "delta": 0.1},
            "T_Q = 0.1 must be at least a round trip, 2 delta = 0.2",
        ),
        ({"query": "query", "T_Q": inf}, "T_Q must be finite"),
        ({"query": "maybe"}, "query must be one of none, query, suppress-query, not 'maybe'"),
        ({"wake": "late"}, "wake must be one of random, criterion, linked, not 'late'"),
    ],
)
def test_le_s_refuses(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        LeSConfig.parse(settings)
    assert sentence in str(refused.value)


def test_all_broken_rules_come_at_once() -> None:
    with pytest.raises(BadInput) as refused:
        LeSConfig.parse({"T_S": "inf", "bye": 1, "bye_loss": 0.5})
    assert str(refused.value).count(";") == 1


def test_le_a_has_no_suppression_to_set() -> None:
    with pytest.raises(BadInput, match="unknown setting 'T_S'"):
        LeAConfig.parse({"T_S": 1})
    with pytest.raises(BadInput, match="needs a suppression interval: use le-s"):
        LeAConfig.parse({"query": "suppress-query"})
    assert LeAConfig.parse({}).T_S == 0
    assert LeAConfig.parse({}).warnings() == []


def test_le_m_refuses_several_leaders_by_the_time_slept() -> None:
    with pytest.raises(BadInput, match="several leaders need key=absolute"):
        LeMConfig.parse({"leaders": 2, "key": "relative"})
    assert LeMConfig.parse({"leaders": 2}).key == "absolute"


def test_the_baselines_refuse_endless_timers() -> None:
    with pytest.raises(BadInput, match="T_S must be finite"):
        SupConfig.parse({"T_S": inf})
    with pytest.raises(BadInput, match="T_A must be finite"):
        AlConfig.parse({"T_A": inf})


def test_a_listener_that_waits_for_no_second_announcement_is_remarked_upon() -> None:
    """Sections 5.3.2.1 and 5.3.4 treat T_L < T_A, so it can be played."""
    for kind in (LeSConfig, AlConfig):
        (remark,) = kind.parse({"T_A": 2, "T_L": 0.5, "delta": 0.1}).warnings()
        assert "T_L = 0.5 is shorter than T_A = 2" in remark
        assert "wrong for 75% of the time" in remark
        assert kind.parse({"T_A": 2, "T_L": 2, "delta": 0.1}).warnings() == []


@pytest.mark.parametrize("kind", [LeA, LeS, LeM])
def test_byes_for_a_loss_on_a_network(kind: type[Election]) -> None:
    """The one Bye that is usual there does not stand against a number that is to be worked out."""
    for given, byes in (({}, 1), ({"bye": 3}, 3), ({"bye_loss": 0.4}, 10)):
        config = configure(Design(kind, HighestId(), settings=given)).election
        assert isinstance(config, AnnounceConfig)
        assert config.byes(49) == byes
    with pytest.raises(BadInput, match="bye and bye_loss both say"):
        configure(Design(kind, HighestId(), settings={"bye": 1, "bye_loss": 0.4}))


def test_a_short_period_is_remarked_upon_with_its_remedy() -> None:
    (remark,) = LeSConfig.parse({"T_A": 1, "T_S": 1, "delta": 0.1}).warnings()
    assert "T_A = 1 is shorter than T_S + delta = 1.1" in remark
    assert "costs a few more messages" in remark
    assert "set T_A >= 1.1" in remark
    assert LeSConfig.parse({"T_A": 1.1, "T_S": 1, "delta": 0.1}).warnings() == []


def test_ageing_faster_than_announcing_is_remarked_upon() -> None:
    quiet: dict[str, object] = {"T_A": 2, "T_S": 1, "delta": 0.1, "T_L": 6}
    assert LeSConfig.parse({**quiet, "aged": 3}).warnings() == []
    (remark,) = LeSConfig.parse({**quiet, "aged": 4}).warnings()
    assert "set aged <= 3" in remark


def test_a_query_that_ends_before_a_suppressed_answer_is_remarked_upon() -> None:
    quiet: dict[str, object] = {"T_A": 2, "T_S": 1, "delta": 0.1, "query": "suppress-query"}
    assert LeSConfig.parse(quiet).warnings() == []
    (remark,) = LeSConfig.parse({**quiet, "T_Q": 0.5}).warnings()
    assert "set T_Q >= 2 delta + T_S" in remark


def test_byes_apart_need_time() -> None:
    quiet: dict[str, object] = {"T_A": 2, "delta": 0.1, "bye_gap": 0.5}
    assert LeSConfig.parse(quiet).warnings() == []
    (remark,) = LeSConfig.parse({**quiet, "bye": 3}).warnings()
    assert "the time to linger" in remark


def test_defaults_follow_the_other_timers() -> None:
    config = LeSConfig.parse({"T_A": 2, "delta": 0.1})
    assert (config.listen, config.patience) == (6, 6)
    assert LeSConfig.parse({"T_A": 2, "aged": 3}).patience == 2
    assert LeSConfig.parse({"query": "query", "delta": 0.1}).wait == pytest.approx(0.25)
    assert LeSConfig.parse({"query": "suppress-query", "delta": 0.1}).wait == pytest.approx(1.25)
    assert LeSConfig.parse({"T_L": "inf"}).listen == inf


def test_how_many_byes() -> None:
    assert LeSConfig.parse({}).byes(9) == 0
    assert LeSConfig.parse({"bye": 3}).byes(9) == 3
    assert LeSConfig.parse({"bye_loss": 0.4}).byes(49) == 10
    assert LeSConfig.parse({"bye_loss": 0.4, "bye_eps": 0.5}).byes(49) < 10


@pytest.mark.parametrize("kind", classes(ANNOUNCING), ids=lambda kind: kind.about.name)
def test_where_only_convergence_is_measured_nobody_is_missed(kind: type[Election]) -> None:
    for scenario in ("start", "join-larger", "join-smaller"):
        usual = kind.Settings.for_scenario(scenario)
        assert getattr(kind.Settings.parse(usual), "T_L", inf) == inf
    usual = kind.Settings.for_scenario("leader-crash")
    config = kind.Settings.parse(usual)
    assert getattr(config, "listen", getattr(config, "T_L", 3)) == 3
