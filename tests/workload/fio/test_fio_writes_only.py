"""Keywords about written data, and jobs that wait for others: what they do, and where they change nothing."""

from __future__ import annotations

import pytest

from .conftest import ReadFio, only_run, refusal

TIMED = "[a]\nfilename=/dev/sdx\ntime_based\nruntime=9\n"


@pytest.mark.parametrize(
    "line",
    [
        "fsync=16",
        "fdatasync=1",
        "sync=1",
        "zero_buffers",
        "dedupe_percentage=30",
        "buffer_pattern=0xdead",
        "buffer_compress_percentage=40",
        "buffer_compress_chunk=4k",
        "write_barrier=8",
        "sync_file_range=write:8",
    ],
)
def test_a_job_that_only_reads_may_have_what_concerns_writes(fio: ReadFio, line: str) -> None:
    plan = fio(f"{TIMED}rw=randread\n{line}\n")
    spec = only_run(plan)
    assert not spec.volumes[0].durable_writes
    assert spec.streams[0].compression_ratio is None
    assert f"{line}: changes nothing here: the job only reads" in [one.message for one in plan.warnings]


@pytest.mark.parametrize("mix", ["rwmixread=100", "rwmixwrite=0", "rwmixwrite=50\nrwmixread=100"])
def test_a_mix_without_writes_only_reads(fio: ReadFio, mix: str) -> None:
    text = f"{TIMED}rw=randrw\nbuffer_compress_chunk=1k\n"
    assert only_run(fio(text + mix)).streams[0].read_percent == 100
    for other in ("rwmixread=99", "rwmixwrite=1", "rwmixread=100\nrwmixwrite=50"):
        assert "buffer_compress_chunk=1k: is not supported" in refusal(fio, text + other).message


@pytest.mark.parametrize("line", ["zero_buffers", "dedupe_percentage=30", "buffer_pattern=0xdead"])
@pytest.mark.parametrize("form", ["write", "randrw"])
def test_a_job_that_writes_may_not(fio: ReadFio, form: str, line: str) -> None:
    assert refusal(fio, f"{TIMED}rw={form}\n{line}\n").message.startswith(f"w.fio:6: {line}: is not supp")


def test_a_pattern_may_go_with_data_that_compress(fio: ReadFio) -> None:
    both = only_run(fio(f"{TIMED}rw=write\nbuffer_compress_percentage=50\nbuffer_pattern=0xdead\n"))
    assert both.streams[0].compression_ratio == 2


def test_a_device_is_filled_to_its_end(fio: ReadFio) -> None:
    (stream,) = only_run(fio("[a]\nfilename=/dev/sdx\nrw=write\nfill_device=1\n")).streams
    assert stream.stop_at_end
    for line in ("filename=x", "size=1m"):
        message = refusal(fio, f"[a]\nfilename=/dev/sdx\nrw=write\nfill_device=1\n{line}\n").message
        assert message.startswith("w.fio:4: fill_device=1: is not supported: a run ends after a time")


def test_files_have_an_order_only_where_there_are_several(fio: ReadFio) -> None:
    assert len(fio(f"{TIMED}file_service_type=random\n")) == 1
    text = TIMED.replace("/dev/sdx", "x:y")
    assert "w.fio:5: file_service_type=random: is not supported" in (
        refusal(fio, f"{text}file_service_type=random\n").message
    )


def test_a_job_waits_for_those_before_it(fio: ReadFio) -> None:
    jobs = "[global]\nfilename=/dev/sdx\ntime_based\nruntime=9\n[a]\n[b]\nwait_for=a\n[c]\nwait_for=a\n"
    assert [len(run.jobs) for run in fio(jobs).steps()] == [1, 2]
    refused = refusal(fio, jobs.replace("[b]\nwait_for=a\n", "[b]\n")).message
    assert refused == "w.fio:7: [c]: wait_for=a is not supported: b would still run"
    assert "wait_for=z: no job before it" in refusal(fio, jobs.replace("for=a", "for=z")).message
