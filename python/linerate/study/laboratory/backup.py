"""One image backup of a study: its phases up to the one that counts, and that one's figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linerate.backup import BackupRequest, PhaseResult, carry_out
from linerate.settings import model_field
from linerate.study.laboratory.base import Measured
from linerate.study.model import BackupWorkload, Settings
from linerate.volumes import Consent, LookAt
from linerate.workload import RunSpec


def backup_request(backup: BackupWorkload, spec: RunSpec, settings: Settings) -> BackupRequest:
    """The phases up to the one that counts. spec: the run with its volume placed. settings: checked before."""
    fields: dict[str, Any] = {}
    for name, value in settings.items():
        field = model_field(name)
        if field is not None and field.part == "backup":
            fields[field.name] = field.convert(value)
    return BackupRequest(
        # Not the run's seed: every run backs up as much, so that times can be compared.
        data=backup.data,
        image=spec.volumes[0],
        full=backup.phase != "create",
        incrementals=1 if backup.phase == "incremental" else 0,
        restore=backup.phase == "restore",
        driver=spec.driver,
        **fields,
    )


def measure_backup(
    backup: BackupWorkload,
    spec: RunSpec,
    settings: Settings,
    consent: Consent,
    look: LookAt,
    directory: Path,
    record: Mapping[str, Any],
) -> Measured:
    """Carries the phases out. Raises the LinerateError that made one fail, or KeyboardInterrupt."""
    request = backup_request(backup, spec, settings)
    outcome = carry_out(request, consent, directory, _unheard, look=look, san=record)
    if outcome.error is not None:
        raise outcome.error
    if outcome.state == "interrupted":
        raise KeyboardInterrupt
    return Measured(figures_of_phase(outcome.phases[-1]))


def _unheard(_event: object) -> None:
    """A study shows its steps, not their intervals; those are in the run directory."""


def figures_of_phase(result: PhaseResult) -> dict[str, float]:
    """By the names of `linerate.analysis.metric`."""
    return {
        "backup_s": result.seconds,
        "backup_mbit_s": result.data_mbit_s,
        "wire_mbit_s": result.wire_mbit_s,
        "gb_per_hour": result.gb_per_hour,
    }
