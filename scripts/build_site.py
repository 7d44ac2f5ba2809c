"""Build the documentation site: the pages of docs/, the examples and the API, with a search.

    python -m scripts.build_site             into build/site
    python -m scripts.build_site --to OUT    into another folder

`docs/conf.py` says how. A warning of Sphinx, such as a link that leads nowhere, is an error.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(to: Path, root: Path = ROOT) -> int:
    """Build the site of a source tree; returns the exit code."""
    command = [
        *(sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--jobs", "2"),
        *("--builder", "html", "--doctree-dir", str(to.with_name(to.name + "-doctrees"))),
        *("--conf-dir", str(root / "docs"), str(root), str(to)),
    ]
    return subprocess.run(command, check=False).returncode


def main() -> None:
    """Build it, and say where it is."""
    assert __doc__ is not None
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--to", type=Path, default=ROOT / "build" / "site", metavar="OUT")
    to = options.parse_args().to.resolve()
    if code := build(to):
        raise SystemExit(code)
    print(f"the site begins at {to / 'index.html'}")


if __name__ == "__main__":
    main()
