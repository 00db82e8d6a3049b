"""The paper's claims and what became of them, from the results that are under version control, and the whole report."""

import base64
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from paper.commands.verdicts import judge_all
from paper.registry import FIGURES
from paper.report.page import render_page, write_page
from paper.report.report import Report
from paper.report.section import Section
from paper.schema.figure import Part

_PAGE = "paper-report.html"
# Pictures of this width are small enough for a row of a table, and show which line is where.
_THUMBNAIL_WIDTH = 190


def read_report(directory: Path, home: Path, names: Iterable[str] = FIGURES) -> Report:
    """The report of figures; without links to files of results, which are not part of the site."""
    report = judge_all(directory, None, tuple(names), home=home)
    return replace(report, links={})


def verdict_table(report: Report) -> str:
    """The claims as a table, each linked to its part of the report."""
    tally = ", ".join(f"{count} {words.lower()}" for words, count in report.tally)
    lines = [
        f"**{tally[:1].upper()}{tally[1:]}.** {report.scales}",
        "",
        "| Figure | The paper says | Here | Settings, trials |",
        "| --- | --- | --- | --- |",
    ]
    for section in report.sections:
        figure, claim = section.figure, section.figure.claim.replace("|", "\\|")
        link = f'<a href="{_PAGE}#{figure.name}">{_thumbnail(section)}{figure.title}</a>'
        few = ", few trials" if section.has_few_trials else ""
        words = f'<span class="verdict {section.verdict}">{section.verdict_words}{few}</span>'
        effects = "<br>".join(part.what.replace("|", "\\|") for part in _own_parts(section))
        lines.append(f"| {link} | {claim} | {words}<br>{effects} | {section.scale}, {section.trial_words} |")
    return "\n".join((*lines, ""))


def _thumbnail(section: Section) -> str:
    """A small picture for light screens and one for dark ones, of which the theme shows one."""
    if section.pictures is None:
        return ""
    return "".join(
        f'<img class="thumbnail only-{theme}" src="thumbnails/{section.figure.name}-{theme}.webp" '
        f'width="{_THUMBNAIL_WIDTH}" loading="lazy" alt="">'
        for theme in ("light", "dark")
    )


def write_thumbnails(report: Report, directory: Path) -> None:
    """Write the pictures of a report again, small, at twice the pixels that they take."""
    directory.mkdir(parents=True, exist_ok=True)
    for section in report.sections:
        if section.pictures is None:
            continue
        for theme, address in (("light", section.pictures.light), ("dark", section.pictures.dark)):
            with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as picture:
                width = 2 * _THUMBNAIL_WIDTH
                small = picture.convert("RGBA").resize((width, round(picture.height * width / picture.width)))
                small.save(directory / f"{section.figure.name}-{theme}.webp", quality=85)


def _own_parts(section: Section) -> tuple[Part, ...]:
    """The parts that a verdict rests on, effects with their intervals."""
    parts = () if section.judgement is None else section.judgement.parts
    return tuple(part for part in parts if not part.is_sanity and part.effect is not None)


def write_table(app: Any) -> None:
    """Judge all claims when the site is built."""
    source = Path(app.srcdir)
    app.paper_report = read_report(source.parent / "paper" / "results", Path(app.outdir))
    output = source / "images" / "generated" / "verdicts.md"
    output.parent.mkdir(parents=True, exist_ok=True)
    table = verdict_table(app.paper_report)
    if not output.is_file() or output.read_text(encoding="utf-8") != table:
        output.write_text(table, encoding="utf-8")


def write_whole_page(app: Any, error: Exception | None) -> None:
    """Put the report beside the pages of the site."""
    if error is None and app.builder.format == "html":
        write_thumbnails(app.paper_report, Path(app.outdir) / "thumbnails")
        write_page(render_page(app.paper_report), Path(app.outdir) / _PAGE)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_table)
    app.connect("build-finished", write_whole_page)
    return {"parallel_read_safe": True}
