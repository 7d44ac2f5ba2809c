"""One of four workers sends the invoices: uvicorn starlette_app:app --workers 4"""

from shop import PERIOD, send
from starlette.applications import Starlette

import hustings
import hustings.asgi


@hustings.once("shop-invoices", every=PERIOD)
async def send_invoices(term: hustings.Term) -> None:
    send(term)


app = Starlette(lifespan=hustings.asgi.lifespan(send_invoices))
