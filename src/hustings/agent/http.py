"""The agent's HTTP: questions and orders, and no answer that tells of the agent's insides.

Every answer is JSON, except those of `/v1/events` and `/metrics`. Every refusal is `{"error": ...}`
with one sentence.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hustings.agent import agent_member
from hustings.agent.access import ANY, Hosts, Token
from hustings.agent.agent_member import AgentMember
from hustings.agent.events import Broadcast, EventStream
from hustings.agent.logs import EventLog
from hustings.agent.metrics import CONTENT_TYPE, Exposition
from hustings.agent.openapi import document
from hustings.core.errors import BadInput, HustingsError, UnknownName
from hustings.net.member_state import NotLeader, NotTakenOver

LARGEST_BODY = 4096  # bytes
BODY_S = 10.0  # for the whole body to arrive
LONGEST_DRAIN_S = 3600.0
PATIENCE_S = 30.0  # for an order, in addition to its drain
LONGEST_NAME = 256


class Refused(Exception):
    """A request that gets an error status and a sentence."""

    def __init__(
        self, status: int, sentence: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers


def answer(
    body: agent_member.Json, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON answer that no cache may keep."""
    text = json.dumps(body, allow_nan=False, separators=(",", ":"))
    fields = {"cache-control": "no-store", **(headers or {})}
    return Response(text + "\n", status, fields, media_type="application/json")


def refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error answer with one sentence."""
    return answer({"error": sentence}, status, headers)


class Api:
    """The state and the settings that all requests share."""

    def __init__(
        self,
        members: Mapping[str, AgentMember],
        broadcast: Broadcast,
        log: EventLog,
        token: Token | None,
        drops: Callable[[], Mapping[str, int]],
        refused: Callable[[], Mapping[str, int]] = dict,
        hosts: Hosts | None = None,
        groups: Iterable[str] = (),
    ) -> None:
        """`refused` counts connections, by reason; without `hosts` any name is ours.

        `groups` are those that `members` will have; nothing is ready before.
        """
        self.members = members
        self.broadcast = broadcast
        self.token = token  # a reload replaces it
        self.stopping = False
        self._log = log
        self._metrics = Exposition(members, broadcast, drops, refused)
        self._hosts = hosts or Hosts([ANY])
        self._ready = dict.fromkeys(groups, False)

    def app(self) -> ASGIApp:
        """The ASGI application, for a server."""
        group = "/v1/groups/{group}"
        inner = Starlette(
            routes=[
                Route("/v1/groups", self._groups, methods=["GET"]),
                Route(f"{group}/leader", self._leader, methods=["GET"]),
                Route(f"{group}/members", self._members, methods=["GET"]),
                Route(f"{group}/is-leader", self._is_leader, methods=["GET"]),
                Route(f"{group}/elect", self._elect, methods=["POST"]),
                Route(f"{group}/resign", self._resign, methods=["POST"]),
                Route(f"{group}/stand", self._stand, methods=["POST"]),
                Route(f"{group}/transfer", self._transfer, methods=["POST"]),
                Route("/v1/events", self._events, methods=["GET"]),
                Route("/metrics", self._scrape, methods=["GET"]),
                Route("/healthz", self._healthz, methods=["GET"]),
                Route("/readyz", self._readyz, methods=["GET"]),
                Route("/openapi.json", self._openapi, methods=["GET"]),
            ],
            exception_handlers={
                HTTPException: _http_error,
                Refused: _refused,
                Exception: _ours,  # answered, then raised to `Contained`, which logs it
            },
        )
        inner.router.redirect_slashes = False
        return Contained(inner, self._log, self._hosts)

    # Questions

    async def _groups(self, request: Request) -> Response:
        return answer(agent_member.groups_json(self.members))

    async def _leader(self, request: Request) -> Response:
        state = self._member(request).state
        return answer(agent_member.leadership_json(state), 503 if state.leader is None else 200)

    async def _members(self, request: Request) -> Response:
        return answer(agent_member.members_json(self._member(request)))

    async def _is_leader(self, request: Request) -> Response:
        body = agent_member.is_leader_json(self._member(request))
        return answer(body, 200 if body["leading"] else 503)

    async def _events(self, request: Request) -> EventStream:
        group = request.query_params.get("group")
        if group is not None:
            self._named(group)
        busy = refusal(503, "as many listen as may listen at once", {"retry-after": "5"})
        return EventStream(self.broadcast, group, busy)

    async def _scrape(self, request: Request) -> Response:
        return Response(self._metrics.page(), headers={"content-type": CONTENT_TYPE})

    async def _healthz(self, request: Request) -> Response:
        ended = sorted(name for name, member in self.members.items() if member.closed)
        if ended and not self.stopping:
            return answer({"healthy": False, "ended": ended}, 503)
        return answer({"healthy": True, "ended": []})

    async def _readyz(self, request: Request) -> Response:
        for name, member in self.members.items():
            self._ready[name] = self._ready.get(name, False) or _settled(member)
        ready = all(self._ready.values()) and not self.stopping
        body = {"ready": ready, "groups": dict(sorted(self._ready.items()))}
        return answer(body, 200 if ready else 503)

    async def _openapi(self, request: Request) -> Response:
        return answer(document(sorted(self.members)))

    # Orders

    async def _elect(self, request: Request) -> Response:
        member = await self._ordered(request)
        return await self._do(member, "elect", member.elect())

    async def _resign(self, request: Request) -> Response:
        member = await self._ordered(request)
        return await self._do(member, "resign", member.resign())

    async def _stand(self, request: Request) -> Response:
        member = await self._ordered(request)
        return await self._do(member, "stand", member.stand())

    async def _transfer(self, request: Request) -> Response:
        self._authorise(request)
        member = self._member(request)
        to, drain = read_transfer(await _body(request))
        order = member.transfer(to, drain=drain)
        return await self._do(member, "transfer", order, patience_s=PATIENCE_S + (drain or 0.0))

    async def _ordered(self, request: Request) -> AgentMember:
        self._authorise(request)
        member = self._member(request)
        if (await _body(request)).strip() not in (b"", b"{}"):
            raise Refused(400, "this order takes no body")
        return member

    async def _do(
        self, member: AgentMember, what: str, order: Awaitable[None], patience_s: float = PATIENCE_S
    ) -> Response:
        self._log.info("admin-request", f"asked to {what}", group=member.group, request=what)
        try:
            async with asyncio.timeout(patience_s):
                await order
        except TimeoutError:
            return refusal(504, f"no end of {what} within {patience_s:g} s: ask who leads")
        except NotTakenOver as error:
            return refusal(504, str(error))
        except (NotLeader, BadInput) as error:
            return refusal(409, str(error))
        except HustingsError as error:
            return refusal(503, str(error))
        return answer(agent_member.leadership_json(member.state))

    def _authorise(self, request: Request) -> None:
        if self.token is None:
            raise Refused(403, "this agent takes no orders: it was given no token (--token-file)")
        if not self.token.admits(request.headers.get("authorization", "")):
            needed = "an order needs the agent's token: Authorization: Bearer TOKEN"
            raise Refused(401, needed, {"www-authenticate": 'Bearer realm="hustings"'})

    def _member(self, request: Request) -> AgentMember:
        return self._named(request.path_params["group"])

    def _named(self, group: str) -> AgentMember:
        member = self.members.get(group)
        if member is None:
            known = sorted(self.members)
            raise Refused(404, str(UnknownName("group", group[:LONGEST_NAME], known)))
        return member


class Contained:
    """Refuses requests for other hosts; logs internal errors and tells clients no details."""

    def __init__(self, inner: ASGIApp, log: EventLog, hosts: Hosts) -> None:
        self._inner = inner
        self._log = log
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if not self._hosts.admit(Headers(scope=scope).get("host")):
            await refusal(421, _MISDIRECTED)(scope, receive, send)
            return
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._inner(scope, receive, note)
        except ClientDisconnect:
            return
        except Exception:
            where = f"{scope.get('method')} {scope.get('path')}"
            trace = traceback.format_exc()
            self._log.error("http-error", f"{where} failed inside the agent", trace=trace)
            if not begun:
                await refusal(500, _OURS)(scope, receive, send)


def read_transfer(body: bytes) -> tuple[str, float | None]:
    """The new leader's name, and the seconds that running campaigns have to finish.

    >>> read_transfer(b'{"to": "web-2", "drain": 5}')
    ('web-2', 5.0)
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, 'the body is not JSON: send {"to": NAME, "drain": 5}') from None
    if not isinstance(data, dict):
        raise Refused(400, 'the body must be an object: {"to": NAME, "drain": 5}')
    for key in data:
        if key not in ("to", "drain"):
            raise Refused(400, str(UnknownName("key", str(key)[:LONGEST_NAME], ["to", "drain"])))
    to = data.get("to")
    if not isinstance(to, str) or not 0 < len(to) <= LONGEST_NAME:
        raise Refused(400, f"to must be a member's name, of 1 to {LONGEST_NAME} characters")
    if "drain" not in data:
        return to, None
    drain = data["drain"]
    is_number = isinstance(drain, int | float) and not isinstance(drain, bool)
    if not is_number or not 0 <= drain <= LONGEST_DRAIN_S:
        raise Refused(400, f"drain must be a number of seconds, from 0 to {LONGEST_DRAIN_S:g}")
    return to, float(drain)


async def _body(request: Request) -> bytes:
    data = b""
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                data += chunk
                if len(data) > LARGEST_BODY:
                    raise Refused(413, f"the body has more than {LARGEST_BODY} bytes")
    except TimeoutError:
        closing = {"connection": "close"}
        raise Refused(408, f"the body did not arrive within {BODY_S:g} s", closing) from None
    return data


def _settled(member: AgentMember) -> bool:
    """Whether a member has settled: it knows a leader or other members, or can only observe."""
    everybody = member.members()
    alone_and_watching = any(one.me and one.observer for one in everybody)
    return member.state.leader is not None or len(everybody) > 1 or alone_and_watching


_MISDIRECTED = (
    "this agent is not called by the name in the Host header: ask by its IP address, or list the "
    "name with --http-name"
)
_OURS = "something went wrong in the agent: see its log"
_SENTENCES = {
    404: "there is nothing here: /openapi.json says what there is",
    405: "this is not how one asks for that: /openapi.json says how",
}


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = _SENTENCES.get(error.status_code, error.detail)
    return refusal(error.status_code, sentence, error.headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(error.status, str(error), error.headers)


async def _ours(request: Request, error: Exception) -> Response:
    return refusal(500, _OURS)
