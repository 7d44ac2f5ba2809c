"""Speed and memory of the simulator beside its peers: `python -m bench`.

An implementation is a module with `ring`, `bully` and `suppression`, each taking (n, seed) and
giving a `Run`. It may add `idle(n, seed)`, the ring with every member started, and `started(n,
seed)`, the suppression group with every timer armed, for the memory table; and `ring_traced`,
`bully_traced` and `suppression_traced`, the same runs with tracing on.
"""
