"""The order in which several workers run the tests: waiting and computing side by side.

A worker gets a run of neighbours, and when it has finished, half of what somebody else has left,
from the end (`--dist=worksteal`). So tests that wait, for clocks, sockets or engines, come first,
spread over some of the workers; as many workers as there are cores compute from the start. The
tests of one engine stay together: each worker that meets an engine starts one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

CORES = 2  # that compute while the others wait

# Seconds that a test waits, about; only the ratios matter.
WAITING = {
    "tests/agent/": 2.0,
    "tests/apps/": 3.0,
    "tests/fence/": 0.5,
    "tests/guard/": 1.5,
    "tests/net/": 0.4,
}
ENGINES = ("etcd", "memory", "nats", "postgres", "redis", "valkey", "zookeeper")

# Of those that compute, the long ones come first: the last to run should be short.
LONG = ("tests/agreement/", "tests/test_examples.py", "tests/swarm/", "tests/unit/cli/")


def weight_of(test: str) -> float:
    """How long a test waits; 0 for one that computes."""
    return next((weight for start, weight in WAITING.items() if test.startswith(start)), 0.0)


def group_of(test: str) -> str:
    """What stays together of those that wait: an engine's tests, else a file."""
    file = test.partition("::")[0]
    if not test.startswith("tests/guard/"):
        return file
    return next((name for name in ENGINES if name in test.lower()), file)


def dealt(tests: int, workers: int) -> list[int]:
    """How many of so many each worker gets at first, as xdist deals them."""
    sizes: list[int] = []
    while len(sizes) < workers:
        sizes.append((tests - sum(sizes)) // (workers - len(sizes)))
    return sizes


def ordered(tests: Sequence[str], workers: int) -> list[int]:
    """Places of the tests, in the order in which so many workers should take them."""
    if workers <= CORES:
        return list(range(len(tests)))
    waiting: dict[str, list[int]] = {}
    for place, test in enumerate(tests):
        if weight_of(test):
            waiting.setdefault(group_of(test), []).append(place)
    computing = [place for place, test in enumerate(tests) if not weight_of(test)]
    computing.sort(key=lambda place: not tests[place].startswith(LONG))
    shares: list[list[int]] = [[] for _ in range(workers - CORES)]
    loads = [0.0] * len(shares)
    heavy = {name: sum(weight_of(tests[i]) for i in found) for name, found in waiting.items()}
    for name in sorted(heavy, key=lambda name: (-heavy[name], name)):
        least = loads.index(min(loads))
        shares[least] += waiting[name]
        loads[least] += heavy[name]
    shares += [[] for _ in range(CORES)]
    sizes = dealt(len(tests), workers)
    for share, size in reversed(
        list(zip(shares, sizes, strict=True))
    ):  # who computes chooses first
        room = max(size - len(share), 0)
        share.extend(computing[:room])
        del computing[:room]
    shares[0] += computing
    return [place for share in shares for place in share]
