"""Sphinx settings of the documentation's site: scripts/site.sh lays its source out."""

project = "Sextant"
author = "Sextant's authors"
root_doc = "README"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
# A transcript that its lexer does not know is shown as it is. Pages beside the code that others link
# to are in no list of contents.
suppress_warnings = ["misc.highlighting_failure", "toc.not_included"]

# Headings are named as on code hosts, so that links into pages lead there and here.
myst_heading_anchors = 4

html_theme = "furo"
html_title = "Sextant"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_css_files = ["site.css"]
html_static_path = ["_static"]
html_theme_options = {
    "navigation_with_keys": True,
    "top_of_page_buttons": [],
}
# Console transcripts and plain figures are no language.
highlight_language = "none"
