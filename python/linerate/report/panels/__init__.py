"""What reports of runs and of studies share: style sheet, charts, and the panels of paths and arrays.

Open `template.py` first: it makes the template environment of both pages. `paths.py` and `arrays.py` gather the panels,
and their templates draw them. `series.py` thins out intervals and distributions to what a chart can show; `charts.py`
describes a chart (Vega-Lite, tested as data); `svg.py` draws it in the colours of the page.
"""
