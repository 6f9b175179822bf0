"""A step that several replicas run: its parts, and the whole put together again by their plans."""
