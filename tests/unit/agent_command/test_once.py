"""Work that a group does once: what one member knows of it, and what it tells whom."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path

import pytest

from hustings.agent import once as module
from hustings.agent.command import CommandSpec, Supervised
from hustings.agent.once import LONGEST, ONCE_MARK, Once, SuccessFile, moment, success_file
from hustings.core.errors import BadInput
from hustings.guard.base import Unreachable
from tests.unit.agent_command.playing import Heard, PlayedMember, until

ME, ANNA, BERT = 0, 1, 2
DONE = "2026-11-19T02:00:04Z by anna"
DONE_AT = 1_795_053_604.0


@dataclass(frozen=True)
class Seen:
    id: int

    @property
    def name(self) -> str:
        return ("me", "anna", "bert")[self.id]

    @property
    def me(self) -> bool:
        return self.id == ME


@dataclass
class Engine:
    """What an engine keeps, and whether it answers."""

    kept: str = ""
    away: bool = False
    keeps_words: bool = True
    asked: int = 0

    async def success(self) -> str:
        self.asked += 1
        if self.away:
            raise Unreachable("nobody there")
        return self.kept

    async def record(self, success: str) -> None:
        if self.away:
            raise Unreachable("nobody there")
        self.kept = success


@dataclass
class Member:
    """A member that sees what the test says."""

    seats: int = 1
    engine: Engine | None = None
    marks: dict[int, dict[str, float]] = field(default_factory=lambda: {ME: {ONCE_MARK: 0.0}})

    def members(self) -> list[Seen]:
        return [Seen(each) for each in self.marks]

    def mark(self, name: str, value: float) -> None:
        self.marks[ME][name] = value

    def marks_of(self, member: int) -> Mapping[str, float]:
        return self.marks[member]


def made(
    member: Member | None = None, file: SuccessFile | None = None
) -> tuple[Member, Once, Heard]:
    member, log = member or Member(), Heard()
    once = Once(file, log)
    once.attend(member)
    return member, once, log


@pytest.fixture
def file(tmp_path: Path) -> SuccessFile:
    return SuccessFile(str(tmp_path / "success"))


# --- the file ------------------------------------------------------------------------------------


def test_a_file_keeps_the_first_record(file: SuccessFile) -> None:
    assert file.read() == ""
    os.close(file.open())
    assert file.read() == "", "a file without a line says nothing"
    file.write(DONE)
    file.write("later")
    assert file.read() == DONE
    assert os.stat(file.path).st_mode & 0o777 == 0o600


def test_a_file_makes_room_for_a_record_before_the_work(file: SuccessFile) -> None:
    for _ in range(2):
        os.close(file.open())
        assert Path(file.path).read_bytes() == b"\n", "what a full disk would refuse later"
        assert file.read() == ""
    file.write(DONE)
    os.close(file.open())
    assert Path(file.path).read_bytes() == b"\n" + DONE.encode() + b"\n"
    assert file.read() == DONE


def test_a_success_that_could_not_be_kept_is_told_before_the_work(
    file: SuccessFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, line: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(BadInput, match=r"^cannot keep a success in \S+: No space left on d"):
            file.open()
    missing = SuccessFile(str(tmp_path / "none" / "success"))
    for attempt in (missing.open, lambda: missing.write(DONE)):
        with pytest.raises(BadInput, match=r"^cannot keep a success in \S+: No such file"):
            attempt()
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_read_is_bounded_and_fit_for_a_log(file: SuccessFile) -> None:
    Path(file.path).write_bytes(b"\x1b[2J\xff" + b"x" * 10_000)
    assert 0 < len(file.read()) <= 4 * LONGEST
    assert file.read().isprintable()
    file.write(DONE)
    assert os.stat(file.path).st_size == 10_005, "there is a record"


def test_a_file_that_cannot_be_read_is_no_leave_to_start(file: SuccessFile) -> None:
    os.mkfifo(file.path)
    with pytest.raises(BadInput, match=r"^cannot read \S+: it is not a regular file$"):
        file.read()


def test_groups_of_one_name_and_another_key_have_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(tmp_path / "local.key"))
    paths = {success_file(*each).path for each in (("a", "k"), ("a", "l"), ("b", "k"))}
    assert len(paths) == 3
    assert success_file("a", "k").path in paths


# --- what is known -------------------------------------------------------------------------------


def test_the_file_says_it_before_the_member_has_joined(file: SuccessFile) -> None:
    once = Once(file, Heard())
    assert not once.look()
    file.write(DONE)
    assert once.look()
    assert once.known == DONE


def test_another_member_says_it() -> None:
    member, once, _ = made()
    member.marks[ANNA] = {ONCE_MARK: 0.0}
    member.marks[BERT] = {}
    assert not once.look()
    member.marks[ANNA] = {ONCE_MARK: DONE_AT}
    assert once.look()
    assert once.known == "2026-11-19T02:00:04Z, as anna says"


@pytest.mark.parametrize("odd", [-1.0, nan, 0.0])
def test_odd_attributes_say_nothing(odd: float) -> None:
    member, once, _ = made()
    member.marks[ANNA] = {ONCE_MARK: odd}
    assert not once.look()


def test_a_time_that_no_calendar_has() -> None:
    assert moment(1e300) == moment(inf) == "9999-12-31T23:59:59Z"


def test_what_cannot_do_work_once_is_refused() -> None:
    once = Once(None, Heard())
    with pytest.raises(BadInput, match="one leader"):
        once.attend(Member(seats=2))
    with pytest.raises(BadInput, match="a guard that can keep a success"):
        once.attend(Member(engine=Engine(keeps_words=False)))


def test_the_engine_is_asked_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.001)
    engine = Engine(DONE, away=True)
    _, once, log = made(Member(engine=engine))

    async def story() -> None:
        asking = asyncio.create_task(once.ask())
        await until(lambda: engine.asked > 3)
        assert not asking.done()
        engine.away = False
        assert await asking
        assert once.known == DONE
        assert once.is_recorded
        assert log.said == ["waits: whether the work is done is not known: nobody there"]

    asyncio.run(story())


# --- what follows --------------------------------------------------------------------------------


def test_a_success_is_kept_and_told(file: SuccessFile) -> None:
    member, once, log = made(file=file)
    member.marks[ANNA] = {ONCE_MARK: 0.0}
    member.marks[BERT] = {}  # is not here for the work

    async def story() -> None:
        once.succeeded("me")
        finishing = asyncio.create_task(once.finish())
        await asyncio.sleep(0.05)
        assert file.read() == once.known
        assert member.marks[ME][ONCE_MARK] > DONE_AT - 1e9
        assert not finishing.done(), "anna does not know it yet"
        member.marks[ANNA] = {ONCE_MARK: DONE_AT}
        await finishing
        assert log.said == []

    asyncio.run(story())


def test_the_supervisor_s_record_counts(file: SuccessFile) -> None:
    member, once, _ = made(file=file)
    file.write(DONE)
    once.succeeded("me")
    asyncio.run(once.finish())
    assert once.known == DONE
    assert member.marks[ME] == {ONCE_MARK: DONE_AT}


def test_one_that_does_not_hear_is_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TELL_S", 0.05)
    member, once, log = made()
    member.marks[ANNA] = {ONCE_MARK: 0.0}
    once.succeeded("me")
    asyncio.run(once.finish())
    assert log.said == ["did not hear that anna know of the success: they may do the work again"]
    asyncio.run(once.finish())
    assert len(log.said) == 1


def test_a_success_waits_for_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.001)
    engine = Engine(away=True)
    _, once, log = made(Member(engine=engine))

    async def story() -> None:
        once.succeeded("me")
        finishing = asyncio.create_task(once.finish())
        await until(lambda: engine.asked > 3)
        assert not finishing.done()
        engine.away = False
        await finishing
        assert engine.kept == once.known
        assert once.is_recorded
        assert len(log.said) == 1
        assert "its success is not recorded yet: nobody there" in log.said[0]

    asyncio.run(story())


def test_an_earlier_success_stays_in_the_engine() -> None:
    engine = Engine(DONE)
    _, once, _ = made(Member(engine=engine))
    once.succeeded("me")
    asyncio.run(once.finish())
    assert engine.kept == DONE


def test_in_a_hurry_an_engine_that_is_away_is_given_up() -> None:
    _, once, _ = made(Member(engine=Engine(away=True)))
    once.succeeded("me")
    once.hurry()
    asyncio.run(once.finish())
    assert not once.is_recorded


# --- with a command ------------------------------------------------------------------------------


class OnceMember(PlayedMember):
    """A member that is supervised, and sees the others that the test says."""

    engine: Engine | None = None

    def __init__(self) -> None:
        super().__init__()
        self.others: dict[int, dict[str, float]] = {}

    def members(self) -> list[Seen]:
        return [Seen(each) for each in self.others]

    def marks_of(self, member: int) -> dict[str, float]:
        return self.others[member]


async def supervised(
    tmp_path: Path,
    script: str,
    story: Callable[[OnceMember, Supervised, Once, asyncio.Task[int]], object],
    engine: Engine | None = None,
) -> int:
    member, log = OnceMember(), Heard()
    member.engine = engine
    once = Once(None if engine else SuccessFile(str(tmp_path / "success")), log)
    once.attend(member)
    spec = CommandSpec(("sh", "-c", f"cd {tmp_path}; {script}"), once=True)
    supervised = Supervised(member, spec, log, once=once)
    running = asyncio.create_task(supervised.run())
    told = story(member, supervised, once, running)
    if asyncio.iscoroutine(told):
        await told
    return await running


@pytest.mark.parametrize("engine", [None, Engine()], ids=["file", "engine"])
def test_a_success_that_the_end_of_leadership_overtakes_counts(
    tmp_path: Path, engine: Engine | None
) -> None:
    """The command has ended when leadership is lost, and its end is told afterwards."""

    async def story(
        member: OnceMember, supervised: Supervised, once: Once, running: asyncio.Task[int]
    ) -> None:
        await member.lead()
        await until((tmp_path / "began").exists)
        child = supervised._child
        assert child is not None
        await until(lambda: child.process)
        loop = asyncio.get_running_loop()
        loop.remove_reader(child._control)  # the end is not heard of yet
        (tmp_path / "go").touch()
        await until(lambda: select.select([child._control], [], [], 0.0)[0])
        await member.lose()
        loop.add_reader(child._control, child._listen)
        await until(running.done)

    script = "touch began; while [ ! -e go ]; do sleep 0.01; done"
    assert asyncio.run(supervised(tmp_path, script, story, engine)) == 0
    kept = engine.kept if engine else SuccessFile(str(tmp_path / "success")).read()
    assert " by web-1" in kept


def test_one_that_is_told_to_leave_before_the_engine_knows_says_so(tmp_path: Path) -> None:
    """Its exit code is that of a try that may succeed later."""
    engine = Engine()

    async def story(
        member: OnceMember, supervised: Supervised, once: Once, running: asyncio.Task[int]
    ) -> None:
        await member.lead()
        await until((tmp_path / "began").exists)
        engine.away = True
        (tmp_path / "go").touch()
        await until(lambda: once.known)
        assert not running.done()
        supervised.signal(signal.SIGTERM)

    script = "touch began; while [ ! -e go ]; do sleep 0.01; done"
    assert asyncio.run(supervised(tmp_path, script, story, engine)) == 75


def test_work_that_the_engine_knows_is_not_begun(tmp_path: Path) -> None:
    async def story(
        member: OnceMember, supervised: Supervised, once: Once, running: asyncio.Task[int]
    ) -> None:
        await member.lead()

    assert asyncio.run(supervised(tmp_path, "touch began", story, Engine(DONE))) == 0
    assert not (tmp_path / "began").exists()


def test_a_command_that_runs_beside_the_work_of_others_ends_by_itself(tmp_path: Path) -> None:
    """As after a partition: it may be half done."""

    async def story(
        member: OnceMember, supervised: Supervised, once: Once, running: asyncio.Task[int]
    ) -> None:
        await member.lead()
        await until((tmp_path / "began").exists)
        assert once.file is not None
        once.file.write(DONE)
        await until(lambda: once.known)
        await asyncio.sleep(0.05)
        assert not running.done()
        (tmp_path / "go").touch()

    script = "touch began; while [ ! -e go ]; do sleep 0.01; done; touch ended"
    assert asyncio.run(supervised(tmp_path, script, story)) == 0
    assert (tmp_path / "ended").exists()


def test_it_leads_until_the_others_know(tmp_path: Path) -> None:
    """Else a member that does not know could lead, and run the command."""

    async def story(
        member: OnceMember, supervised: Supervised, once: Once, running: asyncio.Task[int]
    ) -> None:
        member.others[ANNA] = {ONCE_MARK: 0.0}
        await member.lead()
        await until(lambda: once.known)
        await asyncio.sleep(0.05)
        assert len(member.campaigns) == 1
        member.others[ANNA] = {ONCE_MARK: DONE_AT}
        await until(running.done)
        assert member.campaigns == []

    assert asyncio.run(supervised(tmp_path, "true", story)) == 0
