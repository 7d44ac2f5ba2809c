"""A holder in a process of its own: it asks until it is granted, renews, and says what it sees.

    python -m tests.guard.client URL GROUP NAME LIFE TTL

Every line it prints is JSON: `granted` and `renewed` with token and deadline (on the clock that all
processes of a machine share), `over` when it sees its deadline behind it, `refused` when the guard
says that it holds no more. Its window is open only while its clock says so, whatever was said.
"""

from __future__ import annotations

import asyncio
import json
import sys

from hustings.guard import Grant, Guard, Holder, NotGranted, Unreachable, make_guard

_LOOK_S = 0.02


def say(what: str, **more: object) -> None:
    print(json.dumps({"said": what, **more}), flush=True)


async def granted(guard: Guard, holder: Holder, ttl: float) -> Grant:
    while True:
        try:
            answer = await guard.acquire(holder, ttl)
        except Unreachable:
            continue
        if isinstance(answer, Grant):
            return answer
        await asyncio.sleep(_LOOK_S)


async def hold(guard: Guard, grant: Grant, ttl: float) -> None:
    """Renew for ever, or until it is over."""
    while True:
        renewal = grant.deadline - ttl / 2
        while guard.now() < min(renewal, grant.deadline):
            await asyncio.sleep(_LOOK_S)
        if guard.now() >= grant.deadline:
            say("over", token=grant.token, at=guard.now())
        try:
            grant = await guard.renew(grant, ttl)
            say("renewed", token=grant.token, deadline=grant.deadline)
        except NotGranted:
            say("refused", token=grant.token)
            return
        except Unreachable:
            await asyncio.sleep(_LOOK_S)


async def main(url: str, group: str, name: str, incarnation: str, ttl: str) -> None:
    async with make_guard(url, group) as guard:
        grant = await granted(guard, Holder(name, int(incarnation)), float(ttl))
        say("granted", token=grant.token, deadline=grant.deadline)
        await hold(guard, grant, float(ttl))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
