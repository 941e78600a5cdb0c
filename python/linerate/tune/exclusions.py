"""Which values of two settings a SAN cannot have together, found before anything is measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from linerate.errors import UserError
from linerate.setting import Value
from linerate.study import Study
from linerate.study.file.hosts import unfit_load_host
from linerate.study.laboratory.modelled import NONE_IN_MODELLED_TIME
from linerate.study.laboratory.settings import check_on, is_of_modelled_time
from linerate.tune.factors import Exclusion, Factor


def excluded_by_san(study: Study, factors: Sequence[Factor]) -> Iterator[Exclusion]:
    """Every two values that the study's SAN refuses together, with the reason.

    A refusal that only three settings cause shows when the study is run: the point is skipped, with the reason.
    """
    for one, other in itertools.combinations(factors, 2):
        for first, second in itertools.product(one.levels, other.levels):
            values = {one.name: first, other.name: second}
            if reason := _refusal(study, values):
                yield Exclusion(values=values, reason=reason)


def check_clock(study: Study, factors: Sequence[Factor]) -> None:
    """Raises UserError for a setting that a SAN in modelled time does not have."""
    (workload,) = study.workloads
    for name in (one.name for one in factors if study.san(workload.san).clock == "virtual"):
        if not is_of_modelled_time(name):
            raise UserError(
                f"{name} cannot be set in {workload.san}: {NONE_IN_MODELLED_TIME}",
                f'leave {name} out, or measure in real time: a SAN without clock = "virtual"',
            )


def _refusal(study: Study, values: dict[str, Value]) -> str:
    """Why the SAN cannot have the baseline with these values; empty: it can."""
    (workload,) = study.workloads
    san = study.san(workload.san)
    settings = {**study.baseline.settings, **san.settings, **values}
    for what, _ in unfit_load_host(san, workload, settings):
        return what
    if san.topology is None or workload.spec is None:
        return ""
    try:
        check_on(san.topology, settings, workload.elapsed_s)
    except UserError as error:
        return error.message
    return ""
