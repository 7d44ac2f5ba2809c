"""Upgrade a running group from another release to this tree, member by member, and watch it.

    python -m scripts.try_upgrade v0.1.0          # a tag or another revision of this repository
    python -m scripts.try_upgrade ./unpacked      # a folder that holds the package `hustings`

Three members of the other release start. Each of them leaves, and a member of this tree takes its
place: the leader first or last, with seeds or on one machine alone. Exit code 0: no two members led
at one moment, and the new members lead in the end. It does not matter whether the two releases were
one group or the new members waited; the table says it. docs/releasing.md says when to run this, and
docs/compatibility.md what to expect.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.net.kit.plain import Plain, Plains
from tests.net.kit.releases import Release
from tests.net.kit.rollouts import Refused, Rollout

ROOT = Path(__file__).resolve().parents[1]
_SIZE = 3


def released(named: str, folder: Path, root: Path = ROOT) -> Release:
    """The release of a folder, or of a revision, which is unpacked into the folder."""
    for place in (Path(named), Path(named) / "src"):
        if (place / "hustings" / "__init__.py").is_file():
            return Release("old", place.resolve())
    command = ["git", "archive", "--format=tar", named, "src"]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()
        raise Refused(f"{named} is no folder with hustings, and no revision: {why}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return Release("old", folder / "src")


def tried(old: Release, new: Release, *, seeded: bool, leader_first: bool) -> str:
    """One upgrade: what happened, as a line; `Refused` or an assertion if it must not."""
    with Plains("upgrade") as plains:
        rollout = Rollout(plains, _SIZE, seeded)
        rollout.start(old, *range(_SIZE))
        began = rollout.steady()
        bridged = rollout.upgrade(new, leader_first, Plain.leave)
        pairs = rollout.together(began)
        assert not pairs, f"two led at one moment: {pairs}"
        group = "one group" if bridged else "the new members waited"
        return f"{group}; {rollout.leaderless:.2f} s without a leader at most"


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1: the group split, or did not get through."""
    parser = argparse.ArgumentParser(prog="python -m scripts.try_upgrade", description=__doc__)
    parser.add_argument("old", help="a revision of this repository, or a folder with the package")
    asked = parser.parse_args(arguments)
    new = Release("new", ROOT / "src")
    with tempfile.TemporaryDirectory() as folder:
        try:
            old = released(asked.old, Path(folder))
            for seeded in (True, False):
                for first in (True, False):
                    how = "seeds" if seeded else "one machine"
                    which = "first" if first else "last"
                    line = tried(old, new, seeded=seeded, leader_first=first)
                    print(f"{how}, leader {which}: {line}", flush=True)
        except (Refused, AssertionError) as error:
            print(f"try_upgrade: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
