"""A heap of (tick, member) pairs, the earliest first and then the lowest member."""

from __future__ import annotations

from hustings.lab.kernels.common import NEVER, Ints
from hustings.lab.kernels.compiling import compiled

# A heap is a table of two rows; its first column holds its size.


@compiled
def earlier(heap: Ints, one: int, other: int) -> bool:
    """Whether one place comes before another."""
    if heap[0, one] != heap[0, other]:
        return bool(heap[0, one] < heap[0, other])
    return bool(heap[1, one] < heap[1, other])


@compiled
def swap(heap: Ints, one: int, other: int) -> None:
    """Exchange two places."""
    for row in range(2):
        heap[row, one], heap[row, other] = heap[row, other], heap[row, one]


@compiled
def push(heap: Ints, at: int, member: int) -> None:
    """Put a pair in."""
    heap[0, 0] += 1
    place = heap[0, 0]
    heap[0, place], heap[1, place] = at, member
    while place > 1 and earlier(heap, place, place // 2):
        swap(heap, place, place // 2)
        place //= 2


@compiled
def first(heap: Ints) -> int:
    """The earliest tick."""
    return int(heap[0, 1]) if heap[0, 0] else NEVER


@compiled
def pop(heap: Ints) -> int:
    """Take the earliest out; its member."""
    member = int(heap[1, 1])
    size = heap[0, 0]
    swap(heap, 1, size)
    size -= 1
    heap[0, 0] = size
    place = 1
    while 2 * place <= size:
        child = 2 * place
        if child < size and earlier(heap, child + 1, child):
            child += 1
        if not earlier(heap, child, place):
            break
        swap(heap, child, place)
        place = child
    return member
