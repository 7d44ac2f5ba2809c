"""The elections, one file each, readable beside their papers. They know no world."""
