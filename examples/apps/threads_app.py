"""Start this several times: one process sends the invoices, beside its other threads."""

import logging
import signal
import threading

from shop import PERIOD, send

import hustings.blocking


@hustings.once("shop-invoices", every=PERIOD)
def send_invoices(term: hustings.blocking.Term) -> None:
    send(term)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: end.set())
    with send_invoices.start():
        end.wait()
