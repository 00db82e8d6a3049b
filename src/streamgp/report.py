"""A report as one self-contained page: sentences, tables and pictures in an HTML file that needs nothing else."""

import base64
import html
import io
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from streamgp.errors import SaveError

__all__ = ["Report"]

# Pictures with more bytes than this as lines are written as pixels.
_MOST_BYTES = 250_000
_PIXELS = 130
# Rows of a table that are shown; others are counted.
_MOST_ROWS = 200
_STYLE = """
:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:68rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid #ddd}
table{border-collapse:collapse;margin:.6rem 0;font-size:.92rem}
th,td{text-align:left;padding:.15rem .8rem .15rem 0;border-bottom:1px solid #eee;vertical-align:top}
th{font-weight:600}.wide{overflow-x:auto}figure{margin:1rem 0}img{max-width:100%;height:auto}
figcaption,.note{color:#555;font-size:.9rem}
"""


@final
class Report:
    """A page that is put together part by part, and written at once.

    ```python
    from streamgp.report import Report

    report = Report("Reaction", "twelve experiments")
    report.heading("Best so far").table([{"temperature": 135.0, "yield": 79.8}])
    report.text("Nothing else is planned.")
    report.to_html()[:15]
    ```
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        """Begin a page.

        Args:
            title: Of the page.
            subtitle: A sentence below it.
        """
        self.title = title
        self._parts: list[str] = [f"<h1>{_text(title)}</h1>"]
        if subtitle:
            self._parts.append(f'<p class="note">{_text(subtitle)}</p>')

    def heading(self, text: str) -> "Report":
        """Begin a section."""
        self._parts.append(f"<h2>{_text(text)}</h2>")
        return self

    def text(self, *sentences: str) -> "Report":
        """Add a paragraph."""
        self._parts.append(f"<p>{_text(' '.join(sentences))}</p>")
        return self

    def facts(self, facts: Mapping[str, Any]) -> "Report":
        """Add facts by name."""
        rows = "".join(f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in facts.items())
        self._parts.append(f"<table>{rows}</table>")
        return self

    def table(self, rows: Sequence[Mapping[str, Any]]) -> "Report":
        """Add a table whose columns are the names in its rows."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{_text(name)}</th>" for name in names)
        cells = [[f"<td>{_text(row.get(name, ''))}</td>" for name in names] for row in rows[:_MOST_ROWS]]
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
        self._parts.append(f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>')
        if len(rows) > _MOST_ROWS:
            self._parts.append(f'<p class="note">and {len(rows) - _MOST_ROWS} more</p>')
        return self

    def figure(self, figure: Any, caption: str) -> "Report":
        """Add a picture, which the page holds.

        Args:
            figure: Figure of matplotlib.
            caption: A sentence on what is to be seen, which is also read aloud in its place.
        """
        kind, content = "svg+xml", _drawn(figure, "svg")
        if len(content) > _MOST_BYTES:
            kind, content = "png", _drawn(figure, "png")
        source = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
        caption = _text(caption)
        self._parts.append(f'<figure><img src="{source}" alt="{caption}"><figcaption>{caption}</figcaption></figure>')
        return self

    def to_html(self) -> str:
        """The page as a text."""
        head = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_text(self.title)}</title><style>{_STYLE}</style></head><body>"
        )
        return "\n".join([head, *self._parts, "</body></html>\n"])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page under a temporary name and rename it.

        Args:
            path: The file.
        """
        path = Path(path)
        try:
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as directory:
                temporary = Path(directory) / path.name
                temporary.write_text(self.to_html(), encoding="utf-8")
                temporary.replace(path)
        except OSError as error:
            raise SaveError(f"{path} cannot be written ({error.strerror}). Choose another place.") from None
        return path


def _drawn(figure: Any, kind: str) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=_PIXELS, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def _text(value: Any) -> str:
    """A value in few digits, escaped."""
    if isinstance(value, float):
        value = "" if math.isnan(value) else f"{value:.5g}"
    return html.escape(str(value))
