"""Mutation testing: plant small bugs in the code and see which of them the tests notice.

`make mutants` runs it over the parts in which a bug costs most, and writes tests/MUTANTS.md.
Why it is our own: docs/decisions/0025-mutation-testing.md.
"""
