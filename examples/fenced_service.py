"""A service behind a fence, and a thread that writes too late: what the store must do.

The fence keeps requests of a former leader away from the application. It cannot cancel a thread
that is in the application already. If the thread is slower than the fence's grace, it writes after
its successor, unless the store compares the token in the statement that writes.
"""

import logging
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hustings.fence import StaleToken, WsgiFence

PLAIN = "UPDATE account SET amount = :amount, token = :token"
FENCED = PLAIN + " WHERE token <= :token"


class Bank:
    """One account, and the application in front of it. The first request takes too long."""

    def __init__(self, folder: Path, statement: str) -> None:
        self.path = folder / "bank.db"
        self.statement = statement
        self.inside, self.go_on = threading.Event(), threading.Event()
        with sqlite3.connect(self.path) as store:
            store.execute("CREATE TABLE account (amount, token)")
            store.execute("INSERT INTO account VALUES (0, 0)")

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        token = environ["hustings.token"]
        if token == 5:
            self.inside.set()
            self.go_on.wait()
        self.write(amount=token * 100, token=token)
        start("200 OK", [])
        return [b"done"]

    def write(self, amount: int, token: int) -> None:
        with sqlite3.connect(self.path) as store:
            values = {"amount": amount, "token": token}
            if store.execute(self.statement, values).rowcount == 0:
                [[highest]] = store.execute("SELECT token FROM account")
                raise StaleToken(token, highest)

    def read(self) -> int:
        with sqlite3.connect(self.path) as store:
            [[amount]] = store.execute("SELECT amount FROM account")
            return int(amount)


def ask(app: WsgiFence, token: int) -> str:
    """As a server would."""
    said: list[str] = []
    environ = {"REQUEST_METHOD": "POST", "HTTP_HUSTINGS_TOKEN": str(token)}
    parts: Any = app(environ, lambda status, headers: said.append(status))
    try:
        list(parts)
    finally:
        if hasattr(parts, "close"):
            parts.close()
    return said[0]


def show(what: str, statement: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        bank = Bank(Path(name), statement)
        app = WsgiFence(bank, Path(name) / "tokens", grace=0.1)
        answers: list[str] = []
        old = threading.Thread(target=lambda: answers.append(ask(app, 5)))
        old.start()
        bank.inside.wait()
        print(f"{what}: token 6 is answered {ask(app, 6)}, amount {bank.read()}")
        bank.go_on.set()
        old.join()
        print(f"  then token 5 is answered {answers[0]}, amount {bank.read()}")


logging.getLogger("hustings.fence").setLevel(logging.ERROR)  # it warns of the thread
show("a store that does not compare", PLAIN)
show("a store that does", FENCED)
