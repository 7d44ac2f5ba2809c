"""The part of a Kubernetes API server that Leases need, by its documented rules.

Create fails with 409 if the object exists, replace with 409 if it names another resourceVersion
than the present one; times are refused unless they have six digits of a second; versions are
numbers of the whole server, and a watch begins after the version it names.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from aiohttp import web

PATH = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/([^/]+)/leases(?:/([^/]+))?")
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
NAMESPACES = ("default", "prod")

Key = tuple[str, str]


class Kubernetes:
    """One API server, with all it remembers."""

    def __init__(self, token: str | None = None) -> None:
        self.version = 100
        self.leases: dict[Key, dict[str, Any]] = {}
        self.events: list[tuple[int, Key, dict[str, Any]]] = []
        self.forgotten = 0  # watches from before this version are refused
        self.refused = 0  # watches
        self.down = False
        self._token = token
        self._changed = asyncio.Condition()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return _status(500, "InternalError", "etcdserver: request timed out")
        if self._token and request.headers.get("Authorization") != f"Bearer {self._token}":
            return _status(401, "Unauthorized", "Unauthorized")
        found = PATH.fullmatch(request.path)
        if found is None or found.group(1) not in NAMESPACES:
            return _status(404, "NotFound", "not found")
        namespace, name = found.groups()
        if request.method == "GET" and name is None:
            return await self._watch(request, namespace)
        if request.method == "GET":
            lease = self.leases.get((namespace, name))
            return _missing(name) if lease is None else web.json_response(lease)
        wanted = json.loads(await request.read())
        problem = _problem(wanted)
        if problem:
            return _status(422, "Invalid", problem)
        if request.method == "POST":
            return await self._create(namespace, wanted)
        assert request.method == "PUT"
        return await self._replace((namespace, name), wanted)

    async def delete(self, namespace: str, name: str) -> None:
        await self._put("DELETED", (namespace, name), self.leases.pop((namespace, name)))

    def forget(self) -> None:
        """Come back without a store."""
        self.version = 100
        self.leases, self.events = {}, []

    async def foreign(self, name: str, identity: str, **spec: object) -> None:
        """What somebody else writes over a Lease, or its first."""
        key = ("default", name)
        old = self.leases.get(key, {"metadata": {"name": name, "namespace": "default"}})
        lease = {**old, "spec": {**old.get("spec", {}), "holderIdentity": identity, **spec}}
        await self._put("MODIFIED" if key in self.leases else "ADDED", key, lease)

    async def _create(self, namespace: str, wanted: dict[str, Any]) -> web.Response:
        key = (namespace, wanted["metadata"]["name"])
        if key in self.leases:
            return _status(409, "AlreadyExists", f"leases {key[1]!r} already exists")
        await self._put("ADDED", key, wanted)
        return web.json_response(self.leases[key], status=201)

    async def _replace(self, key: Key, wanted: dict[str, Any]) -> web.Response:
        lease = self.leases.get(key)
        if lease is None:
            return _missing(key[1])
        if wanted["metadata"].get("resourceVersion") != lease["metadata"]["resourceVersion"]:
            return _status(409, "Conflict", "the object has been modified")
        await self._put("MODIFIED", key, wanted)
        return web.json_response(self.leases[key])

    async def _put(self, kind: str, key: Key, lease: dict[str, Any]) -> None:
        async with self._changed:
            self.version += 1
            metadata = {**lease["metadata"], "resourceVersion": str(self.version)}
            lease = {**lease, "metadata": metadata}
            if kind != "DELETED":
                self.leases[key] = lease
            self.events.append((self.version, key, {"type": kind, "object": lease}))
            self._changed.notify_all()

    async def _watch(self, request: web.Request, namespace: str) -> web.StreamResponse:
        assert request.query["watch"] in ("true", "True")
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        told = int(request.query.get("resourceVersion") or 0)
        if told and told < self.forgotten:
            self.refused += 1
            error = {"kind": "Status", "code": 410, "reason": "Expired"}
            await stream.write(json.dumps({"type": "ERROR", "object": error}).encode() + b"\n")
            return stream
        while True:
            for version, key, event in self.events:
                if version > told and key == (namespace, name):
                    await stream.write(json.dumps(event).encode() + b"\n")
            told = self.version
            async with self._changed:
                while self.version == told:
                    await self._changed.wait()


def _problem(wanted: dict[str, Any]) -> str:
    spec = wanted.get("spec", {})
    for name in ("acquireTime", "renewTime"):
        if not MICRO_TIME.fullmatch(spec.get(name, "")):
            return f"spec.{name}: {spec.get(name)!r} is not a time"
    if not spec.get("leaseDurationSeconds", 0) > 0:
        return "spec.leaseDurationSeconds: must be greater than 0"
    if spec.get("leaseTransitions", 0) < 0:
        return "spec.leaseTransitions: must be greater than or equal to 0"
    return ""


def _missing(name: str) -> web.Response:
    return _status(404, "NotFound", f'leases.coordination.k8s.io "{name}" not found')


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return web.json_response(
        {**body, "message": message, "reason": reason, "code": code}, status=code
    )
