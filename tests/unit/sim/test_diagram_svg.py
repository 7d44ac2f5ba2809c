"""The picture: valid, complete, and harmless whatever the trace says."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given

from hustings.core.messages import Role
from hustings.core.outcome import Elected
from hustings.sim.selection import Heartbeats, Options
from hustings.sim.spacetime import lay_out
from hustings.sim.svg import Labels, draw_svg, escaped, num
from hustings.sim.trace import Changed, Declared, Fired, Linked, Lost, Received, Record, Sent
from tests.unit.sim.traces import (
    Heartbeat,
    Note,
    leader_crash,
    read,
    records,
    trace_of,
    turmoil,
    written,
)

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    return root


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def classes(root: ElementTree.Element) -> Counter[str]:
    return Counter(name for node in root.iter() for name in node.get("class", "").split())


def tooltips(root: ElementTree.Element) -> list[str]:
    return [node.text or "" for node in root.iter(f"{SVG}title")]


@pytest.mark.parametrize("data", [leader_crash(2), leader_crash(5), leader_crash(20), turmoil()])
def test_a_run_is_drawn_completely(data: bytes) -> None:
    trace = read(data)
    layout = lay_out(trace)
    root = parsed(draw_svg(trace).text)
    found = classes(root)
    legend = len({arrow.kind for arrow in layout.arrows})
    told = tooltips(root)
    assert sum("sent at t" in text for text in told) == len(layout.arrows)
    assert found["life"] == sum(life.status != "left" for life in layout.lives)
    assert found["a"] >= len(layout.arrows) + legend
    for member in trace.header.members:
        assert f"member {member}" in texts(root)


def test_it_says_what_it_is() -> None:
    root = parsed(draw_svg(read(leader_crash(5))).text)
    assert texts(root)[0] == "bully, 5 members"
    assert root.findtext(f"{SVG}title") == "bully: space-time diagram of one run"
    assert root.get("role") == "img"
    legend = texts(root)
    assert {"ELECTION (10)", "OK (6)", "COORDINATOR (3)", "leader 4, term 2", "lost"} <= set(legend)


def test_it_stands_alone() -> None:
    """No script, no link, no font, no picture from elsewhere."""
    text = draw_svg(read(turmoil())).text
    assert text.count("http") == 1, "the name space only"
    assert not re.search(r"<script|<image|<a\b|@import|url\(|@font-face|<foreignObject", text)


def test_light_and_dark_have_the_same_rules() -> None:
    style = parsed(draw_svg(read(leader_crash(2))).text).findtext(f"{SVG}style") or ""
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    coloured = re.compile(r"([^{}]+)\{[^}]*(?:fill|stroke):#")
    assert len(coloured.findall(light)) > 20
    assert set(coloured.findall(light)) == set(coloured.findall(dark))


def test_fates_faults_and_cuts_have_their_signs() -> None:
    made: list[Record] = [
        Changed(0.0, 1, "up", 1),
        Changed(0.0, 2, "up", 1),
        Sent(0.0, 1, 1, 2, Note()),
        Lost(0.0, 1, 2, "loss"),
        Sent(0.0, 1, 2, None, Note()),
        Lost(0.0, 2, None, "loss"),
        Sent(0.0, 1, 3, 1, Note()),
        Received(1.0, 1, 3),
        Sent(1.0, 1, 4, 2, Note()),
        Changed(1.0, 2, "crashed", 1),
        Lost(2.0, 4, 2, "crashed"),
        Sent(2.0, 1, 5, 2, Note()),
        Linked(2.0, "partition", "split", ((1,), (2,))),
        Declared(3.0, 1, Elected(1, 2)),
        Fired(3.0, 1, "T1"),
    ]
    root = parsed(draw_svg(trace_of(made)).text)
    found = classes(root)
    assert found["cross"] == 3 + 1, "three losses and the legend"
    assert found["open"] == 1 + 1, "one still under way and the legend"
    assert found["bow"] == 1, "one to oneself"
    assert found["crashed"] >= 2, "the mark and the line after it"
    assert found["leads"] >= 2
    assert found["cut"] == 1 + 1
    assert "split: 1 | 2" in texts(root)
    assert 'NOTE(""), 1 to 2, sent at t = 1, lost at 2: crashed' in tooltips(root)
    assert 'NOTE(""), 1 to all, sent at t = 0, lost at 0: loss' in tooltips(root)


def test_heartbeats_are_dimmed_and_unlabelled() -> None:
    made: list[Record] = [Sent(0.0, 1, 1, 2, Heartbeat()), Received(1.0, 2, 1)]
    dimmed = parsed(draw_svg(trace_of(made)).text)
    assert classes(dimmed)["dim"] == 1
    assert "HEARTBEAT" not in texts(dimmed)
    shown = parsed(draw_svg(trace_of(made), Options(heartbeats=Heartbeats.SHOWN)).text)
    assert classes(shown)["dim"] == 0
    assert "HEARTBEAT" in texts(shown)


def test_what_is_left_out_is_written_into_the_picture() -> None:
    made: list[Record] = [Fired(float(i), 1, "T") for i in range(9)]
    drawing = draw_svg(trace_of(made), Options(max_events=4, max_members=1))
    assert len(drawing.left_out) == 2
    assert set(drawing.left_out) <= set(texts(parsed(drawing.text)))


def test_a_burst_has_one_label() -> None:
    made: list[Record] = [Sent(0.0, 1, n, n + 1, Note()) for n in (1, 2, 3, 4)]
    made += [Received(1.0, n + 1, n) for n in (1, 2, 3, 4)]
    root = parsed(draw_svg(trace_of(made, members=5)).text)
    label = "NOTE \N{MULTIPLICATION SIGN}4"
    assert texts(root).count(label) == 2, "the label and the halo around it"
    assert "NOTE" not in texts(root)


def test_what_a_trace_says_cannot_break_the_document() -> None:
    evil = "</title><script>alert('x')</script>\"&\x00\x1b\ufffe]]>"
    made: list[Record] = [
        Sent(0.0, 1, 1, 2, Note(evil)),
        Lost(1.0, 1, 2, evil),
        Fired(1.0, 1, evil),
        Linked(1.0, evil, evil),
    ]
    text = draw_svg(read(written(made, protocol=evil))).text
    root = parsed(text)
    assert "<script" not in text
    assert any("<script>" in label for label in texts(root)), "it is shown, not obeyed"


@given(records())
def test_any_trace_gives_a_valid_picture(made: list[Record]) -> None:
    trace = trace_of(made, members=4)
    root = parsed(draw_svg(trace).text)
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    assert 0 < width < 40_000
    assert 0 < height < 10_000
    assert not re.search(r"\b(nan|inf)\b", ElementTree.tostring(root, encoding="unicode"))


def test_a_big_group_and_a_long_run_stay_bounded() -> None:
    made: list[Record] = [Sent(i / 7, i % 300 + 1, i + 1, None, Note()) for i in range(10_500)]
    drawing = draw_svg(trace_of(made, members=300))
    root = parsed(drawing.text)
    assert float(root.get("width", "")) < 31_000
    assert len(drawing.text) < 10_000_000
    assert len(drawing.left_out) == 2


# --- parts ----------------------------------------------------------------------------------------


def test_labels_do_not_lie_upon_each_other() -> None:
    labels = Labels(500.0)
    assert labels.find("first", [(100.0, 50.0)], centred=True) == (100.0, 50.0)
    assert labels.find("second", [(110.0, 55.0)], centred=True) is None
    assert labels.find("second", [(110.0, 55.0), (110.0, 70.0)], centred=True) == (110.0, 70.0)
    assert labels.find("beyond the edge", [(480.0, 200.0)], centred=False) is None


def test_numbers_and_text() -> None:
    assert [num(x) for x in (1.0, 1.04, 1.05001, -0.01, 1e4)] == ["1", "1", "1.1", "0", "10000"]
    assert escaped("<a b='\"'>&\x00") == "&lt;a b=&#x27;&quot;&#x27;&gt;&amp;\ufffd"


def test_a_role_has_one_colour_in_all_pictures() -> None:
    roles = {"ELECTION": Role.ELECTION, "OK": Role.ANSWER, "COORDINATOR": Role.COORDINATOR}
    trace = read(leader_crash(5))
    found = classes(parsed(draw_svg(trace, Options(roles=roles)).text))
    for role in roles.values():
        assert found[role.value] > 0
    assert found["other"] == 0
    style = parsed(draw_svg(trace).text).findtext(f"{SVG}style") or ""
    for role in Role:
        assert f".a.{role.value}{{stroke:#" in style
    strange = classes(parsed(draw_svg(trace).text))  # of a protocol that nobody knows
    assert (strange["other"] > 0, strange["election"]) == (True, 0)


def test_the_seed_is_the_one_that_was_typed() -> None:
    bare = read(leader_crash(5))
    typed = {"experiment_seed": 42, "run": 3}
    header = msgspec.structs.replace(bare.header, settings=typed)
    for trace, told in ((replace(bare, header=header), "seed 42, run 3 "), (bare, "seed 1 ")):
        shown = texts(parsed(draw_svg(trace).text))
        assert sum(text.startswith(told) for text in shown) == 1


@pytest.mark.parametrize("members", [2, 5, 20])
def test_texts_at_the_top_lie_within_the_picture_and_beside_each_other(members: int) -> None:
    root = parsed(draw_svg(read(leader_crash(members))).text)
    width = float(root.get("width", "0"))
    spans: dict[str, list[tuple[float, float]]] = {}
    for node in root.iter(f"{SVG}text"):
        kinds = node.get("class", "").split()
        if "small" not in kinds:
            continue
        wide = 6.0 * len("".join(node.itertext()))
        left = float(node.get("x", "0")) - (wide / 2 if "middle" in kinds else 0.0)
        assert left + wide <= width
        spans.setdefault(node.get("y", ""), []).append((left, left + wide))
    for line in spans.values():
        for (_, end), (begin, _) in pairwise(sorted(line)):
            assert end < begin
