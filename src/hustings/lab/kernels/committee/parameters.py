"""The input of the large-scale committee election: all its numbers, as a plain value.

All checks are here, in whole sentences, before anything is drawn.
"""

from __future__ import annotations

from math import ceil

import msgspec

from hustings.core.errors import BadInput, UnknownName

MAX_MEMBERS = 10_000_000
MAX_HALVINGS = 16
CORRUPTIONS = ("none", "random", "greedy", "cluster", "leaf", "mixed", "second", "tree", "given")
ENDGAMES = ("full", "small", "baton", "feige")
BINS = ("halving", "oneshot")
FINALS = ("conjunction", "printed")
SAMPLERS = ("permutations", "spread")
LISTS = ("names", "marks")
TASKS = ("leader", "agreement", "coin")
INPUTS = ("random", "same", "split")


class CommitteeParameters(msgspec.Struct, frozen=True, kw_only=True):
    """One group, its network, its adversary.

    `layers` holds (children q, in-degree s, halvings h) of each elected layer, from below.
    """

    members: int
    b: float = 0.0
    c0: int = 32  # members of a leaf
    d0: int = 1  # leaves of a member
    layers: tuple[tuple[int, int, int], ...] = ((16, 16, 2),)
    monitors: int = 8  # leaves that a member asks for the members of the other nodes
    fan: int = 3  # members that tell each of those; whole leaves, if signed
    depth: int = 128  # of the random path
    r_end: int = 128  # candidates at which halving ends before the last stage
    poll: int = 64
    tau: int | None = None  # silence beyond this many nodes of a layer; None: max(8, 4 x mean)
    endgame: str = "full"
    bins: str = "halving"
    final: str = "conjunction"
    corruption: str = "random"
    packs: bool = True  # fills the lightest bin
    steers: bool = True  # moves against the good in the last games
    lies: bool = True
    floods: bool = True
    claims: bool = True
    coordinates: bool = False  # packing members share out the seats, so that fewer are taken twice
    signed: bool = False  # agreement up to 1/2 instead of 1/3
    single: int = 0  # > 0: one public committee of that size, and no network
    sampler: str = "permutations"
    lists: str = "names"  # form of a layer-1 committee's list: names, or marks on the participants
    network_seed: int | None = None  # None: every run draws a network of its own
    task: str = "leader"  # the root's task: a leader, a bit of the whole group, or a coin
    deciders: int = 128  # agreement: how many decide at most
    inputs: str = "random"  # agreement: the values that members begin with

    def __post_init__(self) -> None:
        """Refuse what cannot be played."""
        if not 1 <= self.members <= MAX_MEMBERS:
            raise BadInput(f"members must lie between 1 and {MAX_MEMBERS:,}, not {self.members:,}")
        if not 0.0 <= self.b <= 1.0:
            raise BadInput(f"b must lie in [0, 1], not {self.b:g}")
        for name in ("c0", "d0", "monitors", "fan", "depth", "r_end", "poll", "deciders"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.tau is not None and self.tau < 0:
            raise BadInput(f"tau must be at least 0, not {self.tau}")
        for q, s, h in self.layers:
            if q < 1 or s < q or not 0 <= h <= MAX_HALVINGS:
                raise BadInput(
                    f"a layer needs children q >= 1, in-degree s >= q and halvings h in 0.."
                    f"{MAX_HALVINGS}, not ({q}, {s}, {h})"
                )
        if not 0 <= self.single <= self.members:
            raise BadInput(
                f"single must lie between 0 and the {self.members:,} members, not {self.single}"
            )
        if not self.single and not self.layers:
            raise BadInput("without layers there is no network: give single, the committee's size")
        if not self.single and self.c0 > self.members:
            raise BadInput(f"a leaf of {self.c0} is larger than the group of {self.members}")
        for kind, name, known in (
            ("corruption", self.corruption, CORRUPTIONS),
            ("endgame", self.endgame, ENDGAMES),
            ("bins", self.bins, BINS),
            ("final", self.final, FINALS),
            ("sampler", self.sampler, SAMPLERS),
            ("lists", self.lists, LISTS),
            ("task", self.task, TASKS),
            ("input", self.inputs, INPUTS),
        ):
            if name not in known:
                raise UnknownName(kind, name, known)

    @property
    def budget(self) -> int:
        """The number of bad members."""
        return 0 if self.corruption == "none" else int(self.b * self.members + 1e-9)

    @property
    def public_tree(self) -> bool:
        """Whether the tree of the path is known before any member is corrupted."""
        return self.single == self.members and self.endgame == "full" and self.steers

    @property
    def leaves(self) -> int:
        """The number of leaves, over all permutations."""
        return self.d0 * max(1, self.members // self.c0)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The number of nodes in each elected layer."""
        found = []
        below = self.leaves
        for q, _, _ in self.layers:
            below = ceil(below / q)
            found.append(below)
        return tuple(found)

    @property
    def parts(self) -> int:
        """Agreement holds while the faulty are fewer than one part in this many."""
        return 2 if self.signed else 3


def memory(parameters: CommitteeParameters) -> int:
    """Bytes that one run needs at most, computed before it begins.

    >>> million = CommitteeParameters(members=1_000_000, d0=1, layers=((64, 64, 4),))
    >>> 10_000_000 < memory(million) < 10**9
    True
    """
    n = parameters.members
    seats = n * parameters.d0
    need = 200_000_000  # Python, numpy and the compiled kernels themselves
    need += 64 * n  # state and bill of each member; stamps
    need += 40 * seats  # the permutations and how they are drawn
    below = seats
    nodes = parameters.leaves
    for q, s, h in () if parameters.single else parameters.layers:
        below = ceil(below * s / q)
        nodes = ceil(nodes / q)
        need += 16 * below + 16 * nodes * s  # participants and neighbours
        if parameters.corruption in ("greedy", "mixed", "second", "tree"):
            need += 24 * below
        below >>= h
    widest = parameters.single or min(n, max(below, 1))
    need += 24 * widest
    if parameters.endgame != "full" and parameters.task != "agreement":
        need += 64 * int(40 * widest**0.5) ** 2
    return need
