"""Exhaustive exploration: every schedule of a tiny group, on the real elections.

Not a simulation with luck but a search: from each state of the group all that may happen next is
tried, states that were met before are not tried again, and what is reported at the end holds for
every schedule within the stated limits, or comes with a shortest way to break it.
"""
