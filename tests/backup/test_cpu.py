"""The CPU time of the load in the phases of a backup: counted to the end of each, and no more than the process used."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path

from linerate.backup import BackupRequest, BackupSpec, carry_out
from linerate.errors import HostError
from linerate.lab.cpu.used import NamespaceCpu
from linerate.volumes import Consent
from linerate.workload import VolumeSpec


def _process_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def test_a_phase_whose_counters_cannot_be_read_has_failed(tmp_path: Path) -> None:
    def counters() -> Mapping[str, float]:
        raise HostError("the switch does not answer", "look at it")

    request = BackupRequest(
        data=BackupSpec(image_bytes=64 << 20, used_percent=80, changed_percent=20),
        image=VolumeSpec(name="image", url=f"file:{tmp_path / 'image.vhdx'}", direct=False, create=True),
        block_bytes=2 << 20,
        driver="epoll",
    )
    outcome = carry_out(request, Consent.nothing(), tmp_path / "run", lambda _event: None, counters=counters)
    (step,) = outcome.run.manifest.steps
    assert (step.name, step.state, step.reason) == ("create", "failed", "the switch does not answer")
    assert not (tmp_path / "image.vhdx").exists()


def test_every_phase_has_the_cpu_time_of_its_thread(tmp_path: Path) -> None:
    request = BackupRequest(
        data=BackupSpec(image_bytes=64 << 20, used_percent=80, changed_percent=20),
        image=VolumeSpec(name="image", url=f"file:{tmp_path / 'image.vhdx'}", direct=False, create=True),
        block_bytes=2 << 20,
        driver="epoll",
    )
    # What a lab reads of a host: threads that exist, in its network namespace.
    host = NamespaceCpu({"here": "/proc/self/ns/net"})
    before_s = _process_s()
    outcome = carry_out(
        request, Consent.nothing(), tmp_path / "run", lambda _event: None, counters=host.sample
    )
    process_s = _process_s() - before_s
    assert outcome.error is None
    assert [phase.phase for phase in outcome.phases] == ["create", "full", "incremental 1", "restore"]
    for phase, step in zip(outcome.phases, outcome.run.manifest.steps, strict=True):
        assert phase.load_cpu_s > 0
        assert step.counters["here"] > 0.9 * phase.load_cpu_s
    assert process_s / 20 < sum(phase.load_cpu_s for phase in outcome.phases) < process_s
