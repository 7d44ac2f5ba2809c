"""One worker: `python -m tests.guard.workload.worker ENGINE URL NAME LIFE TTL FENCED`.

It looks at its clock before each transfer, and not within: however short a transfer is, a process
can be stopped in the middle of it. After SIGUSR1 it stops itself there, once, until SIGCONT. What
happens it says in lines of JSON, each with the time.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress

from hustings.fence import StaleToken
from hustings.guard import Grant, Guard, Holder, NotGranted, Unreachable, make_guard
from tests.guard.workload.banks import ACCOUNTS, BANKS, Bank, Lost


class Unsure(Exception):
    """A write was not answered, and may yet arrive. The fence cannot tell it from newer ones of the
    same token: whoever goes on needs a new token, which it is then refused for.
    """


THINK_S = (0.002, 0.012)
LOOK_S = 0.05


def say(what: str, **more: object) -> None:
    print(json.dumps({"what": what, "at": time.monotonic(), **more}), flush=True)


class Worker:
    """Asks, renews, and moves money while it holds."""

    def __init__(self, guard: Guard, bank: Bank, holder: Holder, ttl: float) -> None:
        self._guard = guard
        self._bank = bank
        self._holder = holder
        self._ttl = ttl
        self._rng = random.Random(f"{holder}")
        self._count = 0
        self.ending = False
        self.stopping = False

    async def run(self) -> None:
        while not self.ending:
            try:
                answer = await self._guard.acquire(self._holder, self._ttl)
            except Unreachable:
                await asyncio.sleep(LOOK_S)
                continue
            if isinstance(answer, Grant):
                say("granted", token=answer.token, deadline=answer.deadline)
                await self._hold(answer)
            else:
                rest = max(LOOK_S, min(answer.remaining, self._ttl))
                await asyncio.sleep(rest * self._rng.uniform(0.1, 0.5))

    async def _hold(self, grant: Grant) -> None:
        self._grant = grant
        self._over = False
        renewing = asyncio.create_task(self._renew())
        try:
            await self._work(grant.token)
        except StaleToken as stale:
            say("refused", token=stale.token, highest=stale.highest)
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
        if self._holds():
            say("released", token=grant.token)  # before: from here on it does nothing with it
            with suppress(Unreachable):
                await self._guard.release(self._grant)
        else:
            say("lost", token=grant.token)

    def _holds(self) -> bool:
        return not self._over and self._guard.now() < self._grant.deadline

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._ttl / 3)
            try:
                self._grant = await self._guard.renew(self._grant, self._ttl)
                say("renewed", token=self._grant.token, deadline=self._grant.deadline)
            except NotGranted:
                self._over = True
                return
            except Unreachable:
                await asyncio.sleep(LOOK_S)

    async def _work(self, token: int) -> None:
        entered = False
        while self._holds() and not self.ending:
            try:
                if not entered:
                    await self._bank.enter(token)
                    entered = True
                await self._transfer(token)
            except Lost:
                await asyncio.sleep(LOOK_S)
            except Unsure:
                return

    async def _transfer(self, token: int) -> None:
        self._count += 1
        key = f"{self._holder}-{self._count}"
        giver, taker = self._rng.sample(range(ACCOUNTS), 2)
        gives, takes = await self._bank.read(giver, taker)
        await asyncio.sleep(self._rng.uniform(*THINK_S))
        amount = self._rng.randint(1, 10)
        if self.stopping:
            self.stopping = False
            say("stopped", token=token)
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            await self._bank.write(token, key, {giver: gives - amount, taker: takes + amount})
        except Lost:
            raise Unsure from None
        say("done", token=token, key=key)


async def main(engine: str, url: str, name: str, life: str, ttl: str, fenced: str) -> None:
    bank = BANKS[engine](url, fenced=fenced == "yes", patience=float(ttl))
    guard = make_guard(url, "bank")
    worker = Worker(guard, bank, Holder(name, int(life)), float(ttl))

    def end() -> None:
        worker.ending = True

    def stop() -> None:
        worker.stopping = True

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, stop)
    while not worker.ending:
        try:
            await guard.open()
            break
        except Unreachable:
            await asyncio.sleep(LOOK_S)
    await worker.run()
    await guard.close()
    await bank.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
