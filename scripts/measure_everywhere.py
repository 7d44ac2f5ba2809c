"""An experiment on Conjecture 1 of the paper on Byzantine committees, with parameters of choice.

    python -m scripts.measure_everywhere 10000 100000 --attack blind
    python -m scripts.measure_everywhere 100000 --attack rushing --labels root --runs 10
    python -m scripts.measure_everywhere 1000000 --b 0.3 --attack blind --answers 60000 --json

Some good members do not know a bit that all others know. All ask, the bad flood, and this tells how
many stay in the dark and how many bits it took. `hustings figure committee-everywhere` judges.
"""

from __future__ import annotations

import argparse
import json
import sys

from hustings.core.errors import BadInput
from hustings.lab.kernels.everywhere import ATTACKS, METRICS, Poll, play, rooted

MOST_RUNS = 10_000


def main(words: list[str]) -> int:
    """Play and print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("members", type=int, nargs="+", help="sizes of the group")
    parser.add_argument("--b", type=float, default=0.2, help="share of the members that is bad")
    parser.add_argument("--attack", default="none", help=", ".join(ATTACKS))
    parser.add_argument("--labels", default="1", help="a number, or root for the square root of n")
    parser.add_argument("--ask", type=int, default=0, help="members asked; default 10 ln n")
    parser.add_argument("--answers", type=int, default=0, help="at most; default 3 times --ask")
    parser.add_argument("--dark", type=float, default=0.0, help="default 1/(ln n)^2")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object for each size")
    given = parser.parse_args(words)
    try:
        if not 1 <= given.runs <= MOST_RUNS:
            raise BadInput(f"runs must lie between 1 and {MOST_RUNS:,}, not {given.runs}")
        polls = [_poll(given, members) for members in given.members]
    except BadInput as refusal:
        print(f"measure_everywhere: {refusal}", file=sys.stderr)
        return 2
    if not given.json:
        print("\t".join(("members", *METRICS)))
    for poll in polls:
        found = play(poll, given.seed, 0, given.runs).metrics
        means = {name: float(found[name].mean()) for name in METRICS}
        if given.json:
            print(json.dumps({"members": poll.members, "runs": given.runs, **means}))
        else:
            print("\t".join([str(poll.members), *(f"{means[name]:g}" for name in METRICS)]))
    return 0


def _poll(given: argparse.Namespace, members: int) -> Poll:
    text = str(given.labels)
    if text != "root" and not (text.isascii() and text.isdigit()):
        raise BadInput(f"labels must be a number or root, not {text!r}")
    return Poll(
        members=members,
        b=given.b,
        attack=given.attack,
        labels=rooted(max(1, members)) if text == "root" else int(text[:12]),
        ask=given.ask,
        answers=given.answers,
        dark=given.dark,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
