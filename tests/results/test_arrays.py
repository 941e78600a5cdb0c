"""What the disks of an array did, from its counters to a table of the run directory and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from linerate.results import ArrayRow, CounterRow, IntervalSample, RunDirectory, RunWriter, WorkloadSource
from linerate.run.arrays import ArrayWatch


def report(writes: int, *, done: float | None = None) -> dict[str, Any]:
    """What an array of one disk, one RAID set, one pool and one volume says."""
    return {
        "disks": [
            {
                "name": "d0", "model": "sas_10k_2_5", "state": "online", "raid_set": "r0", "size_bytes": 1 << 30,
                "reads": 5 * writes, "writes": writes, "read_bytes": 0, "write_bytes": 4096 * writes,
                "flushes": 1, "discards": 0, "errors": 0, "response_ns": 1000 * writes, "busy_ns": 10 * writes,
            }
        ],
        "raid_sets": [
            {
                "name": "r0", "level": "raid5", "state": "optimal", "size_bytes": 3 << 30, "raw_bytes": 4 << 30,
                "task": None if done is None else {"kind": "initialise", "done": done},
                "full_stripe_writes": 0, "read_modify_writes": writes // 2, "reconstruct_writes": 0,
                "degraded_reads": 0, "mismatches_found": 0, "mismatches_mended": 0,
            }
        ],
        "pools": [
            {"name": "p0", "size_bytes": 3 << 30, "used_bytes": 2 << 30, "provisioned_bytes": 9 << 30, "warning": True}
        ],
        "volumes": [
            {
                "name": "v1", "pool": "p0", "size_bytes": 1 << 30, "used_bytes": 1 << 20, "snapshots": [],
                "replica": None,
            }
        ],
    }  # fmt: skip


def watched(reports: list[dict[str, Any]], seconds: list[float]) -> ArrayWatch:
    told = iter([{"a1": one} for one in reports])
    clock = iter(seconds)
    return ArrayWatch(lambda: next(told), lambda: next(clock))


def test_an_intervals_counts_are_differences_and_its_state_is_that_at_its_end() -> None:
    watch = watched([report(100), report(160, done=0.25), report(160, done=0.5)], [10.0, 11.5, 12.5])
    disk, raid_set, pool, volume = watch.rows()
    assert (disk.array, disk.part, disk.name, disk.member_of, disk.kind) == (
        "a1",
        "disk",
        "d0",
        "r0",
        "sas_10k_2_5",
    )
    assert (disk.writes, disk.reads, disk.write_bytes, disk.flushes, disk.seconds) == (
        60,
        300,
        60 * 4096,
        0,
        1.5,
    )
    assert (disk.state, disk.size_bytes) == ("online", 1 << 30)
    assert (raid_set.kind, raid_set.read_modify_writes) == ("raid5", 30)
    assert (raid_set.task, raid_set.done) == ("initialise", 0.25)
    assert (pool.used_bytes, pool.provisioned_bytes, pool.warning) == (2 << 30, 9 << 30, True)
    assert (volume.part, volume.member_of, volume.used_bytes) == ("volume", "p0", 1 << 20)
    assert [row.writes for row in watch.rows()] == [0, 0, 0, 0]


def test_a_disk_that_came_later_counts_from_nothing() -> None:
    without = report(100) | {"disks": []}
    disk, *_ = watched([without, report(7)], [0.0, 1.0]).rows()
    assert disk.writes == 7


def test_the_table_is_the_same_while_the_run_goes_on_and_when_it_is_closed(tmp_path: Path) -> None:
    rows = watched([report(100), report(160, done=0.25)], [0.0, 1.0]).rows()
    with RunWriter.create(tmp_path / "run", name="run", workload=WorkloadSource(name="paper")) as writer:
        step = writer.begin_step("one", spec={}, facts={})
        writer.interval(
            IntervalSample(0, 0.0, 1.0, False, (CounterRow("s", "v", "read", 1, 512),), arrays=rows)
        )
        writer.end_step()
        spooled = RunDirectory.open(tmp_path / "run").arrays
        run = writer.close("complete")
    assert run.arrays.equals(spooled)
    assert run.arrays["step"].to_list() == [step] * 4
    kept = run.arrays.drop("step", "interval", "start_s", "end_s", "warmup").rows(named=True)
    assert [ArrayRow(**row) for row in kept] == list(rows)
    assert "array.parquet" in run.manifest.files


def test_a_run_without_disks_has_no_such_file_and_an_empty_table(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run", name="run", workload=WorkloadSource(name="paper")) as writer:
        run = writer.close("complete")
    assert not (tmp_path / "run" / "array.parquet").exists()
    assert run.arrays.filter(pl.col("part") == "disk").is_empty()
