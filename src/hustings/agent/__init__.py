"""The agent: members that run as a service of the machine, and HTTP to ask them.

`config` reads what it is told, `daemon` runs it, `http` answers, `client` is the other end. Only
`http` and `metrics` need more than the standard library: the extra `agent`.
"""
