"""Configurations of Iometer (.icf), read as Iometer 1.1.0 reads them, of all versions since 1998.

Open this file first. The stages, each in a file of its own: `lexer` (lines to labels with values), `tables` (labels
and test types as data), `configuration` (the test setup, and all types), `specifications`, `managers`, `cycles` (which
targets each run uses), `load` (an access specification as a stream), `volumes` and `runs` (the steps of a plan).
docs/iometer.md says what each label does; `documentation` makes it from the tables.
"""

from __future__ import annotations

from pathlib import Path

from linerate.workload.iometer.configuration import read_setup
from linerate.workload.iometer.lexer import read_icf
from linerate.workload.iometer.managers import read_managers
from linerate.workload.iometer.runs import hosts_of, steps_of
from linerate.workload.iometer.specifications import read_specifications
from linerate.workload.iometer.tables import IcfPart
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RunPlan
from linerate.workload.problems import Problems, SourceLocation

__all__ = ["load_iometer"]


def load_iometer(path: Path, *, overrides: Overrides | None = None) -> RunPlan:
    """The plan of a configuration. Raises UserError with everything that is wrong."""
    problems = Problems()
    wanted = overrides or Overrides()
    sections = read_icf(path, problems)
    problems.raise_if_any()
    setup = read_setup(sections.get(IcfPart.SETUP), str(path), problems)
    specifications = read_specifications(sections.get(IcfPart.SPECIFICATIONS), problems)
    managers = read_managers(sections.get(IcfPart.MANAGERS), problems)
    if not managers and not problems.errors:
        what = "no manager: the file does not say which workers do what, and on which targets"
        problems.error(SourceLocation(str(path), 0), what, "save it in Iometer with managers and workers")
    problems.raise_if_any()
    steps = steps_of(setup, specifications, managers, wanted, problems)
    problems.raise_if_any()
    if not steps:
        what = "no worker has both targets and access specifications"
        problems.error(SourceLocation(str(path), 0), what, "assign both in Iometer, and save the file again")
    problems.raise_if_any()
    return wanted.apply(RunPlan(path.stem, steps, problems.notices, managers=hosts_of(steps)))
