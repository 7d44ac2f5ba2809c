"""Closed forms for the election by committees: where the paper's exponents apply, and what is true.

The adversary is static, rushing and has full information; b is the share of bad members, L = ln n.
Costs are bits that one participant sends. Games against the adversary are solved exactly where that
takes a second at most, and bounded otherwise, with the gap stated.
"""
