"""One of several beats sends the task, and a worker runs it.

celery -A celery_app beat           as often as you like
celery -A celery_app worker
"""

import os
import time
from dataclasses import dataclass
from typing import Any

from celery import Celery
from celery.signals import before_task_publish
from shop import PERIOD_S, send

app = Celery("shop", broker=os.environ.get("SHOP_BROKER", "redis://127.0.0.1:6379/0"))
app.conf.beat_scheduler = "hustings.celery_beat:BeatScheduler"
app.conf.hustings_beat = {"group": "shop-beat"}
if guard := os.environ.get("SHOP_GUARD"):
    app.conf.hustings_beat |= {"guard": guard, "ttl": "1s"}
app.conf.beat_schedule = {"invoices": {"task": "shop.send_invoices", "schedule": PERIOD_S}}


@dataclass
class Sent:
    """The term in which a beat sent a message."""

    number: int
    token: int | None


@before_task_publish.connect  # type: ignore[untyped-decorator,unused-ignore]
def tell_worker(headers: dict[str, Any], **others: Any) -> None:
    """The journal is to say when a beat sent a message, and not when a worker got to it."""
    headers["sent_at"], headers["sent_by"] = time.monotonic(), os.getpid()


@app.task(bind=True, name="shop.send_invoices")  # type: ignore[untyped-decorator,unused-ignore]
def send_invoices(self: Any) -> None:
    headers = self.request.headers
    sent = Sent(headers["hustings_term"], headers["hustings_token"])
    send(sent, headers["sent_at"], headers["sent_by"])
