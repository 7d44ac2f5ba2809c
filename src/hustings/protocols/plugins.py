"""Elections from elsewhere: installed packages, modules and files.

A package installs elections by entry points of the group `hustings.protocols`. The name of an entry
point is the name of the protocol, its object is the class:

    [project.entry-points."hustings.protocols"]
    claims = "mine.elections:Claims"
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from hustings.core.election import Election
from hustings.core.errors import BadInput, HustingsError, UnknownName

ENTRY_POINTS = "hustings.protocols"


def load(protocol: str, ours: Collection[str]) -> object:
    """What `module:Class`, `file.py:Class` or the name of an entry point stands for."""
    place, colon, named = protocol.rpartition(":")
    if colon:
        module = _of_file(place) if place.endswith(".py") else _of_name(place)
        return _member(module, place, named)
    if protocol.endswith(".py"):
        raise BadInput(f"{protocol} is a file: name the class in it, as {protocol}:Claims")
    return _installed(protocol, ours)


def source_digest(kind: type[Election]) -> str:
    """Of the file that a class from elsewhere is in: what was kept of its runs depends on it.

    "" for one of ours, or where there is no file.
    """
    module = sys.modules.get(kind.__module__)
    path = getattr(module, "__file__", None)
    if kind.__module__.partition(".")[0] == "hustings" or path is None:
        return ""
    return blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()


def names(ours: Collection[str]) -> list[str]:
    """The names that installed packages bring; ours are not theirs to give."""
    return sorted(set(_entries()) - set(ours))


def _entries() -> dict[str, EntryPoint]:
    return {each.name: each for each in entry_points(group=ENTRY_POINTS)}


def _installed(protocol: str, ours: Collection[str]) -> object:
    found, name = _entries(), protocol.replace("_", "-")
    if name not in found:
        raise UnknownName("protocol", protocol, [*ours, *names(ours)])
    kind = _member(_of_name(found[name].module), found[name].module, found[name].attr)
    called = getattr(getattr(kind, "about", None), "name", None)
    if called != name:
        raise BadInput(
            f"entry point {name!r} of {ENTRY_POINTS} calls itself {called!r}: both must be the "
            "same word"
        )
    return kind


def _of_name(place: str) -> ModuleType:
    if not all(part.isidentifier() for part in place.split(".")):
        raise BadInput(f"{place!r} names no module: write module:Class, or file.py:Class")
    here = str(Path.cwd())
    if here not in sys.path:  # as it is with `python -m`, and not with a script
        sys.path.append(here)
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        asked = error.name is not None and f"{place}.".startswith(f"{error.name}.")
        missing = "" if asked else f", for want of {error.name}"
        raise BadInput(f"there is no module {place!r} to import a protocol from{missing}") from None
    except Exception as error:
        raise _broken(place, error) from error


def _of_file(place: str) -> ModuleType:
    """A file as a module of its own name, in a folder that worker processes search, too."""
    path = Path(place).resolve()
    if not path.is_file():
        raise BadInput(f"there is no file {place!r} to read a protocol from")
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if not path.stem.isidentifier():
        raise BadInput(f"{path.name} cannot be a module: its name is to be letters, digits and _")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    found = known if known is not None else find_spec(path.stem)
    there = getattr(found, "__file__", None) or getattr(found, "origin", None)
    if there != str(path):
        raise BadInput(f"there is another module called {path.stem}: give {place} another name")
    return _executed(path, place)


def _executed(path: Path, place: str) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[path.stem] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[path.stem]
        raise _broken(place, error) from error
    return module


def _broken(place: str, error: Exception) -> HustingsError:
    """One sentence of what is wrong with somebody's code; ours are sentences already."""
    if isinstance(error, HustingsError):
        return BadInput(f"{place} cannot be used: {error}")
    if isinstance(error, SyntaxError):
        return BadInput(f"{error.filename}, line {error.lineno}, cannot be read: {error.msg}")
    return BadInput(f"{place} cannot be loaded: {type(error).__name__}: {error}")


def _member(module: ModuleType, place: str, named: str) -> object:
    found = getattr(module, named, None)
    if found is None:
        own = [name for name, each in vars(module).items() if _is_own(each, module)]
        raise UnknownName(f"class in {place}", named, own)
    return found


def _is_own(value: object, module: ModuleType) -> bool:
    if not (isinstance(value, type) and issubclass(value, Election)):
        return False
    return value.__module__ == module.__name__
