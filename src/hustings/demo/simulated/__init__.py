"""`hustings demo --simulated`: a simulated group, its story, and the film of it."""
