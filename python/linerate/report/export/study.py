"""The tables of a study: those of its runs, joined, and its verdicts.

The first columns of the joined tables name the run: its folder, block, SAN, case and workload, and whether the
judgement counts it.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from linerate.analysis.verdict import METRICS, Effect
from linerate.errors import LinerateError, quote
from linerate.report.export.tables import Exported, exported_run
from linerate.study import StudyDirectory
from linerate.study.journal import StepDone


def exported_study(study: StudyDirectory) -> Exported:
    """The tables of a study, over every run of its journal that can be read."""
    parts: dict[str, list[pl.DataFrame]] = {"intervals": [], "usage": [], "steps": []}
    notes = []
    for step in study.steps:
        try:
            tables = exported_run(study.run(step)).tables
        except LinerateError as error:
            notes.append(f"left out: {error.message}")
            continue
        place = _place(step, counted=study.measured.get(step.key) is step)
        for name, frame in tables.items():
            parts[name].append(frame.select(*place, pl.all()))
    tables = {name: pl.concat(frames, how="vertical") for name, frames in parts.items() if frames}
    verdicts = study.verdicts
    if study.search is not None:
        notes.append(
            f"no verdicts: this stage chose settings; linerate report {quote(study.search)} shows the result"
        )
    elif verdicts is None:
        notes.append(f"no verdicts yet; linerate study verdict {quote(study.path)} makes them")
    else:
        tables["verdicts"] = _verdicts(verdicts.judgement.effects)
    return Exported(tables, tuple(notes))


def _place(step: StepDone, *, counted: bool) -> list[pl.Expr]:
    """The columns that name a run of a study."""
    values = {
        "run": (step.directory, pl.String()),
        "block": (step.block, pl.Int64()),
        "position": (step.position, pl.Int64()),
        "san": (step.san, pl.String()),
        "case": (step.case, pl.String()),
        "workload": (step.workload, pl.String()),
        "run_state": (step.state, pl.String()),
        "counted": (counted, pl.Boolean()),
    }
    return [pl.lit(value, dtype=kind).alias(name) for name, (value, kind) in values.items()]


def _verdicts(effects: Sequence[Effect]) -> pl.DataFrame:
    """Changes are in percent of the baseline, or in points for a metric that is compared by its difference."""
    text, number, whole = pl.String(), pl.Float64(), pl.Int64()
    changes = ("change", "change_low", "change_high")
    schema: dict[str, pl.DataType] = {
        **dict.fromkeys(("workload", "case", "metric"), text),
        "decides": pl.Boolean(),
        "unit": text,
        **dict.fromkeys(("baseline", "value"), number),
        **dict.fromkeys((f"{name}_percent" for name in changes), number),
        **dict.fromkeys((f"{name}_points" for name in changes), number),
        "verdict": text,
        **dict.fromkeys(("blocks", "blocks_needed"), whole),
    }
    rows = []
    for effect in effects:
        unit = "percent" if effect.scale == "ratio" else "points"
        cells = {name: getattr(effect, name, None) for name in schema}
        cells |= {f"{name}_{unit}": getattr(effect, name) for name in changes}
        metric = METRICS.get(effect.metric)
        rows.append({**cells, "decides": effect.primary, "unit": metric.unit if metric else ""})
    return pl.DataFrame(rows, schema=schema)
