"""The page for Prometheus: every family, its labels, and a histogram that never shrinks."""

from __future__ import annotations

from itertools import count

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hustings._version import __version__
from hustings.agent.events import Broadcast
from hustings.agent.metrics import BOUNDS, KEPT_S, Durations, Exposition
from tests.unit.agent.fake import FakeMember

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(exposition: Exposition) -> Samples:
    """All numbers of the page, by name and labels, as a reader of it understands them."""
    page = exposition.page().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def exposition(*members: FakeMember) -> Exposition:
    """One that is made anew whenever it is asked for: a long time goes by each time."""
    of = {one.group: one for one in members}
    return Exposition(of, Broadcast(1), lambda: {"echo": 2, "x": 0}, clock=count(0, 100).__next__)


MINE = (("group", "billing"), ("member", "web-1"))
GUARDS = ("hustings_fencing_token", "hustings_guard_silence_seconds", "hustings_guard_reachable")


def test_every_number_is_there() -> None:
    member = FakeMember()
    member.lead("web-1", 7)
    page = samples(exposition(member, FakeMember("search")))
    assert page["hustings_is_leader", MINE] == 1
    assert page["hustings_is_leader", (("group", "search"), ("member", "web-1"))] == 0
    assert page["hustings_term", MINE] == 7
    assert page["hustings_members", MINE] == 2
    assert page["hustings_health_multiplier", MINE] == 1
    assert page["hustings_stale_leader_bound_seconds", MINE] == 4.5
    assert page["hustings_leader_changes_total", MINE] == 2
    assert page["hustings_leaderless_seconds_total", MINE] == 1.5
    sent = (("direction", "sent"), ("group", "billing"), ("kind", "ANNOUNCE"), MINE[1])
    assert page["hustings_messages_total", sent] == 7
    received = (("direction", "received"), ("group", "billing"), ("kind", "JOIN"), MINE[1])
    assert page["hustings_messages_total", received] == 1
    assert page["hustings_messages_dropped_total", (*MINE, ("reason", "replayed"))] == 3
    packets = (("direction", "sent"), *MINE)
    assert page["hustings_frames_total", packets] == 8
    assert page["hustings_network_bytes_total", packets] == 800
    assert page["hustings_transport_dropped_total", (("reason", "echo"),)] == 2
    assert ("hustings_transport_dropped_total", (("reason", "x"),)) not in page
    assert page["hustings_build_info", (("version", __version__),)] == 1
    assert page["hustings_event_streams", ()] == 0


def test_a_guard_has_numbers_of_its_own() -> None:
    guarded, plain = FakeMember(), FakeMember("search")
    guarded.counts = {"token": 12, "guard_silence": 3.5, "guard_answers": False}
    page = samples(exposition(guarded, plain))
    assert page["hustings_fencing_token", MINE] == 12
    assert page["hustings_guard_silence_seconds", MINE] == 3.5
    assert page["hustings_guard_reachable", MINE] == 0
    about = [labels for name, labels in page if name in GUARDS]
    assert about == [MINE] * 3, "nothing is said of a guard where there is none"


def test_every_family_says_what_it_is() -> None:
    page = exposition(FakeMember()).page().decode()
    for family in text_string_to_metric_families(page):
        assert family.documentation
        assert family.type in ("gauge", "counter", "histogram")


def test_elections_are_counted_once_however_often_one_looks() -> None:
    member = FakeMember()
    shown = exposition(member)

    def bucket(bound: str) -> float:
        labels = (("group", "billing"), ("le", bound), ("member", "web-1"))
        return samples(shown)["hustings_election_duration_seconds_bucket", labels]

    member.counts = {
        "election_durations": (0.2, 3.0),
        "election_count": 2,
        "election_seconds": 3.2,
    }
    assert [bucket("0.1"), bucket("0.25"), bucket("5.0"), bucket("+Inf")] == [0, 1, 2, 2]
    member.counts["election_durations"] = (0.2, 3.0, 0.02)
    member.counts["election_count"] = 3
    assert [bucket("0.025"), bucket("0.25"), bucket("+Inf")] == [1, 2, 3]
    page = samples(shown)
    assert page["hustings_election_duration_seconds_count", MINE] == 3
    assert page["hustings_election_duration_seconds_sum", MINE] == 3.2


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_bound_belongs_to_its_bucket(bound: float) -> None:
    durations = Durations()
    durations.read((bound,), 1)
    assert dict(durations.buckets())[str(bound)] == 1


def test_elections_that_were_forgotten_before_they_were_read() -> None:
    durations = Durations()
    durations.read((0.1, 0.1), count=5)
    buckets = dict(durations.buckets())
    assert (buckets["0.1"], buckets["30.0"], buckets["+Inf"]) == (2, 2, 5)


def test_a_page_is_kept_for_a_moment() -> None:
    """Whoever asks often has it made no more often."""
    member = FakeMember()
    now = 0.0
    shown = Exposition({"billing": member}, Broadcast(1), dict, clock=lambda: now)
    assert samples(shown)["hustings_term", MINE] == 0
    member.lead("web-1", 7)
    now = 0.99 * KEPT_S
    assert samples(shown)["hustings_term", MINE] == 0
    now = KEPT_S
    assert samples(shown)["hustings_term", MINE] == 7
    assert KEPT_S <= 1.0
