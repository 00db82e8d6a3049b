"""The paper's claims and what became of them, from the results that are under version control, and the whole report."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper.registry import FIGURES, find_figure, find_study
from paper.report.page import render_page, write_page
from paper.report.report import Report, make_report
from paper.schema.configuration import SCALES, read_configuration

_PAGE = "paper-report.html"


def read_report(directory: Path, home: Path, names: Iterable[str] = FIGURES) -> Report:
    """The report of figures; without links to files of results, which are not part of the site."""
    figures = [find_figure(name) for name in names]
    studies = {figure.study: find_study(figure.study) for figure in figures}
    configurations = {name: tuple(read_configuration(study, one) for one in SCALES) for name, study in studies.items()}
    report = make_report(figures, None, directory, home=home, configurations=configurations)
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
        link = f'<a href="{_PAGE}#{figure.name}">{figure.title}</a>'
        lines.append(f"| {link} | {claim} | {section.verdict_words} | {section.scale}, {section.trials.num_trials} |")
    return "\n".join((*lines, ""))


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
        write_page(render_page(app.paper_report), Path(app.outdir) / _PAGE)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_table)
    app.connect("build-finished", write_whole_page)
    return {"parallel_read_safe": True}
