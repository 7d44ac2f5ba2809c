"""One of four workers sends the invoices: uvicorn fastapi_app:app --workers 4"""

from fastapi import FastAPI
from shop import PERIOD, send

import hustings
import hustings.asgi


@hustings.once("shop-invoices", every=PERIOD)
async def send_invoices(term: hustings.Term) -> None:
    send(term)


app = FastAPI(lifespan=hustings.asgi.lifespan(send_invoices))


@app.get("/leader")
async def leader() -> str | None:
    state = send_invoices.state
    return state.leader.name if state and state.leader else None
