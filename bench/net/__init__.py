"""Speed of real groups beside PySyncObj: `python -m bench net`.

A group is N processes on loopback, in a network namespace of its own where the system allows it.
Each member says when its idea of the leader changes, with the time of the one monotonic clock of
the machine, through a pipe that no packet counter sees. The driver kills, pauses and asks, and
reads off when all live members agreed.
"""
