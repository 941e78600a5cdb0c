"""The report of a search for the largest load: one self-contained page.

`build.py` makes it, `page.html.j2` shows it.
"""

from linerate.report.scale.build import render_scale, write_scale_report

__all__ = ["render_scale", "write_scale_report"]
