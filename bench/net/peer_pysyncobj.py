"""A member that is a PySyncObj node: its own thread ticks, the main thread waits for commands."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from pysyncobj import SyncObj, SyncObjConf

from bench.net.records import NOBODY, Kind, Reporter


def prepare() -> None:
    """Do nothing: this module's import loads what members need, before they are forked."""


def run(plan: dict[str, Any], members: Sequence[int], reports: int, commands: int) -> None:
    """One node; the settings are those of SyncObjConf."""
    (member,) = members
    addresses = [f"127.0.0.1:{plan['port'] + index}" for index in range(plan["n"])]
    numbers = {address: index for index, address in enumerate(addresses)}
    own = addresses[member]
    others = [address for address in addresses if address != own]
    reporter = Reporter(reports, member)
    conf = SyncObjConf(bindAddress=own, **plan["settings"])
    node = SyncObj(own, others, conf)

    def look() -> None:
        leader = node._getLeader()
        reporter.follow(NOBODY if leader is None else numbers[leader.address])

    def refused(_result: object, error: int) -> None:
        if error:
            reporter.say(Kind.REFUSED)

    # Called once in each turn of the node's loop, also right after one that took in messages.
    node.addOnTickCallback(look)
    for line in os.fdopen(commands):
        command = json.loads(line)
        if command["do"] == "stand":
            continue  # a node that handed over is a candidate like any other
        to = command.get("to")
        reporter.say(Kind.CALLED)
        node.transferLeadership(None if to is None else addresses[to], refused)
