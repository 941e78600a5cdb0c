"""Reports: one HTML file, terminal tables, and vdbench's own report files.

This is for runs; a study's report is in `linerate.report.study`, imported by itself because it needs far more.
"""

from linerate.report.conditions import condition_lines, junit_xml
from linerate.report.page import write_report
from linerate.report.tables import comparison_lines, result_lines, result_table, validity_lines
from linerate.report.vdbench import write_vdbench_output

__all__ = [
    "comparison_lines",
    "condition_lines",
    "junit_xml",
    "result_lines",
    "result_table",
    "validity_lines",
    "write_report",
    "write_vdbench_output",
]
