"""Settings that were given and change nothing, because another setting leaves them out of account.

They are not refused: a sweep over one setting may well keep another. But they are told.
"""

from __future__ import annotations

from collections.abc import Collection

from hustings.core.config import Config
from hustings.core.election import Election
from hustings.protocols.announce.le_m import LeM
from hustings.protocols.announce.settings import (
    AnnounceConfig,
    SupAlConfig,
    SupAlRandomConfig,
    SupConfig,
    SuppressConfig,
)
from hustings.protocols.announce.sup import Sup
from hustings.protocols.announce.sup_al import SupAl

Sleeping = SuppressConfig | SupConfig | SupAlConfig | SupAlRandomConfig

SLEEP = ("T_S", "law", "lam", "wake", "link")  # what says how long a member sleeps


def unused_settings(config: Config, given: Collection[str], *, leaving: bool) -> list[str]:
    """A sentence for each of `given`, or some of them together, that changes nothing.

    `leaving`: somebody may depart in good order.

    >>> unused_settings(SuppressConfig(), ["lam"], leaving=False)
    ['lam has no effect with law=uniform: set law=exponential']
    """
    told: list[str] = []
    if isinstance(config, Sleeping):
        told += _sleep(config, given)
        if "link" in given and getattr(config, "wake", None) != "linked":
            told.append("link has no effect without wake=linked")
    if isinstance(config, AnnounceConfig):
        if "T_Q" in given and config.query == "none":
            told.append("T_Q has no effect without a query: set query=query or suppress-query")
        told += _byes(config, given, leaving=leaving)
    return told


def _sleep(config: Sleeping, given: Collection[str]) -> list[str]:
    asks = isinstance(config, SuppressConfig) and config.query == "query"
    names = [name for name in SLEEP if name in given and (asks or name != "T_S")]
    if names and (asks or config.T_S == 0):
        why = "query=query: members ask at once" if asks else "T_S=0: nobody sleeps"
        return [f"{_list(names)} no effect with {why}"]
    if "lam" in given and config.law == "uniform":
        return ["lam has no effect with law=uniform: set law=exponential"]
    return []


def _byes(config: AnnounceConfig, given: Collection[str], *, leaving: bool) -> list[str]:
    names = [name for name in ("bye", "bye_loss", "bye_eps", "bye_gap") if name in given]
    if names and not leaving:
        return [
            f"{_list(names)} no effect where nobody leaves in good order: take scenario "
            "leader-leave, churn with --orderly, or --fault leave:..."
        ]
    told: list[str] = []
    if "bye_eps" in given and config.bye_loss is None:
        told.append("bye_eps has no effect without bye_loss, from which it works out the Byes")
    if "bye_gap" in given and config.bye_gap and not config.bye_loss and (config.bye or 0) < 2:
        told.append("bye_gap has no effect with less than two Byes: set bye or bye_loss")
    return told


def _list(names: list[str]) -> str:
    return f"{', '.join(names)} {'has' if len(names) == 1 else 'have'}"


def says_goodbye(kind: type[Election], config: Config) -> bool:
    """Whether a leader that departs in good order tells the others."""
    if isinstance(config, AnnounceConfig):
        return config.byes(1) > 0
    return kind.leave is not Election.leave


def ranks_otherwise(kind: type[Election]) -> str | None:
    """By what members compare, where that is not the choice function."""
    if issubclass(kind, LeM):
        return "the time of waking"
    return "who is heard first" if issubclass(kind, Sup | SupAl) else None
