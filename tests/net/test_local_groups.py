"""Plain processes of one user make one group: no seeds, ports or keys, and one leader at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hustings.net.keys import new_key, write_key
from hustings.net.local_members import local_folder
from tests.net.kit.plain import Plains, overlapping
from tests.net.kit.ports import free_address

FOUR = 4


@pytest.mark.parametrize("round_", range(3))
def test_four_that_start_at_one_moment_have_one_leader(round_: int) -> None:
    with Plains() as plains:
        four = plains.start(FOUR)
        plains.agreed(four)
        assert overlapping(four) == [], f"two led at one moment: {plains}"


@pytest.mark.parametrize("protocol", ["bully", "ring", "le-a"])
def test_so_do_those_of_other_protocols(protocol: str) -> None:
    with Plains(protocol=protocol) as plains:
        four = plains.start(FOUR)
        plains.agreed(four)


def test_when_the_leader_is_killed_another_one_leads_and_its_file_goes() -> None:
    with Plains() as plains:
        four = plains.start(FOUR)
        leader = plains.agreed(four)
        leader.process.kill()
        leader.process.wait()
        rest = [each for each in four if each is not leader]
        plains.agreed(rest, but=leader.name)
        (fresh,) = plains.start()
        plains.agreed([*rest, fresh])
        assert len(os.listdir(local_folder("plain"))) == FOUR, "the dead one's file is gone"


def test_a_late_one_follows() -> None:
    with Plains() as plains:
        (first,) = plains.start()
        plains.agreed([first])
        (late,) = plains.start()
        assert plains.agreed([first, late]) is first
        assert late.led() == []


def test_groups_of_other_names_stay_apart() -> None:
    with Plains("one") as ones, Plains("two") as twos:
        (one,), (two,) = ones.start(), twos.start()
        ones.agreed([one])
        twos.agreed([two])


@pytest.mark.parametrize("how", ["key", "insecure"])
def test_members_with_a_key_file_or_without_any_key_find_each_other_too(
    how: str, tmp_path: Path
) -> None:
    write_key(tmp_path / "key", new_key())
    options = {"key": str(tmp_path / "key")} if how == "key" else {"insecure": True}
    with Plains(**options) as plains:
        plains.agreed(plains.start(FOUR))


def test_with_seeds_the_group_extends_to_members_that_look_elsewhere() -> None:
    """Two folders stand for two machines; one seed joins them."""
    address = free_address()
    with Plains() as plains:
        here = plains.start(1, bind=address)
        plains.agreed(here)
        there = plains.start(
            2,
            seeds=[address],
            environment={"HUSTINGS_LOCAL_DIR": f"{os.environ['HUSTINGS_LOCAL_DIR']}-there"},
        )
        plains.agreed([*here, *there])


def test_a_stopped_member_keeps_a_new_one_from_leading_until_it_is_gone() -> None:
    with Plains() as plains:
        (first,) = plains.start()
        plains.agreed([first])
        first.process.send_signal(signal.SIGSTOP)
        (second,) = plains.start()
        plains.wait(lambda: second.notes, "it says why it does not lead")
        (note,) = second.notes
        assert "nobody leads here until other members of this machine answer" in note
        assert f"{first.name} (process {first.process.pid}) does not answer" in note
        assert second.led() == []
        first.process.kill()
        plains.wait(lambda: second.leading, "then it leads")


def test_a_stopped_member_that_goes_on_is_followed() -> None:
    with Plains() as plains:
        (first,) = plains.start()
        plains.agreed([first])
        first.process.send_signal(signal.SIGSTOP)
        (second,) = plains.start()
        plains.wait(lambda: second.notes, "it says why it does not lead")
        first.process.send_signal(signal.SIGCONT)
        plains.agreed([first, second])


def test_two_groups_on_one_machine_by_choice() -> None:
    with Plains(local=False) as plains:
        one, two = plains.start(2)
        plains.wait(lambda: one.leading and two.leading, "each leads its own group")


def test_a_member_without_the_key_does_not_lead_beside_the_others(tmp_path: Path) -> None:
    write_key(tmp_path / "key", new_key())
    with Plains() as plains:
        (first,) = plains.start(key=str(tmp_path / "key"))
        plains.agreed([first])
        (second,) = plains.start()
        plains.wait(lambda: second.notes, "it says why it does not lead")
        assert f"{first.name} (process {first.process.pid}) has another key, or none" in str(
            second.notes
        )
        assert second.led() == []


def test_a_member_with_another_protocol_is_refused() -> None:
    with Plains() as plains:
        (first,) = plains.start()
        plains.agreed([first])
        (second,) = plains.start(protocol="bully")
        plains.wait(lambda: second.refused, "it is refused")
        assert "protocol is bully here and le-s there" in second.refused
        assert first.leading


def test_members_of_ipv4_and_ipv6_do_not_lead_beside_each_other() -> None:
    with Plains() as plains:
        (first,) = plains.start(bind="[::1]:0")
        plains.agreed([first])
        (second,) = plains.start()
        plains.wait(lambda: second.notes, "it says why it does not lead")
        assert "which this member cannot reach: bind both alike" in second.notes[0]
        assert second.led() == []
        (third,) = plains.start(bind="[::1]:0")
        assert plains.agreed([first, third]) is first


def test_a_name_is_used_once() -> None:
    with Plains() as plains:
        (first,) = plains.start(name="a")
        plains.agreed([first])
        (second,) = plains.start(name="a")
        plains.wait(lambda: second.refused, "it is refused")
        assert second.refused.startswith("'a' is the name of a member of group 'plain'")
        assert f"(process {first.process.pid})" in second.refused


@pytest.mark.parametrize("round_", range(3))
def test_of_two_with_one_name_that_start_at_one_moment_one_stays(round_: int) -> None:
    with Plains() as plains:
        two = plains.start(2, name="a")
        plains.wait(lambda: any(each.refused for each in two), "one is refused")
        (stays,) = [each for each in two if not each.refused]
        plains.wait(lambda: stays.leading, "the other one leads")


if os.geteuid() == 0:  # only the superuser can start processes of other users

    def test_a_process_of_another_user_is_kept_out(shared: Path) -> None:
        """In a folder to which both can write, the first one's folder is its own."""
        with Plains() as plains:
            (first,) = plains.start()
            plains.agreed([first])
            (second,) = plains.start(become=NOBODY, insecure=True)
            plains.wait(lambda: second.refused, "it is refused")
            assert second.refused.startswith("cannot tell this machine's members in")
            assert "Permission denied; name a folder that only this user can" in second.refused
            assert first.leading

    def test_nor_is_this_user_led_astray_by_a_folder_of_another_one(shared: Path) -> None:
        with Plains() as plains:
            (first,) = plains.start(become=NOBODY, insecure=True)
            plains.agreed([first])
            (second,) = plains.start()
            plains.wait(lambda: second.refused, "it is refused")
            assert "belongs to another user, who could decide which members" in second.refused


NOBODY = 65_534


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which every user can make folders and nobody can remove those of others."""
    with tempfile.TemporaryDirectory(prefix="hustings-shared-") as name:
        os.chmod(name, 0o1777)
        monkeypatch.setenv("HUSTINGS_LOCAL_DIR", name)
        yield Path(name)


FORKING = """
import asyncio, os, signal, sys
import hustings

async def main():
    async with hustings.join("plain") as member:
        async for state in member.observe():
            if state.leading:
                break
        child = os.fork()
        if child == 0:
            print(os.getpid(), flush=True)
            sys.stdin.readline()
            os._exit(0)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def test_a_forked_child_does_not_keep_its_parent_s_place() -> None:
    """The lock ends with the member's process, although the child lives."""
    parent = subprocess.Popen(
        [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    child = int(parent.stdout.readline())
    try:
        parent.kill()
        parent.wait()
        with Plains() as plains:
            (fresh,) = plains.start()
            plains.wait(lambda: fresh.leading, "nothing keeps it from leading")
            assert fresh.notes == []
            os.kill(child, 0)  # it lives
    finally:
        parent.stdin.close()
        parent.stdout.close()
