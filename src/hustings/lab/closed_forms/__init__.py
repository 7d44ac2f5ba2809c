"""Closed forms of the papers, an independent witness: one function per result.

Nothing here runs a protocol. What a document prints stands under its own name beside what is
counted, so that both can be shown. `registry` is the door for names and texts; the other modules,
one per election, are the reference.
"""
