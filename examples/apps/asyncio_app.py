"""Start this several times: one process sends the invoices."""

import logging

from shop import PERIOD, send

import hustings


@hustings.once("shop-invoices", every=PERIOD)
async def send_invoices(term: hustings.Term) -> None:
    send(term)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    send_invoices.run()
