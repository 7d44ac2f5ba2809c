"""What the agent answers, request by request, and that every refusal is a sentence in JSON."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from hustings.agent.http import LARGEST_BODY, Api
from hustings.agent.logs import Log
from hustings.core.errors import BadInput, HustingsError
from hustings.net.member_state import Peer
from tests.unit.agent.fake import TOKEN, FakeMember, api_of

AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}


def ask(api: Api, method: str, path: str, **more: Any) -> httpx.Response:
    """One request to the application."""

    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(api.app(), raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://agent") as client:
            return await client.request(method, path, **more)

    return asyncio.run(run())


def order(api: Api, what: str, body: object = None, group: str = "billing") -> httpx.Response:
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
    path = f"/v1/groups/{group}/{what}"
    return ask(api, "POST", path, headers=AUTHORISED, content=content)


def error_of(response: httpx.Response) -> str:
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    assert "Traceback" not in body["error"]
    return str(body["error"])


@pytest.fixture
def member() -> FakeMember:
    return FakeMember()


@pytest.fixture
def api(member: FakeMember) -> Api:
    return api_of({"billing": member})


def test_groups(member: FakeMember) -> None:
    member.lead("web-2", 3)
    api = api_of({"search": FakeMember("search", others=()), "billing": member})
    billing, search = ask(api, "GET", "/v1/groups").json()["groups"]
    assert billing == {
        "group": "billing",
        "member": "web-1",
        "address": member.address,
        "term": 3,
        "leader": "web-2",
        "leading": False,
        "members": 2,
    }
    assert (search["group"], search["leader"]) == ("search", None)


def test_the_leader_or_503(api: Api, member: FakeMember) -> None:
    member.lead(None, 4, "electing")
    none = ask(api, "GET", "/v1/groups/billing/leader")
    assert (none.status_code, none.json()["leader"], none.json()["reason"]) == (
        503,
        None,
        "electing",
    )
    member.lead("web-2", 5)
    some = ask(api, "GET", "/v1/groups/billing/leader")
    assert (some.status_code, some.json()["term"]) == (200, 5)
    assert some.json()["leader"]["name"] == "web-2"
    assert int(some.json()["leader"]["id"]) > 1 << 53  # as text, because it is
    assert some.headers["cache-control"] == "no-store"


def test_is_leader_is_200_only_on_the_leader(api: Api, member: FakeMember) -> None:
    member.lead("web-2", 5)
    assert ask(api, "GET", "/v1/groups/billing/is-leader").status_code == 503
    member.lead("web-1", 6)
    mine = ask(api, "GET", "/v1/groups/billing/is-leader")
    assert mine.status_code == 200
    assert mine.json() == {"group": "billing", "member": "web-1", "leading": True, "term": 6}


def test_members(api: Api, member: FakeMember) -> None:
    member.lead("web-2")
    everybody = ask(api, "GET", "/v1/groups/billing/members").json()["members"]
    assert [(one["name"], one["me"], one["leader"]) for one in everybody] == [
        ("web-1", True, False),
        ("web-2", False, True),
    ]


@pytest.mark.parametrize("what", ["leader", "members", "is-leader"])
def test_a_group_that_is_not_there(api: Api, what: str) -> None:
    response = ask(api, "GET", f"/v1/groups/biling/{what}")
    assert response.status_code == 404
    assert error_of(response).startswith("unknown group 'biling': did you mean 'billing'?")


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", "/", 404),
        ("GET", "/v1/groups/", 404),
        ("GET", "/v1/groups/billing", 404),
        ("GET", "/v1/groups/billing/leader/x", 404),
        ("POST", "/nothing", 404),
        ("POST", "/v1/groups", 405),
        ("DELETE", "/v1/groups/billing/leader", 405),
        ("GET", "/v1/groups/billing/elect", 405),
        ("PUT", "/metrics", 405),
        ("OPTIONS", "/healthz", 405),
    ],
)
def test_what_is_not_there(api: Api, method: str, path: str, status: int) -> None:
    response = ask(api, method, path)
    assert response.status_code == status
    assert "/openapi.json" in error_of(response)
    assert ("allow" in response.headers) == (status == 405)


@pytest.mark.parametrize("what", ["elect", "resign", "stand"])
def test_an_order_is_done(api: Api, member: FakeMember, what: str) -> None:
    member.lead("web-1", 2)
    done = order(api, what)
    assert (done.status_code, member.did) == (200, [what])
    assert done.json()["leader"]["name"] == ("web-2" if what == "resign" else "web-1")
    assert order(api, what, {}).status_code == 200
    assert order(api, what, {"to": "web-2"}).status_code == 400
    assert order(api, what, group="other").status_code == 404


def test_a_transfer(api: Api, member: FakeMember) -> None:
    member.lead("web-1", 2)
    done = order(api, "transfer", {"to": "web-2", "drain": 0.25})
    assert (done.status_code, done.json()["leader"]["name"], done.json()["term"]) == (
        200,
        "web-2",
        3,
    )
    assert member.did == [("transfer", "web-2", 0.25)]
    again = order(api, "transfer", {"to": "web-2"})
    assert again.status_code == 409
    assert "does not lead" in error_of(again)


def test_a_transfer_to_nobody(api: Api, member: FakeMember) -> None:
    member.lead("web-1")
    response = order(api, "transfer", {"to": "web-3"})
    assert response.status_code == 409
    assert error_of(response).startswith("unknown member 'web-3'")


DRAIN = "drain must be a number of seconds, from 0 to 3600"


@pytest.mark.parametrize(
    "body, sentence",
    [
        (b"", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b"[" * 4000, "the body is not JSON"),
        (b"[]", "the body must be an object"),
        (b"{}", "to must be a member's name"),
        (b'{"to": 3}', "to must be a member's name"),
        (b'{"to": ""}', "to must be a member's name"),
        (json.dumps({"to": "x" * 257}).encode(), "to must be a member's name"),
        (b'{"to": "web-2", "dran": 3}', "unknown key 'dran': did you mean 'drain'?"),
        (b'{"to": "web-2", "drain": "soon"}', DRAIN),
        (b'{"to": "web-2", "drain": null}', DRAIN),
        (b'{"to": "web-2", "drain": true}', DRAIN),
        (b'{"to": "web-2", "drain": -1}', DRAIN),
        (b'{"to": "web-2", "drain": NaN}', DRAIN),
        (b'{"to": "web-2", "drain": 1' + b"0" * 400 + b"}", DRAIN),
        (b'{"to": "web-2", "drain": "5s"}', DRAIN),
        (b'{"to": "web-2", "drain": 3600.5}', DRAIN),
    ],
)
def test_a_transfer_that_is_not_understood(
    api: Api, member: FakeMember, body: bytes, sentence: str
) -> None:
    response = order(api, "transfer", body)
    assert response.status_code == 400
    assert error_of(response).startswith(sentence)
    assert member.did == []


def test_a_body_without_end_is_not_read(api: Api) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 1000

    for what in ("elect", "transfer"):
        path = f"/v1/groups/billing/{what}"
        response = ask(api, "POST", path, headers=AUTHORISED, content=endless())
        assert response.status_code == 413
        assert str(LARGEST_BODY) in error_of(response)


@pytest.mark.parametrize("what", ["elect", "resign", "stand", "transfer"])
@pytest.mark.parametrize("header", [None, "", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
def test_an_order_needs_the_token(
    api: Api, member: FakeMember, what: str, header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header}
    response = ask(api, "POST", f"/v1/groups/billing/{what}", headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert TOKEN not in error_of(response)
    assert member.did == []


def test_whoever_has_no_token_learns_of_no_group(api: Api) -> None:
    assert ask(api, "POST", "/v1/groups/other/elect").status_code == 401


def test_an_agent_without_a_token_takes_no_orders(member: FakeMember) -> None:
    api = api_of({"billing": member}, token=None)
    response = order(api, "elect")
    assert response.status_code == 403
    assert "--token-file" in error_of(response)
    assert member.did == []


@pytest.mark.parametrize(
    "error, status",
    [(BadInput("not so"), 409), (HustingsError("cannot write the state"), 503)],
)
def test_an_order_that_fails(
    api: Api, member: FakeMember, error: HustingsError, status: int
) -> None:
    member.refuses = error
    response = order(api, "resign")
    assert (response.status_code, error_of(response)) == (status, str(error))


def test_an_order_that_does_not_end(
    api: Api, member: FakeMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hustings.agent.http.PATIENCE_S", 0.01)
    member.lead("web-1")
    member.hangs = True
    assert order(api, "transfer", {"to": "web-2"}).status_code == 504


def test_our_own_mistakes_are_logged_and_not_told() -> None:
    stream = io.StringIO()

    class Broken(FakeMember):
        def members(self) -> tuple[Peer, ...]:
            raise ZeroDivisionError("secret inside")

    with Log(stream, "json") as diary:
        api = api_of({"billing": Broken()}, log=diary)
        response = ask(api, "GET", "/v1/groups/billing/members")
    assert response.status_code == 500
    assert "secret" not in error_of(response)
    (line,) = stream.getvalue().splitlines()
    assert "ZeroDivisionError: secret inside" in json.loads(line)["trace"]


def test_health(api: Api, member: FakeMember) -> None:
    assert ask(api, "GET", "/healthz").json() == {"healthy": True, "ended": []}
    member.end()
    ill = ask(api, "GET", "/healthz")
    assert (ill.status_code, ill.json()) == (503, {"healthy": False, "ended": ["billing"]})
    api.stopping = True
    assert ask(api, "GET", "/healthz").status_code == 200


def test_ready_once_every_member_has_found_its_place() -> None:
    alone, watcher = FakeMember("alone", others=()), FakeMember("watcher", others=())
    watcher.observer = True
    api = api_of({"alone": alone, "watcher": watcher, "both": FakeMember("both")})
    early = ask(api, "GET", "/readyz")
    assert early.status_code == 503
    assert early.json()["groups"] == {"alone": False, "both": True, "watcher": True}
    alone.lead("web-1")
    assert ask(api, "GET", "/readyz").status_code == 200
    alone.lead(None, 2, "electing")
    assert ask(api, "GET", "/readyz").json()["ready"] is True  # that it was once is enough
    api.stopping = True
    assert ask(api, "GET", "/readyz").status_code == 503


def test_a_head_is_answered(api: Api) -> None:
    assert ask(api, "HEAD", "/healthz").status_code == 200


def test_every_path_of_the_document_is_there(api: Api) -> None:
    document = ask(api, "GET", "/openapi.json").json()
    for path, methods in document["paths"].items():
        if path == "/v1/events":
            continue
        for method in methods:
            response = ask(api, method.upper(), path.replace("{group}", "billing"))
            assert str(response.status_code) in methods[method]["responses"], (method, path)
