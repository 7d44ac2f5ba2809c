"""The jobs of the project."""

from shop import PERIOD, send

import hustings.blocking


@hustings.once("shop-invoices", every=PERIOD)
def send_invoices(term: hustings.blocking.Term) -> None:
    send(term)
