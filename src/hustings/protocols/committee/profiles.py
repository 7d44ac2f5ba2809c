"""Named sets of parameters, and what each of them means in a group of a given size.

`lean`     one leaf for each member and one elected layer: the cheapest network.
`robust`   four to eight leaves for each member: an adversary that knows the network gains less.
`tuned`    lean with measured improvements, at twice the rounds: see docs/decisions/0015.
`high-b`   large electorates that are halved only once: for nearly a third of bad members.
`single`   no network: one committee, drawn by a public seed, elects and tells the others.
`printed`  the paper's numbers as they stand. Its tree has no layers below n = 3.4e15, so all
           members together run HEAVYWEIGHT-LEADER-ELECTION; in smaller groups layers may be forced.

From 129 members on the numbers are those for large groups, with one elected layer. With a second
layer an adversary that owns a third of a node's neighbours would own the node. Below 129, the
committees of `lean` and `single` are small enough to be played message by message: at most 64
members agree at once, and all of them walk the last path, of 64 steps. Halving happens only once;
that is what costs success in a small group.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log
from typing import Literal

import msgspec

from hustings.core.errors import BadInput, UnknownName

Endgame = Literal["full", "small", "baton", "feige"]
Binning = Literal["halving", "oneshot"]
Final = Literal["conjunction", "printed"]
Shape = tuple[int, int, int]  # children in the tree, neighbours below, halvings

BY_MESSAGE = 128  # members: up to this size the profiles are made for the event simulator
LARGEST_COMMITTEE = 64  # members that agree message by message

ROBUST = (  # below this many members: leaf size, leaves of a member, children, halvings, monitors
    (3_163, 16, 8, 8, 1, 4),
    (25_000, 16, 8, 16, 1, 3),
    (125_000, 16, 4, 16, 1, 3),
    (316_228, 16, 5, 32, 2, 3),
    (1 << 62, 16, 5, 64, 3, 3),
)


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers of one election. With these and the ids a member knows the whole schedule."""

    members: int
    c0: int  # members of a leaf, or one more
    d0: int  # leaves of a member
    layers: tuple[Shape, ...]
    monitors: int  # leaves that a member asks for the members of other nodes
    fan: int  # members that tell each of those; leaves, if signed
    depth: int  # steps of a random path
    r_end: int  # candidates left when an endgame other than `full` begins
    poll: int  # members that the last step asks
    tau: int | None  # committees of one layer that a member may sit in; None: by the average
    endgame: Endgame
    bins: Binning
    final: Final
    signed: bool = False
    single: int = 0  # size of the one public committee, if there is no network
    padding: bool = False  # printed: fill a subcommittee up, arbitrarily
    # Tell first committees by marks on the participants' list, where that is shorter.
    marks: bool = True
    graph: bool = False  # printed: the paper's graph of leaves, and whole leaves report
    network_seed: int = 0


def levels(n: int) -> int:
    """Return l*: the least l with n / L^l <= L^10, L = ln n: the layers of the paper's network.

    >>> levels(1000), levels(10**15), levels(4 * 10**15)
    (0, 0, 1)
    """
    if n < 3:
        raise BadInput(f"the paper's network has no height for n = {n}: ln n is not above 1")
    log_n = log(n)
    level = 0
    while log_n - level * log(log_n) > 10 * log(log_n):  # in logarithms: n may be astronomical
        level += 1
    return level


def polls(n: int) -> int:
    """Return how many members the last step asks: about 32 per power of ten after the first."""
    for bound, number in ((3163, 64), (31623, 96), (316228, 128)):
        if n < bound:
            return min(number, max(1, n - 1))
    return 160


def _shape(n: int) -> tuple[int, Shape]:
    """Return leaf size and first layer of a lean network: electorates grow like n^(1/4)."""
    for bound, c0, shape in (
        (32, 4, (2, 2, 1)),
        (64, 4, (4, 4, 1)),
        (104, 8, (4, 4, 1)),
        (BY_MESSAGE + 1, 8, (6, 6, 1)),
        (500, 16, (4, 4, 1)),
        (3163, 16, (16, 16, 1)),
        (31623, 32, (16, 16, 2)),
        (316228, 32, (32, 32, 3)),
    ):
        if n < bound:
            return c0, shape
    return 32, (64, 64, 4)


def _common(n: int) -> Knobs:
    """Return the numbers that the practical profiles share."""
    small = n <= BY_MESSAGE
    return Knobs(
        members=n,
        c0=n,
        d0=1,
        layers=(),
        monitors=8,
        fan=3,
        depth=64 if small else 128,
        r_end=LARGEST_COMMITTEE if small else 128,
        poll=polls(n),
        tau=None,
        endgame="small" if small else "full",
        bins="halving",
        final="conjunction",
    )


def lean(n: int) -> Knobs:
    """One leaf for each member, one elected layer."""
    c0, shape = _shape(n)
    fan = 9 if BY_MESSAGE < n < 3163 else 3  # where few are asked, three tellers mislead too many
    return msgspec.structs.replace(_common(n), c0=c0, layers=(shape,), fan=fan)


def robust(n: int) -> Knobs:
    """Several small leaves for each member, and electorates that are halved only once.

    Nearly every good member is then elected somewhere, so a node that the adversary owns has few
    names left to add. From 125,000 members on a root of nearly all members costs too much, and
    electorates are halved twice and then three times.
    """
    common = _common(n)
    if n <= BY_MESSAGE:
        c0, (q, s, h) = _shape(n)
        more = h + 1 if n >= 32 else h
        return msgspec.structs.replace(common, c0=c0, d0=4, layers=((q, s, more),))
    c0, d0, q, h, monitors = next(numbers for bound, *numbers in ROBUST if n < bound)
    return msgspec.structs.replace(
        common, c0=c0, d0=d0, layers=((q, q, h),), monitors=monitors, fan=9
    )


def high_b(n: int) -> Knobs:
    """Two large electorates, or as many of 2048 as there are, halved once.

    With nearly a third of bad members, three tellers mislead a monitor too often: it needs nine.
    """
    if n >= 4096:
        return msgspec.structs.replace(_common(n), c0=32, layers=((64, 64, 1),), fan=9)
    c0, _ = _shape(n)
    half = -(-(n // c0) // 2)
    return msgspec.structs.replace(_common(n), c0=c0, layers=((half, half, 1),), fan=9)


def tuned(n: int) -> Knobs:
    """Smaller electorates and one halving less than lean, fewer monitors, with more tellers each.

    Better than lean in success and bits from 10,000 members on, at twice the rounds.
    """
    common = msgspec.structs.replace(_common(n), monitors=4, fan=5)
    if n < 3163:
        return msgspec.structs.replace(common, c0=lean(n).c0, layers=lean(n).layers)
    q, h = (8, 1) if n < 31623 else (24, 2) if n < 316228 else (48, 3)
    return msgspec.structs.replace(common, c0=32, layers=((q, q, h),))


def single(n: int) -> Knobs:
    """One public committee: of 128, or of all; of 64 if elections are played message by message."""
    size = min(n, LARGEST_COMMITTEE if n <= BY_MESSAGE else 128)
    return msgspec.structs.replace(_common(n), single=size)


def printed(n: int) -> Knobs:
    """The paper's numbers: below n = 3.4e15 there is the root alone."""
    if levels(n) > 0:
        raise BadInput(
            f"profile printed has layers for n = {n}, but no such network can be laid out: each "
            "leaf would hold more than 50 million members"
        )
    squared = ceil(log(n) ** 2)
    return Knobs(
        members=n,
        c0=n,
        d0=1,
        layers=(),
        monitors=squared,
        fan=1,
        depth=64,
        r_end=32,
        poll=min(squared, n - 1),
        tau=8,
        endgame="feige",
        bins="oneshot",
        final="printed",
        padding=True,
        marks=False,
        graph=True,
    )


# Name: how to make it, the smallest group it is for, and its idea.
PROFILES: dict[str, tuple[Callable[[int], Knobs], int, str]] = {
    "lean": (lean, 16, "one leaf for each member, one elected layer: the cheapest network"),
    "robust": (robust, 16, "many leaves for each member: for corruption that knows the network"),
    "tuned": (tuned, 16, "as lean, with smaller electorates: better and cheaper, more rounds"),
    "high-b": (high_b, 16, "large electorates, halved once: for nearly a third of bad members"),
    "single": (single, 2, "no network: one public committee elects and tells the others"),
    "printed": (printed, 4, "the paper's numbers: no layers below n = 3.4e15"),
}


def profile(name: str, n: int) -> Knobs:
    """Return the parameters of a named profile for a group of n.

    >>> profile("lean", 10_000).layers
    ((16, 16, 2),)
    """
    if name not in PROFILES:
        raise UnknownName("profile", name, PROFILES)
    make, least, _ = PROFILES[name]
    if n < least:
        other = ", or take profile=single" if least > 2 and n >= 2 else ""
        raise BadInput(f"profile {name} is for {least} members or more, not {n}{other}")
    return make(n)
