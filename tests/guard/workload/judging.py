"""From what workers said and what the store holds to numbers, and to what must not be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from tests.guard.workload.banks import ACCOUNTS, EACH, Audit

Event = Mapping[str, Any]
GAP_S = 0.25


class Term(NamedTuple):
    """When somebody held a lease, by its own clock, and for how long it could act on it."""

    token: int
    began: float
    ended: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one run showed."""

    engine: str
    fenced: bool
    seconds: float
    faults: dict[str, int]
    terms: int
    transfers: int  # accepted by the store
    per_second: float  # acknowledged, while things were done to them
    refused: int  # writes of former holders that the fence refused
    stale: int  # writes of former holders that the store accepted
    money: int  # made out of nothing, or lost if negative
    forgotten: int  # acknowledged and not there
    twice: int  # there more than once
    overlaps: int  # leases that began before another had ended
    leaderless_s: float
    idle_s: float  # without a transfer, in gaps longer than `GAP_S`
    longest_gap_s: float

    @property
    def wrong(self) -> list[str]:
        """What must not be, with a fence."""
        names = ("stale", "money", "forgotten", "twice", "overlaps")
        found = [f"{name} is {getattr(self, name)}" for name in names if getattr(self, name)]
        return found if self.transfers else [*found, "nothing was transferred"]


def terms_of(lives: Iterable[tuple[Sequence[Event], float | None]]) -> list[Term]:
    """Leases, out of the events of each process and when it was killed, in order of time."""
    found = []
    for events, killed in lives:
        held: dict[int, Term] = {}
        for event in events:
            token, kind = event.get("token", 0), event["what"]
            if kind == "granted":
                held[token] = Term(token, event["at"], event["deadline"])
            elif kind == "renewed" and token in held:
                held[token] = held[token]._replace(ended=event["deadline"])
            elif kind in ("released", "lost", "refused") and token in held:
                ended = min(held[token].ended, event["at"])
                found.append(held.pop(token)._replace(ended=ended))
        for term in held.values():
            found.append(term if killed is None else term._replace(ended=min(term.ended, killed)))
    return sorted((each for each in found if each.ended > each.began), key=lambda t: t.began)


def overlapping(terms: Sequence[Term]) -> int:
    """How many began before an earlier one had ended."""
    count, latest = 0, 0.0
    for term in terms:
        count += term.began < latest
        latest = max(latest, term.ended)
    return count


def uncovered(terms: Sequence[Term], began: float, ended: float) -> float:
    """How long nobody held a lease."""
    total, until = 0.0, began
    for term in terms:
        total += max(0.0, min(term.began, ended) - until)
        until = max(until, term.ended)
    return total + max(0.0, ended - until)


def stale_writes(tokens: Iterable[int]) -> int:
    """Entries of a journal behind one with a larger token."""
    count, highest = 0, 0
    for token in tokens:
        count += token < highest
        highest = max(highest, token)
    return count


def judge(
    engine: str,
    fenced: bool,
    lives: Sequence[tuple[Sequence[Event], float | None]],
    audit: Audit,
    faults: dict[str, int],
    span: tuple[float, float],
) -> Report:
    """The numbers of one run."""
    began, ended = span
    events = [event for heard, _ in lives for event in heard]
    done = [event for event in events if event["what"] == "done"]
    keys = [entry.key for entry in audit.journal]
    there = frozenset(keys)
    times = sorted([began, ended, *(event["at"] for event in done)])
    gaps = [b - a for a, b in pairwise(times)]
    terms = terms_of(lives)
    return Report(
        engine=engine,
        fenced=fenced,
        seconds=round(ended - began, 1),
        faults=faults,
        terms=len(terms),
        transfers=len(keys),
        per_second=round(sum(began <= e["at"] <= ended for e in done) / (ended - began), 1),
        refused=sum(event["what"] == "refused" for event in events),
        stale=stale_writes(entry.token for entry in audit.journal),
        money=audit.total - ACCOUNTS * EACH,
        forgotten=sum(event["key"] not in there for event in done),
        twice=len(keys) - len(there),
        overlaps=overlapping(terms),
        leaderless_s=round(uncovered(terms, began, ended), 1),
        idle_s=round(sum(gap for gap in gaps if gap > GAP_S), 1),
        longest_gap_s=round(max(gaps), 1),
    )
