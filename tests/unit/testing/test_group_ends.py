"""What goes wrong in a group for tests is told, and one seed is one story."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.testing import Group, RanTooLong, Stuck
from tests.unit.testing.groups import fail, lone, three


@pytest.fixture
def group() -> Iterator[Group]:
    with three() as made:
        yield made


def test_an_error_of_spawned_code_is_not_lost() -> None:
    group = lone()
    group.spawn("a", fail("mine"))
    group.advance(1.0)
    with pytest.raises(KeyError, match="mine"):
        group.close()


def test_an_error_of_spawned_code_is_raised_once() -> None:
    with lone() as group:
        task = group.spawn("a", fail("mine"))
        with pytest.raises(KeyError, match="mine"):
            group.run(task)


def test_the_first_error_is_the_one_told() -> None:
    group = lone()
    group.spawn("a", fail("spawned"))
    with pytest.raises(KeyError, match="body"), group:
        group.run(fail("body"))


def test_a_group_that_hangs_is_told() -> None:
    with Group() as group, pytest.raises(Stuck):
        group.run(asyncio.Event().wait())
    with Group(most_seconds=100) as group:
        group.join("a")
        with pytest.raises(RanTooLong, match="100 s of virtual time"):
            group.run(asyncio.Event().wait())


def test_who_could_not_join_was_never_here() -> None:
    with Group() as group:
        with pytest.raises(UnknownName, match="did you mean 'bully'"):
            group.join("a", protocol="buly")
        assert group.up == []
        group.join("a")
        assert group.settle() == "a"


def test_a_closed_group_takes_no_more() -> None:
    with Group() as group:
        group.join("a")
    group.close()
    with pytest.raises(BadInput, match="closed"):
        group.join("b")


@pytest.mark.parametrize(
    "act, sentence",
    [
        (lambda group: group.join("a"), "'a' has joined before: restart it"),
        (lambda group: group.kill("d"), "unknown member 'd'"),
        (lambda group: (group.kill("a"), group.kill("a")), "'a' is not up: restart it first"),
        (lambda group: (group.kill("a"), group.resume("a")), "'a' is not up"),
        (lambda group: (group.pause("a"), group.leave("a")), "'a' is paused: resume it"),
        (lambda group: group.partition(["a", "b"], ["b", "c"]), "'b' stands on two sides"),
        (lambda group: group.cut("a", "x"), "unknown member 'x'"),
        (lambda group: group.weather(loss=2), "loss must lie between 0 and 1"),
        (lambda group: group.settle(["a", "x"]), "unknown member 'x'"),
        (lambda group: group.spawn("x", asyncio.sleep(1)), "unknown member 'x'"),
    ],
)
def test_a_mistake_gets_a_sentence(
    group: Group, act: Callable[[Group], object], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        act(group)


# The seed

STORY = """
import asyncio, sys
from hashlib import blake2b
import hustings
from hustings.testing import Group

async def work(member, done):
    while True:
        try:
            async with member.campaign() as term:
                while True:
                    done.append((member.name, term.number))
                    await asyncio.sleep(0.05)
        except hustings.LeadershipLost:
            done.append((member.name, 0))

def tell(seed):
    done = []
    with Group(seed=seed, delay=(0.001, 0.02), loss=0.1, duplicate=0.1, reorder=0.1) as group:
        for name in "abcde":
            group.spawn(name, work(group.join(name), done))
        first = group.settle()
        group.kill(first)
        second = group.settle()
        group.pause(second)
        third = group.settle()
        group.resume(second)
        group.partition([third], [name for name in group.up if name != third])
        group.advance(3)
        group.heal()
        group.restart(first)
        group.settle(steady=1)
        text = repr((group.now, group.log, done, sorted(group.network.tally.items())))
    return blake2b(text.encode(), digest_size=16).hexdigest()

print(tell(1), tell(1), tell(2))
"""


def test_one_seed_is_one_story_under_any_hash_seed() -> None:
    told = []
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", STORY],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        told.append(done.stdout.split())
    assert told[0] == told[1]
    first, again, other = told[0]
    assert first == again != other
