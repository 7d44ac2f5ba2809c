"""Figures about the election by committees: its paper's sizes, and what smaller ones do."""
