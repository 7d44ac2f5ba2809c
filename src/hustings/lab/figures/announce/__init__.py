"""Figures 5.6 to 5.13 of the announce-listen thesis, and its claims, measured again."""
