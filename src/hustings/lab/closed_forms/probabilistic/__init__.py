"""Closed forms for the probabilistic election: what its section 4 prints, and what is true.

Losses and crashes are independent, each view holds each member with one probability, all know the
size of the group, and the time-outs are long enough. Everything is computed in logarithms where a
number may be too small or a group too large.
"""
