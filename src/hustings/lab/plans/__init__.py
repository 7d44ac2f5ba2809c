"""Plans: from goals and an environment to settings, with the evidence."""
