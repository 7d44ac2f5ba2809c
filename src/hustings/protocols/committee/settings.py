"""Settings of the election by committees: profile, parameters that override it, adversary.

Rules that do not depend on the group are checked when the settings are read. `knobs_of` checks the
rest, and also turns settings and a size into plain numbers. `too_large` says what cannot be played
message by message.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hustings.core.config import Config, Surroundings
from hustings.core.errors import BadInput, UnknownName
from hustings.protocols.committee.adversary import parse_adversary
from hustings.protocols.committee.agreement import BASE, tolerated
from hustings.protocols.committee.bins import halvings_to
from hustings.protocols.committee.network import CommitteeNetwork, lay_out
from hustings.protocols.committee.profiles import (
    LARGEST_COMMITTEE,
    PROFILES,
    Binning,
    Endgame,
    Final,
    Knobs,
    Shape,
    profile,
)

MOST = 10**15  # members
MOST_LAYERS = 8
MOST_HALVINGS = 32
MOST_BY_MESSAGE = 1000  # members that may be played message by message
MOST_MESSAGES = 10_000_000  # about a minute
THIRD = 1 / 3

Knob = Annotated[int, Meta(ge=1, le=MOST)]


class CommitteeConfig(Config, frozen=True, kw_only=True):
    """Profile, overrides, adversary."""

    b: Annotated[float, Meta(ge=0, lt=1, description="the share of bad members")] = 0.0
    adversary: Annotated[
        str,
        Meta(
            max_length=200,
            description="which members are corrupted, and what bad members do, such "
            "as greedy+pack+lie",
        ),
    ] = "random"
    profile: Annotated[
        str, Meta(max_length=40, description="lean, robust, tuned, high-b, single or printed")
    ] = "lean"
    experiment: Annotated[
        bool, Meta(description="run with b of a third or more, for which there is no promise")
    ] = False
    model: Annotated[
        Literal["unsigned", "signed"],
        Meta(
            description="signed: agreement tolerates up to half of the members as liars, as with "
            "signatures; only in the large-scale engine"
        ),
    ] = "unsigned"
    N: (
        Annotated[int, Meta(ge=1, le=MOST, description="the size of the group, where it is known")]
        | None
    ) = None
    network_seed: (
        Annotated[
            int,
            Meta(ge=0, le=1 << 62, description="public seed of the network; default the run's"),
        ]
        | None
    ) = None
    c0: (
        Annotated[int, Meta(ge=1, le=MOST, description="the number of members in a leaf")] | None
    ) = None
    d0: Annotated[int, Meta(ge=1, le=64, description="the number of leaves of a member")] | None = (
        None
    )
    layers: (
        Annotated[
            str,
            Meta(
                max_length=200,
                description="the elected layers, each as children:neighbours:halvings, such as "
                "32:32:2,16:16:4",
            ),
        ]
        | None
    ) = None
    monitors: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MOST,
                description="the number of leaves that a member asks for the members of "
                "other nodes",
            ),
        ]
        | None
    ) = None
    fan: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=64,
                description="the number of members that told it to each of these leaves; with "
                "model=signed the number of leaves, all members of which tell it",
            ),
        ]
        | None
    ) = None
    path: (
        Annotated[int, Meta(ge=1, le=4096, description="the number of steps of the random path")]
        | None
    ) = None
    r_end: (
        Annotated[
            int,
            Meta(
                ge=1, le=MOST, description="the number of candidates with which the endgame begins"
            ),
        ]
        | None
    ) = None
    poll: (
        Annotated[
            int,
            Meta(
                ge=1, le=MOST, description="the number of members that are asked in the last step"
            ),
        ]
        | None
    ) = None
    tau: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MOST,
                description="the number of committees of one layer in which a member may sit; in "
                "more it is silent; default max(8, four times the average)",
            ),
        ]
        | None
    ) = None
    endgame: (
        Annotated[
            Endgame,
            Meta(
                description="full (a path), small (halve, then a path), baton, or feige (bins "
                "until one is left)"
            ),
        ]
        | None
    ) = None
    bins: (
        Annotated[Binning, Meta(description="the lightest bin: of two bins and repeated, or once")]
        | None
    ) = None
    final: (
        Annotated[
            Final,
            Meta(
                description="which members ask in the last step: those that believe that "
                "they lead, or all"
            ),
        ]
        | None
    ) = None
    size: (
        Annotated[
            int,
            Meta(
                ge=1, le=MOST, description="profile single: the number of members in the committee"
            ),
        ]
        | None
    ) = None

    @classmethod
    def for_group(cls, members: int, around: Surroundings) -> dict[str, object]:
        return {"N": members}

    def broken_rules(self) -> list[str]:
        broken = []
        if self.b >= THIRD and not self.experiment:
            broken.append(
                f"b = {self.b:g} must be below 1/3: with a third of liars no committee can agree; "
                "give --set experiment=true to run it anyway"
            )
        for check in (self._check_names, self._check_shapes):
            try:
                check()
            except BadInput as error:
                broken.append(str(error))
        if not broken and self.N is not None:
            try:
                knobs_of(self, self.N)
            except BadInput as error:
                broken.append(str(error))
        return broken

    def _check_names(self) -> None:
        if self.profile not in PROFILES:
            raise UnknownName("profile", self.profile, PROFILES)
        parse_adversary(self.adversary)

    def _check_shapes(self) -> None:
        if self.layers is not None:
            parse_layers(self.layers)
        if self.size is not None and self.profile != "single":
            raise BadInput(f"size goes with profile=single, not with {self.profile}")
        network = [name for name in ("c0", "d0", "layers") if getattr(self, name) is not None]
        if network and self.profile == "single":
            raise BadInput(f"{network[0]} goes with a network, and profile single has none")

    def warnings(self) -> list[str]:
        remarks = []
        if self.profile == "printed":
            remarks.append(
                "profile printed: the paper's network has no layers below n = 3.4e15"
                + (
                    ", so all members elect together"
                    if self.layers is None
                    else "; these are forced, and its rule of silence at 8 may elect nobody"
                )
            )
        if self.b >= THIRD:
            remarks.append(f"b = {self.b:g} is a third or more: an experiment, nothing is promised")
        if self.final == "printed" and self.b > 0:
            remarks.append(
                "final=printed: everybody asks, bad members answer everybody, and some good "
                "members may take themselves for the leader"
            )
        return remarks


def parse_layers(text: str) -> tuple[Shape, ...]:
    """Read elected layers from a text.

    >>> parse_layers("32:32:2,16:16:4")
    ((32, 32, 2), (16, 16, 4))
    >>> parse_layers("none")
    ()
    """
    if text.strip() == "none":
        return ()
    shapes = []
    for part in text.split(","):
        words = part.strip().split(":")
        if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
            raise BadInput(
                f"layers {text!r} is not understood: use children:neighbours:halvings for each "
                "layer, as 16:16:1 or 32:32:2,16:16:4, or none"
            )
        q, s, h = (int(word[:19]) for word in words)
        if not 2 <= q <= s <= MOST or not 1 <= h <= MOST_HALVINGS:
            raise BadInput(
                f"layer {part.strip()!r} must have 2 children or more, at least as many neighbours "
                f"as children, and 1 to {MOST_HALVINGS} halvings"
            )
        shapes.append((q, s, h))
    if len(shapes) > MOST_LAYERS:
        raise BadInput(f"{len(shapes)} layers are too many: at most {MOST_LAYERS}")
    return tuple(shapes)


def knobs_of(config: CommitteeConfig, n: int) -> Knobs:
    """Return the numbers of a configuration in a group of n, or refuse with a sentence."""
    base = profile(config.profile, n)
    if config.profile == "printed" and config.layers and config.c0 is None:
        raise BadInput("profile printed has one node of all members: to force layers, give c0 too")
    given = {
        "c0": config.c0,
        "d0": config.d0,
        "layers": None if config.layers is None else parse_layers(config.layers),
        "monitors": config.monitors,
        "fan": config.fan,
        "depth": config.path,
        "r_end": config.r_end,
        "poll": config.poll,
        "tau": config.tau,
        "endgame": config.endgame,
        "bins": config.bins,
        "final": config.final,
        "single": config.size,
    }
    knobs = msgspec.structs.replace(
        base,
        signed=config.model == "signed",
        network_seed=config.network_seed or 0,
        **{name: value for name, value in given.items() if value is not None},
    )
    return _checked(knobs, n)


def _checked(knobs: Knobs, n: int) -> Knobs:
    for name, value in (("c0", knobs.c0), ("size", knobs.single)):
        if value > n:
            raise BadInput(f"{name} = {value} is more than the group of {n} has members")
    nodes = knobs.d0 * (n // knobs.c0)
    size = knobs.c0
    for place, (q, s, h) in enumerate(knobs.layers, 1):
        if s > nodes:
            raise BadInput(
                f"layer {place} wants {s} neighbours for a node, and the layer below has {nodes}"
            )
        size = min(n, s * size) >> h  # at most: children may be fewer than q
        if size < 1:
            raise BadInput(f"layer {place} halves its committees away: h = {h} is too much")
        nodes = -(-nodes // q)
    return msgspec.structs.replace(knobs, poll=max(1, min(knobs.poll, n - 1)))


def too_large(config: CommitteeConfig, n: int) -> str | None:
    """Say why this election cannot be played message by message; None if it can."""
    if config.model == "signed":
        return "model=signed is for the large-scale engine: take --engine fast"
    knobs = knobs_of(config, n)
    if n > MOST_BY_MESSAGE:
        return (
            f"{n} members are too many to be played message by message (at most "
            f"{MOST_BY_MESSAGE}): take --engine fast"
        )
    network = lay_out(tuple(range(n)), knobs)
    largest = max(node.voters for layer in network.layers[1:] for node in layer)
    if largest > LARGEST_COMMITTEE:
        return (
            f"a committee of {largest} is too large to agree message by message (at most "
            f"{LARGEST_COMMITTEE}): take --engine fast, or a smaller c0 or fewer neighbours"
        )
    number = messages_of(network)
    if number > MOST_MESSAGES:
        return (
            f"about {number / 1e6:.0f} million messages are too many to be played one by one (at "
            f"most {MOST_MESSAGES // 10**6}): take --engine fast, or a shorter path, or "
            "endgame=small with a smaller r_end"
        )
    return None


def messages_of(network: CommitteeNetwork) -> int:
    """Estimate how many messages the agreements of an election take, at most."""
    knobs = network.knobs
    total = 0
    for nodes, (_, _, h) in zip(network.layers[1:], knobs.layers, strict=False):
        times = h if knobs.bins == "halving" else 1
        total += sum(times * _broadcast(node.voters) for node in nodes)
    k = network.root.voters
    if knobs.endgame == "full":
        return total + knobs.depth * _broadcast(k)
    if knobs.endgame == "feige":
        return total + halvings_to(k, 1) * _broadcast(k)
    steps = knobs.depth if knobs.endgame == "small" else knobs.r_end
    left = min(k, knobs.r_end)
    return total + halvings_to(k, knobs.r_end) * _broadcast(k) + steps * _broadcast(left)


def _broadcast(k: int) -> int:
    """Count the messages of one broadcast by all of k: to all, and an agreement in halves."""
    return k * (k - 1) + _agreement(k)


def _agreement(k: int) -> int:
    if k <= BASE:
        return (tolerated(k) + 1) * (2 * k + 1) * (k - 1)
    halves = (k - k // 2, k // 2)
    return sum((2 * k + half) * (k - 1) + _agreement(half) for half in halves)
