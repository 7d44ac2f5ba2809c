"""The Host header: which names are ours."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import httpx
import pytest

from hustings.agent.access import Hosts
from hustings.agent.config import AgentConfig, load
from hustings.agent.daemon import _names
from hustings.agent.http import Api
from hustings.agent.service import names_for
from tests.unit.agent.fake import FakeMember, api_of


@pytest.mark.parametrize(
    "header, ours",
    [
        (None, True),  # HTTP/1.0; no browser leaves it out
        ("", False),
        (" ", False),
        (":7401", False),
        ("127.0.0.1", True),
        ("127.0.0.1:7401", True),
        ("10.1.2.3:80", True),  # behind a translation of addresses
        ("[::1]:7401", True),
        ("[fe80::1]", True),
        ("localhost", True),
        ("LOCALHOST:7401", True),
        ("localhost.", True),
        ("agent.localhost", True),
        ("web-1.internal", True),
        ("Web-1.Internal.:7401", True),
        ("web-1", False),
        ("internal", False),
        ("evil.example", False),
        ("evil.example:7401", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("localhost.evil.example", False),
        ("notlocalhost", False),
        ("web-1.internal.evil.example", False),
        ("evil.example:7401:127.0.0.1", False),
        ("[evil.example]", False),
        ("0x7f.1", False),
        ("a" * 300, False),
    ],
)
def test_names(header: str | None, ours: bool) -> None:
    assert Hosts(["web-1.internal"]).admit(header) is ours


def test_any_name() -> None:
    assert Hosts(["*"]).admit("whatever.example")


@pytest.mark.parametrize("path", ["/v1/groups", "/healthz", "/metrics", "/nowhere"])
def test_another_name_is_refused_whatever_is_asked(path: str) -> None:
    inner = api_of({"billing": FakeMember()})
    api = Api(inner.members, inner.broadcast, inner._log, None, dict, hosts=Hosts(["web-1"]))

    async def ask(host: str) -> httpx.Response:
        transport = httpx.ASGITransport(api.app())
        async with httpx.AsyncClient(transport=transport, base_url="http://web-1") as client:
            return await client.get(path, headers={"host": host})

    for host in ("evil.example", "", " "):
        refused = asyncio.run(ask(host))
        assert (refused.status_code, refused.headers["content-type"]) == (421, "application/json")
        assert "--http-name" in refused.json()["error"]
    assert asyncio.run(ask("web-1")).status_code in (200, 404)


def hosts_of(config: AgentConfig) -> Hosts:
    return names_for(config.http, _names(config))


def test_where_names_come_from(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("[http]\nnames = ['one.internal', 'two.internal']\n[groups.billing]\n")
    hosts = hosts_of(load(file, {"advertise": "three.internal:7400"}, {}))
    for name in ("one.internal", "two.internal", "three.internal", socket.gethostname()):
        assert hosts.admit(name)
    typed = hosts_of(load(file, {"http-name": ("four.internal",)}, {}))
    assert typed.admit("four.internal")
    assert not typed.admit("one.internal")
    said = hosts_of(load(file, {}, {"HUSTINGS_HTTP_NAME": "five.internal,six.internal"}))
    assert said.admit("six.internal")
