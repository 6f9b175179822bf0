"""One module for every table or figure; each prints its own command in its docstring."""

import os

# Figures are of plans that are made, not of plans that were kept.
os.environ.setdefault("CHECKMATE_TF_PLANS", "off")
