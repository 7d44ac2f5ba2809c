"""`swarm`: worlds drawn by seeds, everything that can go wrong in them, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.naming import named
from hustings.lab.tables import Table, as_html
from hustings.layers.confirmed import GuardConfig
from hustings.protocols.registry import CATALOGUE, Protocol, Use, find, use_of
from hustings.sim.runs import Progress
from hustings.sim.swarm import GUARDS, Asking, Elect, Entry, Swarm
from hustings.sim.swarm_fickle import Fickle
from hustings.sim.swarm_runs import Tally, play_all

# Fickle is no protocol: it nominates at random, and a guard must hold all the same.
ENTRIES: dict[str, Entry] = {
    "fickle": Entry(Fickle, weight=3),
    "bully": Entry(find("bully")),
    "le-s": Entry(find("le-s")),
    "le-a": Entry(find("le-a"), (("query", "query"), ("bye", 2))),
    "probabilistic": Entry(find("probabilistic"), (("K", 3),)),
}


@dataclass(frozen=True, slots=True)
class Swarmed(Table):
    """What came of all worlds."""

    tally: Tally
    first: int
    beyond: bool
    replays: list[str]  # the command line that plays and draws each failure

    @property
    def failed(self) -> int:
        """Worlds that violate what is promised."""
        return self.tally.failed

    def rows(self) -> list[dict[str, object]]:
        """One for each property."""
        return [{"property": name, **counts} for name, counts in self.tally.verdicts.items()]

    def _repr_html_(self) -> str:
        replays = "".join(f"<pre>{escape(each)}</pre>" for each in self.replays)
        return f"<p><b>{self.tally.seeds:,} worlds</b></p>{as_html(self.rows())}{replays}"

    def to_json(self) -> dict[str, object]:
        """As `hustings swarm --json` prints it."""
        tally, replays = self.tally, self.replays
        return {
            "first": self.first,
            "seeds": tally.seeds,
            "beyond": self.beyond,
            "verdicts": tally.verdicts,
            "worlds": {guard: dict(sorted(found.items())) for guard, found in tally.worlds.items()},
            "counts": dict(tally.counts),
            "overlaps": tally.overlaps,
            "first_overlap": tally.first_overlap,
            "slowest_settling": tally.slowest,
            "share_of_limit": tally.used,
            "failed": tally.failed,
            "failures": [
                {"seed": seed, "wrong": wrong, "replay": again}
                for (seed, wrong), again in zip(tally.failures, replays, strict=True)
            ],
        }


def swarm(
    *,
    seeds: int = 1_000,
    first: int = 0,
    guards: Sequence[str] = (),
    protocols: Sequence[Protocol] = (),
    beyond: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Swarmed:
    """Draw whole worlds from seeds, let everything go wrong in them, and judge: `hustings swarm`.

    >>> swarm(protocols=["bully"], seeds=3).failed
    0
    """
    tally = play_all(drawn(guards, protocols, beyond=beyond), first, seeds, jobs, progress)
    names = [_word(each) for each in protocols]
    replays = [replay(seed, tuple(guards), tuple(names), beyond) for seed, _ in tally.failures]
    return Swarmed(tally, first, beyond, replays)


def drawn(guards: Sequence[str], protocols: Sequence[Protocol], *, beyond: bool) -> Swarm:
    """What worlds are drawn from."""
    return Swarm(
        entries=tuple(entry(name) for name in protocols or tuple(ENTRIES)),
        guards=guards_of(tuple(guards)),
        quorate=quorate,
        votes=votes,
        beyond=beyond,
    )


def _word(protocol: Protocol) -> str:
    if isinstance(protocol, str):
        return protocol
    return named(protocol, protocol) or protocol.about.name


def quorate(elect: Asking, voters: tuple[MemberId, ...], lease: GuardConfig) -> Elect:
    """A quorum of these voters round elections; the longest lease is the one asked for."""
    from hustings.quorum import QuorumConfig  # noqa: PLC0415 (few need it)
    from hustings.quorum import quorate as go_round  # noqa: PLC0415 (likewise)

    config = QuorumConfig(delta=lease.delta, voters=voters, longest=lease.asked)
    return go_round(elect, config)


def votes(stored: Mapping[str, object]) -> bool:
    """Whether a voter that stored this has begun to vote."""
    return stored.get("quorum-votes") is True


def entry(name: Protocol) -> Entry:
    """An election of the swarm: those that it draws by default, or any other."""
    if isinstance(name, str) and (known := ENTRIES.get(name.replace("_", "-"))) is not None:
        return known
    try:
        kind = find(name)
        if use_of(kind) is Use.GUARD:
            raise BadInput(
                f"{name} needs nobody to confirm it: try the same voters with --guard quorum"
            )
        if use_of(kind) is Use.ROUNDS:
            raise BadInput(f"{name} has an adversary of its own: hustings sim {name}")
        return Entry(kind)
    except UnknownName:
        every = tuple(dict.fromkeys((*ENTRIES, *CATALOGUE)))
        raise UnknownName("protocol", str(name), every) from None


def guards_of(typed: tuple[str, ...]) -> tuple[str, ...]:
    for name in typed:
        if name not in GUARDS:
            raise UnknownName("guard", name, GUARDS)
    return typed or ("memory", "quorum")


def replay(seed: int, guards: tuple[str, ...], protocols: tuple[str, ...], beyond: bool) -> str:
    """The command line that plays one seed again and draws it."""
    chosen = [f"--guard {name}" for name in guards] + [f"--protocol {name}" for name in protocols]
    words = ["hustings swarm", *chosen, *(["--beyond"] if beyond else [])]
    return " ".join([*words, f"--first {seed} --seeds 1 --trace"])
