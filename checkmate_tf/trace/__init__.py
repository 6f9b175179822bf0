"""A user's step in, its operations as plain data (`Program`) out, and a way to emit them again."""
