"""One of the workers sends the invoices, in a thread of its own.

gunicorn flask_app:app --workers 4 -c gunicorn_conf.py
python flask_app.py PORT        several times, each with a port of its own
"""

import logging
import sys

from flask import Flask
from shop import PERIOD, send

import hustings.blocking


@hustings.once("shop-invoices", every=PERIOD)
def send_invoices(term: hustings.blocking.Term) -> None:
    send(term)


logging.basicConfig(level=logging.INFO)
app = Flask(__name__)


@app.get("/leader")
def leader() -> str:
    state = send_invoices.state
    return state.leader.name if state and state.leader else "nobody"


if __name__ == "__main__":
    with send_invoices.start():
        app.run(port=int(sys.argv[1]), threaded=True)
