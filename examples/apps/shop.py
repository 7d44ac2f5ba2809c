"""What the examples beside this file run in exactly one of their workers: a line for each invoice.

SHOP_PERIOD=1s           how often the invoices are sent
SHOP_JOURNAL=FILE        where the lines go; else to the terminal
"""

import os
import time
from typing import Protocol

from hustings.core.durations import parse_duration

PERIOD = os.environ.get("SHOP_PERIOD", "1s")
PERIOD_S = parse_duration(PERIOD, "SHOP_PERIOD")


class Term(Protocol):
    """A term of leadership, of a coroutine or of a thread."""

    number: int
    token: int | None


def send(term: Term, at: float | None = None, process: int | None = None) -> None:
    """Write when, by which process, in which term and with which token an invoice was sent."""
    at, process = at or time.monotonic(), process or os.getpid()
    line = f"{at:.6f} {process} {term.number} {term.token}\n"
    journal = os.environ.get("SHOP_JOURNAL")
    if journal is None:
        print(line, end="", flush=True)
        return
    with open(journal, "a", encoding="ascii") as file:  # one write: lines of others stay whole
        file.write(line)
