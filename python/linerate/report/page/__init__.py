"""The HTML report: one self-contained file that opens offline, in light and dark, on screen and on paper.

`build.py` gathers what the template shows; `series.py` thins out intervals and distributions to what a chart
can show; `charts.py` says what a chart looks like (Vega-Lite, tested as data); `svg.py` draws it with the
page's own colours. Charts are static SVG: they print, they need no script, and a page stays under 1.5 MB. The
only script sorts tables and opens folded parts for printing.
"""

from linerate.report.page.build import write_report

__all__ = ["write_report"]
