"""The key that this user's members share on this machine, when they were given none."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest

import hustings
from hustings.net.keys import Key, new_key, read_key, write_key
from hustings.net.limits import Reason
from hustings.net.local_key import LocalRing, local_key, local_key_file
from hustings.net.wire import SIGNED, Direction, Received, Wire
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import run, throughout, until
from tests.net.kit.stranger import datagrams
from tests.net.parts import GROUP, KEY, OTHER_KEY, PING, PingMsg, wire


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home, in which nothing has been kept yet."""
    for name in ("HUSTINGS_KEY_FILE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_it_is_made_on_first_use_for_this_user_only(home: Path) -> None:
    key = local_key()
    path = home / ".local/state/hustings/local.key"
    assert read_key(path) == key == local_key()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_where_it_is_can_be_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    assert local_key_file() == str(home / "state/hustings/local.key")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # such a one does not count
    assert local_key_file() == str(home / ".local/state/hustings/local.key")
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(home / "mine"))
    assert local_key() == read_key(home / "mine")


def test_processes_that_start_at_once_have_the_same(home: Path) -> None:
    script = "from hustings.net.local_key import local_key; print(local_key().id)"
    started = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert len({process.communicate()[0] for process in started}) == 1
    assert [each.name for each in (home / ".local/state/hustings").iterdir()] == ["local.key"]


def test_threads_that_start_at_once_have_the_same(home: Path) -> None:
    """So do processes of the same number, in containers that share a home."""
    for _ in range(20):
        together = Barrier(6)

        def first(together: Barrier = together) -> bytes:
            together.wait(60)
            return local_key().secret

        with ThreadPoolExecutor(6) as pool:
            found = {each.result() for each in [pool.submit(first) for _ in range(6)]}
        assert len(found) == 1
        (made,) = home.rglob("local.key")
        made.unlink()


def test_what_others_can_use_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "shared" / "key"
    path.parent.mkdir()
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(path))
    path.parent.chmod(0o777)
    with pytest.raises(hustings.BadInput, match="other users can write to"):
        local_key()
    path.parent.chmod(0o700)
    local_key()
    path.chmod(0o644)
    with pytest.raises(hustings.BadInput, match="can be used by others"):
        local_key()


def test_without_a_place_for_it_a_sentence_says_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").touch()
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(home / "file" / "key"))
    with pytest.raises(hustings.BadInput, match=r"cannot keep a key .* HUSTINGS_KEY_FILE"):
        hustings.join("group")
    hustings.join("group", insecure=True)
    hustings.join("group", key=KEY)


# Who could exchange it

OTHER = 54_321  # a user that is neither this one nor the superuser


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Owners of paths, as the system would tell them: only the superuser could really set them."""
    found: dict[str, int] = {}
    original = os.lstat

    def lstat(path: str | Path, *, dir_fd: int | None = None) -> os.stat_result:
        status = original(path, dir_fd=dir_fd)
        fields = list(status)
        fields[stat.ST_UID] = found.get(str(path), status.st_uid)
        return os.stat_result(fields)

    monkeypatch.setattr(os, "lstat", lstat)
    return found


def refused_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why no key is kept there, in a sentence that says what to do; nothing was made or written."""
    monkeypatch.setenv("HUSTINGS_KEY_FILE", str(path))
    top = path.parent
    while not top.exists():
        top = top.parent
    before = sorted(top.rglob("*"))
    with pytest.raises(hustings.BadInput) as error:
        local_key()
    assert sorted(top.rglob("*")) == before
    sentence = str(error.value)
    assert sentence.endswith("or let them do without one (insecure)")
    assert "\n" not in sentence
    return sentence


def test_a_folder_of_another_user_anywhere_above(
    home: Path, owners: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "a/b/c").mkdir(parents=True)
    for each in ("a", "a/b", "a/b/c"):
        owners[str(home / each)] = OTHER
        for path in ("a/b/c/key", "a/b/c/not/yet/there/key"):
            sentence = refused_at(home / path, monkeypatch)
            assert f"{home / each} belongs to another user" in sentence
        del owners[str(home / each)]
    assert local_key() == read_key(home / "a/b/c/not/yet/there/key")


@pytest.mark.parametrize("mode", [0o777, 0o772, 0o702, 0o722])
def test_a_folder_that_others_can_write_to_anywhere_above(
    home: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "a/b/c").mkdir(parents=True)
    for each in ("a", "a/b", "a/b/c"):
        (home / each).chmod(mode)
        for path in ("a/b/c/key", "a/b/c/d/key"):
            sentence = refused_at(home / path, monkeypatch)
            assert f"run chmod go-w {home / each}, or" in sentence
        (home / each).chmod(0o755)
    assert local_key() == read_key(home / "a/b/c/d/key")


def test_a_group_of_this_user_alone_is_no_other_user(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each user has a group, folders are often writable for it."""
    (home / "a").mkdir()
    (home / "a").chmod(0o770)
    group = (home / "a").stat().st_gid
    members: list[str] = ["me"]
    user = SimpleNamespace(pw_name="me", pw_gid=group)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: user)
    monkeypatch.setattr(
        grp, "getgrgid", lambda _: SimpleNamespace(gr_name=user.pw_name, gr_mem=members)
    )
    members.append("somebody")
    assert "other users can write" in refused_at(home / "a/key", monkeypatch)
    members.remove("somebody")
    user.pw_gid = group + 1
    assert "other users can write" in refused_at(home / "a/key", monkeypatch)
    user.pw_gid = group
    assert local_key() == read_key(home / "a/key")


def test_in_a_sticky_folder_only_what_is_ours(
    home: Path, owners: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for temporary files: anybody can put a folder, a link or a key there before us."""
    shared, mine = home / "shared", home / "mine"
    shared.mkdir()
    shared.chmod(0o1777)
    mine.mkdir()
    (shared / "theirs").mkdir()
    (shared / "link").symlink_to(mine)
    (shared / "loose").symlink_to(mine / "key")
    write_key(shared / "planted", new_key())
    for name in ("theirs", "link", "loose", "planted"):
        owners[str(shared / name)] = OTHER
    for path in ("theirs/key", "link/key", "link/new/key", "loose", "planted"):
        assert "belongs to another user" in refused_at(shared / path, monkeypatch)
    assert not list(mine.iterdir())
    (shared / "ours").symlink_to("../mine")
    for ours in (shared / "ours/../mine/key", shared / "new/key", shared / "key"):
        monkeypatch.setenv("HUSTINGS_KEY_FILE", str(ours))
        assert local_key() == read_key(ours)
    owners[str(shared)] = OTHER  # who owns a sticky folder can exchange everything in it
    assert "belongs to another user" in refused_at(shared / "key", monkeypatch)


def test_a_link_leads_where_others_can_write(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "open/inner").mkdir(parents=True)
    (home / "open").chmod(0o777)
    (home / "link").symlink_to("open/inner")
    assert f"{home}/open, or" in refused_at(home / "link/key", monkeypatch)
    (home / "round").symlink_to("round")
    assert "Too many levels" in refused_at(home / "round/key", monkeypatch)


def test_folders_that_are_made_are_for_this_user_alone(home: Path) -> None:
    """Whatever the umask is."""
    before = os.umask(0)
    try:
        key = local_key()
    finally:
        os.umask(before)
    for each in (".local", ".local/state", ".local/state/hustings"):
        assert stat.S_IMODE((home / each).stat().st_mode) == 0o700
    assert local_key() == key


@pytest.mark.parametrize("given", ["", ".", "relative", None])
def test_who_has_no_home_in_the_environment_has_one_in_the_system(
    home: Path, given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if given is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", given)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(home)))
    assert local_key_file() == str(home / ".local/state/hustings/local.key")

    def unknown(_: int) -> None:
        raise KeyError("no such user")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(hustings.BadInput, match="no home to keep a key in: name a file"):
        local_key_file()


def test_a_file_that_is_no_key_is_not_replaced(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "folder").mkdir()
    (home / "text").write_text("not a key")
    (home / "text").chmod(0o600)
    os.mkfifo(home / "pipe", 0o600)
    for name in ("folder", "text", "pipe"):
        assert "or move it away" in refused_at(home / name, monkeypatch)


def test_a_relative_path_is_looked_at_from_here(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "a/b").mkdir(parents=True)
    monkeypatch.chdir(home / "a/b")
    monkeypatch.setenv("HUSTINGS_KEY_FILE", "key")
    (home / "a").chmod(0o777)
    with pytest.raises(hustings.BadInput, match=f"other users can write to {home}/a and"):
        local_key()
    (home / "a").chmod(0o700)
    assert local_key() == read_key(home / "a/b/key")


# What is signed


def local(me: int, key: Key) -> Wire:
    return Wire(GROUP, me, 1, PING, LocalRing([key]))


def test_a_frame_is_signed_and_every_bit_counts() -> None:
    made = local(1, KEY).write(PingMsg(7), 2)
    assert not isinstance(made, Reason)
    assert made.data[2] == SIGNED
    reader = local(2, KEY)
    assert isinstance(reader.read(made.data, Direction.DATAGRAM), Received)
    assert reader.read(made.data, Direction.QUESTION) is Reason.BAD_SEAL
    for place in range(len(made.data)):
        changed = bytearray(made.data)
        changed[place] ^= 1
        assert isinstance(reader.read(bytes(changed), Direction.DATAGRAM), Reason), place
    for size in range(len(made.data)):
        assert isinstance(reader.read(made.data[:size], Direction.DATAGRAM), Reason), size


def test_who_has_another_key_or_another_way_is_refused() -> None:
    made = local(1, KEY).write(PingMsg(7), 2)
    sealed = wire(1, KEY).write(PingMsg(7), 2)
    clear = wire(1).write(PingMsg(7), 2)
    assert not isinstance(made, Reason)
    assert not isinstance(sealed, Reason)
    assert not isinstance(clear, Reason)
    way = Direction.DATAGRAM
    assert local(2, OTHER_KEY).read(made.data, way) is Reason.UNKNOWN_KEY
    assert wire(2, KEY).read(made.data, way) is Reason.UNKNOWN_KEY
    assert wire(2).read(made.data, way) is Reason.SEALED
    assert local(2, KEY).read(sealed.data, way) is Reason.UNKNOWN_KEY
    assert local(2, KEY).read(clear.data, way) is Reason.NOT_SEALED


# Members


def test_members_of_one_user_need_not_speak_of_keys(home: Path) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            await crowd.add_all(["a", "b"])
            await crowd.known(2)
            leader = await crowd.agreed()
            assert leader.node.filter.wire.ring is not None
            with pytest.raises(hustings.BadInput, match="let it rejoin"):
                leader.rekey([KEY])

    run(story())
    assert (home / ".local/state/hustings/local.key").exists()


def test_another_users_process_is_refused_and_told_of(home: Path) -> None:
    path = home / "other"
    write_key(path, new_key())

    async def story() -> None:
        async with Crowd() as crowd:
            here = await crowd.add("here")
            os.environ["HUSTINGS_KEY_FILE"] = str(path)
            try:
                there = await crowd.add("there")
            finally:
                del os.environ["HUSTINGS_KEY_FILE"]
            clear = await crowd.add("clear", insecure=True)
            await until(lambda: dropped(here, "unknown-key"), "the other key is refused")
            await until(lambda: dropped(here, "not-sealed"), "and who has none")
            assert len(here.members()) == len(there.members()) == len(clear.members()) == 1
            assert any("has a key that this member has not" in note for note in here.notes)

    run(story())


def test_nothing_that_is_not_signed_moves_a_member(home: Path) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            forged = Wire("crowd", 666, 1, a.node.filter.wire.codec)
            with datagrams() as stranger:
                made = forged.write(a.node.stack.membership.card(asks=True))
                assert not isinstance(made, Reason)
                stranger.sendto(made.data, endpoint(a))
                await until(lambda: dropped(a, "not-sealed"), "it is counted")
            await throughout(0.1, lambda: len(a.members()) == 1, "a stranger was let in")

    run(story())
