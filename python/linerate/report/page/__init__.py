"""The HTML report: one self-contained file that opens offline, in light and dark, on screen and on paper.

`build.py` gathers what the template shows (`headline.py`, `curves.py` and `events.py` parts of it);
`linerate.report.panels` has what it shares with reports of studies.
Charts are static SVG: they print, they need no script, and a page stays under 1.5 MB. The
only script sorts tables and opens folded parts for printing.
"""

from linerate.report.page.build import write_report

__all__ = ["write_report"]
