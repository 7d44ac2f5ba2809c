"""Start this several times: one process has a running scheduler. For APScheduler 4."""

import logging

from apscheduler import AsyncScheduler
from apscheduler.triggers.interval import IntervalTrigger
from shop import PERIOD_S, send

import hustings


async def send_invoices(term: hustings.Term) -> None:
    term.check()
    send(term)


@hustings.once("shop-scheduler")
async def schedule(term: hustings.Term) -> None:
    async with AsyncScheduler() as scheduler:
        trigger = IntervalTrigger(seconds=PERIOD_S)
        await scheduler.add_schedule(send_invoices, trigger, args=[term])
        await scheduler.run_until_stopped()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    schedule.run()
