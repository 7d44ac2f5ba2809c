"""Traces for tests: of real runs, made by hand, and drawn at random."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st

from hustings.core.choice import Candidate, HighestId
from hustings.core.election import Election
from hustings.core.messages import Message
from hustings.core.outcome import Elected, GaveUp, NoLeader, Outcome
from hustings.protocols.bully import Bully
from hustings.sim.delay import Uniform
from hustings.sim.faults import Crash, Happening, Heal, Partition, Restart, Suspect, schedule
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.trace import (
    Changed,
    Declared,
    Fired,
    Header,
    Linked,
    Lost,
    Received,
    Record,
    Sent,
    Told,
    Tracer,
)
from hustings.sim.trace_read import Trace, read_stream
from hustings.sim.world import World


class Note(Message, frozen=True, tag="NOTE"):
    """A message for traces made by hand."""

    text: str = ""


class Heartbeat(Message, frozen=True, tag="HEARTBEAT"):
    """A detector's message."""


def read(data: bytes) -> Trace:
    return read_stream(io.BytesIO(data), "t.jsonl")


def written(
    records: Sequence[Record], members: int = 3, end: float | None = None, protocol: str = "test"
) -> bytes:
    """The file that a tracer writes for these records."""
    out = io.BytesIO()
    tracer = Tracer(Header(protocol=protocol, members=list(range(1, members + 1)), seed=7), out)
    for record in records:
        tracer.add(record)
    tracer.close(records[-1].t if end is None else end, "quiescent")
    return out.getvalue()


def trace_of(records: Sequence[Record], members: int = 3, end: float | None = None) -> Trace:
    return read(written(records, members, end))


def play(
    kind: type[Election],
    members: int,
    happenings: Sequence[Happening],
    *,
    network: Network | None = None,
    seed: int = 1,
    until: float = 100.0,
    crashed: Sequence[int] = (),
) -> bytes:
    """The trace of a real run in which the last member led before."""
    out = io.BytesIO()
    header = Header(protocol=kind.about.name, members=list(range(1, members + 1)), seed=seed)
    tracer = Tracer(header, out)
    world = World(
        partial(kind, kind.Settings(), HighestId()),
        [Candidate(member) for member in header.members],
        seed=seed,
        network=network,
        tracer=tracer,
    )
    world.start()
    for ctx in world.members.values():
        ctx.election.assume_leader(ctx, members, 1)
    for member in crashed:
        world.change(world.member(member), Status.CRASHED)
    schedule(world, list(happenings))
    ended = world.run(until=until)
    tracer.close(world.now, ended.value)
    return out.getvalue()


def leader_crash(members: int) -> bytes:
    """The bully's textbook run: the leader is dead and member 1 notices."""
    return play(Bully, members, [Suspect(member=1, about=members)], crashed=[members])


def turmoil(seed: int = 1) -> bytes:
    """A run with about everything in it."""
    return play(
        Bully,
        6,
        [
            Suspect(member=1, about=6),
            Crash(at=4.5, member=6),
            Suspect(at=5.5, member=3, about=6),
            Partition(at=9.0, sides=((1, 2, 3), (4, 5))),
            Suspect(at=10.0, member=1, about=5),
            Heal(at=16.0),
            Restart(at=18.0, member=6),
        ],
        network=Network(Uniform(0.6, 1.4), Uncorrelated(0.1), duplicate=0.1),
        seed=seed,
        until=40.0,
    )


# --- traces drawn at random: every one that the reader must accept --------------------------------

TEXTS = st.text(max_size=12)
STATUSES = ("up", "paused", "crashed", "left")


@st.composite
def records(draw: st.DrawFn, members: int = 4, most: int = 40) -> list[Record]:
    """Any sequence of records that is in order, however unlikely as a run."""
    ids = st.integers(1, members)
    made: list[Record] = []
    t, sent = 0.0, 0
    for _ in range(draw(st.integers(1, most))):
        t += draw(st.sampled_from([0.0, 0.0, 0.25, 1.0, 1000.0]))
        what = draw(st.integers(0, 9))
        member = draw(ids)
        if what <= 2 or (what <= 5 and not sent):
            sent += 1
            note: Message = Heartbeat() if draw(st.booleans()) else Note(draw(TEXTS))
            made.append(Sent(t, member, sent, draw(st.none() | ids), note))
        elif what <= 4:
            made.append(Received(t, member, draw(st.integers(1, sent))))
        elif what == 5:
            made.append(Lost(t, draw(st.integers(1, sent)), draw(st.none() | ids), draw(TEXTS)))
        elif what == 6:
            made.append(Fired(t, member, draw(TEXTS)))
        elif what == 7:
            outcomes: st.SearchStrategy[Outcome] = st.one_of(
                st.builds(Elected, ids, st.integers()),
                st.builds(NoLeader, TEXTS),
                st.builds(GaveUp, TEXTS),
            )
            made.append(Declared(t, member, draw(outcomes)))
        elif what == 8:
            status = draw(st.sampled_from(STATUSES))
            made.append(Changed(t, member, status, draw(st.integers(1, 3))))
        elif draw(st.booleans()):
            made.append(Told(t, member, draw(TEXTS), draw(st.none() | st.integers())))
        else:
            word = draw(st.sampled_from(["partition", "one-way", "heal"]))
            sides = tuple(map(tuple, draw(st.lists(st.lists(ids, max_size=2), max_size=2))))
            made.append(Linked(t, word, draw(TEXTS), sides))
    return made
