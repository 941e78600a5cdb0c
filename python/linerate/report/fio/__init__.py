"""Results as fio's JSON (`fio --output-format=json+`, fio 3.33), for programs that read fio's.

One document per run. Its `jobs` are the jobs of a fio job file, in order; of any other workload, each stream of each
step. `clat_ns` is service time (submit to complete) and `lat_ns` is response time (intended start to complete); an I/O
without an intended start has one time, so both are the same. Times come from the run's histograms, to 0.1 %.
`latency` has the tables of times, `jobs` the rest. What Linerate does not count is 0: depths at submission, context
switches, page faults, short and dropped I/Os. docs/fio.md tells users the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linerate.report.fio.jobs import job_entries
from linerate.results import RunDirectory
from linerate.results.files import write_result

_FIO_VERSION = "fio-3.33"
"""The version whose form this is."""


def write_fio_json(run: RunDirectory, path: Path) -> None:
    """Write the results of a run as one file; a file that is there is replaced. Raises HostError."""
    text = json.dumps(fio_document(run), indent=2) + "\n"
    write_result(path, text.encode())


def fio_document(run: RunDirectory) -> Mapping[str, Any]:
    """The whole document."""
    manifest = run.manifest
    ended_at = manifest.ended_at or manifest.started_at
    version = manifest.versions.get("linerate", "")
    return {
        "fio version": f"{_FIO_VERSION} (Linerate {version})",
        "timestamp": int(ended_at.timestamp()),
        "timestamp_ms": int(ended_at.timestamp() * 1000),
        "time": f"{ended_at:%a %b %d %H:%M:%S %Y}",
        "global options": {},
        "jobs": [
            entry for number, step in enumerate(manifest.steps) for entry in job_entries(run, step, number)
        ],
        "disk_util": [],
    }
