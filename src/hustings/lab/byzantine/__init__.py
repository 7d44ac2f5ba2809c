"""Elections among liars: the world, the protocol and the compiled engine brought together."""
