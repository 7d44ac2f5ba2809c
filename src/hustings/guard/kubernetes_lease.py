"""A Lease of Kubernetes, as it is read and as it shall be written; client-go understands both."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from hustings.guard.seam import Holder

# Annotations: the holder's token, who alone is let in, what versions are added to, and a word that
# tells this Lease from those of other clusters.
TOKEN_MARK, NEXT_MARK, BASE_MARK = "hustings/token", "hustings/next", "hustings/base"
IDENTITY_MARK = "hustings/identity"
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

    @property
    def base(self) -> int:
        """What a version is added to, to make a token."""
        number = self.marks.get(BASE_MARK, "")
        return int(number) if number.isascii() and number.isdigit() else 0

    def _written(self, marks: dict[str, str], **spec: object) -> dict[str, Any]:
        """How it shall be: only what is ours is changed."""
        others = {k: v for k, v in self.marks.items() if k not in (TOKEN_MARK, NEXT_MARK)}
        metadata = {**self.shown["metadata"], "annotations": {**others, **marks}}
        return {**self.shown, "metadata": metadata, "spec": {**self.spec, **spec}}

    def taken(self, holder: Holder, ttl: float, base: int) -> dict[str, Any]:
        """How it shall be when another takes it."""
        marks = {BASE_MARK: str(base)} if base else {}
        return self._written(marks, **_begun(holder, ttl), leaseTransitions=self.transitions + 1)

    def lifted(self, token: int, base: int) -> dict[str, Any]:
        """How it shall be when its holder stays, and all later tokens are larger."""
        return self.marked(token, BASE_MARK, str(base))

    def marked(self, token: int, mark: str, value: str) -> dict[str, Any]:
        """How it shall be when nothing changes but an annotation."""
        kept = {NEXT_MARK: self.marks[NEXT_MARK]} if NEXT_MARK in self.marks else {}
        return self._written({**kept, TOKEN_MARK: f"{token} {self.identity}", mark: value})

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


def new_lease(
    name: str, namespace: str | None, holder: Holder | None, ttl: float, base: int = 0
) -> dict[str, Any]:
    """The first Lease of this name; without a holder it only says what tokens are above."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if base:
        metadata["annotations"] = {BASE_MARK: str(base)}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {**_begun(holder, ttl), "leaseTransitions": 0},
    }


def _begun(holder: Holder | None, ttl: float) -> dict[str, object]:
    now = _now()
    return {
        "holderIdentity": "" if holder is None else str(holder),
        "leaseDurationSeconds": math.ceil(ttl),
        "acquireTime": now,
        "renewTime": now,
    }


def _now() -> str:
    """As Kubernetes reads it: with exactly six digits of a second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
