"""The command line: parsing and printing only."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `hustings`."""
    try:
        from hustings.cli.app import run
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        print(
            f"hustings: the command line needs {missing.name}: pip install 'hustings[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))
