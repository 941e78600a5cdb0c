"""A study: which configurations of a SAN are compared, in which order, how often, and what came of it.

Open this file first. The line of a study, and the files that hold its stages:

    study file -> Study -> Plan -> steps on a laboratory -> study directory -> verdicts
    file          model    plan    conduct, laboratory       journal, directory judge
                                   extend: more blocks
                                   scaling: each case is searched for its largest load

Cases run in blocks: every block holds each case once, the baseline twice, in an order drawn from the seed. Blocks are
added until every verdict is decided or the budget ends. A laboratory can be brought up, set, loaded and restored:
a virtual SAN, hosts that exist, or a simulation in the tests. Each step is written to the journal
when it ends; an interrupted study continues with the first step that is missing.
"""

from linerate.study.directory import StudyDirectory
from linerate.study.extend import extend
from linerate.study.file import load_study, parse_study, shipped_studies
from linerate.study.model import (
    Case,
    ClaimTest,
    RealHost,
    Repeat,
    San,
    Settings,
    SettingValue,
    Study,
    Workload,
)
from linerate.study.plan import Duration, StudyPlan, StudyStep

__all__ = [
    "Case",
    "ClaimTest",
    "Duration",
    "RealHost",
    "Repeat",
    "San",
    "SettingValue",
    "Settings",
    "Study",
    "StudyDirectory",
    "StudyPlan",
    "StudyStep",
    "Workload",
    "extend",
    "load_study",
    "parse_study",
    "shipped_studies",
]
