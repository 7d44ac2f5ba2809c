"""Gaps between real heartbeats on this machine, and how detectors react to them.

    python scripts/measure_gaps.py record rest.json --period 0.016 --seconds 60 --watchers 2
    python scripts/measure_gaps.py record busy.json --period 0.016 --seconds 60 --busy 2
    python scripts/measure_gaps.py replay rest.json busy.json --set D=0.02 --set tail=peak

`record` runs one process that sends a datagram every period to some watching processes over
loopback, beside this many processes that do nothing but work. Each watcher writes down when a
heartbeat came, when it had been sent, and how late a timer of its own fired. At most 300 s.

`replay` drives the real detector with what was written down, so that settings are compared on the
same minutes. A silence timer that is due while the watcher had no processor fires when it had one
again, and after what has arrived meanwhile, as in an event loop. A question (`ping_timeout`) is not
answered: the live sender of these traces is silent because it has no processor, and answers no
sooner than it beats.

Columns: watcher-minutes; wrong suspicions; patience after a heartbeat (median, worst); the longest
silence there was; and what was left of the patience when the next heartbeat was sent, at the
closest call. All in ms. Less than nothing is left when a question or an excuse has saved the day,
or nothing has.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import struct
import time
from bisect import bisect_right
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from hustings.core.choice import Candidate, HighestId
from hustings.core.config import Config
from hustings.core.election import Election
from hustings.layers.detector.accrual import AccrualConfig
from hustings.layers.detector.heartbeat import HeartbeatMsg
from hustings.layers.detector.layer import DetectorLayer, with_detector
from hustings.testing.recorded import RecordedMember, view_of

LONGEST = 300.0  # seconds of a recording
STAMP = struct.Struct("!Qd")  # a heartbeat's number and when it was sent, by the common clock


@dataclass
class Trace:
    """What one watcher saw: arrivals (when, number, sent) and its own timers (due, fired)."""

    beats: list[tuple[float, int, float]] = field(default_factory=list)
    ticks: list[tuple[float, float]] = field(default_factory=list)


# Recording


class Ear(asyncio.DatagramProtocol):
    """Writes down each heartbeat that arrives."""

    def __init__(self, trace: Trace, clock: asyncio.AbstractEventLoop) -> None:
        self.trace = trace
        self.clock = clock

    def datagram_received(self, data: bytes, addr: object) -> None:
        number, sent = STAMP.unpack(data)
        self.trace.beats.append((self.clock.time(), number, sent))


async def _listen(pipe: Connection, period: float, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    trace = Trace()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: Ear(trace, loop), local_addr=("127.0.0.1", 0)
    )
    pipe.send(transport.get_extra_info("sockname")[1])
    end = loop.time() + seconds

    def tick(due: float) -> None:
        now = loop.time()
        trace.ticks.append((due, now))
        loop.call_at(now + period, tick, now + period)

    loop.call_at(loop.time() + period, tick, loop.time() + period)
    await asyncio.sleep(end - loop.time())
    transport.close()
    pipe.send((trace.beats, trace.ticks))


async def _send(ports: Sequence[int], period: float, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mouth.setblocking(False)
    end = asyncio.Event()
    number = 0

    def beat() -> None:
        nonlocal number
        number += 1
        now = loop.time()
        for port in ports:
            mouth.sendto(STAMP.pack(number, now), ("127.0.0.1", port))
        loop.call_at(now + period, beat)

    beat()
    loop.call_later(seconds, end.set)
    await end.wait()
    mouth.close()


def _watcher(pipe: Connection, period: float, seconds: float, quick: bool) -> None:
    _run(_listen(pipe, period, seconds), quick)


def _sender(ports: Sequence[int], period: float, seconds: float, quick: bool) -> None:
    _run(_send(ports, period, seconds), quick)


def _run(what: Coroutine[object, object, None], quick: bool) -> None:
    if quick:
        # Imported only on request: it is not installed everywhere.
        import_module("uvloop").run(what)
    else:
        asyncio.run(what)


def _work(seconds: float, niceness: int) -> None:
    os.nice(niceness)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def record(
    period: float, seconds: float, watchers: int, busy: int, niceness: int, quick: bool
) -> list[Trace]:
    """Record one sender, some watchers, and some processes that keep the processors busy."""
    spawn = multiprocessing.get_context("fork")
    pipes, processes = [], []
    for _ in range(watchers):
        mine, theirs = spawn.Pipe()
        processes.append(
            spawn.Process(target=_watcher, args=(theirs, period, seconds + 0.5, quick))
        )
        processes[-1].start()
        pipes.append(mine)
    ports = [pipe.recv() for pipe in pipes]
    processes.append(spawn.Process(target=_sender, args=(ports, period, seconds, quick)))
    processes += [spawn.Process(target=_work, args=(seconds, niceness)) for _ in range(busy)]
    for process in processes[watchers:]:
        process.start()
    traces = [Trace(*pipe.recv()) for pipe in pipes]
    for process in processes:
        process.join()
    return traces


# Replaying

LEADER, WATCHER = 1, 2
SILENCE = ("detector", LEADER)
USUAL = 0.0003  # how late a timer fires in a process that is not kept waiting


class Bystander(Election):
    """Elects no member."""

    def __init__(self) -> None:
        super().__init__(Config(), HighestId())


@dataclass
class Found:
    """What one watcher would have done."""

    minutes: float
    suspicions: int
    patience: list[float]
    silences: list[float]
    spare: float


def stalls(trace: Trace) -> list[tuple[float, float]]:
    """When the watcher wanted a processor and had none, from and to, without overlaps."""
    waits = [(sent, came) for came, _, sent in trace.beats] + trace.ticks
    merged: list[tuple[float, float]] = []
    for start, end in sorted((start, end) for start, end in waits if end - start > USUAL):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def replay(trace: Trace, config: AccrualConfig) -> Found:
    """Drive one detector with one watcher's trace."""
    asleep = stalls(trace)
    starts = [start for start, _ in asleep]

    def fires(due: float) -> float:
        place = bisect_right(starts, due) - 1
        return max(due + USUAL, asleep[place][1]) if place >= 0 else due + USUAL

    member = RecordedMember(
        with_detector(Bystander, config),
        Candidate(WATCHER),
        view_of([Candidate(LEADER), Candidate(WATCHER)]),
    )
    member.clock = trace.beats[0][0]
    member.start()
    member.assume_leader(LEADER)
    assert isinstance(member.election, DetectorLayer)
    suspects = member.election.detector.suspects
    found = Found((trace.beats[-1][0] - trace.beats[0][0]) / 60, 0, [], [], config.longest)
    last = member.clock
    due = member.timers[SILENCE].deadline
    for came, number, sent in trace.beats:
        while SILENCE in member.timers:
            at = fires(member.timers[SILENCE].deadline)
            if at >= came:  # arrived messages are read before the timers fire
                break
            member.clock = at
            member.fire(SILENCE)
            found.suspicions += LEADER in suspects
        found.spare = min(found.spare, due - sent)
        member.clock = came
        member.deliver(LEADER, HeartbeatMsg(1, number))
        found.silences.append(came - last)
        due = member.timers[SILENCE].deadline
        found.patience.append(due - came)
        last = came
    return found


# The command


def _trace_of(path: Path) -> tuple[float, list[Trace]]:
    text = json.loads(path.read_text())
    traces = [
        Trace([(a, b, c) for a, b, c in beats], [(a, b) for a, b in ticks])
        for beats, ticks in text["traces"]
    ]
    return float(text["period"]), traces


def _settings(pairs: Iterable[str]) -> dict[str, object]:
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def _record(options: argparse.Namespace) -> None:
    seconds = min(options.seconds, LONGEST)
    traces = record(
        options.period, seconds, options.watchers, options.busy, options.nice, options.uvloop
    )
    options.file.write_text(
        json.dumps(
            {"period": options.period, "traces": [(trace.beats, trace.ticks) for trace in traces]}
        )
    )
    gaps = sorted(
        later[0] - earlier[0]
        for trace in traces
        for earlier, later in zip(trace.beats, trace.beats[1:], strict=False)
    )
    marks = (0.5, 0.9, 0.99, 0.999, 1.0)
    shown = (gaps[min(len(gaps) - 1, int(len(gaps) * mark))] for mark in marks)
    print("gaps, ms: " + ", ".join(f"{1e3 * gap:.1f}" for gap in shown) + "  (50, 90, 99, 99.9 %)")


def _replay(options: argparse.Namespace) -> None:
    print(f"{'trace':20} {'minutes':>8} {'wrong':>6} {'patience':>16} {'silence':>8} {'spare':>7}")
    for path in options.files:
        period, traces = _trace_of(path)
        config = AccrualConfig.parse(
            {"T": period, "pattern": "leader-to-all", **_settings(options.set)}
        )
        found = [replay(trace, config) for trace in traces]
        patience = sorted(wait for one in found for wait in one.patience)
        print(
            f"{path.name:20} {sum(one.minutes for one in found):8.1f} "
            f"{sum(one.suspicions for one in found):6} "
            f"{1e3 * median(patience):8.1f}{1e3 * patience[-1]:8.1f} "
            f"{1e3 * max(max(one.silences) for one in found):8.1f} "
            f"{1e3 * min(one.spare for one in found):7.1f}"
        )


def main() -> None:
    """Read the command line and run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    commands = parser.add_subparsers(required=True)
    recording = commands.add_parser("record", help="write a trace of real heartbeats")
    recording.add_argument("file", type=Path)
    recording.add_argument("--period", type=float, default=0.016, help="seconds")
    recording.add_argument("--seconds", type=float, default=60.0, help=f"at most {LONGEST:g}")
    recording.add_argument("--watchers", type=int, default=2)
    recording.add_argument("--busy", type=int, default=0, help="processes that only work")
    recording.add_argument("--nice", type=int, default=1, help="how nice the busy ones are")
    recording.add_argument("--uvloop", action="store_true", help="uvloop instead of asyncio's own")
    recording.set_defaults(act=_record)
    replaying = commands.add_parser("replay", help="try settings on recorded traces")
    replaying.add_argument("files", type=Path, nargs="+")
    replaying.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    replaying.set_defaults(act=_replay)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
