"""What elections and the worlds that run them share. Standard library and msgspec only."""
