"""Simultaneous starts of announcing groups, compiled: `play.play` is the entry."""
