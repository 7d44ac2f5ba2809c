"""Closed forms for the election by committees: where the paper's exponents bite, and what is true.

The adversary is static, rushing and has full information; b is the share of bad members, L = ln n.
Costs are bits sent by one participant. Games against the adversary are solved exactly where that
can be done in a second, and bounded otherwise, with the gap stated.
"""
