"""What a guard knows of a lease that only observers measure."""

from __future__ import annotations

from hustings.guard.local_expiry import LocalExpiry, new_mark


def test_a_mark_is_a_number_that_nobody_has_drawn_before() -> None:
    drawn = {new_mark() for _ in range(1000)}
    assert len(drawn) == 1000
    assert all(0 < int(each) < 2**63 for each in drawn)


def test_nothing_has_ended_before_anything_was_seen() -> None:
    lease = LocalExpiry()
    assert lease.ended(1e9) == ""
    assert not lease.has_run_out(1, 1e9)
    assert lease.promised(1e9) == ("", 0.0)


def test_a_lease_ends_when_its_mark_has_stood_for_its_whole_time() -> None:
    lease = LocalExpiry()
    assert lease.saw("a", 3, 5.0, now=10.0) == 5.0
    assert lease.saw("a", 3, 5.0, now=14.0) == 1.0
    assert lease.ended(14.999) == ""
    assert lease.ended(15.0) == "a"
    assert lease.has_run_out(3, 15.0)
    assert not lease.has_run_out(4, 15.0), "another period of holding"
    assert lease.saw("b", 3, 5.0, now=15.0) == 5.0
    assert lease.ended(15.0) == ""


def test_a_mark_seen_before_another_one_counts_anew() -> None:
    """Answers on two connections overtake each other: then the wait is longer, not shorter."""
    lease = LocalExpiry()
    lease.saw("a", 3, 5.0, now=10.0)
    lease.saw("b", 3, 5.0, now=14.0)
    assert lease.saw("a", 3, 5.0, now=15.0) == 5.0
    assert lease.ended(19.0) == ""


def test_what_was_promised_counts_from_the_question() -> None:
    lease = LocalExpiry()
    lease.wrote("a", 3, 5.0, sent=10.0, now=11.0)
    assert lease.promised(12.0) == ("a", 3.0)
    assert lease.ended(15.0) == "", "by others it is seen no sooner than it was answered"
    assert lease.ended(16.0) == "a"
    lease.saw("b", 3, 5.0, now=12.0)
    assert lease.promised(12.0) == ("a", 3.0), "what others wrote is not one's own promise"
    assert lease.promised(99.0) == ("a", 0.0)
