"""What the live demo says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hustings.demo.live import telling
from hustings.demo.live.measuring import Board
from hustings.demo.live.scene import NAMES, LiveAct, LivePlan, LiveScene

ACT = LiveAct(
    name="kill",
    what="SIGKILL to m5",
    began=2.0,
    noticed=0.002,
    agreed=0.0123,
    before=("m5",),
    after=("m4",),
    term=3,
    members=4,
)
MISSED = replace(ACT, agreed=None, after=(), term=0, failure="no agreement within 15.5 s")


def scene(*acts: LiveAct) -> LiveScene:
    return LiveScene(LivePlan(5, "bully", 20.0, 1), Board(), "demo-1", acts=list(acts))


@pytest.mark.parametrize(
    "act, sentence",
    [
        (ACT, "All 4 agree after 12 ms: m4 in term 3."),
        (replace(ACT, after=("m4", "m2")), "Each side has its leader after 12 ms: m4 and m2."),
        (MISSED, "No agreement within 15.5 s: nobody leads."),
        (replace(MISSED, after=("m4",)), "No agreement within 15.5 s: m4 leads."),
        (replace(MISSED, after=("m4", "m1")), "No agreement within 15.5 s: m4 and m1 lead."),
    ],
)
def test_the_verdict_on_an_act(act: LiveAct, sentence: str) -> None:
    assert telling.verdict(act) == sentence


def test_a_row_for_each_column() -> None:
    expected = ["kill", "SIGKILL to m5", "m5", "m4", "3", "2.0 ms", "12 ms"]
    assert telling.row(ACT) == expected
    assert len(expected) == len(telling.COLUMNS)
    missed = telling.row(replace(MISSED, noticed=None))
    assert missed[3:] == ["nobody", "-", "-", "not in time"]


def test_the_note_tells_what_was_counted() -> None:
    quiet = scene(ACT)
    assert "messages per second" not in telling.note(quiet)
    quiet.at_rest += [5.0, 9.0, 6.0]
    assert "sends 6.0 messages per second" in telling.note(quiet)
    assert "changed" not in telling.note(quiet)
    quiet.unasked = 1
    assert "changed once though nothing was done" in telling.note(quiet)
    quiet.unasked = 2
    assert "changed 2 times" in telling.note(quiet)


def test_json_holds_what_scripts_rely_on() -> None:
    shown = json.loads(json.dumps(telling.to_json(scene(ACT, MISSED))))
    assert (shown["protocol"], shown["members"], shown["seed"]) == ("bully", 5, 1)
    assert shown["fine"] is False
    assert [act["agreed"] for act in shown["acts"]] == [0.0123, None]
    assert shown["acts"][0]["leaders_before"] == ["m5"]
    assert shown["acts"][1]["failure"] == "no agreement within 15.5 s"


def test_all_is_fine_only_if_every_act_was_played_and_met_its_limit() -> None:
    acts = [replace(ACT, name=name) for name in NAMES]
    assert scene(*acts).fine
    assert not scene(*acts[:-1]).fine
    assert not scene(*acts[:-1], replace(MISSED, name="transfer")).fine
    failed = scene(*acts)
    failed.failure = "member m3 ended"
    assert not failed.fine


def test_several_leaders_are_named_when_a_cut_heals() -> None:
    assert telling.heal(["m1"]) == "The cut is healed."
    assert "m1 and m2 lead at once" in telling.heal(["m1", "m2"])
