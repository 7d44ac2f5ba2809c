"""What a live group is like: a survey asks its members, and laws are fitted to their answers.

`asking` runs on an observer of the group and collects; `fitting` is pure statistics; `describing`
makes an environment of both, and says what could not be measured.
"""
