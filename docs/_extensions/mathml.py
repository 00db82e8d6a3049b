"""Mathematics as MathML, which browsers draw themselves: no script, no font, nothing from elsewhere."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def _inline(self: Any, node: nodes.Element) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _display(self: Any, node: nodes.Element) -> None:
    formula = node.astext().strip()
    if r"\\" in formula and r"\begin" not in formula:
        formula = rf"\begin{{aligned}}{formula}\end{{aligned}}"
    self.body.append(f'<div class="math">{convert(formula, display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
