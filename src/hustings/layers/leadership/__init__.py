"""The leadership layer: transfer, resignation, observers, agreement on one leader."""
