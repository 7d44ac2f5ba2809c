"""Classes from users: by an entry point, as `module:Class` or as `file.py:Class`.

Protocols, loss models and delay models are found in this way. One `Plugins` stands for one kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from hustings.core.errors import BadInput, HustingsError, UnknownName


@dataclass(frozen=True, slots=True)
class Plugins:
    """One kind of class that users provide."""

    group: str  # of entry points
    noun: str  # the word for it in error sentences
    base: type  # every such class is a subclass of this one
    name_of: Callable[[object], object]  # the name that a class gives itself

    def load(self, wanted: str, ours: Collection[str]) -> object:
        """Load the class that `module:Class`, `file.py:Class` or an entry point's name means."""
        place, colon, named = wanted.rpartition(":")
        if colon:
            module = self._of_file(place) if place.endswith(".py") else self._of_name(place)
            return self._member(module, place, named)
        if wanted.endswith(".py"):
            raise BadInput(f"{wanted} is a file: name the class in it, as {wanted}:Claims")
        return self._installed(wanted, ours)

    def names(self, ours: Collection[str]) -> list[str]:
        """The names from installed packages. They cannot replace ours."""
        return sorted(set(self._entries()) - set(ours))

    def _entries(self) -> dict[str, EntryPoint]:
        return {each.name: each for each in entry_points(group=self.group)}

    def _installed(self, wanted: str, ours: Collection[str]) -> object:
        found, name = self._entries(), wanted.replace("_", "-")
        if name not in found:
            raise UnknownName(self.noun, wanted, [*ours, *self.names(ours)])
        kind = self._member(self._of_name(found[name].module), found[name].module, found[name].attr)
        called = self.name_of(kind)
        if called != name:
            raise BadInput(
                f"entry point {name!r} of {self.group} calls itself {called!r}: both must be the "
                "same word"
            )
        return kind

    def _of_name(self, place: str) -> ModuleType:
        if not all(part.isidentifier() for part in place.split(".")):
            raise BadInput(f"{place!r} names no module: write module:Class, or file.py:Class")
        here = str(Path.cwd())
        if here not in sys.path:  # `python -m` puts the folder there, and a script does not
            sys.path.append(here)
        try:
            return import_module(place)
        except ModuleNotFoundError as error:
            asked = error.name is not None and f"{place}.".startswith(f"{error.name}.")
            missing = "" if asked else f", for want of {error.name}"
            raise BadInput(
                f"there is no module {place!r} to import a {self.noun} from{missing}"
            ) from None
        except Exception as error:
            raise _broken(place, error) from error

    def _of_file(self, place: str) -> ModuleType:
        """Load a file as a module, in a folder that worker processes search, too."""
        path = Path(place).resolve()
        if not path.is_file():
            raise BadInput(f"there is no file {place!r} to read a {self.noun} from")
        known = sys.modules.get(path.stem)
        if known is not None and getattr(known, "__file__", None) == str(path):
            return known
        if not path.stem.isidentifier():
            raise BadInput(
                f"{path.name} cannot be a module: its name is to be letters, digits and _"
            )
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))
        found = known if known is not None else find_spec(path.stem)
        there = getattr(found, "__file__", None) or getattr(found, "origin", None)
        if there != str(path):
            raise BadInput(f"there is another module called {path.stem}: give {place} another name")
        return _executed(path, place)

    def _member(self, module: ModuleType, place: str, named: str) -> object:
        found = getattr(module, named, None)
        if found is None:
            own = [name for name, each in vars(module).items() if self._is_own(each, module)]
            raise UnknownName(f"class in {place}", named, own)
        return found

    def _is_own(self, value: object, module: ModuleType) -> bool:
        if not (isinstance(value, type) and issubclass(value, self.base)):
            return False
        return value.__module__ == module.__name__


def place_of(kind: type) -> str:
    """What a user writes to name this class: `file.py:Class`, or `module:Class`."""
    module = sys.modules.get(kind.__module__)
    path = getattr(module, "__file__", None)
    if path is None or "." in kind.__module__:
        return f"{kind.__module__}:{kind.__qualname__}"
    return f"{path}:{kind.__qualname__}"


def source_digest(kind: type) -> str:
    """A digest of the file that contains a user's class: kept results depend on it.

    "" for a class of ours, or where there is no file.
    """
    module = sys.modules.get(kind.__module__)
    path = getattr(module, "__file__", None)
    if kind.__module__.partition(".")[0] == "hustings" or path is None:
        return ""
    return blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()


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
    """One sentence about the error in a user's code. Our own errors are sentences already."""
    if isinstance(error, HustingsError):
        return BadInput(f"{place} cannot be used: {error}")
    if isinstance(error, SyntaxError):
        return BadInput(f"{error.filename}, line {error.lineno}, cannot be read: {error.msg}")
    return BadInput(f"{place} cannot be loaded: {type(error).__name__}: {error}")
