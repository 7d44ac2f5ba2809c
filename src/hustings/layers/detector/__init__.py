"""Failure detectors: heartbeats, who watches whom, and the layer that holds a detector."""
