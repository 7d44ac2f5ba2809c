"""The folder in which members of one machine find each other, and what can lie in it."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import hustings
from hustings.net import local_members
from hustings.net.keys import new_key
from hustings.net.local_members import (
    MOST_FOUND,
    LocalMember,
    LocalMembers,
    local_folder,
    reachable,
    this_network,
    this_start,
)
from tests.net.kit.crowd import Crowd
from tests.net.kit.loops import run, until
from tests.net.kit.ports import free_port

GROUP = "crowd"
HERE = ("127.0.0.1", 7400)
EMPTY: Mapping[str, object] = {}


def folder() -> Path:
    return Path(local_folder(GROUP))


def local(name: str = "a", *keys: str, observer: bool = False) -> LocalMembers:
    return LocalMembers(GROUP, name, lambda: keys, observer=observer)


def registered(name: str = "a", *keys: str) -> LocalMembers:
    made = local(name, *keys)
    made.register(HERE)
    return made


@contextmanager
def lying(
    said: Mapping[str, object] = EMPTY, *, file: str = "0" * 16 + ".member", locked: bool = True
) -> Iterator[Path]:
    """A file of a member, which nobody answers for."""
    fields: dict[str, object] = {
        "format": 1,
        "name": "liar",
        "host": "127.0.0.1",
        "port": free_port(),
        "keys": [],
        "observer": False,
        "machine": this_start(),
        "network": this_network(),
        "process": 1,
        "since": 1,
    }
    with writing(file, msgspec.json.encode({**fields, **said}), locked) as path:
        yield path


@contextmanager
def writing(file: str, data: bytes, locked: bool = True) -> Iterator[Path]:
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder() / file
    path.write_bytes(data)
    with open(path, "rb+") as stream:
        if locked:
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield path


# The folder


def test_members_see_each_other_and_not_themselves() -> None:
    one, two = registered("one"), registered("two")
    assert [each and each.name for each in one.look()] == ["two"]
    assert [each and each.name for each in two.look()] == ["one"]
    assert one.endpoints == [HERE]


def test_it_is_for_this_user_only() -> None:
    registered()
    assert stat.S_IMODE(folder().stat().st_mode) == 0o700
    assert stat.S_IMODE(folder().parent.stat().st_mode) == 0o700
    (file,) = folder().iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_it_is_beside_the_local_key_unless_the_environment_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUSTINGS_LOCAL_DIR", "")
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(tmp_path / "kept" / "key"))
    assert folder().parent == tmp_path / "kept" / "members"
    monkeypatch.setenv("HUSTINGS_LOCAL_DIR", str(tmp_path / "here"))
    assert folder().parent == tmp_path / "here"


def test_each_group_has_its_own() -> None:
    assert local_folder("one") != local_folder("two")


def test_a_member_that_closes_takes_its_file_and_the_last_one_the_folder() -> None:
    one, two = registered("one"), registered("two")
    one.close()
    assert two.look() == ()
    assert len(list(folder().iterdir())) == 1
    two.close()
    two.close()
    assert not folder().exists()
    assert one.look() == ()


def test_a_relative_folder_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUSTINGS_LOCAL_DIR", "here")
    monkeypatch.chdir(tmp_path)
    one, two = registered("one"), registered("two")
    monkeypatch.chdir("/")
    assert len(one.look()) == len(two.look()) == 1


def test_a_file_that_was_removed_is_written_again() -> None:
    one, two = registered("one"), registered("two")
    for each in folder().iterdir():
        each.unlink()
    assert two.look() == ()
    one.keep()
    assert [each and each.name for each in two.look()] == ["one"]
    folder().rename(folder().parent / "elsewhere")
    one.keep()
    assert len(list(folder().iterdir())) == 1


def test_a_file_is_written_again_when_the_keys_change() -> None:
    keys = ["old"]
    one = LocalMembers(GROUP, "one", lambda: tuple(keys))
    one.register(HERE)
    two = registered("two", "new")
    two.look()
    assert two.endpoints == []
    keys.append("new")
    one.keep()
    two.look()
    assert two.endpoints == [HERE]
    assert len(list(folder().iterdir())) == 2


def test_a_folder_that_goes_away_meanwhile_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last member removes it; another one may be about to write into it."""
    made, put = local(), LocalMembers._put
    times = iter(range(10))

    def unlucky(self: LocalMembers, where: str, data: bytes) -> None:
        if next(times) < 2:
            os.rmdir(where)
        put(self, where, data)

    monkeypatch.setattr(LocalMembers, "_put", unlucky)
    made.register(HERE)
    assert len(list(folder().iterdir())) == 1


def test_a_folder_that_always_goes_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unlucky(self: LocalMembers, where: str, data: bytes) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(LocalMembers, "_put", unlucky)
    with pytest.raises(hustings.BadInput, match="No such file or directory; name a folder that"):
        local().register(HERE)


# What others could do


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_use_is_refused(mode: int) -> None:
    folder().mkdir(parents=True)
    folder().chmod(mode)
    with pytest.raises(hustings.BadInput, match=r"can be used by others .* run chmod 700"):
        local().register(HERE)


def test_a_folder_on_the_way_that_others_can_write_to_is_refused() -> None:
    folder().parent.mkdir(parents=True)
    folder().parent.chmod(0o777)
    words = "other users can write to .* and so decide which members find each other"
    with pytest.raises(hustings.BadInput, match=words):
        local().register(HERE)


def test_a_file_in_the_way_is_refused_with_a_sentence() -> None:
    folder().parent.mkdir(parents=True)
    folder().touch()
    with pytest.raises(hustings.BadInput, match="cannot tell this machine's members in"):
        local().register(HERE)


# What can lie in it


def test_the_file_of_a_member_that_is_gone_is_removed() -> None:
    with lying(locked=False) as path:
        assert registered().look() == ()
        assert not path.exists()


def test_a_half_written_file_is_removed_too() -> None:
    with writing("0" * 16 + ".new", b"", locked=False) as path:
        assert registered().look() == ()
        assert not path.exists()


def test_a_file_that_is_being_written_is_left() -> None:
    with writing("0" * 16 + ".new", b"") as path:
        assert registered().look() == ()
        assert path.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\xff",
        b"[]",
        b"{}",
        b'{"name": "x"' + b" " * 100_000 + b"}",
        b"[" * 2000,
    ],
)
def test_a_file_that_makes_no_sense_does_no_harm(data: bytes) -> None:
    member = registered()
    with writing("0" * 16 + ".member", data):
        assert member.look() == (None,)
        assert member.endpoints == []
        assert member.earlier() is None


@pytest.mark.parametrize(
    "said",
    [
        {"format": 2},
        {"name": "no name"},
        {"name": "x" * 1000},
        {"host": "a.example"},
        {"host": "127.0.0.1\n"},
        {"port": 0},
        {"port": 65_536},
        {"port": -1},
        {"keys": "x"},
    ],
)
def test_nor_does_one_with_wrong_fields(said: dict[str, object]) -> None:
    with lying(said):
        assert registered().look() == (None,)


def test_what_is_no_file_of_a_member_is_left_alone() -> None:
    member = registered()
    (folder() / "readme").write_text("x")
    os.mkfifo(folder() / ("1" * 16 + ".member"))
    (folder() / ("2" * 16 + ".member")).mkdir()
    (folder() / ("3" * 16 + ".member")).symlink_to("/etc/passwd")
    before = sorted(folder().iterdir())
    assert member.look() == ()
    assert sorted(folder().iterdir()) == before


def test_what_is_read_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [registered(f"m{number}") for number in range(MOST_FOUND + 5)]
    assert len(others[0].look()) == MOST_FOUND
    monkeypatch.setattr(local_members, "_MOST_NAMES", 10)
    assert len(others[0].look()) <= 10


def test_a_file_of_another_machine_stays_for_a_day() -> None:
    """Where a home is shared by network, locks need not reach this machine."""
    member = registered()
    with lying({"machine": "another"}, locked=False) as path:
        assert member.look() == ()
        assert path.exists()
        long_ago = time.time() - 90_000
        os.utime(path, (long_ago, long_ago))
        member.look()
        assert not path.exists()


# Which of them can be reached


@pytest.mark.parametrize(
    "mine, theirs, host",
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0", "127.0.0.1"),
        ("127.0.0.1", "::", "127.0.0.1"),
        ("::", "127.0.0.1", "127.0.0.1"),
        ("::", "0.0.0.0", "127.0.0.1"),
        ("::", "::1", "::1"),
        ("::1", "::", "::1"),
        ("::1", "::1", "::1"),
        ("::1", "127.0.0.1", None),
        ("::1", "0.0.0.0", None),
        ("127.0.0.1", "::1", None),
        ("0.0.0.0", "::1", None),
    ],
)
def test_where_a_member_is_reached(mine: str, theirs: str, host: str | None) -> None:
    assert reachable(mine, theirs) == host


def test_members_with_a_key_in_common_understand_each_other() -> None:
    ours = registered("a", "one", "two")
    with lying({"keys": ["two", "three"], "port": 1}):
        ours.look()
        assert ours.endpoints == [("127.0.0.1", 1)]
    for keys in ([], ["three"]):
        with lying({"keys": keys}):
            ours.look()
            assert ours.endpoints == []


def test_a_member_of_another_network_namespace_is_not_reached() -> None:
    ours = registered()
    for elsewhere in ({"network": "another"}, {"machine": "another"}):
        with lying(elsewhere):
            assert len(ours.look()) == 1
            assert ours.endpoints == []


# Members


def test_members_of_one_process_find_each_other() -> None:
    async def play() -> None:
        async with Crowd(local=True) as crowd:
            for name in "abc":
                await crowd.add(name, seeds=[])
            await crowd.agreed()

    run(play())


@pytest.mark.parametrize(
    "said, why",
    [
        ({}, "liar (process 1) does not answer: it may be stopped or busy"),
        ({"keys": ["other"]}, "liar (process 1) has another key, or none: give all members"),
        ({"network": "x"}, "liar runs on another machine or in another network namespace: give"),
        ({"machine": "x"}, "liar runs on another machine or in another network namespace: give"),
        ({"host": "::1", "port": 9}, "liar (process 1) listens at [::1]:9, which this member"),
        ({"format": 2}, "one of them runs another version of hustings"),
    ],
)
def test_a_living_file_that_nobody_answers_for_keeps_members_from_leading(
    said: dict[str, object], why: str
) -> None:
    key = new_key()

    async def play() -> None:
        async with Crowd(local=True, key=key) as crowd:
            with lying({"keys": [key.id], **said}):
                member = await crowd.add("a", seeds=[])
                await until(lambda: member.notes, "it says why")
                (note,) = member.notes
                assert why in note
                assert note.startswith("nobody leads here until other members of this machine")
                assert not member.is_leader
                assert member.state.reason.startswith("waiting for other members: ")
                assert why in member.state.reason
            await until(lambda: member.is_leader, "the lock is gone")

    run(play())


def test_with_others_it_goes_on_without_the_silent_one() -> None:
    async def play() -> None:
        async with Crowd(local=True, insecure=True) as crowd:
            with lying():
                for name in "ab":
                    await crowd.add(name, seeds=[])
                await crowd.agreed()

    run(play())


def test_an_observer_is_not_waited_for() -> None:
    async def play() -> None:
        async with Crowd(local=True, insecure=True) as crowd:
            with lying({"observer": True}):
                member = await crowd.add("a", seeds=[])
                await until(lambda: member.is_leader, "it leads")

    run(play())


def test_with_a_guard_nobody_is_waited_for() -> None:
    async def play() -> None:
        async with Crowd(local=True, insecure=True, guard="memory://local", ttl="1s") as crowd:
            with lying():
                member = await crowd.add("a", seeds=[])
                await until(lambda: member.is_leader, "the guard decides")

    run(play())


def test_without_a_place_a_member_that_could_lead_beside_others_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HUSTINGS_LOCAL_DIR", str(tmp_path / "file" / "members"))

    async def play() -> None:
        async with Crowd(local=True) as crowd:
            with pytest.raises(hustings.BadInput, match=r"Not a directory; name a folder"):
                await crowd.add("a", seeds=[])
            seeded = await crowd.add("b", seeds=[f"127.0.0.1:{free_port()}"])
            assert any("members on this machine are not looked for" in n for n in seeded.notes)
            apart = await crowd.add("c", seeds=[], local=False)
            await until(lambda: apart.is_leader, "it does not look for others")

    run(play())


def test_a_member_that_leaves_takes_its_file_along() -> None:
    async def play() -> None:
        async with Crowd(local=True) as crowd:
            member = await crowd.add("a", seeds=[])
            assert len(list(folder().iterdir())) == 1
            await member.leave()
            assert not folder().exists()

    run(play())


def test_a_member_without_local_neither_writes_nor_reads() -> None:
    async def play() -> None:
        async with Crowd(insecure=True) as crowd:
            with lying() as path:
                member = await crowd.add("a", seeds=[])
                await until(lambda: member.is_leader, "it leads")
                assert [each.name for each in folder().iterdir()] == [path.name]

    run(play())


def test_the_struct_is_what_is_written() -> None:
    registered("a", "k")
    (file,) = folder().iterdir()
    said = msgspec.json.decode(file.read_bytes(), type=LocalMember)
    assert (said.name, said.host, said.port, said.keys) == ("a", *HERE, ("k",))
    assert said.process == os.getpid()
