"""The history of a folder: lines for a terminal or a program, and one self-contained HTML page.

Open `words.py` first: it writes the figures. `lines.py` is the text, `page.py` the page, `chart.py` its charts.
"""

from linerate.report.history.lines import history_lines, history_object
from linerate.report.history.page import render_history

__all__ = ["history_lines", "history_object", "render_history"]
