"""Closed forms of the papers, an independent witness: one function per result.

Nothing here runs a protocol. A printed result of a document stands under its own name beside the
counted result, so that both can be shown. `registry` is the entry for names and texts; the other
modules, one per election, are the reference.
"""
