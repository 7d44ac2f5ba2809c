"""What stands between an election and its world, such as detectors. As pure as elections."""
