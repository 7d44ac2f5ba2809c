"""Probabilistic election: a thousand members, a handful of messages.

`election.py` stands beside the paper's Figure 3; `messages.py` is what it sends, `hashing.py` the
hash that filters members, `strategy.py` the K of each round, `thinning.py` who asks for another,
`settings.py` what may be set, and `risk.py` how likely two leaders are then.
"""
