"""`python -m bench.net.alone`: members in an interpreter that was not forked from another."""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    job = json.loads(sys.argv[1])
    module = importlib.import_module(job["module"])
    module.run(job, job["members"], job["reports"], job["commands"])


if __name__ == "__main__":
    main()
