"""Speed of real groups beside PySyncObj: `python -m bench net`.

A group is N processes on loopback, in a network namespace of its own if the system permits that.
Each member reports when its idea of the leader changes, with the time of the machine's monotonic
clock, through a pipe that no packet counter sees. The driver kills, pauses and asks, and reads from
the reports when all live members agreed.
"""
