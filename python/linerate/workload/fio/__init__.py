"""fio job files, read as fio 3.33 reads them.

Open this file first. The stages, each in a file of its own: `lexer` (lines to sections of `keyword=value`), `tables`
and `refused` (the keywords as data), `values` (sizes, times, lists), `jobs` (sections with defaults as typed jobs),
`parts` (which part of which file each copy uses), `volumes` (volumes and streams) and `runs` (jobs at the same time
as the steps of a plan). `entries/` has the jobs that create, look up and delete files. docs/fio.md says which keywords
do what; `documentation` makes it from the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from linerate.workload.fio.jobs import read_jobs
from linerate.workload.fio.lexer import read_sections
from linerate.workload.fio.runs import steps_of
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RunPlan
from linerate.workload.problems import Problems, SourceLocation

__all__ = ["load_fio"]


def load_fio(
    path: Path, *, substitutions: Mapping[str, str] | None = None, overrides: Overrides | None = None
) -> RunPlan:
    """The plan of a job file. `substitutions` are values for `${NAME}`, before those of the environment.

    Raises UserError with everything that is wrong.
    """
    problems = Problems()
    wanted = overrides or Overrides()
    sections = read_sections(path, substitutions or {}, problems)
    problems.raise_if_any()
    jobs = read_jobs(sections, problems)
    if not jobs and not problems.errors:
        problems.error(SourceLocation(str(path), 0), "no job in the file", "write [name], and rw= below it")
    problems.raise_if_any()
    steps = steps_of(jobs, wanted, problems)
    problems.raise_if_any()
    return wanted.apply(RunPlan(path.stem, steps, problems.notices))
