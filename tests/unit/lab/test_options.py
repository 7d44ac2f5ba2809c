"""Options in plain words: what Python gives becomes what would be typed."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from hustings.cli.sim import sim
from hustings.core.choice import parse_choice
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.options import FLAGS, Options, World

NOT_OF_THE_WORLD = {"protocol", "runs", "stderr", "metric", "jobs", "engine", "number", "trace_to"}
NOT_OF_THE_WORLD |= {"digest", "check", "as_json", "where"}

EXAMPLES: dict[str, tuple[Any, Any]] = {
    "members": (5, 5),
    "scenario": ("leader-crash", "leader-crash"),
    "detectors": ([1, 2], ("1", "2")),
    "initiators": (3, ("3",)),
    "crashed": ([6, 7], "6,7"),
    "settings": ({"T_A": 0.1, "bye": 2, "aged": True}, ("T_A=0.1", "bye=2", "aged=true")),
    "delay": (0.1, "0.1"),
    "choice": (parse_choice("highest:cpu"), "highest:cpu"),
    "attributes": ({"cpu": [3, 1.5], "ram": "random"}, ("cpu=3,1.5", "ram=random")),
    "seed": (7, 7),
    "loss": (0.1, 0.1),
    "loss_model": ("correlated", "correlated"),
    "links": ({(1, 2): 5.0}, ("1>2=5.0",)),
    "fifo": (True, True),
    "faults": ("crash:7@2.5", ("crash:7@2.5",)),
    "detection_settings": ({"T": 1}, ("T=1",)),
    "guard": ("quorum", "quorum"),
    "guard_settings": (["ttl=3"], ("ttl=3",)),
    "order": ((3, 1, 2), "3,1,2"),
    "until": (50.0, 50.0),
    "environment": (Path("e.toml"), "e.toml"),
}


def test_the_words_are_the_options_of_the_command_line() -> None:
    """A new option of `hustings sim` is one of Python, and has the same flag."""
    typed = {
        option.name: max(option.opts, key=len)
        for option in sim.params
        if isinstance(option, click.Option) and option.expose_value
    }
    names = {each.name for each in fields(Options)}
    assert names == typed.keys() - NOT_OF_THE_WORLD
    assert names == set(World.__annotations__)
    for name in names:
        assert typed[name] == f"--{FLAGS.get(name, name.replace('_', '-'))}"


def test_defaults_are_those_of_the_command_line() -> None:
    given = sim.make_context("sim", ["bully"]).params
    assert Options(**{each.name: given[each.name] for each in fields(Options)}) == Options()
    assert Options().words() == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_value_becomes_words_that_are_read_as_the_same_value(name: str) -> None:
    value, wanted = EXAMPLES[name]
    made = Options.of(**{name: value})
    assert getattr(made, name) == wanted
    given = sim.make_context("sim", [*made.words(), "bully"]).params
    assert Options(**{each.name: given[each.name] for each in fields(Options)}) == made


@pytest.mark.parametrize(
    "given, told",
    [
        ({"member": 5}, "unknown option 'member': did you mean 'members'"),
        ({"members": [5]}, r"members is to be a whole number, not \[5\]"),
        ({"members": "5"}, "members is to be a whole number, not '5'"),
        ({"seed": 1.5}, "seed is to be a whole number, not 1.5"),
        ({"seed": None}, "seed is to be a whole number, not None"),
        ({"loss": "much"}, "loss is to be a number, not 'much'"),
        ({"loss": True}, "loss is to be a number, not True"),
        ({"fifo": 1}, "fifo is to be True or False, not 1"),
        ({"scenario": 7}, "scenario is to be a text, not 7"),
        ({"settings": 1.5}, "settings is to be a list, not float"),
        ({"settings": {"T_A": [1]}}, "settings T_A is to be a text or a number, not list"),
        ({"delay": None}, "delay is to be a text or a number, not NoneType"),
        ({"detectors": [None]}, "detectors is to be a text or a number"),
    ],
)
def test_what_has_no_words_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        Options.of(**given)
    assert issubclass(UnknownName, BadInput)
