"""Gossip membership: who is alive, how many there are, and the layer that holds it."""
