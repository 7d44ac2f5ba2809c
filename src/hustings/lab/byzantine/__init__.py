"""Elections with Byzantine members: the world, the protocol and the compiled engine."""
