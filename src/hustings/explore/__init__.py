"""Exhaustive exploration: every schedule of a small group, on the real elections.

Exploration is a search, not a simulation that depends on luck. From each state of the group, the
search tries everything that may happen next. It does not try a state twice. The result holds for
every schedule within the stated limits, or a shortest counterexample comes with it.
"""
