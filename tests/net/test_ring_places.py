"""A ring whose members say by an attribute where they stand."""

from __future__ import annotations

import pytest

import hustings
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.net.member import Member
from hustings.protocols.ring import Ring
from tests.net.kit.crowd import Crowd
from tests.net.kit.loops import run, until
from tests.unit.cli.commands import in_own_process

CLOCKWISE = ["dan", "ada", "eve", "ben", "cleo"]


def ring_of(member: Member) -> Ring:
    """The election inside all that stands round it."""
    election: Election = member.node.stack
    while not isinstance(election, Ring):
        election = vars(election)["inner"]
    return election


def stands_before(one: Member) -> str | None:
    """The name of the member to which this one passes messages on."""
    successor = ring_of(one)._successor
    return next((each.name for each in one.members() if each.id == successor), None)


def test_messages_go_round_by_place() -> None:
    async def story() -> None:
        async with Crowd(protocol="ring", settings={"place": "seat"}) as crowd:
            for place, name in enumerate(CLOCKWISE):
                await crowd.add(name, attributes={"seat": place})
            await crowd.known(5)
            first = await crowd.agreed()
            await first.kill()
            await crowd.known(4)
            await crowd.agreed(but=first.name)
            left = [name for name in CLOCKWISE if name != first.name]
            after = dict(zip(left, [*left[1:], left[0]], strict=True))
            await until(
                lambda: all(stands_before(each) == after[each.name] for each in crowd.open()),
                lambda: f"{[(each.name, stands_before(each)) for each in crowd.open()]}",
            )

    run(story())


def test_a_member_without_its_place_is_refused() -> None:
    with pytest.raises(BadInput, match="'ada' lacks the attribute 'seat'"):
        hustings.join("g", name="ada", protocol="ring", settings={"place": "seat"})


def test_the_command_refuses_it_too() -> None:
    told = in_own_process(
        "run", "g", "--name", "ada", "--protocol", "ring", "--set", "place=seat", "--", "true"
    )
    assert "'ada' lacks the attribute 'seat': the settings name it" in told.complaint
