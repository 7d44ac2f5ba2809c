"""How long a group in virtual time takes at rest, and a digest of everything that it did.

    python -m scripts.measure_group                      # 3 and 5 members, an hour each
    python -m scripts.measure_group --members 3 --hours 6
    python -m scripts.measure_group --members 3 --hours 6 --skip-quiet
    python -m scripts.measure_group --loss 0.1 --crash   # a group that is disturbed, for the digest

The digest covers each datagram with its time, sender, receiver and length, and each change of a
member's view of the leader. (The bytes hold nonces that no seed decides.) A change that only saves
time leaves the digests as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Sequence
from unittest.mock import patch

from hustings.core.streams import derive
from hustings.net.transport import Endpoint
from hustings.testing import Group
from hustings.testing.memory_network import MemoryNetwork, MemoryTransport

HOUR = 3600.0


def rested(
    members: int,
    hours: float,
    *,
    loss: float = 0.0,
    crash: bool = False,
    skip_quiet: bool = False,
) -> tuple[float, int, str]:
    """Processor time of a group after it has settled, its datagrams, and the digest."""
    digest = hashlib.blake2b(digest_size=16)
    post = MemoryNetwork.post

    def noted(self: MemoryNetwork, sender: MemoryTransport, to: Endpoint, data: bytes) -> None:
        digest.update(f"{self.loop.time()!r} {sender.endpoint} {to} {len(data)}\n".encode())
        post(self, sender, to, data)

    with (
        patch.object(MemoryNetwork, "post", noted),
        Group(seed=derive(1, members), loss=loss) as group,
    ):
        for number in range(members):
            group.join(f"m{number}")
        leader = group.settle()
        began = time.process_time()
        group.advance(hours * HOUR / 2, skip_quiet=skip_quiet)
        if crash:
            group.kill(leader)
            group.settle()
        group.advance(hours * HOUR / 2, skip_quiet=skip_quiet)
        took = time.process_time() - began
        sent = group.network.tally["sent"]
        for each in group.log:
            digest.update(f"{each!r}\n".encode())
    return took, sent, digest.hexdigest()


def main(arguments: Sequence[str]) -> int:
    """Measure, and print a line for each size of the group."""
    assert __doc__
    parser = argparse.ArgumentParser(
        prog="python -m scripts.measure_group",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--members", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--hours", type=float, default=1.0, help="of virtual time")
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--crash", action="store_true", help="the leader crashes halfway")
    parser.add_argument(
        "--skip-quiet", action="store_true", help="skip the time in which nothing happens"
    )
    chosen = parser.parse_args(arguments)
    if chosen.skip_quiet and chosen.loss:
        parser.error("where datagrams are lost it is never quiet: leave --loss or --skip-quiet out")
    print(f"{'members':>7} {'hours':>6} {'processor':>10} {'datagrams':>10}  digest")
    for members in chosen.members:
        took, sent, digest = rested(
            members,
            chosen.hours,
            loss=chosen.loss,
            crash=chosen.crash,
            skip_quiet=chosen.skip_quiet,
        )
        print(f"{members:>7} {chosen.hours:>6g} {took:>9.2f}s {sent:>10,}  {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
