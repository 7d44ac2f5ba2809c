"""The agent: members that run as a service of the machine, and an HTTP interface to them.

`config` reads the configuration, `daemon` runs it, `http` answers, and `client` is the other end.
Only `http` and `metrics` need more than the standard library: the extra `agent`.
"""
