"""Why a leadership ended: the error of the campaign and the log say it, in words and as data."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import hustings
from hustings.net import loss_reason
from hustings.net.loss_reason import LossReason
from hustings.net.member import Member
from hustings.net.member_state import LeadershipLost
from hustings.testing import Group

NAMES = ("a", "b", "c")


@contextmanager
def three(**options: Any) -> Iterator[tuple[Group, str]]:
    with Group(seed=3, delay=(0.001, 0.005), **options) as group:
        for name in NAMES:
            group.join(name)
        yield group, group.settle(steady=2.0)


async def held(member: Member) -> LeadershipLost:
    """Campaign until leadership is lost; the error."""
    try:
        async with member.campaign():
            await asyncio.Event().wait()
    except LeadershipLost as lost:
        return lost
    raise AssertionError("a block that waits for ever has ended")


def lost_by(group: Group, name: str) -> asyncio.Task[LeadershipLost]:
    task = group.spawn(name, held(group.member(name)))
    group.advance(0.5)
    return task


def test_another_leader_is_named() -> None:
    with three() as (group, leader):
        task = lost_by(group, leader)
        others = [name for name in NAMES if name != leader]
        group.pause(leader)
        second = group.settle(others, steady=1.0)
        group.resume(leader)
        lost = group.run(task)
        assert lost.reason.kind in (loss_reason.STALLED, loss_reason.OTHER_LEADER)
        assert lost.reason.seconds is not None
        assert lost.reason.seconds > 1.0
        assert "this process stood still for" in str(lost)
        assert second != leader


def test_a_transfer_says_so() -> None:
    with three() as (group, leader):
        task = lost_by(group, leader)
        second = next(name for name in NAMES if name != leader)
        group.run(group.member(leader).transfer(second))
        lost = group.run(task)
        assert lost.reason.kind == loss_reason.HANDED_OVER
        assert str(lost).endswith(f"): leadership is handed over to {second}")


def test_a_resignation_and_a_leave_say_so() -> None:
    with three() as (group, leader):
        task = lost_by(group, leader)
        group.run(group.member(leader).resign())
        assert group.run(task).reason.kind == loss_reason.STOOD_BACK
        second = group.settle(steady=1.0)
        task = lost_by(group, second)
        group.leave(second)
        assert group.run(task).reason.words == "this member leaves the group"


def test_a_lease_that_ended_tells_how_long_the_guard_was_silent() -> None:
    with three(guard="memory://losses", ttl="3s") as (group, leader):
        task = lost_by(group, leader)
        group.run(_silence(group.member(leader)))
        lost = group.run(task)
        assert lost.reason.kind == loss_reason.LEASE_ENDED
        assert lost.reason.words.startswith("the lease ended: memory did not answer for ")
        assert lost.reason.seconds is not None
        assert 0.5 < lost.reason.seconds < 3.5


async def _silence(member: Member) -> None:
    """The guard's engine does not answer this member any more."""
    client = member.node.lease_client
    assert client is not None
    client.acquire = lambda ttl, request: None  # type: ignore[method-assign]  # the engine is gone


def test_a_check_says_why_before_anybody_was_told() -> None:
    with three(guard="memory://checks", ttl="3s") as (group, leader):
        member = group.member(leader)

        async def story() -> LeadershipLost:
            async with member.campaign() as term:
                term.check()
                layer = member.node.lease_layer
                assert layer is not None
                layer.until = member.clock()
                with pytest.raises(LeadershipLost) as told:
                    term.check()
            return told.value

        lost = group.run(story())
        assert lost.reason.kind == loss_reason.LEASE_ENDED


def test_the_error_survives_pickling() -> None:
    reason = LossReason(kind=loss_reason.STALLED, words="it slept", seconds=1.0, bound=0.5)
    lost = pickle.loads(pickle.dumps(LeadershipLost.of("a", "g", 7, reason)))
    assert lost.reason == reason
    assert str(lost) == "a leads group 'g' no longer (term 7): it slept"


def test_a_program_may_raise_it_without_a_reason() -> None:
    lost = hustings.LeadershipLost("my own words")
    assert (str(lost), lost.reason.kind) == ("my own words", loss_reason.NO_LEADER)


@pytest.mark.parametrize(
    "reason, words",
    [
        (
            loss_reason.stalled(0.41, 0.25),
            "this process stood still for 0.41 s; its bound is 0.25 s",
        ),
        (
            loss_reason.lease_ended("etcd", 0.0, 0.0),
            "the lease ended: etcd did not renew it in time",
        ),
        (loss_reason.no_leader("electing"), "an election has begun"),
        (loss_reason.no_leader("something new"), "something new"),
        (loss_reason.no_leader(""), "no member leads"),
        (loss_reason.stalled(7200.4, 1.0), "this process stood still for 7200 s; its bound is 1 s"),
    ],
)
def test_words(reason: LossReason, words: str) -> None:
    assert str(reason) == words


# The log


def test_the_log_tells_who_leads_and_why_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hustings"), three() as (group, leader):
        others = [name for name in NAMES if name != leader]
        (elected,) = [each for each in caplog.records if each.__dict__["event"] == "leader-elected"]
        assert elected.levelno == logging.INFO
        assert elected.getMessage() == f"test/{leader}: leads in term {group.member(leader).term}"
        caplog.clear()
        group.pause(leader)
        group.settle(others, steady=1.0)
        group.resume(leader)
        group.settle(steady=1.0)
        (lost,) = [each for each in caplog.records if each.__dict__["event"] == "leader-lost"]
        fields = {name: lost.__dict__[name] for name in ("group", "member", "term", "token")}
        assert fields == {
            "group": "test",
            "member": leader,
            "term": elected.__dict__["term"],
            "token": None,
        }
        assert lost.__dict__["reason"] in (loss_reason.STALLED, loss_reason.OTHER_LEADER)
        assert lost.levelno == logging.WARNING, "somebody should look"
        assert "this process stood still for" in lost.getMessage()


def test_an_ordinary_transfer_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hustings"), three() as (group, leader):
        caplog.clear()
        second = next(name for name in NAMES if name != leader)
        group.run(group.member(leader).transfer(second))
        group.settle(steady=1.0)
        events = [(each.levelname, each.__dict__["event"]) for each in caplog.records]
        assert sorted(events) == [("INFO", "leader-elected"), ("INFO", "leader-lost")]


def test_a_token_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "hustings"),
        three(guard="memory://logged") as (group, leader),
    ):
        told = [each for each in caplog.records if each.__dict__["event"] == "leader-elected"]
        assert [each.__dict__["token"] for each in told] == [group.member(leader).state.token]
        assert told[0].getMessage().endswith(f"with token {group.member(leader).state.token}")


def test_a_record_of_the_program_may_have_our_fields(caplog: pytest.LogCaptureFixture) -> None:
    usual = logging.getLogRecordFactory()

    def ours(*arguments: object, **more: object) -> logging.LogRecord:
        record = usual(*arguments, **more)
        record.group = "the program's own"
        return record

    logging.setLogRecordFactory(ours)
    try:
        with caplog.at_level(logging.INFO, "hustings"), three() as (_, leader):
            pass
    finally:
        logging.setLogRecordFactory(usual)
    assert any(each.startswith(f"test/{leader}: leads in term") for each in caplog.messages)


def test_a_handler_that_raises_harms_no_member() -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("the disk is full")

    logger, broken = logging.getLogger("hustings"), Broken()
    before = logger.level
    logger.addHandler(broken)
    logger.setLevel(logging.DEBUG)
    try:
        with three() as (group, leader):
            group.kill(leader)
            assert group.settle() != leader
    finally:
        logger.removeHandler(broken)
        logger.setLevel(before)


def test_the_package_has_only_a_handler_that_does_nothing() -> None:
    handlers = logging.getLogger("hustings").handlers
    assert [type(each) for each in handlers] == [logging.NullHandler]
