"""One image backup of a study: its phases up to the one that counts, and that one's figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linerate.analysis import stamp_of
from linerate.analysis.figures import WIRE_BYTES_PER_FRAME
from linerate.backup import BackupOutcome, BackupRequest, PhaseResult, carry_out
from linerate.run import Counters
from linerate.settings import model_field
from linerate.study.laboratory.base import Measured
from linerate.study.model import BackupWorkload, Settings
from linerate.volumes import Consent, LookAt
from linerate.workload import RunSpec

_SENT = re.compile(r"port\.([^.]+\.[^.]+)\.bytes_sent")
"""Of a port of a node; the name of a trunk has no dot."""


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
    validity, last = outcome.run.manifest.validity, outcome.run.manifest.steps[-1]
    findings = [one for one in validity.findings if one.step in ("", last.key)] if validity else []
    grave = [one.reason for one in findings if one.severity == "void"]
    return Measured(
        {**step, **figures_of_phase(outcome.phases[-1], last.counters)},
        stamp_of(findings) if validity else None,
        "; ".join(grave),
    )


def figures_of_phase(result: PhaseResult, counters: Mapping[str, float]) -> dict[str, float]:
    """By the names of `linerate.analysis.metric`. `counters`: what the laboratory counted during the phase.

    `wire_mbit_s` is 10^6 bits per second of whole frames in both directions, with preambles and gaps. It is left out
    where no frames were counted.
    """
    figures = {
        "backup_s": result.seconds,
        "backup_mbit_s": result.data_mbit_s,
        "payload_mbit_s": result.wire_mbit_s,
        "gb_per_hour": result.gb_per_hour,
    }
    wire = frame_bytes(counters)
    return {**figures, "wire_mbit_s": 8 * wire / 1e6 / result.seconds} if wire else figures


def frame_bytes(counters: Mapping[str, float]) -> float:
    """Bytes of all frames that hosts and arrays sent: what one receives another has sent, so each counts once."""
    ports = {found[1] for name in counters if (found := _SENT.fullmatch(name))}
    return sum(
        counters[f"port.{port}.bytes_sent"]
        + WIRE_BYTES_PER_FRAME * counters.get(f"port.{port}.frames_sent", 0.0)
        for port in ports
    )
