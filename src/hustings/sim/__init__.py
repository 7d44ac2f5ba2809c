"""The deterministic world: one seed, one run, on any machine. It names no protocol."""
