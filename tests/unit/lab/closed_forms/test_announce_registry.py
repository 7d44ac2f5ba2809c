"""The door of the announce-listen family: names, edges, mistakes, notes, the page."""

from __future__ import annotations

import json
from itertools import product

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms import registry
from hustings.lab.closed_forms.announce import delay, messages, uncorrelated
from hustings.lab.closed_forms.announce.laws import Law
from hustings.lab.closed_forms.announce.setting import KEYS as NAMES
from hustings.lab.closed_forms.page import markdown

ELECTIONS = ("le-a", "le-s", "le-m")
KINDS = (
    ("0", "none"),
    ("0", "uncorrelated"),
    ("0.4", "correlated"),
    ("0.4", "uncorrelated"),
    ("0.999999", "correlated"),
    ("0.999999", "uncorrelated"),
)


def test_five_hundred_under_heavy_uncorrelated_loss() -> None:
    result = registry.evaluate("le-s", {"N": "500", "l": "0.7", "loss_model": "uncorrelated"})
    assert result.params["T_L"] == 3
    true, printed = result.corrected, result.printed
    assert (true["tmax"], printed["tmax"]) == pytest.approx((19.039, 20.045), abs=5e-4)
    assert true["leadership_delay"] == pytest.approx(true["tmax"] + 0.1)
    assert true["rounds"] == pytest.approx(19.5393, abs=5e-5)
    assert true["avg_rounds"] == pytest.approx(1 / 0.3)
    assert "num_msgs" not in true
    assert "first_round" not in true
    assert true["num_msgs_at_least"] == pytest.approx(messages.total(500, 0.7, Law(), 1, 0.1))
    lacking = " ".join(result.notes)
    assert "no closed form here for num_msgs" in lacking
    assert "no closed form here for first_round" in lacking


def test_correlated_has_it_all() -> None:
    result = registry.evaluate("le-s", {"N": "500", "l": "0.7", "loss_model": "correlated"})
    wanted = {
        "tmax",
        "leadership_delay",
        "rounds",
        "avg_rounds",
        "num_msgs",
        "sent_by_tmax",
        "first_round",
        "departure",
        "false_departure_duration",
        "false_departure_fraction",
        "inconsistent_fraction",
        "inconsistent_duration",
        "joiner_larger",
        "joiner_smaller",
        "bye_repeats",
        "bye_mean",
    }
    assert wanted <= set(result.corrected)
    assert result.corrected["first_round"] == pytest.approx(68.28, abs=5e-3)
    assert result.printed["first_round"] == pytest.approx(172.2, abs=0.05)


def test_without_delay_the_first_round_is_known() -> None:
    given = {"N": "500", "l": "0.4", "loss_model": "uncorrelated", "Delta": "0"}
    result = registry.evaluate("le-s", given)
    assert result.corrected["first_round"] == pytest.approx(13.927, abs=5e-4)
    assert result.printed["first_round"] == pytest.approx(40.1, abs=0.05)
    le_m = registry.evaluate("le-m", given).corrected["first_round"]
    assert le_m == registry.evaluate("sup", given).corrected["num_msgs"]
    short = registry.evaluate("le-s", given | {"T_A": "0.5"})
    assert "first_round" not in short.corrected
    many = registry.evaluate("le-s", given | {"N": "1000000"})
    assert many.corrected["first_round"] == uncorrelated.first_round(10**6, 0.4)
    assert "first_round" not in many.printed
    assert any("N must be at most 10000 here" in note for note in many.notes)


def test_two_members_know_no_correlation() -> None:
    for name in ("le-a", "le-s", "le-m", "sup", "al"):
        apart, together = (
            registry.evaluate(name, {"N": "2", "l": "0.4", "loss_model": model}).corrected
            for model in ("uncorrelated", "correlated")
        )
        for metric in ("tmax", "rounds", "num_msgs", "first_round", "inconsistent_fraction"):
            if metric in together:
                assert apart[metric] == pytest.approx(together[metric]), metric


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("N", ["1", "2", "3", "7"])
@pytest.mark.parametrize("loss, model", KINDS)
def test_every_corner_is_plain_json(name: str, N: str, loss: str, model: str) -> None:
    keys = [parameter.key for parameter in registry.parameters(name)]
    waits = ("0", "1") if "T_S" in keys else ("",)
    for delay_, T_S in product(("0", "0.1", "1", "2.5"), waits):
        given = {"N": N, "l": loss, "loss_model": model, "Delta": delay_}
        if T_S:
            given["T_S"] = T_S
        result = registry.evaluate(name, given).to_json()
        assert json.loads(json.dumps(result, allow_nan=False)) == result
        corrected = result["corrected"]
        assert isinstance(corrected, dict)
        assert corrected["tmax" if model != "uncorrelated" else "rounds"] >= 0
        assert all(value >= 0 for value in corrected.values()), corrected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "loss, model", [("0", "none"), ("0.7", "correlated"), ("0.7", "uncorrelated")]
)
def test_a_million_members(name: str, loss: str, model: str) -> None:
    result = registry.evaluate(name, {"N": "1000000", "l": loss, "loss_model": model})
    if model == "uncorrelated" and name != "sup":
        assert result.corrected["rounds"] == pytest.approx(result.corrected["rounds_large_group"])
    elif name != "sup":
        assert result.corrected["rounds"] == pytest.approx(1 / (1 - float(loss)))
    else:
        assert result.corrected["rounds"] == 1


TINY, NEARLY_ONE = "0.000000000001", "0.999999999999"


@pytest.mark.parametrize(
    "name, texts",
    [
        ("le-m", {"l": TINY, "loss_model": "correlated", "Delta": TINY, "T_S": "2.7"}),
        ("le-m", {"N": "1000000", "T_A": "0.1", "Delta": TINY}),
        ("le-m", {"N": "3", "l": NEARLY_ONE, "T_A": "1000000", "Delta": "0", "T_L": "1000000"}),
        ("le-a", {"N": "10", "l": "0.1", "Delta": "7.3", "T_L": "1000000"}),
        ("le-a", {"N": "10", "l": "0.4", "T_A": TINY, "Delta": "1000000", "T_L": "inf"}),
        ("le-s", {"l": NEARLY_ONE, "loss_model": "correlated", "T_A": "0.1"}),
        ("le-s", {"l": "0.98", "T_A": TINY, "T_L": "1000000", "T_d": TINY}),
        ("le-s", {"law": "exponential", "lam": "500", "l": "0.4", "loss_model": "correlated"}),
        ("sup", {"N": "1", "Delta": TINY, "T_S": "0.5"}),
        ("sup", {"N": "1000000", "l": NEARLY_ONE, "T_S": "1000000", "Delta": TINY}),
        ("al", {"N": "1000000", "l": NEARLY_ONE, "T_A": TINY, "Delta": "1000000"}),
    ],
)
def test_extremes(name: str, texts: dict[str, str]) -> None:
    result = registry.evaluate(name, texts).to_json()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    corrected = result["corrected"]
    assert isinstance(corrected, dict)
    assert corrected
    assert all(value >= 0 for value in corrected.values())


def test_one_alone() -> None:
    for name in ELECTIONS:
        found = registry.evaluate(name, {"N": "1", "l": "0.4"})
        for metric in ("rounds", "avg_rounds", "num_msgs", "first_round"):
            assert found.corrected[metric] == pytest.approx(1)
        assert found.corrected["inconsistent_fraction"] == 0
        slept = 0 if name == "le-a" else 0.5
        assert found.corrected["tmax"] == slept
        assert found.corrected["leadership_delay"] == pytest.approx(slept + 0.1)
    assert registry.evaluate("sup", {"N": "1"}).corrected["num_msgs"] == pytest.approx(1)


def test_no_suppression_is_le_a() -> None:
    for loss, model in (("0", "none"), ("0.4", "correlated"), ("0.4", "uncorrelated")):
        given = {"N": "9", "l": loss, "loss_model": model}
        le_a = registry.evaluate("le-a", given)
        le_s = registry.evaluate("le-s", given | {"T_S": "0"})
        assert le_a.corrected == le_s.corrected
        assert le_a.printed == le_s.printed
        assert "T_S" not in le_a.params


def test_infinite_listening() -> None:
    result = registry.evaluate("le-s", {"T_L": "inf", "l": "0.4", "loss_model": "correlated"})
    assert result.params["T_L"] == "inf"
    assert result.corrected["inconsistent_fraction"] == 0
    assert "departure" not in result.corrected
    assert any("no member notices" in note for note in result.notes)


def test_members_that_come_and_go() -> None:
    given = {"N": "20", "T_d": "100", "T_a": "50"}
    result = registry.evaluate("le-s", given)
    gone = result.corrected["departure"]
    assert result.corrected["inconsistent_by_departures"] == pytest.approx(gone / 2000)
    assert result.printed["inconsistent_by_departures"] == pytest.approx(gone / 100)
    mean = (result.corrected["joiner_larger"] + 20 * result.corrected["joiner_smaller"]) / 21
    assert result.corrected["inconsistent_by_joiners"] == pytest.approx(mean / 50)
    le_m = registry.evaluate("le-m", given).corrected
    assert le_m["inconsistent_by_joiners"] == pytest.approx(0.5 / 50)


def test_several_leaders() -> None:
    result = registry.evaluate("le-s", {"N": "10", "k": "2", "Delta": "0"})
    assert result.corrected == pytest.approx({"tmax": 2 / 3, "first_round": 4.858}, abs=5e-4)
    none = registry.evaluate("le-s", {"N": "10", "k": "2"})
    assert none.corrected == {}
    assert any("l = 0 and Delta = 0 only" in note for note in none.notes)


def test_an_exponential_law() -> None:
    result = registry.evaluate("le-s", {"N": "100", "law": "exponential", "lam": "5"})
    assert result.corrected["num_msgs"] == pytest.approx(8.16, abs=5e-3)
    assert result.corrected["tmax"] == pytest.approx(Law(lam=5).mean)
    assert result.params["lam"] == 5
    unused = registry.evaluate("le-s", {"lam": "7"})
    assert "lam is not used: the law is uniform" in unused.notes
    assert "lam" not in unused.params


def test_defaults() -> None:
    result = registry.evaluate("le-s", {})
    assert result.params["loss_model"] == "none"
    assert registry.evaluate("le-s", {"l": "0.1"}).params["loss_model"] == "uncorrelated"
    assert result.corrected["tmax"] == delay.tmax(50, 0, "none", Law())
    assert any("T_A = 1 is below T_S + Delta" in note for note in result.notes)
    kept = registry.evaluate("le-s", {"T_A": "1.1"}).notes
    assert not any("is below T_S + Delta" in note for note in kept)
    assert registry.evaluate("le-s", {"T_A": "2"}).params["T_L"] == 6


@pytest.mark.parametrize(
    "name, texts, sentence",
    [
        ("le-z", {}, "unknown protocol 'le-z'"),
        ("le-s", {"n": "5"}, r"unknown setting 'n'.*known: N, l"),
        ("le-a", {"T_S": "1"}, "unknown setting 'T_S'"),
        ("al", {"T_L": "3"}, "unknown setting 'T_L'"),
        ("sup", {"T_A": "1"}, "unknown setting 'T_A'"),
        ("le-s", {"N": "0"}, "N must be between 1 and 1000000, not 0"),
        ("le-s", {"N": "1000001"}, "N must be between 1 and 1000000"),
        ("le-s", {"N": "2.5"}, "N must be a whole number"),
        ("le-s", {"l": "1"}, r"l must lie in \[0, 1\), not 1"),
        ("le-s", {"l": "-0.1"}, r"l must lie in \[0, 1\), not -0\.1"),
        ("le-s", {"l": "nan"}, "l must be a number, not 'nan'"),
        ("le-s", {"l": "0.4", "loss_model": "none"}, "l must be 0 where loss_model is none"),
        ("le-s", {"loss_model": "corelated"}, "did you mean 'correlated'"),
        ("le-s", {"T_L": "0"}, "T_L must be above 0, not 0"),
        ("le-s", {"T_A": "0"}, "T_A must be above 0"),
        ("le-s", {"T_S": "-1"}, "T_S must be between 0 and"),
        ("le-s", {"Delta": "x"}, "Delta must be a number"),
        ("le-s", {"law": "normal"}, "unknown law 'normal'"),
        ("le-s", {"law": "exponential", "lam": "0"}, r"lam must lie in \(0, 500\], not 0"),
        ("le-s", {"k": "0"}, "k must be between 1 and"),
        ("le-s", {"eps": "0"}, r"eps must lie in \(0, 1\], not 0"),
        ("le-s", {"T_d": "0"}, "T_d must be above 0"),
        ("le-s", {"T_S": "inf"}, "T_S must be a number, not 'inf'"),
    ],
)
def test_mistakes_get_a_sentence(name: str, texts: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        registry.evaluate(name, texts)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_outside_a_domain_is_a_note() -> None:
    result = registry.evaluate("le-s", {"N": "9", "T_S": "100", "l": "0.4"})
    assert any("T_S must be at most 10 T_A = 10, not 100" in note for note in result.notes)
    assert result.corrected["tmax"] > 50
    heavy = registry.evaluate("le-s", {"N": "9", "l": "0.99"})
    assert any("l must be at most 0.98" in note for note in heavy.notes)
    two = registry.evaluate("le-s", {"N": "2"})
    assert any("the departing leader and two survivors" in note for note in two.notes)


def test_the_page_shows_every_form() -> None:
    _, _, page = markdown().partition("\n## Announce-listen elections\n")
    page, _, _ = page.partition("\n## ")
    for name in NAMES:
        assert f"\n### {name}\n" in page
        for loss, model in (("0", "none"), ("0.4", "correlated"), ("0.4", "uncorrelated")):
            texts = {"N": "500", "l": loss, "loss_model": model}
            for form in registry.evaluate(name, texts).forms:
                kind = "printed" if form.printed else "corrected"
                assert f"| `{form.name}` | {kind} |" in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert all(line.count(" | ") in (2, 8) for line in rows)
