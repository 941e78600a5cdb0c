"""Advice: a SAN held against rules of published practice, with what each rule brought when it was measured.

Open this file first. A rule is data (`rules/*.toml`, read by `book.py`): what it asks of which fact, why, its source,
the study that tests it, and the setting that mends a fault. Readers turn a source into facts of one form (`facts.py`):
`linux` this host, `windows` what a script has collected, `switch` a configuration, `iscsi` an array over the network,
`documents` a topology, a finished study or a backup image. `derive.py` and `dcb.py` add what follows from several of
them. `judge.py` holds facts against rules; what is not known is never fine. `audit.py` does all of it, `report.py`
writes the result. Only `apply.py` changes anything: settings of this host, when a user asks for it.
"""

from linerate.advice.answers import QUESTIONS
from linerate.advice.apply import (
    MendPlan,
    MendResult,
    PlannedMend,
    UntouchedRule,
    apply_mends,
    plan_lines,
    plan_mends,
)
from linerate.advice.audit import AuditResult, AuditSources, audit
from linerate.advice.book import rules
from linerate.advice.documents.facts_file import facts_object
from linerate.advice.facts import AuditSubject, SanFactSheet
from linerate.advice.judge import RuleOutcome, judge
from linerate.advice.report import advice_lines, advice_object, is_broken, summary_line
from linerate.advice.rule import SEVERITIES, AdviceRule, RuleCheck, Severity
from linerate.advice.windows.read import facts_script

__all__ = [
    "QUESTIONS",
    "SEVERITIES",
    "AdviceRule",
    "AuditResult",
    "AuditSources",
    "AuditSubject",
    "MendPlan",
    "MendResult",
    "PlannedMend",
    "RuleCheck",
    "RuleOutcome",
    "SanFactSheet",
    "Severity",
    "UntouchedRule",
    "advice_lines",
    "advice_object",
    "apply_mends",
    "audit",
    "facts_object",
    "facts_script",
    "is_broken",
    "judge",
    "plan_lines",
    "plan_mends",
    "rules",
    "summary_line",
]
