"""The door of the probabilistic election: the command of the manual, edges, mistakes, the page."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
from types import FunctionType

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms import registry
from hustings.lab.closed_forms.page import markdown

FIGURE_4 = {
    "K": "40",
    "view_prob": "0.4",
    "p_mcastl": "0.01",
    "p_ucastl": "0.01",
    "p_fail": "0.01",
    "N": "10000",
}
MODULES = {
    name: importlib.import_module(f"hustings.lab.closed_forms.probabilistic.{name}")
    for name in (
        "detection",
        "election",
        "events",
        "graphs",
        "leaders",
        "messages",
        "round",
        "setting",
        "sizing",
        "success",
        "times",
    )
}
RESULTS = ("detection", "events", "graphs", "leaders", "messages", "sizing", "success", "times")
PUBLIC = [
    thing
    for name in RESULTS
    for thing in vars(MODULES[name]).values()
    if inspect.isfunction(thing)
    and thing.__module__ == MODULES[name].__name__
    and not thing.__name__.startswith("_")
    and thing.__name__ != "declare"
]


def test_figure_4_at_forty() -> None:
    result = registry.evaluate("probabilistic", FIGURE_4)
    true, printed = result.corrected, result.printed
    assert printed["success"] == pytest.approx(0.5454, abs=5e-5)
    assert true["success"] == pytest.approx(0.99, abs=1e-6)
    assert (true["room_log10"], printed["room_log10"]) == pytest.approx((39.2, 117.6), abs=0.05)
    assert true["smallest_K"] == 7
    assert "smallest_K" not in printed
    told = " ".join(result.notes)
    assert "no K up to 200 gives 0.9: the most is 0.6391, at K = 24" in told
    assert "a leader that crashes" in told


def test_every_form_says_what_it_is() -> None:
    for form in registry.evaluate("probabilistic", FIGURE_4).forms:
        assert form.formula
        assert form.verdict
        assert form.source.startswith("probabilistic election 2000")


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"N": "1"},
        {"N": "2", "K": "2"},
        {"p_mcastl": "1"},
        {"p_ucastl": "1"},
        {"strategy": "3,20,N", "p_mcastl": "0.2"},
        {"p_fail": "1"},
        {"view_prob": "1", "K": "0.5"},
        {"view_prob": "0.01", "p_mcastl": "0.9"},
        {"N": "1000000000000000000", "p_mcastl": "0.5", "p_ucastl": "0.5"},
        {"K": "300", "strategy": "doubling", "max_rounds": "1", "success": "0"},
    ],
)
def test_every_result_is_plain_json(texts: dict[str, str]) -> None:
    result = registry.evaluate("probabilistic", texts).to_json()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["corrected"]


@pytest.mark.parametrize(
    "texts, sentence",
    [
        ({"K": "0"}, "K must be above 0, not 0"),
        ({"K": "-1"}, "K must be above 0, not -1"),
        ({"K": "5000"}, "K must be at most 2000, not 5000"),
        ({"K": "some"}, "K must be a number, not 'some'"),
        ({"view_prob": "0"}, r"view_prob must lie in \(0, 1\], not 0"),
        ({"view_prob": "1.01"}, r"view_prob must lie in \(0, 1\], not 1.01"),
        ({"p_mcastl": "1.5"}, r"p_mcastl must lie in \[0, 1\], not 1.5"),
        ({"p_ucastl": "-0.5"}, r"p_ucastl must lie in \[0, 1\], not -0.5"),
        ({"p_fail": "nan"}, "p_fail must be a number, not 'nan'"),
        ({"tau2": "2"}, r"tau2 must lie in \[0, 1\], not 2"),
        ({"N": "0"}, r"N must be between 1 and 10\^18, not 0"),
        ({"N": "1.5"}, "N must be a whole number, not '1.5'"),
        ({"success": "1"}, r"success must lie in \[0, 1\), not 1"),
        ({"success": "-1"}, "success must be at least 0, not -1"),
        ({"max_rounds": "0"}, "max_rounds must be between 1 and 50, not 0"),
        ({"strategy": "papers"}, "unknown strategy 'papers': did you mean 'paper'"),
        ({"strategy": "7,5"}, "strategy '7,5' does not grow"),
        ({"strategy": "7,14", "K": "7"}, "K goes with a named strategy"),
        ({"strategy": "7,14", "max_rounds": "3"}, "max_rounds is 3, but the strategy has 2"),
        ({"delta": "-1"}, "delta must be at least 0, not -1"),
        ({"hash_skew": "0"}, "hash_skew must be above 0, not 0"),
        ({"work": "-1"}, "work must be at least 0, not -1"),
        ({"T_4": "1"}, "unknown setting 'T_4'"),
    ],
)
def test_mistakes_get_a_sentence(texts: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        registry.evaluate("probabilistic", texts)
    assert "\n" not in str(caught.value)


def test_the_page_shows_every_form() -> None:
    page = markdown()
    assert "\n## probabilistic\n" in page
    result = registry.evaluate("probabilistic", FIGURE_4)
    for form in result.forms:
        kind = "printed" if form.printed else "corrected"
        assert f"| `{form.name}` | {kind} |" in page
    for parameter in registry.parameters("probabilistic"):
        assert f"| `{parameter.key}` |" in page


@pytest.mark.parametrize("function", PUBLIC, ids=lambda f: f.__name__)
def test_a_result_is_a_small_paper(function: FunctionType) -> None:
    text = inspect.getdoc(function) or ""
    assert all(word in text for word in (">>>", "Source:", "Verdict:", "Parameters:"))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name: str) -> None:
    failed, tried = doctest.testmod(MODULES[name])
    assert failed == 0
    assert tried > 0
