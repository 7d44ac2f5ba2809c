"""Gossip membership: which members are alive, how many there are, and the layer that holds it."""
