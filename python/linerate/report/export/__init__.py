"""Figures for other programs: tables of a run or a study, as CSV, Parquet or Excel.

Open `tables.py` first: it says which tables there are and what their columns are called. `study.py` has those of a
study, and is imported by itself because it needs far more. `formats.py` turns tables into files.
"""

from linerate.report.export.formats import FORMATS, Format, encoded, encoded_workbook
from linerate.report.export.tables import Exported, exported_run

__all__ = [
    "FORMATS",
    "Exported",
    "Format",
    "encoded",
    "encoded_workbook",
    "exported_run",
]
