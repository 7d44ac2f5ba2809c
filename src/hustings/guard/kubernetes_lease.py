"""A Lease of Kubernetes, as it is read and as it shall be written; client-go understands both."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from hustings.guard.seam import Holder

TOKEN_MARK, NEXT_MARK = "hustings/token", "hustings/next"  # annotations
OF_OURS = re.compile(r"(.+)#\d+")


class Lease:
    """A Lease as the server shows it, with what is read from it."""

    def __init__(self, shown: dict[str, Any]) -> None:
        self.shown = shown
        metadata, self.spec = shown["metadata"], shown.get("spec") or {}
        self.version = str(metadata["resourceVersion"])
        self.marks: dict[str, str] = metadata.get("annotations") or {}
        self.identity = str(self.spec.get("holderIdentity") or "")
        self.ttl = float(self.spec.get("leaseDurationSeconds") or 0)
        self.transitions = int(self.spec.get("leaseTransitions") or 0)

    @property
    def holder(self) -> str:
        """The holder's name: without its life if it is one of ours."""
        ours = OF_OURS.fullmatch(self.identity)
        return ours.group(1) if ours else self.identity

    @property
    def period(self) -> tuple[str, int, object]:
        """What stays the same while one holds."""
        return self.identity, self.transitions, self.spec.get("acquireTime")

    @property
    def carried(self) -> int | None:
        """The token, if the holder carries one along."""
        token, _, identity = self.marks.get(TOKEN_MARK, "").partition(" ")
        return int(token) if token.isdigit() and identity == self.identity else None

    def _written(self, marks: dict[str, str], **spec: object) -> dict[str, Any]:
        """How it shall be: only what is ours is changed."""
        others = {k: v for k, v in self.marks.items() if k not in (TOKEN_MARK, NEXT_MARK)}
        metadata = {**self.shown["metadata"], "annotations": {**others, **marks}}
        return {**self.shown, "metadata": metadata, "spec": {**self.spec, **spec}}

    def taken(self, holder: Holder, ttl: float) -> dict[str, Any]:
        """How it shall be when another takes it."""
        return self._written({}, **_begun(holder, ttl), leaseTransitions=self.transitions + 1)

    def renewed(self, token: int, ttl: float) -> dict[str, Any]:
        """How it shall be when its holder goes on."""
        marks = {TOKEN_MARK: f"{token} {self.identity}"}
        return self._written(marks, leaseDurationSeconds=math.ceil(ttl), renewTime=_now())

    def freed(self, token: int, to: str | None) -> dict[str, Any]:
        """As client-go does: nobody, for a second; for as long as it lasted if it is kept."""
        now = _now()
        marks = {TOKEN_MARK: f"{token} "} | ({} if to is None else {NEXT_MARK: to})
        return self._written(
            marks,
            holderIdentity="",
            leaseDurationSeconds=1 if to is None else math.ceil(self.ttl),
            acquireTime=now,
            renewTime=now,
        )


def new_lease(name: str, namespace: str | None, holder: Holder, ttl: float) -> dict[str, Any]:
    """The first Lease of this name."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**_begun(holder, ttl), "leaseTransitions": 0},
    }


def _begun(holder: Holder, ttl: float) -> dict[str, object]:
    now = _now()
    return {
        "holderIdentity": str(holder),
        "leaseDurationSeconds": math.ceil(ttl),
        "acquireTime": now,
        "renewTime": now,
    }


def _now() -> str:
    """As Kubernetes reads it: with exactly six digits of a second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
