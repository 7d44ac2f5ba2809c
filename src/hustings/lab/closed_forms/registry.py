"""All closed forms by name: `evaluate("bully", {"n": "64", "d": "1"})`.

The module of an election declares its forms: it ends with a `ClosedForms` that names the keys for
`--set` and computes the forms. A new election adds its declaration to `ELECTIONS`; the command,
`lab.theory` and the reference page then include it.
"""

from __future__ import annotations

from collections.abc import Mapping

from hustings.core.errors import UnknownName
from hustings.lab.closed_forms import (
    broadcast,
    bully,
    bully_assistant,
    bully_grant,
    bully_group,
    bully_map,
    heartbeat,
    quorum,
    ring,
    stable,
)
from hustings.lab.closed_forms.announce import elections as announce
from hustings.lab.closed_forms.committee import election as committee
from hustings.lab.closed_forms.form import ClosedForms, Parameter, TheoryResult
from hustings.lab.closed_forms.probabilistic import election as probabilistic

ELECTIONS: Mapping[str, ClosedForms] = {
    declared.name: declared
    for declared in (
        broadcast.DECLARED,
        ring.DECLARED,
        bully.DECLARED,
        bully_map.DECLARED,
        bully_map.PRINTED_DECLARED,
        bully_grant.DECLARED,
        bully_group.DECLARED,
        stable.DECLARED,
        bully_assistant.DECLARED,
        heartbeat.DECLARED,
        quorum.DECLARED,
        *announce.DECLARED,
        probabilistic.DECLARED,
        committee.DECLARED,
    )
}


def names() -> list[str]:
    """List the names that have closed forms, as typed.

    >>> names()[:3], names()[-4:]
    (['broadcast', 'ring', 'bully'], ['sup', 'al', 'probabilistic', 'committee'])
    """
    return list(ELECTIONS)


def parameters(protocol: str) -> list[Parameter]:
    """List the keys that an election's forms take, with defaults and meaning.

    >>> [parameter.key for parameter in parameters("bully-group")]
    ['n', 'd', 'm', 'crashed', 'scenario', 'T1', 'T2', 'K']
    """
    return list(find(protocol).parameters)


def evaluate(protocol: str, params: Mapping[str, str]) -> TheoryResult:
    """Return all forms of an election at the given parameters, texts as typed.

    Raises `BadInput` with one sentence: unknown protocol or key, value out of range, a detector
    that is dead.

    >>> result = evaluate("bully", {"n": "64", "d": "1"})
    >>> result.corrected["messages"], result.printed["worst_time"]
    (4031, 5)
    """
    return find(protocol).evaluate(params)


def find(protocol: str) -> ClosedForms:
    """Return the declaration of an election, by its name as typed.

    >>> find("bully_map").name
    'bully-map'
    """
    name = protocol.strip().replace("_", "-")
    if name not in ELECTIONS:
        raise UnknownName("protocol", protocol, names())
    return ELECTIONS[name]
