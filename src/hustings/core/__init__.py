"""The seam between elections and the worlds that run them. Pure standard library plus msgspec."""
