"""How golden scripts write messages, timers, outcomes and effects: short, and the same each time.

`1->2 ELECTION(term=1)` is a message, `1->*` a multicast; a candidate is its id, with its
attributes in brackets if it has any.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import TimerKey
from hustings.core.guard import Freed, Granted, Held, Observed, Verdict
from hustings.core.messages import Message, kind_of
from hustings.core.outcome import Elected, GaveUp, NoLeader, Outcome
from hustings.testing.effects import (
    Acquire,
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    Persist,
    Release,
    Send,
    SetTimer,
)


def value_text(value: object) -> str:
    """One value inside a message or a store.

    >>> value_text((1, 0.25, Candidate(3, (("cpu", 8.0),))))
    '(1, 0.25, 3[cpu=8])'
    """
    match value:
        case Candidate(id=member, attributes=attributes):
            inner = ", ".join(f"{name}={value_text(it)}" for name, it in attributes)
            return f"{member}[{inner}]" if inner else str(member)
        case Message():
            return message_text(value)
        case float():
            return f"{value:g}"
        case tuple() | list():
            return f"({', '.join(value_text(it) for it in value)})"
        case Mapping():
            return f"{{{', '.join(f'{value_text(k)}: {value_text(v)}' for k, v in value.items())}}}"
        case _:
            return str(value)


def message_text(message: Message) -> str:
    """A message's kind and fields; fields with their default values are left out."""
    fields = [
        f"{field.name}={value_text(value)}"
        for field in structs.fields(message)
        if (value := getattr(message, field.name)) != field.default
    ]
    return f"{kind_of(message)}({', '.join(fields)})" if fields else kind_of(message)


def link_text(sender: MemberId, to: MemberId | None, message: Message) -> str:
    """A message on its way; without a receiver it goes to the group."""
    return f"{sender}->{'*' if to is None else to} {message_text(message)}"


def timer_text(key: TimerKey) -> str:
    """A timer's name.

    >>> timer_text("T1"), timer_text(("probe", 3))
    ('T1', 'probe/3')
    """
    return key if isinstance(key, str) else f"{key[0]}/{key[1]}"


def outcome_text(outcome: Outcome) -> str:
    """What a member declared.

    >>> outcome_text(Elected(3, 1)), outcome_text(NoLeader())
    ('leader 3, term 1', 'no leader')
    """
    match outcome:
        case Elected(leader=leader, term=term):
            return f"leader {leader}, term {term}"
        case NoLeader(reason=reason):
            return f"no leader: {reason}" if reason else "no leader"
        case GaveUp(reason=reason):
            return f"giving up: {reason}"


def verdict_text(verdict: Verdict) -> str:
    """What a guard answered.

    >>> verdict_text(Granted(1, 7, 30.0)), verdict_text(Held(2, 3, 7, 12.5))
    ('granted token 7 for 30', 'refused: 3 holds token 7 for 12.5')
    >>> verdict_text(Freed(7)), verdict_text(Observed(3, 7))
    ('told that token 7 was given back', 'looked at: 3 holds token 7')
    """
    match verdict:
        case Granted(token=token, ttl=ttl):
            return f"granted token {token} for {ttl:g}"
        case Held(holder=holder, token=token, remaining=remaining):
            return f"refused: {holder} holds token {token} for {remaining:g}"
        case Freed(token=token):
            return f"told that token {token} was given back"
        case Observed(holder=holder, token=token):
            return f"looked at: {'nobody' if holder is None else holder} holds token {token}"


def effect_text(member: MemberId, effect: Effect) -> str:
    """What a member did, in one line."""
    match effect:
        case Send(to=to, message=message):
            return link_text(member, to, message)
        case Multicast(message=message):
            return link_text(member, None, message)
        case SetTimer(key=key, delay=delay, eager=eager):
            return f"{member} sets {timer_text(key)} to {delay:g}{' (eager)' if eager else ''}"
        case CancelTimer(key=key):
            return f"{member} cancels {timer_text(key)}"
        case Persist(fields=fields):
            return f"{member} stores {', '.join(f'{k}={value_text(v)}' for k, v in fields)}"
        case Declare(outcome=outcome):
            return f"{member} declares {outcome_text(outcome)}"
        case Acquire(ttl=ttl, request=request):
            return f"{member} acquires the lease for {ttl:g} (request {request})"
        case Release(request=request):
            return f"{member} releases the lease (request {request})"
