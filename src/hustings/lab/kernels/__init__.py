"""Compiled kernels: they answer the event simulator's questions by millions of runs."""
