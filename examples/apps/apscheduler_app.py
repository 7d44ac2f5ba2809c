"""Start this several times: one process has a running scheduler. For APScheduler 3."""

import logging

from apscheduler.schedulers.background import BackgroundScheduler
from shop import PERIOD_S, send

import hustings
import hustings.blocking


def send_invoices(term: hustings.blocking.Term) -> None:
    term.check()
    send(term)


@hustings.once("shop-scheduler")
def schedule(term: hustings.blocking.Term) -> None:
    scheduler = BackgroundScheduler()
    scheduler.add_job(send_invoices, "interval", seconds=PERIOD_S, args=[term])
    scheduler.start()
    try:
        term.lost.wait()
    finally:
        scheduler.shutdown()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    schedule.run()
