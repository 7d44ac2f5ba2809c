"""The door: names, parameters, mistakes, JSON and the reference page."""

from __future__ import annotations

import json

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.closed_forms import registry
from hustings.lab.closed_forms.announce.setting import KEYS as ANNOUNCING
from hustings.lab.closed_forms.page import markdown

FAMILIES = (*ANNOUNCING, "probabilistic", "committee")  # with parameters of their own
CLASSICS = [name for name in registry.names() if name not in FAMILIES]
ELECTIONS = [name for name in CLASSICS if name not in ("heartbeat", "quorum")]


def test_names() -> None:
    assert registry.names() == [
        "broadcast",
        "ring",
        "bully",
        "bully-map",
        "bully-map-printed",
        "bully-grant",
        "bully-group",
        "stable",
        "bully-assistant",
        "heartbeat",
        "quorum",
        *ANNOUNCING,
        "probabilistic",
        "committee",
    ]
    assert registry.evaluate("bully_map", {}).protocol == "bully-map"


def test_bully_as_json() -> None:
    result = registry.evaluate("bully", {"n": "64", "d": "1"}).to_json()
    assert result["params"] == {
        "n": 64,
        "d": 1,
        "m": 63,
        "crashed": [],
        "scenario": "leader-crash",
        "T1": 2,
        "T2": 10,
    }
    assert result["corrected"] == {
        "election_messages": 2016,
        "answer_messages": 1953,
        "coordinator_messages": 62,
        "other_messages": 0,
        "messages": 4031,
        "time": 4,
        "leader": 63,
    }
    printed = result["printed"]
    assert isinstance(printed, dict)
    assert (printed["worst_election_messages"], printed["worst_time"]) == (2016, 5)
    assert printed["overhead_1"] == 4032


@pytest.mark.parametrize("name", [*ELECTIONS, "heartbeat"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 8, 64])
def test_every_result_is_plain_json(name: str, n: int) -> None:
    result = registry.evaluate(name, {"n": str(n)}).to_json()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["forms"]
    assert result["corrected"]


@pytest.mark.parametrize("v", ["1", "3", "5", "7"])
def test_every_result_of_a_quorum_is_plain_json(v: str) -> None:
    result = registry.evaluate("quorum", {"v": v, "ttl": "10.5"}).to_json()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["corrected"]


@pytest.mark.parametrize("name", ELECTIONS)
def test_the_same_dead_by_m_and_by_list(name: str) -> None:
    by_m = registry.evaluate(name, {"n": "8", "m": "5"}).to_json()
    for listed in ("7,6", "6,7,8"):  # the leader is dead anyway
        assert by_m == registry.evaluate(name, {"n": "8", "crashed": listed}).to_json()


@pytest.mark.parametrize("name", ELECTIONS)
def test_one_member_starts_alone(name: str) -> None:
    result = registry.evaluate(name, {"n": "1", "scenario": "start"})
    assert result.corrected.get("messages", 0) == 0
    assert result.corrected.get("leader", 1) == 1


def test_what_has_no_closed_form_is_left_out_and_said() -> None:
    result = registry.evaluate("stable", {"n": "8", "d": "1,2", "unanimous": "false"})
    assert result.corrected == {"leader": 7}
    (note,) = result.notes
    assert note.startswith("no closed form here for election_messages")


def test_several_detectors() -> None:
    result = registry.evaluate("bully-map", {"n": "8", "d": "3,1"})
    assert result.params["d"] == [1, 3]
    assert result.corrected["other_messages"] == 1
    assert registry.evaluate("ring", {"n": "6", "d": "all"}).corrected["messages"] == 3 * 5 - 1


def test_timers_are_exact() -> None:
    result = registry.evaluate("bully-map", {"n": "8", "m": "4", "T": "2.1"})
    assert result.corrected["time"] == 8.3
    assert registry.evaluate("bully-group", {"T1": "2.5"}).params["T2"] == 4.5


@pytest.mark.parametrize(
    "name, texts, sentence",
    [
        ("bullly", {}, "unknown protocol 'bullly': did you mean 'bully'"),
        ("bully", {"x": "1"}, r"unknown setting 'x'.*known: n, d, m, crashed, scenario, T1, T2"),
        ("ring", {"T1": "2"}, "unknown setting 'T1'"),
        ("heartbeat", {"d": "1"}, "unknown setting 'd'.*known: n, T, D"),
        ("bully", {"n": "0"}, "n must be between 1 and 1000000, not 0"),
        ("bully", {"n": "1"}, "n must be at least 2"),
        ("bully", {"n": "many"}, "n must be a whole number, not 'many'"),
        ("bully", {"n": "9" * 5000}, "n must be a whole number"),
        ("bully", {"n": "8", "d": "8"}, "d must be a live member, and 8 is dead"),
        ("bully", {"n": "8", "d": "9"}, "d must be between 1 and 8, not 9"),
        ("bully", {"n": "8", "d": ""}, "d must be a whole number, not ''"),
        ("bully", {"n": "8", "d": "3", "crashed": "3"}, "d must be a live member, and 3 is dead"),
        ("bully", {"n": "8", "m": "8"}, "m must be between 1 and 7, not 8"),
        ("bully", {"n": "8", "m": "5", "crashed": "5"}, "crashed must not name it"),
        ("bully", {"n": "8", "crashed": "9"}, "crashed must be between 1 and 8, not 9"),
        ("bully", {"n": "3", "crashed": "1,2"}, "at least one member alive"),
        ("bully", {"scenario": "stort"}, "unknown scenario 'stort': did you mean 'start'"),
        ("bully", {"T1": "1"}, "T1 must be at least 2"),
        ("bully", {"T1": "nan"}, "T1 must be a number, not 'nan'"),
        ("bully", {"T1": "-3"}, "T1 must be between 0 and"),
        ("bully-map", {"T": "0.5"}, "T must be at least 2"),
        ("bully-group", {"T2": "3"}, r"T2 must be at least T1 \+ 2 = 4"),
        ("bully-group", {"K": "0"}, "K must be between 1 and"),
        ("bully-assistant", {"T2": "3"}, r"T2 must be at least T1 \+ 2 = 4"),
        ("stable", {"T1": "1"}, "T1 must be at least 2"),
        ("bully-grant", {"T1": "1"}, "T1 must be at least 2"),
        ("broadcast", {"combined": "perhaps"}, "combined must be true or false"),
        ("heartbeat", {"T": "0"}, "T must be above 0"),
    ],
)
def test_mistakes_get_a_sentence(name: str, texts: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        registry.evaluate(name, texts)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_an_unknown_name_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName):
        registry.parameters("paxos")


def test_the_reference_page_shows_every_form() -> None:
    page = markdown()
    for name in CLASSICS:
        assert f"\n## {name}\n" in page
        result = registry.evaluate(name, {} if name == "quorum" else {"n": "64"})
        assert all(f"| `{form.name}` |" in page for form in result.forms)
    assert "| `overhead_4` | printed |" in page
    classic_page, _, _ = page.partition("\n## Announce-listen elections\n")
    rows = [line for line in classic_page.splitlines() if line.startswith("|")]
    assert all(line.count(" | ") in (2, 5) for line in rows if "---" not in line)


def test_the_largest_group_is_no_burden() -> None:
    assert registry.evaluate("bully", {"n": "1000000"}).corrected["messages"] == 999998999999
