"""The demo on real processes: a group on this machine that loses its leader in every way."""
