"""The deterministic world: one seed, one run, whatever the machine. It names no protocol."""
