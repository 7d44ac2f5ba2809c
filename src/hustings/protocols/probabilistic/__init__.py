"""Probabilistic election: a thousand members, a few messages.

`election.py` stands beside the paper's Figure 3. `messages.py` has its messages, `hashing.py` the
hash that filters members, `strategy.py` the K of each round, `thinning.py` which members ask for
another round, `settings.py` the settings, and `risk.py` the probability of two leaders.
"""
