"""Options of the site; the engine is in docs/_ext."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "docs"))

project = "JAX, Measured"
author = "The authors of JAX, Measured"
copyright = author
extensions = ["_ext", "myst_nb", "sphinx_design", "sphinx_copybutton"]
exclude_patterns = ["_ext", "_templates"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

book_sources = {
    "post": {
        "title": "JAX Basics - Framework Benchmarks & JIT Compilation",
        "author": "Siva Sravana Kumar Neeli",
        "url": "https://sineeli.github.io/2025/12/20/jax-series-1/",
    },
    "course": {
        "title": "Parallel computing",
        "author": "Marie-Hélène Burle",
        "url": "https://training.westdri.ca/",
    },
}

# The devices that readers can choose between, in this order; the first is the one that builds.
book_devices = {
    "cpu": "CPU",
    "gpu-h200": "NVIDIA H200",
    "tpu-v5e": "TPU v5e",
}

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["docs/_static"]
html_css_files = ["book.css"]
# Before everything else, so that a page comes up with the chosen device.
html_js_files = [("devices.js", {"priority": 50})]
templates_path = ["docs/_templates"]
html_copy_source = True
html_show_sphinx = False
# No page defines index entries; the empty index would be written anew by every build.
html_use_index = False
html_theme_options = {
    # The sidebar has the search; a second field above every page would say the same.
    "navbar_persistent": [],
    "article_header_end": ["device-switch.html", "article-header-buttons.html"],
    "use_download_button": True,
    "show_toc_level": 2,
}
