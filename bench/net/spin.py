"""`python -m bench.net.spin PARENT SECONDS`: keep one core busy for so long."""

from __future__ import annotations

import sys
import time

from bench.net import spaces


def main() -> None:
    parent, seconds = int(sys.argv[1]), float(sys.argv[2])
    spaces.die_with_parent(parent)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


if __name__ == "__main__":
    main()
