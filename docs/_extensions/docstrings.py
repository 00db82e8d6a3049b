"""Let Sphinx read docstrings as they are written: mathematics between dollars, code between backticks."""

import re
import textwrap
from typing import Any

_DISPLAY = re.compile(r"^(?P<indent>[ ]*)\$\$\n(?P<formula>.*?)\n[ ]*\$\$(?P<rest>[^\n]*)$", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"^(?P<indent>[ ]*)```python\n(?P<code>.*?)\n[ ]*```$", re.DOTALL | re.MULTILINE)
_RETURNED = re.compile(r"^(?P<head>[ ]*(?:Returns|Yields):\n[ ]*)(?P<text>[^\n]*:[^\n]*)$", re.MULTILINE)
_INLINE = re.compile(r"(?<![\\$`])\$(?P<formula>[^$]+?)\$(?!\$)")


def _display(match: re.Match[str]) -> str:
    indent = match["indent"]
    body = "\n".join(f"{indent}   {line.strip()}" for line in match["formula"].splitlines())
    return f"\n{indent}.. math::\n\n{body}\n\n{indent}{match['rest'].strip()}"


def _inline(match: re.Match[str]) -> str:
    return f":math:`{' '.join(match['formula'].split())}`"


def _code(match: re.Match[str]) -> str:
    indent = match["indent"]
    return f"{indent}.. code-block:: python\n\n" + textwrap.indent(match["code"], "   ")


def read_code(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Turn fenced code into Sphinx's directive, in place."""
    lines[:] = _FENCED.sub(_code, "\n".join(lines)).split("\n")


def read_returns(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Keep a colon in what is returned from being taken for the end of a type, in place."""
    lines[:] = _RETURNED.sub(r"\g<head>: \g<text>", "\n".join(lines)).split("\n")


def read_mathematics(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Turn dollars into Sphinx's directive and role for mathematics, in place."""
    text = _DISPLAY.sub(_display, "\n".join(lines))
    lines[:] = _INLINE.sub(_inline, text).split("\n")


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx, before napoleon reads the sections."""
    app.connect("autodoc-process-docstring", read_returns, priority=99)
    app.connect("autodoc-process-docstring", read_mathematics, priority=100)
    app.connect("autodoc-process-docstring", read_code, priority=101)
    return {"parallel_read_safe": True}
