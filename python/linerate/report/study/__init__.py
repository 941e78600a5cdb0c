"""The report of a study: one self-contained HTML page and the terminal's verdict table, from one view model.

`model.py` is what there is to tell, `gather.py` takes it from a study directory and `recommend.py` finds the settings
that earned their place. `build.py` renders it as a page, `verdicts.py` for a terminal, a pipe or a program. `bars.py`
draws the rows of the charts, `drift.py` the results by block, `carried.py` what paths carried. `short.py` is the short
answer that both begin with, `runs.py` the run reports that the page links. The page continues the run report
(`report/page`): its style sheet, its palette, its promise that nothing is loaded from elsewhere.
"""

from linerate.report.study.build import render_study, write_study_report
from linerate.report.study.gather import study_page
from linerate.report.study.model import CasePart, Recommendation, SettingValue, StudyPage, WorkloadPart
from linerate.report.study.runs import AT_THE_END_S, write_run_reports
from linerate.report.study.verdicts import (
    closing_lines,
    fault_lines,
    fault_table,
    opening_lines,
    verdict_lines,
    verdict_object,
    verdict_table,
)

__all__ = [
    "AT_THE_END_S",
    "CasePart",
    "Recommendation",
    "SettingValue",
    "StudyPage",
    "WorkloadPart",
    "closing_lines",
    "fault_lines",
    "fault_table",
    "opening_lines",
    "render_study",
    "study_page",
    "verdict_lines",
    "verdict_object",
    "verdict_table",
    "write_run_reports",
    "write_study_report",
]
