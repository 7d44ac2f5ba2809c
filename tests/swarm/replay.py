"""Play one seed of the swarm again and draw it: python -m tests.swarm.replay CLAIM PROTOCOL SEED"""

from __future__ import annotations

import io
import sys

from hustings.core.errors import BadInput, UnknownName
from hustings.protocols.registry import find
from hustings.sim.selection import Options
from hustings.sim.terminal import draw_text
from hustings.sim.trace_read import read_stream
from tests.swarm.claims import CLAIMS, judge

USAGE = "usage: python -m tests.swarm.replay CLAIM PROTOCOL SEED"


def replay(claim: str, protocol: str, seed: int) -> tuple[str, str | None]:
    """The run as a diagram, and what was wrong with it."""
    if claim not in CLAIMS:
        raise UnknownName("claim", claim, CLAIMS)
    out = io.BytesIO()
    wrong = judge(claim, find(protocol), seed, out)
    try:
        shown = draw_text(read_stream(io.BytesIO(out.getvalue())), Options(max_events=10_000)).text
    except BadInput as error:  # an exception cut the run short, and its trace with it
        shown = f"{error}\n"
    return shown, wrong


def main(arguments: list[str]) -> int:
    if len(arguments) != 3 or not arguments[2].isdigit():
        print(USAGE, file=sys.stderr)
        return 2
    try:
        shown, wrong = replay(arguments[0], arguments[1], int(arguments[2]))
    except UnknownName as error:
        print(error, file=sys.stderr)
        return 2
    print(shown, end="")
    print(wrong or "nothing was wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
