"""The documentation site: `make docs` builds it, without network, into docs/_build."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import streamgp

project = "streamgp"
author = "the streamgp authors"
copyright = "the streamgp authors, MIT license"
version = release = streamgp.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",
    "mathml",
    "reference_pages",
    "layers",
    "benchmark_pictures",
    "paper_verdicts",
]
exclude_patterns = ["_build", "_extensions", "images"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "substitution"]
_BADGES = {"version": version, "Python": "3.11 to 3.13", "license": "MIT", "types": "mypy strict"}
myst_substitutions = {
    "badges": " ".join(f'<span class="badge"><b>{name}</b> {value}</span>' for name, value in _BADGES.items())
}
myst_heading_anchors = 3
nitpicky = False
default_role = "literal"

# Tutorials are text files; what they print and draw is made anew when their text or the package has changed.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False

html_theme = "furo"
html_title = "streamgp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
