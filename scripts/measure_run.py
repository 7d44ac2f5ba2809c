"""How long no member of `hustings run` runs its command when the leader's process ends or stops,
and how long two members run it at once.

    python -m scripts.measure_run
    python -m scripts.measure_run --ways kill stop --rounds 10 --protocol bully --grace 1s
    python -m scripts.measure_run --guard quorum://a,b,c --deaf

Three members run on this machine, as real processes. Each round begins them anew, waits until one
runs its command, and sends its member SIGKILL (`kill`), SIGSTOP (`stop`) or SIGTERM (`leave`). The
command writes the time every 5 ms, by the clock that all processes of a machine share; a gap or an
overlap is exact to that. With `--deaf` the command ignores SIGTERM. With `--machines` the members
have a key and lock nothing together, as if each were on a machine of its own.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hustings.net.keys import new_key

NAMES = ("a", "b", "c")
WAYS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "leave": signal.SIGTERM}
PATIENCE_S = 60.0
WRITER = """
import os, signal, sys, time
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    os.write(file, f'{os.environ["HUSTINGS_MEMBER"]} {time.monotonic()}\\n'.encode())
    time.sleep(0.005)
"""


def first_and_last(journal: Path) -> dict[str, tuple[float, float]]:
    """When each member's command ran."""
    found: dict[str, tuple[float, float]] = {}
    for line in journal.read_text().splitlines() if journal.exists() else []:
        member, at = line.split()
        found[member] = found.get(member, (float(at),))[0], float(at)
    return found


def wait_for(journal: Path, members: int) -> dict[str, tuple[float, float]]:
    """Wait until the commands of so many members have run."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found := first_and_last(journal)) < members:
        if time.monotonic() > deadline:
            raise SystemExit(f"no {members} members ran the command in {PATIENCE_S:g} s")
        time.sleep(0.01)
    return found


@contextmanager
def three_members(
    folder: Path, asked: argparse.Namespace
) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Three members that wait for each other; nothing is left of them afterwards."""
    group, processes = f"measured-{uuid.uuid4().hex[:8]}", {}
    port = 20_000 + os.getpid() % 20_000
    options = ["--grace", asked.grace, "--protocol", asked.protocol, "--quiet"]
    if asked.machines:
        key = folder / "key"
        key.write_text(new_key().text())
        key.chmod(0o600)
        options += ["--key", str(key)]
    if asked.guard:
        options += ["--guard", asked.guard]
    command = [sys.executable, "-c", WRITER, str(folder / "journal"), "deaf" if asked.deaf else ""]
    try:
        for number, name in enumerate(NAMES):
            own = ["--name", name, "--bind", f"127.0.0.1:{port + number}"]
            seeds = [f"127.0.0.1:{port + other}" for other in range(3) if other != number]
            own += [word for seed in seeds for word in ("--join", seed)]
            own += ["--state", str(folder / name)] if asked.guard else []
            processes[name] = subprocess.Popen(
                [sys.executable, "-m", "hustings", "run", group, *own, *options, "--", *command],
                start_new_session=True,
            )
        yield processes
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in processes.values():
            process.wait(PATIENCE_S)


def played(way: str, asked: argparse.Namespace) -> float:
    """Seconds without a command; below 0, for so long two ran at once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        journal = folder / "journal"
        with three_members(folder, asked) as processes:
            wait_for(journal, 1)
            time.sleep(2.0)  # the others join
            (leader,) = first_and_last(journal)
            processes[leader].send_signal(WAYS[way])
            found = wait_for(journal, 2)
            (second,) = set(found) - {leader}
            began = found[second][0]
            # its last words may be yet to come, if the two run at once
            time.sleep(4.0)
            return began - first_and_last(journal)[leader][1]


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--protocol", default="le-s")
    options.add_argument("--grace", default="1s")
    options.add_argument("--guard", default="")
    options.add_argument("--deaf", action="store_true")
    options.add_argument("--machines", action="store_true")
    asked = options.parse_args()
    print(f"{'way':6} {'rounds':>6} {'gap, median':>12} {'gap, longest':>13} {'overlap':>8}")
    for way in asked.ways:
        gaps = [played(way, asked) for _ in range(asked.rounds)]
        overlap = max(0.0, *(-gap for gap in gaps))
        middle, longest = statistics.median(gaps), max(gaps)
        print(f"{way:6} {asked.rounds:6} {middle:10.2f} s {longest:11.2f} s {overlap:6.2f} s")


if __name__ == "__main__":
    main()
