"""Makes study directories of any length from a seed. SAMPLE DATA: nothing in here was ever measured.

The study and its plan are real, the runs are empty, and their figures are drawn around planted effects.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from linerate.analysis.verdict import judge
from linerate.results import Finding, RunDirectory, RunWriter, Validity, WorkloadSource
from linerate.study import Study, StudyDirectory, StudyPlan, StudyStep, parse_study
from linerate.study.directory import (
    JOURNAL,
    RUNS,
    STUDY,
    VERDICTS,
    VERDICTS_JSON,
    StudyRecord,
    Verdicts,
)
from linerate.study.journal import (
    CaseSkipped,
    Entry,
    SanFacts,
    SessionBegan,
    SessionEnded,
    StepDone,
    StudyJournal,
)

START = datetime(2026, 11, 22, 1, 0, tzinfo=UTC)
NOISE = 0.006

TEXT = """\
title = "NIC tuning (sample)"
description = "SAMPLE: made-up figures of a study that never ran."
seed = 7

[[san]]
topology = "base-san"

[[workload]]
name = "8k-random"
title = "8K random, 67 % read"
file = "dell-nic/8k-random.vdb"
metric = "iops"

[[workload]]
name = "256k-seq-read"
title = "256K sequential read"
file = "dell-nic/256k-seq-read.vdb"
metric = "mib_s"

[baseline]
title = "baseline: jumbo frames, largest buffers"
settings = { mtu = 9000, rx_ring_frames = 4096, tx_ring_frames = 4096 }
source = "table 4, case 3"

[[case]]
name = "default"
title = "default settings"
settings = { mtu = 1500, rx_ring_frames = 256, tx_ring_frames = 256 }
source = "table 4, case 1"

[[case]]
name = "jumbo"
title = "jumbo frames, default buffers"
settings = { rx_ring_frames = 256, tx_ring_frames = 256 }
source = "table 4, case 2"

[[case]]
name = "no-autotuning"
title = "receive-window auto-tuning off"
settings = { receive_window_autotuning = "off" }
source = "table 5, case 9"

[[case]]
name = "no-delayed-ack"
title = "delayed ACK off"
settings = { delayed_ack = "off" }

[[case]]
name = "isoe"
title = "iSCSI offload engine on"
settings = { isoe = "on" }
"""

# case -> change of 8k-random and of 256k-seq-read, in percent of the baseline
EFFECTS = {
    "default": (-1.0, -9.0),
    "jumbo": (0.2, -0.3),
    "baseline": (0.0, 0.0),
    "no-autotuning": (0.1, -31.0),
    "no-delayed-ack": (9.0, 0.0),
}
BASE = {"8k-random": ("iops", 14_200.0), "256k-seq-read": ("mib_s", 117.9)}
REFUSED = "no adapter here has an iSCSI offload engine"


def sample_study() -> Study:
    """The study of the sample."""
    return parse_study(TEXT, "sample.toml", name="nic-sample")


def make_study_directory(path: Path, *, blocks: int = 6, state: str = "complete") -> StudyDirectory:
    """A study directory with every step of `blocks` blocks and its verdicts; without blocks there are none."""
    study = sample_study()
    dice = random.Random("sample")
    (path / RUNS).mkdir(parents=True)
    record = StudyRecord(started_at=START, source=TEXT, source_name="sample.toml", study=study)
    (path / STUDY).write_text(record.model_dump_json())
    with StudyJournal(path / JOURNAL) as journal:
        entries: list[Entry] = [SessionBegan(at=START)]
        facts = {"fabric": "user", "fabric_reasons": ["rx_ring_frames"], "kernel": "6.18.2"}
        entries.append(SanFacts(at=START, san="base-san", facts=facts))
        skipped = CaseSkipped(at=START, san="base-san", case="isoe", reason=f"isoe: {REFUSED}")
        entries.append(skipped)
        for block in range(1, blocks + 1):
            for step in _steps(study, block):
                entries.append(_step(path, study, step, len(entries), dice))
        ended = entries[-1].at + timedelta(seconds=5)
        if state == "complete":
            entries.append(SessionEnded(at=ended, state="complete"))
        else:
            entries.append(SessionEnded(at=ended, state="interrupted", reason="stopped by the user"))
        for entry in entries:
            journal.add(entry)
    directory = StudyDirectory.open(path)
    if blocks:
        judgement = judge(
            directory.observations(), "baseline", {name: metric for name, (metric, _) in BASE.items()}
        )
        verdicts = Verdicts(judgement, (), (), (), {"isoe": REFUSED}, ())
        (path / VERDICTS).write_bytes(VERDICTS_JSON.dump_json(verdicts))
    return StudyDirectory.open(path)


def _steps(study: Study, block: int) -> list[StudyStep]:
    return [step for step in StudyPlan(study).block(block) if step.case != "isoe"]


def _step(path: Path, study: Study, step: StudyStep, number: int, dice: random.Random) -> StepDone:
    metric, base = BASE[step.workload]
    change = EFFECTS[step.case][list(BASE).index(step.workload)]
    place = f"{RUNS}/{number:03d}-{step.key}"
    _run(path / place, study, step)
    return StepDone(
        at=START + timedelta(seconds=30 * number),
        key=step.key,
        block=step.block,
        position=step.position,
        san=step.san,
        case=step.case,
        workload=step.workload,
        replica=step.replica,
        directory=place,
        state="complete",
        stamp="valid",
        values={
            metric: base * (1 + change / 100) * dice.lognormvariate(0, NOISE),
            "retransmit_percent": 0.3 + 0.02 * dice.random() if step.case == "default" else 0.0,
            "host_cpu_percent": 30 + dice.random(),
            "fabric_lag_ms": 0.21,
            "link.h1.p0.received_percent": 40.0 if step.workload == "8k-random" else 96.0,
            "link.h1.p0.sent_percent": 12.0,
        },
    )


def _run(path: Path, study: Study, step: StudyStep) -> RunDirectory:
    """A run directory whose run measured nothing, with what its manifest says about settings."""
    settings = dict(study.case(step.case).settings)
    writer = RunWriter.create(path, name=step.key, workload=WorkloadSource(name=step.workload))
    writer.begin_step(step.workload, spec={}, facts={}, san={"settings": settings, "san": step.san})
    writer.end_step()
    doubt = Finding(rule="too-short", severity="note", reason="20 s were measured")
    return writer.close("complete", judge=lambda _: Validity(stamp="valid", findings=(doubt,)))
