"""One page of HTML from files of results: claims, pictures, numbers and verdicts."""

from streamgp.experiments.report.page import render_page
from streamgp.experiments.report.report import Report, make_report
from streamgp.experiments.report.section import Section, make_section

__all__ = ["Report", "Section", "make_report", "make_section", "render_page"]
