"""Engines that tell which one they are: two addresses of one engine are one guard."""

from __future__ import annotations

import pytest

from hustings.guard import make_guard
from hustings.guard.chosen import choose
from tests.guard.engines.base import Engine
from tests.net.kit.loops import run


@pytest.mark.parametrize("engine", ["etcd", "postgres"], indirect=True)
def test_two_addresses_of_one_engine_are_one_guard(engine: Engine) -> None:
    async def play() -> None:
        notes: list[str] = []
        url = engine.url()
        told = [
            await choose(each, "g", lambda _: 0).agreed(5.0, notes.append)
            for each in (url, url.replace("127.0.0.1", "localhost"))
        ]
        assert told[0] == told[1]
        fields = {field.name: field.value for field in told[0]}
        assert fields["guard engine"].split()[0] in ("cluster", "system")
        async with make_guard(url, "other") as guard:
            assert await guard.identity() == fields["guard engine"]
        named = choose(f"{url}{'&' if '?' in url else '?'}identity=prod", "g", lambda _: 0)
        assert [field.value for field in await named.agreed(5.0, notes.append)][1] == "prod"

    run(play())
