"""The same members on uvloop's loop, where programs of ours run if it is installed."""

from __future__ import annotations

import asyncio

import pytest

from hustings.agent import event_loop
from hustings.core.election import Election
from hustings.protocols.registry import BASELINES, CATALOGUE, CONSENSUS, PRINTED, classes
from tests.net.kit.crowd import Crowd

JOINABLE = [
    kind
    for kind in classes(CATALOGUE)
    if kind not in (*classes(BASELINES), *classes(PRINTED), *classes(CONSENSUS))
]


def test_programs_run_on_it() -> None:
    async def where() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert event_loop.run(where()).startswith("uvloop")


@pytest.mark.parametrize("kind", JOINABLE, ids=lambda kind: kind.about.name)
def test_elects_loses_and_re_elects(kind: type[Election]) -> None:
    """Its timers have no deadline that can be asked for, and it stops reading at an error."""

    async def story() -> None:
        async with asyncio.timeout(60), Crowd(protocol=kind.about.name) as crowd:
            await crowd.add_all(["a", "b", "c", "d"])
            await crowd.known(4)
            first = await crowd.agreed()
            await first.kill()
            second = await crowd.agreed(but=first.name)
            await second.leave()
            await crowd.agreed(but=second.name)
            await crowd.add(first.name)
            await crowd.known(3)

    event_loop.run(story())
