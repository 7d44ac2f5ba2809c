"""Bimodal multicast: messages to all, repaired by anti-entropy."""
