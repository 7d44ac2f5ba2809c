"""HTTP services that refuse the requests of a leader that was replaced: what ASGI and WSGI share.

    app = AsgiFence(app, "tokens", resource="billing")

A client sends the token of its term in the header `Hustings-Token`. The highest token is on disk
before the first request that carries it reaches the application. These answers replace the
application's answer. Each has a JSON body that says why:

    400  the header is not one token, or the body ended before its length
    411  the body has no length that this server tells (WSGI)
    412  the token is stale; the body names the highest, and in `handed_over` whether the
         application had got the request: if it had, look what it did before you do it again
    413  the body is longer than `body_limit`
    428  there is no token, and the method is one that changes things
    503  the fence cannot tell (its file is damaged or locked)

What the fence promises, without any option:

- The body is read first. Just before the application gets the request, its token is compared with
  the highest. So a leader that was stopped between head and body does not reach the application.
- When a larger token comes, it overtakes the requests with smaller tokens that are in the
  application. The application gets no more of such a request's body. The request's answer becomes a
  412, or is cut off if it had begun. After half of `grace` the request's task is cancelled (ASGI; a
  thread cannot be cancelled).
- The larger token enters when the overtaken requests have left by themselves, and at the latest
  `grace` seconds after the token was first seen. A cancelled request counts as present until then:
  work that it gave to a thread goes on. So a request that hangs costs the next leader at most
  `grace`, once.
- Requests with equal tokens do not wait for one another.
- Processes of one machine that share a ledger keep these promises together, also the workers of one
  server.

What no middleware can promise: an application that still runs after `grace` (a thread, a task that
ignores its cancellation, work that it gave to another thread, process or queue) may still write.
And servers on several machines have several ledgers: one server does not know a token that came to
another. Both gaps close if the application passes the token on to its store: it is in
`scope["hustings.token"]` and `environ["hustings.token"]`, for a `PostgresFence`, a `RedisFence` or
a `WHERE token <= ...` of one's own. A `StaleToken` that leaves the application is answered with
412.

With `stream` the body is not read first: for bodies larger than memory. Then the application is
called at the head, and every part of the body is compared before the application gets it. Two
promises are lost. The application may act on the beginning of a body whose end never passes. And in
WSGI a client that stops in the middle of its body keeps its thread in the application. So the next
leader waits for that thread, `grace` seconds, once.

A token is no secret, and does not prove who sends it. A client that may send a token may send a
large one and lock out all others: authenticate clients in front of this fence. Time limits for slow
clients belong to the server: a thread that reads a slow body serves no other client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from hustings.core.errors import BadInput
from hustings.fence.fence import LARGEST_TOKEN, FenceBroken, FenceBusy, StaleToken, checked
from hustings.fence.inflight import InFlight
from hustings.fence.ledger import LONGEST_NAME, Ledger

HEADER = "Hustings-Token"
TOKEN_KEY = "hustings.token"  # the application finds the token under this key
OPEN_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")  # these change nothing
GRACE = 2.0  # seconds
BODY_LIMIT = 8 * 1024 * 1024  # bytes
LONGEST_GRACE = 3600.0

A = TypeVar("A")  # an application
R = TypeVar("R")  # a server's data about a request

_TOKEN = re.compile(rb"[1-9][0-9]{0,18}")


def header(token: int) -> dict[str, str]:
    """The header that a client sends with its requests.

    >>> header(7)
    {'Hustings-Token': '7'}
    """
    return {HEADER: str(checked(token))}


class Refusal(Exception):
    """An answer instead of the application's."""

    def __init__(self, status: int, error: str, message: str, **more: int) -> None:
        super().__init__(message)
        self.status = status
        self.body = json.dumps({"error": error, "message": message, **more}).encode() + b"\n"

    def headers(self) -> list[tuple[str, str]]:
        """All headers that the answer needs."""
        plain = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(self.body))),
            ("Cache-Control", "no-store"),
        ]
        return [*plain, ("Retry-After", "1")] if self.status == 503 else plain


class Entry(NamedTuple):
    """The resource and the token with which a request asks to enter."""

    name: str
    token: int


class HttpFence(Generic[A, R]):
    """What both kinds share: from headers to a token, and from errors to answers."""

    def __init__(
        self,
        app: A,
        ledger: Ledger | str | Path,
        *,
        resource: str | Callable[[R], str] = "http",
        required: bool = True,
        open_methods: Iterable[str] = OPEN_METHODS,
        grace: float = GRACE,
        body_limit: int = BODY_LIMIT,
        stream: bool = False,
    ) -> None:
        """`resource` names the thing that a token protects.

        With several resources it is a function of the server's data about a request (the scope, the
        environment).

        With `required`, a request without a token passes only with one of the `open_methods`.
        `grace` is how long, in seconds, a larger token waits for smaller ones to leave the
        application. A body is read into memory first, up to `body_limit` bytes. With `stream` it is
        not read first, and has no limit.
        """
        if not 0 <= grace <= LONGEST_GRACE:
            raise BadInput(f"grace lies between 0 and {LONGEST_GRACE:g} seconds, not {grace}")
        if type(body_limit) is not int or body_limit < 0:
            raise BadInput("body_limit is a number of bytes, 0 or more")
        if isinstance(resource, str) and not 0 < len(resource) <= LONGEST_NAME:
            raise BadInput(f"a resource's name has between 1 and {LONGEST_NAME} characters")
        ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._app = app
        self.in_flight = InFlight(ledger, grace)
        self.grace = grace
        self.body_limit = body_limit
        self.stream = stream
        self._resource = resource
        self._required = required
        self._open = frozenset(each.upper() for each in open_methods)

    def entry(self, request: R, method: str, values: list[bytes]) -> Entry | None:
        """The resource and the token of a request; None if it may pass without a token."""
        if not values:
            if self._required and method.upper() not in self._open:
                raise Refusal(428, "token-required", f"this needs a token in {HEADER}")
            return None
        if len(values) > 1 or not _TOKEN.fullmatch(values[0]) or int(values[0]) > LARGEST_TOKEN:
            rule = f"{HEADER} is one decimal number between 1 and 2**63 - 1, without signs or zeros"
            raise Refusal(400, "bad-token", f"{rule} in front")
        name = self._resource if isinstance(self._resource, str) else self._resource(request)
        if not 0 < len(name) <= LONGEST_NAME:
            raise Refusal(400, "bad-resource", "this resource's name cannot be kept")
        return Entry(name, int(values[0]))

    def too_long(self) -> Refusal:
        """The answer to a body that is too long."""
        return Refusal(
            413, "body-too-long", f"a fenced request has a body of at most {self.body_limit} bytes"
        )


def refusal(error: Exception, entered: bool) -> Refusal | None:
    """The answer to an error that stopped a request; None if the fence is not the cause."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, StaleToken):
        numbers = {"token": error.token, "highest": error.highest, "handed_over": entered}
        return Refusal(412, "stale-token", str(error), **numbers)
    if isinstance(error, FenceBusy):
        return Refusal(503, "fence-busy", "others are in the way: try again")
    if isinstance(error, FenceBroken):
        # The sentence names a file of the server, which clients must not see.
        message = "the fence cannot tell which token is the highest"
        return Refusal(503, "fence-broken", message, handed_over=entered)
    return None
