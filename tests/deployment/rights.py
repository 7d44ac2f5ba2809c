"""A role of Kubernetes, by its documented rules: what is not allowed is refused with 403."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tests.guard.fakes.kubernetes import PATH

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Rights:
    """The rules of a role on Leases, which of them were used, and what was refused."""

    def __init__(self, role: dict[str, Any]) -> None:
        self.rules = {
            (verb, name)
            for rule in role["rules"]
            if rule["apiGroups"] == ["coordination.k8s.io"] and rule["resources"] == ["leases"]
            for verb in rule["verbs"]
            for name in rule.get("resourceNames", [None])
        }
        self.used: set[tuple[str, str | None]] = set()
        self.refused: list[str] = []

    def over(self, server: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            verb, name = asked(request)
            found = {(verb, name), (verb, None)} & self.rules
            if not found:
                self.refused.append(f"{verb} {name}")
                return web.json_response({"message": f"cannot {verb} {name}"}, status=403)
            self.used |= found
            return await server(request)

        return handle


def asked(request: web.Request) -> tuple[str, str | None]:
    """The verb and the name that a role is asked for.

    A list or watch of one name, by a field selector, counts as one of that name.
    """
    found = PATH.fullmatch(request.path)
    name = found.group(2) if found else None
    if request.method == "GET" and name is None:
        selected = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        return "watch" if "watch" in request.query else "list", selected or None
    verbs = {"GET": "get", "POST": "create", "PUT": "update"}
    return verbs.get(request.method, request.method.lower()), name
