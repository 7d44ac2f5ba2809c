"""Numbers that an election reckons from what it is told: they stay within the bounds too.

The largest terms that are believed are said to all, in messages that are right in all else. Then
all that members send, keep and declare must be believed by the others and by their next lives.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from hustings.core.choice import Candidate
from hustings.core.messages import PACE, TERM_NAMES, Message
from hustings.layers.leadership.messages import HandOverMsg
from hustings.net.limits import Reason
from hustings.net.state_file import refuse_absurd
from hustings.net.validation import SHORT_STEP, STEP, bounds
from hustings.protocols.probabilistic.messages import Call, FinalMsg, InitMsg
from hustings.protocols.registry import JOINED
from hustings.quorum.messages import KINDS
from hustings.testing import Group
from tests.net.lies import STRANGER, liar, tell
from tests.net.test_absurd_numbers import IDS, has_numbers, sane

NAMES = ("a", "b", "c")


def right(kind: Any, name: str, value: int, who: int) -> Any:
    """A value of a type in which terms are `value` and all other numbers are small."""
    if kind is int:
        return value if name in TERM_NAMES else who if name in IDS else 1
    if kind is bool or kind is float or kind is str or kind is bytes:
        return kind()
    if kind is Candidate:
        return Candidate(who)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        paced = any(isinstance(each, msgspec.Meta) and PACE in (each.extra or ()) for each in parts)
        return value if paced and parts[0] is int else right(parts[0], name, value, who)
    if origin is tuple and ... in parts:
        return ()
    if origin is tuple:
        return tuple(
            right(part, "" if at == 0 else "id", value, who) for at, part in enumerate(parts)
        )
    if parts:  # a union
        return right(parts[0], name, value, who)
    hints = get_type_hints(kind, include_extras=True)
    return kind(*(right(hints[each], each, value, who) for each in kind.__struct_fields__))


def say(group: Group, message: Message, speakers: tuple[int, ...]) -> None:
    """To everybody, in the names of others."""
    for at, victim in enumerate(map(group.member, NAMES)):
        other = group.member(NAMES[at - 1])
        for who in speakers or (other.id,):
            frame = liar(other, who).write(message, victim.id)
            if not isinstance(frame, Reason):
                tell(group, victim, frame.data)


def within_bounds(group: Group) -> None:
    """Nothing that members keep or say is refused by others, nor by their next lives."""
    date = time.time()
    for member in map(group.member, NAMES):
        assert member.term <= bounds(date, 1).end
        refuse_absurd(member.node.runner.stored, "x", date)
    before = [group.member(name).metrics().drops["implausible-number"] for name in NAMES]
    group.advance(20.0)
    assert [group.member(name).metrics().drops["implausible-number"] for name in NAMES] == before


@pytest.mark.parametrize("protocol", JOINED)
def test_what_follows_from_the_largest_terms_is_believed(protocol: str, tmp_path: Path) -> None:
    with Group(seed=4, protocol=protocol) as group:
        for name in NAMES:
            group.join(name, state=tmp_path)
        group.settle(steady=1.0)
        jump = bounds(time.time(), 1).jump
        kinds = group.member("a").node.filter.wire.codec.kinds
        for value in (STEP, jump - 1, jump, jump + SHORT_STEP, jump + 2 * SHORT_STEP):
            for speakers in ((), (STRANGER, STRANGER + 1)):
                say(group, HandOverMsg(group.member("b").id, value), speakers)
                for kind in kinds:
                    if has_numbers(kind) and kind not in KINDS:
                        say(group, right(kind, "", value, group.member("b").id), speakers)
                group.advance(0.5)
        group.settle(steady=1.0, within=60)
        within_bounds(group)
        for name in NAMES:
            group.kill(name)
        for name in NAMES:
            group.restart(name)  # with what they have stored, all of them
        sane(group, NAMES)


def test_a_call_leads_to_no_term_beyond_the_bound(tmp_path: Path) -> None:
    """A term is so many times a call's number as an election has rounds."""
    with Group(seed=4, protocol="probabilistic") as group:
        for name in NAMES:
            group.join(name, state=tmp_path)
        group.settle(steady=1.0)
        date = time.time()
        jump, speakers = bounds(date, 1).jump, (STRANGER, STRANGER + 1)
        say(group, HandOverMsg(group.member("a").id, jump), speakers)
        for sequence in (jump // 5 + 2**32 - 99, jump // 2, jump, bounds(date, 1).end):
            call = Call(sequence, STRANGER, 7)
            say(group, InitMsg(call, 1, 0.0), speakers)
            say(group, FinalMsg(call, 1, Candidate(group.member("a").id)), speakers)
        group.advance(8.0)
        within_bounds(group)
        for name in NAMES:
            group.kill(name)
        for name in NAMES:
            group.restart(name)
        sane(group, NAMES)
