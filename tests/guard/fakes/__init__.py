"""Small servers that keep the documented rules of engines that the tests cannot start."""
