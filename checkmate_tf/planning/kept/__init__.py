"""Plans in the user's cache: stored under what they depend on, found again at the next start."""
