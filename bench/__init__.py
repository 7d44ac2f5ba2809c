"""Speed and memory of the simulator beside its peers: `python -m bench`.

An implementation is a module with `ring`, `bully` and `suppression`, each of which takes (n, seed)
and returns a `Run`. It may add `idle(n, seed)`, the ring with every member started, and `started(n,
seed)`, the suppression group with every timer armed, for the memory table. It may also add
`ring_traced`, `bully_traced` and `suppression_traced`, the same runs with tracing on.
"""
