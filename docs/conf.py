"""The user guide; built by `make docs`."""

import agepath

project = "agepath"
copyright = "the agepath developers"
release = version = agepath.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "requirements.txt"]
html_theme = "furo"
html_title = f"agepath {release}"
html_show_copyright = False

autodoc_member_order = "bysource"
# What scikit-learn generates refers to pages of its own guide.
autodoc_default_options = {"members": True, "exclude-members": "set_fit_request, set_score_request"}
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
}
