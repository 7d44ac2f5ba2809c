"""What elections stand on: failure detectors. Pure as the elections themselves."""
