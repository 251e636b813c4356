"""Settings of the site: pages in MyST, a page for every public name, the gallery of examples/.

`make docs` builds it without a network; every warning is an error. What a page must hold stands
in `CONTRIBUTING.md`.
"""

import sys
from pathlib import Path

import matplotlib

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import site_pages  # noqa: E402
import site_pictures  # noqa: E402

import dpcore  # noqa: E402

matplotlib.use("agg")

project, author, copyright = "dpcore", "The dpcore authors", "the dpcore authors"
version = release = dpcore.__version__
html_title = "dpcore"
html_theme = "furo"
html_show_sourcelink = False
html_static_path, html_css_files = ["static"], ["gallery.css"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["templates"]
exclude_patterns = ["static", "templates", "reference/generated/*.md", "gallery/*.[!r]*"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4

# Docstrings name parameters and values in single backticks: a link where there is such a name.
default_role = "py:obj"
autosummary_generate = True
# Types are written by `site_pages.write_signature`.
autodoc_typehints = "none"
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
nitpicky = True
# The index names the files of its pictures: no back references are needed for that.
suppress_warnings = ["sphinx_gallery.config"]
# Types of other packages, and of fields, have no page; names in pages are checked by the tests.
nitpick_ignore_regex = [("py:(obj|class)", ".*")]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "example_extensions": {".py"},
    "subsection_order": [f"../examples/{group}" for group in site_pictures.GROUPS],
    "within_subsection_order": "site_pictures.ScriptOrder",
    "image_scrapers": ("site_pictures.save_figures",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    # What a notebook shows of a report; a figure is shown as a picture already.
    "capture_repr": ("_repr_html_",),
    "download_all_examples": False,
    "write_computation_times": False,
    "backreferences_dir": None,
    "plot_gallery": True,
}


def setup(app):  # type: ignore[no-untyped-def]
    """Write what is made from the package, before Sphinx looks for pages."""
    site_pages.write(HERE / "reference" / "generated")
    # After the gallery has run its scripts, which is at the usual priority of 500.
    app.connect("builder-inited", site_pictures.replace_thumbnails, priority=900)
    app.connect("source-read", site_pages.inside_the_site)
    app.connect("doctree-read", site_pages.linked_names)
    app.connect("autodoc-process-signature", site_pages.write_signature)
    app.connect("autodoc-process-docstring", site_pages.whole_sentence, priority=600)
    app.connect("build-finished", site_pages.every_name_has_its_page)
