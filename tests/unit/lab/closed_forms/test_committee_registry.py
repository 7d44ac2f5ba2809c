"""The door of the election by committees: its command, edges, mistakes, the page."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
from types import FunctionType

import pytest
from click.testing import CliRunner

from hustings.cli.theory import theory
from hustings.core.errors import BadInput
from hustings.lab.closed_forms import registry
from hustings.lab.closed_forms.committee import election as committee
from hustings.lab.closed_forms.page import markdown

RESULTS = (
    "agreement",
    "aware",
    "bins",
    "claims",
    "costs",
    "endgame",
    "exponents",
    "network",
    "polling",
)
MODULES = {
    name: importlib.import_module(f"hustings.lab.closed_forms.committee.{name}")
    for name in (*RESULTS, "election", "setting", "sums")
}
HELPERS = ("shown", "declare", "declare_one_election")
PUBLIC = [
    thing
    for name in RESULTS
    for thing in vars(MODULES[name]).values()
    if (inspect.isfunction(thing) or hasattr(thing, "cache_info"))
    and thing.__module__ == MODULES[name].__name__
    and not thing.__name__.startswith("_")
    and thing.__name__ not in HELPERS
]


def test_ten_thousand_members() -> None:
    result = registry.evaluate("committee", {"n": "10000", "b": "0.1"})
    true, printed = result.corrected, result.printed
    assert true["k_top"] == pytest.approx(2564.1, abs=0.1)
    assert true["nodes"] == 20
    assert true["root_bad"] == pytest.approx(0.174, abs=0.001)
    assert true["good_leader_full"] == pytest.approx(0.66, abs=0.005)
    assert true["layers"] == 0
    assert true["ln_n_layers"] == pytest.approx(35.77, abs=0.005)
    assert printed["silenced"] == pytest.approx(0.572, abs=0.001)
    assert true["silenced"] < 1e-10
    assert true["ln_n_good_nodes"] > printed["ln_n_good_nodes"]
    assert true["false_leaders"] == pytest.approx(0.02 * printed["false_leaders"])


def test_a_group_with_layers() -> None:
    result = registry.evaluate("committee", {"n": "1e20", "b": "0.3"})
    assert result.corrected["layers"] == 3
    assert result.params["n"] == "1e+20"
    assert "no network is laid out: n is above 10^9" in result.notes
    assert "bits_mean" not in result.corrected


def test_every_form_says_what_it_is() -> None:
    for form in registry.evaluate("committee", {}).forms:
        assert form.formula
        assert form.verdict
        assert form.source.startswith("scalable Byzantine election 2006")


@pytest.mark.parametrize(
    "texts",
    [
        {"n": "3"},
        {"n": "15", "b": "0"},
        {"n": "16"},
        {"n": "200", "b": "0.33"},
        {"n": "1000", "d0": "4", "layers": "16:16:2"},
        {"n": "1000000", "layers": "32:32:2,16:16:4", "monitors": "16"},
        {"n": "1000000000", "b": "0.2"},
        {"n": "1e299", "r_end": "16", "bad": "4"},
        {"n": "64", "layers": "4:4:0", "poll": "3", "informed": "1"},
        {"n": "5000", "profile": "robust", "b": "0"},
    ],
)
def test_every_result_is_plain_json(texts: dict[str, str]) -> None:
    result = registry.evaluate("committee", texts).to_json()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["corrected"]


@pytest.mark.parametrize(
    "texts, sentence",
    [
        ({"n": "2"}, "n must be between 3 and"),
        ({"n": "many"}, "n must be a whole number, as 10000 or 1e20, not 'many'"),
        ({"n": "1.25e1"}, "n must be a whole number"),
        ({"n": "1e400"}, r"n must be between 3 and 10\^\d+, not 1e400"),
        ({"b": "0.34"}, "b must be below 1/3"),
        ({"b": "-0.1"}, "b must be between 0"),
        ({"b": "x"}, "b must be a number"),
        ({"informed": "1.5"}, r"informed must lie in \[0, 1\]"),
        ({"c1": "0"}, "c1 must be above 0"),
        ({"c0": "0"}, "c0 must be between 1"),
        ({"n": "20", "c0": "30"}, "c0 must be between 1 and n = 20"),
        ({"layers": "16"}, "layers must be q:s:h"),
        ({"layers": "16:8:1"}, "2 <= q <= s"),
        ({"layers": ",".join(["2:2:1"] * 9)}, "at most 8"),
        ({"profile": "fat"}, "unknown profile 'fat'"),
        ({"profile": "leen"}, "did you mean 'lean'"),
        ({"n": "10", "c0": "2"}, "c0 make no network here: n is below 16"),
        ({"r_end": "600"}, "r_end must be at most 512"),
        ({"bad": "129"}, "bad must be at most r_end = 128"),
        ({"N": "10"}, "unknown setting 'N'"),
    ],
)
def test_mistakes_get_a_sentence(texts: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        registry.evaluate("committee", texts)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_the_command_line() -> None:
    runner = CliRunner()
    shown = runner.invoke(theory, ["committee", "--set", "n=1000"])
    assert shown.exit_code == 0
    assert "10^70119" in shown.output
    as_json = runner.invoke(theory, ["committee", "--set", "n=1000", "--json"])
    found = json.loads(as_json.output)
    assert found["printed"]["top_bad"] == pytest.approx(0.1 + 12 / 6.9078, abs=1e-4)


def test_the_page_shows_every_form() -> None:
    page = markdown().partition("\n## committee\n")[2]
    for example in committee.EXAMPLES.values():
        for form in registry.evaluate("committee", example).forms:
            kind = "printed" if form.printed else "corrected"
            assert f"| `{form.name}` | {kind} |" in page
    for parameter in registry.parameters("committee"):
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
