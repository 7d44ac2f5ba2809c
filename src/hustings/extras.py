"""How to install what is missing: a command that fits the way in which hustings was installed.

Some features need packages that not everybody wants. The message for a missing one gives a command
line. From an index that is `pip install 'hustings[etcd]'`. From a checkout, a wheel or a
repository, the installer has noted where the package came from (`direct_url.json`), and the command
names that place. If the place is gone, the command names the packages themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import Distribution

NAME = "hustings"


def install_command(extra: str) -> str:
    """The command line that installs what the feature `extra` needs.

    >>> install_command("etcd").startswith("pip install ")
    True
    """
    # Imported late here and below: every member loads this module, and hardly one needs it.
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path

    try:
        found = distribution(NAME)
    except PackageNotFoundError:  # a source tree on the path, not installed
        tree = Path(__file__).resolve().parents[2]
        return _of(str(tree), extra) if (tree / "pyproject.toml").is_file() else _of(NAME, extra)
    return command_for(found, extra)


def command_for(found: Distribution, extra: str) -> str:
    """The same for one installed distribution."""
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    origin = _origin(found)
    url = origin.get("url")
    if not isinstance(url, str):
        return _of(NAME, extra)  # from an index
    if isinstance(origin.get("vcs_info"), dict):
        return _from_repository(origin["vcs_info"], url, extra)
    parts = urlsplit(url)
    if parts.scheme != "file":
        return "pip install " + _quoted(f"{NAME}[{extra}] @ {url}")
    place = unquote(parts.path)
    if not Path(place).exists():
        return _of_requirements(requirements(found, extra), extra)
    info = origin.get("dir_info")
    return _of(place, extra, editable=isinstance(info, dict) and bool(info.get("editable")))


def _origin(found: Distribution) -> dict[str, Any]:
    """What the installer has noted, if it has noted anything."""
    import json

    try:
        noted = json.loads(found.read_text("direct_url.json") or "{}")
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _of(what: str, extra: str, editable: bool = False) -> str:
    return f"pip install {'-e ' if editable else ''}{_quoted(f'{what}[{extra}]')}"


def _quoted(word: str) -> str:
    """In quotes that a shell understands; always, since some shells expand brackets."""
    import shlex

    return shlex.quote(word) if "'" in word else f"'{word}'"


def _of_requirements(wanted: list[str], extra: str) -> str:
    if not wanted:
        return _of(NAME, extra)
    return "pip install " + " ".join(map(_quoted, wanted))


def _from_repository(info: dict[str, Any], url: str, extra: str) -> str:
    at = info.get("commit_id")
    commit = f"@{at}" if isinstance(at, str) else ""
    return "pip install " + _quoted(f"{NAME}[{extra}] @ {info.get('vcs', 'git')}+{url}{commit}")


def requirements(found: Distribution, extra: str) -> list[str]:
    """What the extra stands for, without hustings: `aetcd>=1.0`."""
    wanted: list[str] = []
    waiting, seen = [extra], {extra}
    while waiting:
        word = waiting.pop(0)
        for line in found.requires or ():
            what, _, marker = (part.strip() for part in line.partition(";"))
            if f'extra == "{word}"' not in marker.replace("'", '"'):
                continue
            name, bracket, rest = what.partition("[")
            if name.strip() == NAME and bracket:
                more = [each.strip() for each in rest.split("]")[0].split(",")]
                waiting += [each for each in more if each not in seen]
                seen.update(more)
            elif what not in wanted:
                wanted.append(what)
    return wanted
