"""Image backups as workloads of a study: read, turned into phases, measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from linerate.backup import PhaseResult
from linerate.errors import UserError
from linerate.report.study import study_page
from linerate.study import StudyDirectory, load_study, parse_study
from linerate.study.laboratory.backup import backup_request, figures_of_phase, frame_bytes
from linerate.study.laboratory.settings import loaded
from linerate.study.model import Study

from tests.study.conftest import run_study
from tests.support import need

TEXT = """\
title = "An image on a share"

[[san]]
topology = "nas-san"

[[workload]]
name = "full"
metric = "backup_mbit_s"
elapsed = "2s"
warm_up = "0s"
backup = { phase = "full", image = "32m", transfer = "256k" }

[baseline]
settings = { backup.image = "dynamic", load.writes = "through" }

[[case]]
name = "fixed"
settings = { backup.image = "fixed", load.writes = "cached" }

[[case]]
name = "other-reads"
settings = { load.other_session = "reads" }

[[case]]
name = "small-nas"
settings = { array.cpu_percent = 20 }

[repeat]
blocks_min = 1
blocks_max = 1
settle = "0s"
baselines = 1
"""


def requests(study: Study, phase: str) -> list[str]:
    """The phases that run so that this one can be measured."""
    changed = study.workloads[0].backup
    spec = study.workloads[0].spec
    assert changed is not None
    assert spec is not None
    backup = changed.model_copy(update={"phase": phase})
    return [name for name, _ in backup_request(backup, spec, study.baseline.settings).phases()]


def test_a_phase_runs_after_those_that_it_needs() -> None:
    study = parse_study(TEXT)
    assert requests(study, "create") == ["create"]
    assert requests(study, "full") == ["create", "full"]
    assert requests(study, "incremental") == ["create", "full", "incremental 1"]
    assert requests(study, "restore") == ["create", "full", "restore"]


def test_settings_make_the_image() -> None:
    study = parse_study(TEXT)
    (workload,) = study.workloads
    assert workload.backup is not None
    assert workload.spec is not None
    assert [volume.name for volume in workload.spec.volumes] == ["image"]
    made = [
        backup_request(workload.backup, loaded(workload.spec, case.settings), case.settings)
        for case in study.cases
    ]
    assert [one.kind for one in made] == ["dynamic", "fixed", "dynamic", "dynamic"]
    assert [one.image.durable_writes for one in made] == [True, False, True, True]
    assert {one.data.image_bytes for one in made} == {32 << 20}
    again = workload.seeded(7)
    assert again.spec is not None
    assert backup_request(workload.backup, again.spec, {}).data == made[0].data, "each run backs up the same"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('image = "32m"', 'image = "8000000"', "not a multiple of 64 KiB"),
        ('phase = "full"', 'phase = "half"', "must be 'create', 'full'"),
        ('elapsed = "2s"', 'elapsed = "2s"\nfile = "chelsio.toml"', "an image backup, and a file"),
        ('warm_up = "0s"', 'warm_up = "steady"', "neither a search nor a warm-up"),
        ('topology = "nas-san"', 'topology = "eight-drives"\nclock = "virtual"', "no virtual SAN with a network"),
        ('backup = { phase = "full", image = "32m", transfer = "256k" }', 'file = "chelsio.toml"\nrun = "read size=8k"',
         "backup.image is of image backups alone"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_place(old: str, new: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_study(TEXT.replace(old, new))
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_the_shipped_study_tests_the_published_finding() -> None:
    study = load_study("image-backup")
    assert [claim.claim for claim in study.claims] == ["backup.smb_vhdx"]
    assert {one.backup.phase for one in study.workloads if one.backup} == {
        "create",
        "full",
        "incremental",
        "restore",
    }


def test_frames_of_all_ports_count_once_on_the_wire() -> None:
    counters = {
        "port.h1.p0.bytes_sent": 1000e6,
        "port.h1.p0.frames_sent": 1e6,
        "port.h1.p0.bytes_received": 60e6,
        "port.n1.p0.bytes_sent": 60e6,
        "port.n1.p0.bytes_received": 1000e6,
        "port.trunk.bytes_sent": 1060e6,
    }
    assert frame_bytes(counters) == pytest.approx(1084e6)
    result = PhaseResult("full", 10.0, 900_000_000, 1_000_000_000)
    figures = figures_of_phase(result, counters)
    assert figures["wire_mbit_s"] == pytest.approx(867.2)
    assert figures["payload_mbit_s"] == pytest.approx(800.0)
    assert (figures["backup_mbit_s"], figures["gb_per_hour"]) == pytest.approx((720.0, 324.0))
    assert "wire_mbit_s" not in figures_of_phase(result, {})


@pytest.mark.paced
@pytest.mark.long
def test_backups_of_a_study_are_measured_on_the_nas(tmp_path: Path) -> None:
    need.tool("smbd")
    directory = run_study(tmp_path, TEXT)
    measured = StudyDirectory.open(directory).measured
    assert {one.stamp for one in measured.values()} <= {"valid", "caution"}
    page = (directory / "report.html").read_text("utf-8")
    for words in ("seconds", "on the wire, Mbit/s", "GB per hour", "bottleneck"):
        assert f">{words}</th>" in page or f">{words}<" in page, words
    assert "No counter says" not in page
    values = {one.case: one.values for one in measured.values()}
    # A machine without cgroup v2 has no small NAS, and the page says why.
    small = {"small-nas"} & set(values)
    assert small or "cgroup" in page
    assert set(values) == {"baseline", "fixed", "other-reads"} | small
    # The other client's data are on the wire too, and not in the backup's payload.
    extra = {name: one["wire_mbit_s"] / one["payload_mbit_s"] for name, one in values.items()}
    assert extra["other-reads"] > 1.05 * extra["baseline"]
    _doubts_of_earlier_phases_are_not_told(StudyDirectory.open(directory))
    for figures in values.values():
        assert figures["backup_mbit_s"] > 1
        assert figures["wire_mbit_s"] > figures["payload_mbit_s"] > figures["backup_mbit_s"]
        assert figures["backup_s"] > 0


def _doubts_of_earlier_phases_are_not_told(directory: StudyDirectory) -> None:
    done = directory.measured[next(iter(directory.measured))]
    file = directory.path / done.directory / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["validity"]["findings"] = [
        {
            "rule": "other-work",
            "severity": "caution",
            "reason": f"planted in {step['key']}",
            "step": step["key"],
        }
        for step in manifest["steps"]
    ]
    file.write_text(json.dumps(manifest))
    first, last = (step["key"] for step in manifest["steps"])
    reasons = {finding.reason for finding in study_page(directory).validity.findings}
    assert f"planted in {last}" in reasons
    assert f"planted in {first}" not in reasons
