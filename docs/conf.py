"""How Sphinx builds the documentation: ``make docs``.

The repository is the source folder, so that links between documents, notebooks and the root's files work on GitHub
and in the site alike. Where a page has a comment ``generated: NAME``, the site has what `docs.generate` makes.
"""

import html
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent.parent))

from docs.generate import PAGES
from opencode_jupyter import __version__

project = "opencode_jupyter"
author = copyright = "The opencode_jupyter authors"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "notebooks/*.ipynb", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = [".*", "artifacts", "build", "dist", "labextension", "opencode_jupyter", "bench", "tests"]

html_theme = "furo"
html_title = project
html_extra_path = ["site/index.html"]  # leads to docs/index.html
html_static_path = ["site/style.css", "site/diagrams.js", "../labextension/node_modules/mermaid/dist/mermaid.min.js"]
html_css_files = ["style.css"]
smartquotes_action = "D"
html_copy_source = False

nb_execution_mode = "off"
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
default_role = "code"
copybutton_exclude = ".linenos, .gp, .go"


def setup(app: Sphinx) -> None:
    """Insert what is generated, and read Python blocks as IPython does, magics included."""
    from IPython.lib.lexers import IPython3Lexer

    app.add_lexer("python", IPython3Lexer)
    app.add_directive("mermaid", Diagram)
    app.connect("source-read", _insert_generated)
    app.connect("env-get-outdated", _generated_pages)
    app.connect("html-page-context", _add_diagram_scripts)


class Diagram(Directive):
    """A diagram, which the page's script draws; the script comes with the site, so that it works without a network."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The diagram's text, which is what a page without scripts shows."""
        text = html.escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html")]


def _add_diagram_scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document) -> None:
    if 'class="mermaid"' in context.get("body", ""):
        app.add_js_file("mermaid.min.js")
        app.add_js_file("diagrams.js", loading_method="defer")


def _generated_pages(app: Sphinx, *_: object) -> list[str]:
    """The pages that are made from the code: read again at each build."""
    return [name for name in app.env.found_docs if "<!-- generated: " in app.env.doc2path(name).read_text("utf-8")]


def _insert_generated(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = re.sub(r"<!-- generated: (\w+) -->", lambda match: PAGES[match[1]](), source[0])
