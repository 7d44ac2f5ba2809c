"""Failure detectors: heartbeats, patterns of watching, and the layer that holds a detector."""
