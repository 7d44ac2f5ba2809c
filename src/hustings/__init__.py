"""Leader election for groups of any size."""
