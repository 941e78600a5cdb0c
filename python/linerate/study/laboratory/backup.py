"""One image backup of a study: its phases up to the one that counts, and that one's figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linerate.analysis import stamp_of
from linerate.backup import BackupOutcome, BackupRequest, PhaseResult, carry_out
from linerate.run import Counters
from linerate.settings import model_field
from linerate.study.laboratory.base import Measured
from linerate.study.model import BackupWorkload, Settings
from linerate.volumes import Consent, LookAt
from linerate.workload import RunSpec

_SENT = ".sent_percent"


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


def carry_out_backup(
    backup: BackupWorkload,
    spec: RunSpec,
    settings: Settings,
    consent: Consent,
    look: LookAt,
    directory: Path,
    record: Mapping[str, Any],
    counters: Counters | None,
) -> BackupOutcome:
    """Carries the phases out. Raises the LinerateError that made one fail, or KeyboardInterrupt."""
    request = backup_request(backup, spec, settings)
    outcome = carry_out(request, consent, directory, _unheard, look=look, san=record, counters=counters)
    if outcome.error is not None:
        raise outcome.error
    if outcome.state == "interrupted":
        raise KeyboardInterrupt
    return outcome


def _unheard(_event: object) -> None:
    """A study shows its steps, not their intervals; those are in the run directory."""


def measured_of(outcome: BackupOutcome, step: Mapping[str, float]) -> Measured:
    """What its last phase came to. `step`: the figures of this phase as a step of a run.

    Findings about the phases before it are no doubt about its figures.
    """
    validity = outcome.run.manifest.validity
    last = outcome.run.manifest.steps[-1].key
    findings = [one for one in validity.findings if one.step in ("", last)] if validity else []
    grave = [one.reason for one in findings if one.severity == "void"]
    return Measured(
        {**step, **figures_of_phase(outcome.phases[-1], step)},
        stamp_of(findings) if validity else None,
        "; ".join(grave),
    )


def figures_of_phase(result: PhaseResult, step: Mapping[str, float]) -> dict[str, float]:
    """By the names of `linerate.analysis.metric`; `wire_mbit_s` is left out where no fabric counted frames."""
    figures = {
        "backup_s": result.seconds,
        "backup_mbit_s": result.data_mbit_s,
        "payload_mbit_s": result.wire_mbit_s,
        "gb_per_hour": result.gb_per_hour,
    }
    wire = wire_mbit_s(step)
    return figures if wire is None else {**figures, "wire_mbit_s": wire}


def wire_mbit_s(step: Mapping[str, float]) -> float | None:
    """10^6 bits per second of whole frames in both directions, with preambles and gaps; None if none were counted.

    Each frame is sent by the port of one host or array, so the sum over what all ports sent counts it once.
    """
    sent = {
        name.removeprefix("link.").removesuffix(_SENT): share
        for name, share in step.items()
        if name.startswith("link.") and name.endswith(_SENT)
    }
    return sum(share / 100 * step[f"line.{port}.mbit_s"] for port, share in sent.items()) if sent else None
