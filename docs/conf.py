"""How `make docs` builds these pages; see https://www.sphinx-doc.org."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

project = "checkmate_tf"
author = "the authors of checkmate_tf"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
exclude_patterns = ["site"]
autodoc_typehints = "description"
suppress_warnings = ["myst.xref_missing"]  # headings of pages outside this folder
