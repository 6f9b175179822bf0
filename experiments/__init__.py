"""One module for every table or figure; each prints its own command in its docstring."""
