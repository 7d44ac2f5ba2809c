"""Announce and listen: elections by repetition over lossy multicast, with one common state machine.

`machine.py` is the state machine, with the extensions of the chapter's last section. Its variants
are `le_a.py`, `le_s.py`, `le_m.py` and `le_s_printed.py`. `sup.py` and `al.py` are the two
algorithms from which it was made, and the baselines. `sup_al.py` and `sup_al_random.py` combine
these two without an order among members.
"""
