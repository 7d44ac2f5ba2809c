"""What `import hustings` shows: the public names, each of which is there, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import hustings
import hustings.testing

MODULES = ["asgi", "blocking", "testing"]


def test_only_public_names_are_listed() -> None:
    assert dir(hustings) == sorted([*hustings.__all__, *MODULES])
    assert not [name for name in dir(hustings) if name.startswith("_") and name != "__version__"]
    assert dir(hustings.testing) == sorted(hustings.testing.__all__)


@pytest.mark.parametrize("package", [hustings, hustings.testing], ids=lambda it: it.__name__)
def test_each_name_is_what_it_says(package: object) -> None:
    for name in dir(package):
        value = getattr(package, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__name__ == name
            assert value.__doc__, f"{name} says nothing of itself"


def test_a_name_that_is_not_there_gets_a_sentence() -> None:
    for package in (hustings, hustings.testing):
        with pytest.raises(AttributeError, match="has no attribute 'jion'"):
            getattr(package, "jion")  # noqa: B009 (a checker would know better)


def test_a_name_means_the_same_whatever_was_imported_before() -> None:
    for name in dir(hustings.testing):
        for module in ("recorded", "script", "faults", "group", "effects", "clock"):
            importlib.import_module(f"hustings.testing.{module}")
        assert not inspect.ismodule(getattr(hustings.testing, name)), name


def test_to_list_the_names_loads_nothing() -> None:
    code = (
        "import sys, hustings, hustings.testing; dir(hustings); dir(hustings.testing);"
        "print([name for name in sys.modules if name.startswith('hustings.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['hustings.testing']\n"
