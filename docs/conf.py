"""How `make site` builds the documentation site: the pages of docs/, the examples and the API.

The root of the source tree is the root of the site, so a link between two pages is right in both.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sphinx.application import Sphinx

from hustings import __version__

project = "hustings"
copyright = "the hustings authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
include_patterns = ["*.md", "docs/**", "examples/**", "bench/*.md"]
exclude_patterns = [".*/**", ".*", "build/**", "dist/**", "src/**", "tests/**"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

html_theme = "furo"
html_title = f"hustings {version}"
html_copy_source = False
html_show_sphinx = False

# Headings have the addresses that links in the pages use.
myst_heading_anchors = 6
myst_links_external_new_tab = False

# Docstrings are plain text with code in `backticks`.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True

# The contents, which only the site shows: elsewhere pages link to each other.
CONTENTS = """

```{toctree}
:hidden:
:caption: Guide
:glob:

docs/guide/*
```
```{toctree}
:hidden:
:caption: Reference

docs/reference/commands
docs/reference/protocols
docs/reference/theory
docs/api/index
docs/compatibility
docs/coverage
```
```{toctree}
:hidden:
:caption: Project
:glob:

docs/README
ARCHITECTURE
CONTRIBUTING
STYLE
CHANGELOG
docs/releasing
docs/decisions/README
docs/decisions/0*
docs/guide/pictures/*
examples/*/README
bench/*
```
"""

FRAMEWORKS = """

```{toctree}
:hidden:
:glob:

frameworks/*
```
"""


def setup(app: Sphinx) -> None:
    """Add the contents to pages that have some, and an address for the first page."""
    app.connect("source-read", _with_contents)
    app.connect("build-finished", _first_page)


def _with_contents(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] += {root_doc: CONTENTS, "docs/guide/18-frameworks": FRAMEWORKS}.get(page, "")


def _first_page(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        shutil.copyfile(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))
