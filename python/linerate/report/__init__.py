"""Reports: terminal tables, vdbench's own report files, fio's JSON, Iometer's CSV and diskspd's XML.

The HTML file of a run is made by `linerate.report.page`, that of a study by `linerate.report.study`. They are imported
by themselves, because charts take half a second to load.
"""

from linerate.report.conditions import condition_lines, junit_xml
from linerate.report.diskspd import write_diskspd_xml
from linerate.report.fio import write_fio_json
from linerate.report.iometer import write_iometer_csv
from linerate.report.tables import comparison_lines, result_lines, result_table, validity_lines
from linerate.report.vdbench import write_vdbench_output

__all__ = [
    "comparison_lines",
    "condition_lines",
    "junit_xml",
    "result_lines",
    "result_table",
    "validity_lines",
    "write_diskspd_xml",
    "write_fio_json",
    "write_iometer_csv",
    "write_vdbench_output",
]
