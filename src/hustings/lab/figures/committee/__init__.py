"""Figures about the election by committees: the sizes of its paper, and smaller ones."""
