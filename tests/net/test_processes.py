"""Members in processes of their own: killed, paused, restarted, with bad clocks and networks."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit.ports import free_address
from tests.net.kit.troop import Soldier, Troop, one_leader

NAMES = ["ada", "ben", "cleo", "dan", "eve"]
# Every change is tried with one or two families, `make soak` with all three.
LARGE = pytest.param("probabilistic", marks=pytest.mark.soak)
CLASSIC = pytest.param("bully", marks=pytest.mark.soak)
three_kinds = pytest.mark.parametrize("protocol", ["le-s", "bully", LARGE])
first_kind = pytest.mark.parametrize("protocol", ["le-s", CLASSIC, LARGE])


def others(troop: Troop, soldier: Soldier) -> list[Soldier]:
    return [each for each in troop.alive() if each is not soldier]


def endpoint(soldier: Soldier) -> tuple[str, int]:
    host, _, port = soldier.address.rpartition(":")
    return host, int(port)


def any_without_office(soldier: Soldier, since: float) -> list[dict[str, Any]]:
    """States since then in which it did not lead."""
    return [each for each in soldier.told("state") if each["at"] > since and not each["leading"]]


def complete(troop: Troop) -> Soldier:
    """A troop that knows all of itself and its leader."""
    soldiers = troop.muster(NAMES)
    troop.known(len(soldiers))
    return troop.settled()


@three_kinds
def test_kill_9_is_noticed_by_all_and_again(protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        leader = complete(troop)
        for _ in range(3):
            troop.kill(leader)
            after = troop.agreed(but=leader.name)
            assert after.term > leader.term
            leader = after


@first_kind
def test_a_killed_member_restarts_under_its_name(protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        leader = complete(troop)
        troop.kill(leader)
        second = troop.agreed(but=leader.name)
        back = troop.up(leader.name)
        troop.known(5)
        troop.settled()
        assert back.pid != leader.pid
        assert not second.dead


@first_kind
def test_a_leader_that_is_killed_and_restarts_at_once_is_one_member_not_two(protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        for name in NAMES:
            troop.up(name, bind=free_address())
        troop.known(5)
        leader = troop.settled()
        troop.kill(leader)
        troop.up(leader.name, bind=leader.address)
        troop.known(5)
        troop.settled()


@first_kind
def test_a_leader_that_leaves_says_so(protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        leader = complete(troop)
        rest = others(troop, leader)
        leader.order("leave")
        troop.agreed(but=leader.name, among=rest, within=5)
        troop.wait(lambda: leader.state["reason"] == "left", "it says so itself")
        troop.known(4)


@first_kind
def test_a_paused_leader_is_replaced_and_steps_down_when_it_wakes(protocol: str) -> None:
    """What it believes when it wakes is old: its successor leads, and it learns of that."""
    with Troop(protocol=protocol) as troop:
        leader = complete(troop)
        rest = others(troop, leader)
        troop.pause(leader)
        paused = time.monotonic()
        second = troop.agreed(but=leader.name, among=rest, within=20)
        troop.wait(lambda: time.monotonic() > paused + 1.5, "for longer than a hiccup")
        woken = time.monotonic()
        troop.resume(leader)
        troop.wait(lambda: any_without_office(leader, woken), "it steps down")
        assert any_without_office(leader, woken)[0]["at"] - woken < 2.0
        final = troop.settled()
        assert final.term >= second.term
        assert not any(each.told("failed") for each in troop.alive())


@three_kinds
def test_a_paused_leader_whose_work_runs_on_ends_it_within_the_bound(protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        troop.muster(NAMES[:3], campaign=True)
        troop.known(3)
        leader = troop.settled()
        troop.wait(lambda: leader.told("working"), "it works")
        term = leader.told("working")[-1]["term"]
        troop.pause(leader)
        second = troop.agreed(but=leader.name, among=others(troop, leader), within=20)
        troop.wait(lambda: second.told("working"), "its successor works")
        woken = time.monotonic()
        troop.resume(leader)
        troop.wait(lambda: leader.told("rested"), "the old leader's work ends")
        ended = leader.told("rested")[0]
        assert (ended["term"], ended["at"] - woken < 2.0) == (term, True)
        troop.settled()


def test_a_paused_follower_comes_back_without_a_new_leader() -> None:
    with Troop(protocol="bully") as troop:
        leader = complete(troop)
        follower = others(troop, leader)[0]
        troop.pause(follower)
        troop.linger(2.0, lambda: leader.leading, "a paused follower unseats the leader")
        troop.resume(follower)
        troop.known(5)
        assert troop.settled().name == leader.name


def test_a_leader_whose_loop_hangs_steps_down_too() -> None:
    with Troop(protocol="bully") as troop:
        troop.muster(NAMES[:3], campaign=True)
        troop.known(3)
        leader = troop.settled()
        troop.wait(lambda: leader.told("working"), "it works")
        leader.order("block", seconds=2)
        troop.agreed(but=leader.name, among=others(troop, leader), within=20)
        troop.wait(lambda: leader.told("rested"), "its work ends")
        troop.settled()


def test_the_whole_group_is_paused_and_wakes() -> None:
    """As when a laptop is closed: nobody is to blame, and in the end there is one leader."""
    with Troop(protocol="bully") as troop:
        complete(troop)
        for soldier in troop.alive():
            troop.pause(soldier)
        time.sleep(1.5)  # nothing runs meanwhile: there is nothing to wait for
        for soldier in troop.alive():
            troop.resume(soldier)
        troop.linger(0.3, lambda: True, "")
        troop.known(5)
        troop.settled()


@first_kind
def test_members_join_while_an_election_is_on(protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        leader = complete(troop)
        newcomers = [troop.start(f"new-{number}") for number in range(5)]
        troop.kill(leader)
        troop.wait(lambda: all(each.address for each in newcomers), "all are up")
        troop.known(9)
        troop.settled()


@first_kind
def test_transfer_and_resign_between_processes(protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        leader = complete(troop)
        heir = others(troop, leader)[0]
        leader.order("transfer", to=heir.name)
        assert troop.agreed(but=leader.name) is heir
        heir.order("resign")
        troop.agreed(but=heir.name)


@first_kind
@pytest.mark.parametrize(
    "faults",
    [{"loss": 0.3}, {"copies": 0.5, "jitter": 0.03}],
    ids=["30 % loss", "copies out of order"],
)
def test_bad_networks(protocol: str, faults: dict[str, float]) -> None:
    with Troop(protocol=protocol) as troop:
        troop.muster(NAMES, faults=faults)
        troop.known(5)
        leader = troop.agreed(within=20)
        troop.kill(leader)
        troop.agreed(but=leader.name, within=20)


@first_kind
@pytest.mark.parametrize("both", [True, False], ids=["two-way", "one-way"])
def test_cuts_at_the_ports(protocol: str, both: bool) -> None:
    with Troop(protocol=protocol) as troop:
        leader = complete(troop)
        rest = others(troop, leader)
        far = [endpoint(each) for each in rest]
        leader.order("faults", cut=far, to=True, by=both)
        for each in rest:
            each.order("faults", cut=[endpoint(leader)], to=both, by=True)
        troop.agreed(but=leader.name, among=rest, within=20)
        for each in troop.alive():
            each.order("faults", heal=True)
        troop.known(5, within=30)
        troop.settled(within=30)


# Clocks


@first_kind
def test_clocks_that_run_at_other_rates_and_began_at_other_times(protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        rates = [0.9, 0.95, 1.0, 1.05, 1.1]
        for place, (name, rate) in enumerate(zip(NAMES, rates, strict=True)):
            troop.up(name, rate=rate, offset=1000.0 * place)
        troop.known(5)
        leader = troop.settled()
        troop.linger(1.0, lambda: one_leader(troop.alive()) is leader, "it changes at rest")
        troop.kill(leader)
        troop.agreed(but=leader.name)


@first_kind
def test_systems_that_tell_other_times(protocol: str) -> None:
    """A day ahead, behind, and clocks of the system that run a tenth faster and slower."""
    clocks = dict(zip(NAMES, ["", "+1d", "-2h", "+0 x1.1", "-1d x0.9"], strict=True))
    with Troop(protocol=protocol) as troop:
        for name, clock in clocks.items():
            troop.up(name, clock=clock)
        troop.known(len(NAMES))
        leader = troop.settled()
        before = {each["name"]: each for each in troop.ask_all(troop.alive())}
        troop.linger(2.0, lambda: one_leader(troop.alive()) is leader, "the leader stays")
        after = {each["name"]: each for each in troop.ask_all(troop.alive())}
        assert after["ben"]["date"] - after["ada"]["date"] == pytest.approx(86_400, abs=60)
        took = {name: after[name]["at"] - before[name]["at"] for name in NAMES}
        assert took["dan"] > 1.1 * took["eve"], "their clocks run at other rates"
        troop.kill(leader)
        troop.agreed(but=leader.name)


@pytest.mark.parametrize("state", [False, True], ids=["no state", "state"])
def test_the_date_makes_no_difference(state: bool, tmp_path: Path) -> None:
    """Members a day ahead and a day behind; one comes back with its date set back by an hour."""
    with Troop(protocol="bully", state=str(tmp_path) if state else None) as troop:
        troop.up("ahead", wall=86_400.0)
        troop.up("behind", wall=-86_400.0)
        troop.up("right")
        troop.known(3)
        leader = troop.settled()
        troop.kill(leader)
        troop.agreed(but=leader.name)
        walls = {"ahead": 86_400.0, "behind": -86_400.0, "right": 0.0}
        troop.up(leader.name, wall=walls[leader.name] - 3600.0)
        troop.known(3, within=30)
        troop.settled()


# A disk that is full


def test_a_member_without_room_on_its_disk_is_silent_until_there_is(tmp_path: Path) -> None:
    with Troop(protocol="bully", state=str(tmp_path)) as troop:
        leader = complete(troop)
        rest = others(troop, leader)
        leader.order("room", room=False)
        leader.order("elect")
        troop.wait(lambda: leader.state["reason"] == "its state cannot be written", "it says so")
        troop.agreed(but=leader.name, among=rest, within=20)
        leader.order("room", room=True)
        troop.wait(
            lambda: any("can be written again" in each["text"] for each in leader.told("note")),
            "there is room",
        )
        troop.known(5, within=30)
        troop.settled()


# Many


def crowd_elects_loses_and_re_elects(count: int, protocol: str) -> None:
    with Troop(protocol=protocol) as troop:
        names = [f"m{number:03}" for number in range(count)]
        troop.muster(names, within=90)
        troop.known(count, within=90)
        leader = troop.settled(within=90)
        for _ in range(2):
            troop.kill(leader)
            leader = troop.agreed(but=leader.name, within=60)


@first_kind
def test_forty_members_elect_lose_and_re_elect(protocol: str) -> None:
    crowd_elects_loses_and_re_elects(40, protocol)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("protocol", ["le-s", "probabilistic", "bully"])
def test_two_hundred_members_elect_lose_and_re_elect(protocol: str) -> None:
    crowd_elects_loses_and_re_elects(200, protocol)


def test_a_child_that_is_told_to_end_ends() -> None:
    """The kit itself: processes that a test leaves behind do not outlive it."""
    with Troop(protocol="bully") as troop:
        soldier = troop.up("ada")
        soldier.signal(signal.SIGSTOP)
        pid = soldier.pid
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.01)
