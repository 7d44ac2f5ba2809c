"""What the records of a group say, against groups told by hand."""

from bench.net.records import FORM, NOBODY, Kind, Record, pack, unpack
from bench.net.timeline import Agreement, Changes, Timeline, called, changes


def leader(member: int, whom: int, at_ns: int) -> Record:
    return Record(Kind.LEADER, member, whom, at_ns)


def test_records_survive_a_pipe_that_cuts_them_anywhere() -> None:
    sent = [leader(0, 2, 10), Record(Kind.CALLED, 65_535, NOBODY, 2**62), leader(1, NOBODY, 12)]
    data = b"".join(pack(record) for record in sent)
    assert len(data) == 3 * FORM.size
    for cut in range(len(data) + 1):
        early, rest = unpack(data[:cut])
        late, left = unpack(rest + data[cut:])
        assert early + late == sent
        assert left == b""


def test_agreement_is_when_the_last_member_began_to_follow() -> None:
    timeline = Timeline()
    timeline.add([leader(0, 2, 10), leader(1, 2, 30), leader(2, 2, 20)])
    assert timeline.agreement([0, 1, 2]) == Agreement(2, 30)
    assert timeline.agreement([0, 2]) == Agreement(2, 20)


def test_a_change_of_mind_moves_the_agreement_to_its_end() -> None:
    timeline = Timeline()
    timeline.add([leader(0, 1, 10), leader(1, 1, 11), leader(0, NOBODY, 12), leader(0, 1, 40)])
    assert timeline.agreement([0, 1]) == Agreement(1, 40)


def test_no_agreement_on_different_leaders_on_nobody_or_on_the_dead() -> None:
    timeline = Timeline()
    timeline.add([leader(0, 0, 10), leader(1, 1, 10)])
    assert timeline.agreement([0, 1]) is None
    timeline.add([leader(0, NOBODY, 11), leader(1, NOBODY, 11)])
    assert timeline.agreement([0, 1]) is None
    timeline.add([leader(0, 2, 12), leader(1, 2, 12)])
    assert timeline.agreement([0, 1]) is None
    assert timeline.agreement([]) is None


def test_a_member_that_is_gone_or_silent_agrees_to_nothing() -> None:
    timeline = Timeline()
    timeline.add([leader(0, 0, 10), leader(1, 0, 10)])
    timeline.forget(1)
    assert timeline.agreement([0, 1]) is None
    assert timeline.agreement([0]) == Agreement(0, 10)


def test_changes_count_new_leaders_and_changes_of_mind_within_the_stretch() -> None:
    records = [
        leader(0, 0, 5),
        leader(1, 0, 6),
        leader(1, NOBODY, 10),
        leader(1, 1, 15),
        leader(0, 1, 20),
        Record(Kind.CALLED, 0, NOBODY, 16),
        leader(0, 0, 21),
    ]
    assert changes(records, 10, 20) == Changes(leaders=1, words=3)
    assert changes(records, 0, 30) == Changes(leaders=3, words=6)
    assert changes(records, 22, 30) == Changes(leaders=0, words=0)


def test_a_call_counts_from_its_own_time_and_not_if_refused() -> None:
    records = [
        Record(Kind.CALLED, 1, NOBODY, 5),
        Record(Kind.CALLED, 2, NOBODY, 12),
        Record(Kind.CALLED, 1, NOBODY, 14),
    ]
    assert called(records, 1, 10) == 14
    assert called(records, 3, 10) is None
    refused = [*records, Record(Kind.REFUSED, 1, NOBODY, 15)]
    assert called(refused, 1, 10) is None
    assert called(refused, 2, 10) == 12
