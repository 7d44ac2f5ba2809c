"""The probabilistic election in groups of any size, compiled: `play.play` is the entry."""
