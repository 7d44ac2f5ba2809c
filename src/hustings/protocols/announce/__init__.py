"""Announce and listen: elections by repetition over lossy multicast, one machine for all of them.

`machine.py` is the state machine, with what the chapter's last section adds to it; `le_a.py`,
`le_s.py`, `le_m.py` and `le_s_printed.py` are its variants, `sup.py` and `al.py` the two
algorithms that it grew from and is measured against, `sup_al.py` and `sup_al_random.py` two ways of
putting these together without an order among members.
"""
