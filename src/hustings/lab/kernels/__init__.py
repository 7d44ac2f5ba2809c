"""Compiled kernels: the same questions as the event simulator's, asked by the million."""
