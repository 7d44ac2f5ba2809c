"""When a command may start without a guard: what a member saw of the leaders before it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hustings.agent.clearance import (
    LOCK_MARK,
    Clearance,
    CommandLock,
    lock_for,
)
from hustings.core.errors import BadInput

BOUND_S = 6.0
ANNA, BERT, ME = 1, 2, 3
NAMES = {ANNA: "anna", BERT: "bert", ME: "me"}


@dataclass(frozen=True)
class SeenPeer:
    id: int

    @property
    def name(self) -> str:
        return NAMES[self.id]


@dataclass(frozen=True)
class SeenState:
    leader: SeenPeer | None
    leading: bool


@dataclass
class SeenMember:
    """A member that sees what the test says, at the time that the test says."""

    state: SeenState = SeenState(None, False)
    handed: bool = False
    marks: dict[int, dict[str, float]] = field(default_factory=dict)
    now: float = 100.0

    def marks_of(self, member: int) -> Mapping[str, float]:
        return self.marks.get(member, {})

    def sees(self, clearance: Clearance, leader: int | None) -> None:
        self.state = SeenState(None if leader is None else SeenPeer(leader), leader == ME)
        clearance.saw(self.state)


def made(lock: CommandLock | None = None, drained: bool = True) -> tuple[SeenMember, Clearance]:
    member = SeenMember()
    return member, Clearance(member, BOUND_S, lock, drained=drained, clock=lambda: member.now)


def waits(clearance: Clearance) -> float | None:
    found = clearance.obstacle()
    return None if found is None else found.within_s


def test_a_first_leader_does_not_wait() -> None:
    member, clearance = made()
    member.sees(clearance, None)
    member.sees(clearance, ME)
    assert clearance.obstacle() is None


@pytest.mark.parametrize("gap", [True, False])
def test_the_bound_counts_from_the_loss_of_the_last_leader(gap: bool) -> None:
    member, clearance = made()
    member.sees(clearance, ANNA)
    member.now = 200.0
    if gap:
        member.sees(clearance, None)
        member.now = 201.0
    member.sees(clearance, ME)
    found = clearance.obstacle()
    assert found is not None
    assert found.sentence == "the command of anna may still run"
    assert found.within_s == (5.0 if gap else 6.0)
    member.now = 205.9
    assert waits(clearance) == pytest.approx(0.1)
    member.now = 206.0
    assert clearance.obstacle() is None


def test_a_state_that_nobody_told_is_looked_up() -> None:
    """The campaign may begin before the state that began it is seen."""
    member, clearance = made()
    member.sees(clearance, ANNA)
    member.state = SeenState(SeenPeer(ME), True)
    assert waits(clearance) == BOUND_S


def test_a_leader_that_hands_over_is_not_waited_for() -> None:
    member, clearance = made()
    member.sees(clearance, ANNA)
    member.handed = True
    member.sees(clearance, ME)
    assert clearance.obstacle() is None


def test_it_is_waited_for_if_a_better_member_may_take_over_unasked() -> None:
    member, clearance = made(drained=False)
    member.sees(clearance, ANNA)
    member.handed = True
    member.sees(clearance, ME)
    assert waits(clearance) == BOUND_S


def test_a_leader_before_the_last_one_counts_too() -> None:
    """The last one may have handed over before it began: it waited itself."""
    member, clearance = made()
    member.sees(clearance, ANNA)
    member.now = 102.0
    member.sees(clearance, BERT)
    member.now = 103.0
    member.handed = True
    member.sees(clearance, ME)
    assert waits(clearance) == 5.0


def test_a_member_that_leads_again_does_not_wait_for_itself() -> None:
    member, clearance = made()
    for leader in (ME, None, ME):
        member.sees(clearance, leader)
    assert clearance.obstacle() is None


# --- the lock ------------------------------------------------------------------------------------


@pytest.fixture
def lock(tmp_path: Path) -> CommandLock:
    return CommandLock(str(tmp_path / "lock"))


def test_one_process_holds_the_lock_until_the_last_copy_is_closed(
    tmp_path: Path, lock: CommandLock
) -> None:
    held = lock.take()
    assert held is not None
    copy = os.dup(held)
    other = CommandLock(str(tmp_path / "lock"))
    os.close(held)
    assert other.take() is None
    os.close(copy)
    again = other.take()
    assert again is not None
    os.close(again)
    assert other.number == lock.number


def test_two_files_have_two_numbers_that_attributes_hold(tmp_path: Path) -> None:
    one, other = (CommandLock(str(tmp_path / name)).number for name in ("one", "other"))
    assert one != other
    assert {one, other} == {float(int(one)), float(int(other))}
    assert 0 < max(one, other) <= 2**52


def test_who_locks_the_same_file_is_not_waited_for_by_time(
    tmp_path: Path, lock: CommandLock
) -> None:
    member, clearance = made(lock)
    member.marks[ANNA] = {LOCK_MARK: lock.number}
    member.marks[BERT] = {LOCK_MARK: lock.number + 1.0}
    theirs = CommandLock(str(tmp_path / "lock")).take()
    assert theirs is not None
    member.sees(clearance, ANNA)
    member.marks.clear()  # it is gone, and its attributes with it
    member.sees(clearance, ANNA)
    member.sees(clearance, ME)
    found = clearance.obstacle()
    assert found is not None
    assert found.within_s is None
    assert found.sentence == "another command of the group still runs on this machine"
    os.close(theirs)
    assert clearance.obstacle() is None


def test_who_locks_another_file_is_waited_for_by_time(lock: CommandLock) -> None:
    member, clearance = made(lock)
    member.marks[BERT] = {LOCK_MARK: lock.number + 1.0}
    member.sees(clearance, BERT)
    member.sees(clearance, ME)
    assert waits(clearance) == BOUND_S


def test_the_lock_is_handed_out_once_or_dropped(tmp_path: Path, lock: CommandLock) -> None:
    member, clearance = made(lock)
    member.sees(clearance, ME)
    assert clearance.obstacle() is None
    held = clearance.hand_out()
    assert held is not None
    assert clearance.hand_out() is None
    assert clearance.obstacle() is not None  # this process, too, would be a second one
    os.close(held)
    assert clearance.obstacle() is None
    clearance.drop()
    again = lock.take()
    assert again is not None
    os.close(again)


def test_members_of_one_group_lock_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(tmp_path / "new" / "local.key"))
    numbers = [
        lock_for("jobs", "a", shared=True).number,
        lock_for("jobs", "b", shared=True).number,
        lock_for("jobs", "a", shared=False).number,
        lock_for("jobs", "b", shared=False).number,
        lock_for("mail", "a", shared=True).number,
    ]
    assert numbers[0] == numbers[1]
    assert len(set(numbers)) == 4
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new").iterdir()} == {0o600}


def test_a_folder_that_others_can_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(open_to_all / "local.key"))
    with pytest.raises(BadInput, match="other users can write to"):
        lock_for("jobs", "a", shared=True)


def test_a_lock_that_cannot_be_made_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "file").touch()
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(tmp_path / "file" / "local.key"))
    with pytest.raises(BadInput, match=r"cannot lock .*: Not a directory"):
        lock_for("jobs", "a", shared=True)
