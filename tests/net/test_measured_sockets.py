"""Thesis 5.7 on real sockets: whoever hears the others best, or is nearest to them, leads.

Datagrams of some members leave late or are not heard, by the switch at their ports.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hustings.net.member import Member
from tests.net.kit.crowd import Crowd, endpoint, faults, standing
from tests.net.kit.loops import run, throughout, until

NAMES = ["a", "b", "c", "d", "e"]
QUICK: dict[str, Any] = {"T_M": "50ms", "window": 20}
LATE = 0.2  # seconds: four times the bound on delays, so that it differs by more than three steps
WITHIN = 30.0


def ranked_by(what: str, **more: Any) -> dict[str, Any]:
    """What goes to `join`."""
    return {"choice": f"lowest:{what}", "measure": {"what": what, **more}, "preempt": True}


def led_by(crowd: Crowd, name: str) -> bool:
    return all(each.leader is not None and each.leader.name == name for each in crowd.open())


async def comes_to_lead(crowd: Crowd, name: str) -> None:
    """It leads, and goes on to."""
    await until(
        lambda: led_by(crowd, name), lambda: f"{name} leads; {standing(crowd.open())}", WITHIN
    )
    await throughout(1.0, lambda: led_by(crowd, name), "it is displaced again")


def deafen(members: list[Member], best: Member) -> None:
    """All but the best hear two of the four others no more; whoever is to be followed is heard."""
    for place, member in enumerate(members):
        if member is not best:
            others = members[place + 1 :] + members[:place]
            deaf_to = [each for each in others if each is not best][:2]
            faults(member).cut(map(endpoint, deaf_to), to=False)


def test_who_hears_best_comes_to_lead() -> None:
    async def story() -> None:
        async with Crowd(protocol="le-s", **ranked_by("loss", **QUICK)) as crowd:
            members = await crowd.add_all(NAMES)
            await crowd.known(5)
            leader = await crowd.settled()
            best = next(each for each in members if each is not leader)
            deafen(members, best)
            await comes_to_lead(crowd, best.name)

    run(story())


@pytest.mark.parametrize("protocol", ["le-s", "le-a"])
def test_who_is_nearest_comes_to_lead(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, **ranked_by("delay", **QUICK)) as crowd:
            members = await crowd.add_all(NAMES[:3])
            await crowd.known(3)
            leader = await crowd.settled()
            best = next(each for each in members if each is not leader)
            for member in members:
                faults(member).delay = 0.0 if member is best else LATE
            await comes_to_lead(crowd, best.name)

    run(story())


RUN = ("run", "near")
AGENT = ("agent", "--group", "near", "--http", "127.0.0.1:0")


@contextmanager
def process(words: tuple[str, ...], seeds: list[str]) -> Iterator[None]:
    """A member of its own process, which measures as the command line tells it to."""
    joins = [text for seed in seeds for text in ("--join", seed)]
    options = ["--name", "z", "--bind", "127.0.0.1:0", "--measure", "delay", *joins]
    options += ["--choice", "lowest:delay", "--preempt"]
    command = ["--", "sleep", "600"] if words is RUN else []
    with subprocess.Popen(
        [sys.executable, "-m", "hustings", *words, *options, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as started:
        try:
            yield
        finally:
            started.terminate()


@pytest.mark.parametrize("words", [RUN, AGENT], ids=["run", "agent"])
def test_a_process_is_nearest(words: tuple[str, ...]) -> None:
    """Two members answer late, and the one that a command starts does not: it comes to lead."""

    async def story() -> None:
        async with Crowd(group="near", **ranked_by("delay")) as crowd:
            for member in await crowd.add_all(NAMES[:2]):
                faults(member).delay = LATE
            await crowd.settled()
            with process(words, [each.address for each in crowd.open()]):
                await comes_to_lead(crowd, "z")

    run(story())
