"""A plan: its text, its table by layer, its pictures, its file."""
