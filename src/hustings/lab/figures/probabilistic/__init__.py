"""Figures of the probabilistic election."""
