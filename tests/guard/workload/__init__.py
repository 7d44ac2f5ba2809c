"""A bank under a guard and a fence, with everything done to it that a machine and a network do.

    python -m tests.guard.workload --minutes 10

Workers in processes of their own ask a guard for the lease, and whoever holds it moves money: reads
two balances, thinks, and writes both, all without a lock. They are killed, stopped beyond their
lease and cut off, and the engine is restarted. With the fence no write of a former holder is
accepted; without it, some are, and money is lost or made.
"""
