"""The tracer: what it writes, and that one seed gives one digest."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hustings.sim.trace import Changed, Fired, Header, Lost, Received, Record, Sent, Tracer
from hustings.sim.trace_read import kind
from tests.unit.sim.traces import Note, leader_crash, read, turmoil, written

ROOT = Path(__file__).resolve().parents[3]


def test_a_trace_is_one_json_value_a_line() -> None:
    made: list[Record] = [
        Changed(0.0, 1, "up", 1),
        Sent(0.5, 1, 1, 2, Note("hi")),
        Received(1.5, 2, 1),
    ]
    *lines, footer = written(made, members=2).decode().splitlines()
    assert lines == [
        '{"e":"hustings-trace","version":1,"protocol":"test","members":[1,2],'
        '"seed":7,"settings":{}}',
        '["status",0.0,1,"up",1]',
        '["send",0.5,1,1,2,["NOTE","hi"]]',
        '["recv",1.5,2,1]',
    ]
    assert footer.startswith('{"e":"end","t":1.5,"ended":"quiescent","records":3,"digest":"')


def test_batches_change_nothing() -> None:
    """Encoded in one go or in many, the bytes and the digest are the same."""
    header = Header(protocol="p", members=[1], seed=0)
    made = [Fired(float(i), 1, "T") for i in range(5000)]
    whole, parts = io.BytesIO(), io.BytesIO()
    one, many, blind = Tracer(header, whole), Tracer(header, parts), Tracer(header)
    for record in made:
        one.add(record)
        blind.add(record)
        many.add(record)
        many.breathe()
    assert parts.getvalue().count(b"\n") > 4000, "the second tracer writes as it goes"
    assert whole.getvalue().count(b"\n") == 1, "the first has not written yet"
    digests = {tracer.close(1e4, "until") for tracer in (one, many, blind)}
    assert len(digests) == 1
    assert whole.getvalue() == parts.getvalue()
    assert read(parts.getvalue()).footer.digest in digests


def test_every_part_of_a_run_is_in_its_digest() -> None:
    def digest(seed: int = 0, t: float = 1.0, end: float = 2.0, ended: str = "until") -> str:
        tracer = Tracer(Header(protocol="p", members=[1], seed=seed))
        tracer.add(Fired(t, 1, "T"))
        return tracer.close(end, ended)

    others = [digest(seed=1), digest(t=1.5), digest(end=3.0), digest(ended="stopped")]
    assert digest() == digest()
    assert len({digest(), *others}) == 5


def test_a_real_run_accounts_for_every_message() -> None:
    """Every message arrives or is told to be lost, and nobody hears what nobody sent."""
    trace = read(leader_crash(5))
    sent = {event.n: event for event in trace.events if isinstance(event, Sent)}
    received = [event for event in trace.events if isinstance(event, Received)]
    lost = [event for event in trace.events if isinstance(event, Lost)]
    assert sorted([event.n for event in received] + [event.n for event in lost]) == sorted(sent)
    assert {event.to for event in lost} == {5}
    assert all(sent[event.n].to == event.m for event in received)
    assert {kind(event) for event in sent.values()} == {"ELECTION", "OK", "COORDINATOR"}


def test_a_run_may_end_at_a_whole_number() -> None:
    out = io.BytesIO()
    tracer = Tracer(Header(protocol="p", members=[1], seed=0), out)
    tracer.add(Fired(1, 1, "T"))
    tracer.close(2, "until")
    assert read(out.getvalue()).footer.t == 2.0


def test_another_seed_gives_another_digest() -> None:
    assert len({read(turmoil(seed)).footer.digest for seed in (1, 1, 2, 3)}) == 3


SCRIPT = (
    "from tests.unit.sim.traces import read, turmoil; print(read(turmoil()).footer.digest, end='')"
)


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_the_digest_does_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    assert told.stdout == read(turmoil()).footer.digest
