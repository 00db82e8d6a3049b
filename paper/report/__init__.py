"""One page of HTML from files of results: claims, pictures, numbers and verdicts."""

from paper.report.page import render_page
from paper.report.report import Report, make_report
from paper.report.section import Section, make_section

__all__ = ["Report", "Section", "make_report", "make_section", "render_page"]
