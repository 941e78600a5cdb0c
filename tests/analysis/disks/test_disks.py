"""What disks did, and what a host's I/O cost them, from planted counters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis.arrays import array_figures, array_use, measured, merged_use
from linerate.analysis.figures import figures_of
from linerate.analysis.summary import summarise_step
from linerate.analysis.verdict import Judgement, Observation, attribute, judge, judge_claims, shipped_claims
from linerate.results import RunWriter, WorkloadSource

from tests.support.samples.array_run import Disks, make_array_run

MIRRORS = Disks(level="raid10", disk_writes=55, disk_reads=56, read_modify_writes=0, full_stripe_writes=0)


def test_a_raid_set_is_its_disks_together_without_spares(tmp_path: Path) -> None:
    use = array_use(make_array_run(tmp_path / "run", [Disks()]), "random")
    assert use is not None
    (found,) = use.raid_sets
    assert (len(use.disks), len(use.working), found.disks) == (14, 12, 12)
    assert found.iops == pytest.approx(12 * 165)
    assert found.queue == pytest.approx(4.0)
    assert found.busy_percent == pytest.approx(96.0)
    assert found.service_ms == pytest.approx(1000 * 0.96 / 165)
    assert found.response_ms == pytest.approx(1000 * 4 / 165)
    assert found.full_stripe_percent == pytest.approx(100 * 30 / 330)
    assert use.pools[0].used_percent == pytest.approx(50.0)


def test_what_a_hosts_io_costs_the_disks(tmp_path: Path) -> None:
    figures = array_figures(make_array_run(tmp_path / "run", [Disks()]), "random")
    assert figures["disk_ios_per_io"] == pytest.approx(12 * 165 / 1000)
    assert figures["disk_writes_per_write"] == pytest.approx(12 * 55 / 330)
    assert figures["disk_reads_per_read"] == pytest.approx(12 * 110 / 670)
    assert figures["disk_io_kib"] == pytest.approx(8.0)
    assert figures["disk_written_per_byte"] == pytest.approx(2.0)
    assert "disk_read_per_byte" not in figures, "what hosts read and what parity read are one sum here"
    assert figures["capacity_gib"] == 40.0
    assert figures["disk_busy_percent"] == pytest.approx(96.0)
    assert "task_percent" not in figures


def test_what_parity_reads_before_it_writes_is_counted_where_hosts_only_write(tmp_path: Path) -> None:
    writing = make_array_run(tmp_path / "run", [Disks(reads=0)])
    figures = array_figures(writing, "random")
    assert figures["disk_read_per_byte"] == pytest.approx(12 * 110 / 330)
    assert "disk_reads_per_read" not in figures


def test_mirrors_have_no_stripes_to_be_whole(tmp_path: Path) -> None:
    run = make_array_run(tmp_path / "run", [replace(MIRRORS, full_stripe_writes=70)])
    assert "full_stripe_percent" not in array_figures(run, "random")


def test_several_runs_are_one(tmp_path: Path) -> None:
    runs = [
        make_array_run(tmp_path / str(number), [Disks(busy=busy)]) for number, busy in enumerate((0.2, 0.6))
    ]
    use = merged_use(measured(run, "random") for run in runs)
    assert use is not None
    assert use.raid_sets[0].busy_percent == pytest.approx(40.0)
    assert use.raid_sets[0].row.seconds == 10.0


def test_the_time_of_replication_is_per_gib_and_only_there_where_something_was_copied(tmp_path: Path) -> None:
    run = make_array_run(tmp_path / "run", [Disks()])
    summary = summarise_step(run, run.manifest.steps[0])
    counters = {"replication.sent_bytes": float(2 << 30), "replication.busy_s": 5.0}
    assert figures_of(summary, counters)["replication_s_per_gib"] == pytest.approx(2.5)
    assert "replication_s_per_gib" not in figures_of(
        summary, {"replication.sent_bytes": 0.0, "replication.busy_s": 5.0}
    )


def test_a_run_whose_disks_nobody_watched_has_no_such_figures(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run", name="run", workload=WorkloadSource(name="paper")) as writer:
        writer.begin_step("one", spec={}, facts={})
        run = writer.close("complete")
    assert array_use(run, "one") is None
    assert array_figures(run, "one") == {}


def observations(tmp_path: Path, blocks: int = 6) -> list[Observation]:
    """RAID 10 does 30 % more I/Os on 40 % less capacity; its disks are busy, too."""
    parity = array_figures(make_array_run(tmp_path / "parity", [Disks()]), "random")
    mirrors = array_figures(make_array_run(tmp_path / "mirrors", [MIRRORS]), "random")
    found = []
    for block in range(1, blocks + 1):
        for case, figures, iops, gib in (("raid50", parity, 1000.0, 40.0), ("raid10", mirrors, 1300.0, 24.0)):
            for again in range(1 + (case == "raid50")):
                values = {
                    **figures, "iops": iops + block + 2 * again, "response_ms": 40e3 / (iops + block),
                    "queue_depth": 40.0, "capacity_gib": gib,
                }  # fmt: skip
                found.append(Observation(case, "random-5", block, values))
    return found


def judged(seen: list[Observation]) -> Judgement:
    return judge(seen, "raid50", {"random-5": "iops"})


def test_busy_disks_are_named_as_the_limit_with_what_an_io_cost_them(tmp_path: Path) -> None:
    limits = {one.case: one for one in attribute(observations(tmp_path))}
    assert limits["raid50"].limit == limits["raid10"].limit == "disks"
    assert "The disks were the limit: busy 96 % of the time" in limits["raid50"].sentence
    assert "1.98 disk I/Os per host I/O" in limits["raid50"].sentence
    assert "2.00 disk writes per host write" in limits["raid50"].sentence
    assert "9 % of the stripe writes whole" in limits["raid50"].sentence
    assert "1.33 disk I/Os per host I/O" in limits["raid10"].sentence


def test_disks_that_rest_are_told_beside_the_time_of_an_io() -> None:
    values = {
        "queue_depth": 8.0,
        "response_ms": 8.0,
        "iops": 1000.0,
        "disk_busy_percent": 41.0,
        "disk_ios_per_io": 2.0,
    }
    (found,) = attribute([Observation("raid50", "random-1", 1, values)])
    assert found.limit == "array service"
    assert found.sentence.endswith("; disks busy 41 % of the time, 2.00 disk I/Os per host I/O.")


def test_capacity_is_judged_exactly_and_the_published_findings_agree(tmp_path: Path) -> None:
    judgement = judged(seen := observations(tmp_path))
    effect = judgement.effect("raid10", "random-5", "capacity_gib")
    assert effect is not None
    assert effect.change == pytest.approx(-40.0)
    assert effect.verdict == "worse"
    tested = {"raid.capacity": ["raid10"], "raid.random": ["raid10"]}
    claims = {
        one.claim: one for one in judge_claims(shipped_claims(), tested, judgement, attribute(seen), {})
    }
    assert claims["raid.capacity"].verdict == "agrees"
    assert claims["raid.random"].verdict == "agrees"
    assert "capacity -40.0 %" in claims["raid.capacity"].measured


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "agrees"), (1.08, "agrees"), (1.3, "differs"), (0.8, "differs")]
)
def test_a_difference_that_was_published_as_under_ten_percent(factor: float, verdict: str) -> None:
    seen = [
        Observation(
            case,
            "seqread",
            block,
            {"mib_s": 100.0 * (factor if case == "raid10" else 1.0) + 0.1 * (block % 3)},
        )
        for block in range(1, 7)
        for case in ("raid50", "raid50", "raid10")
    ]
    judgement = judge(seen, "raid50", {"seqread": "mib_s"})
    claim = {"raid.sequential": shipped_claims()["raid.sequential"]}
    claim["raid.sequential"] = claim["raid.sequential"].model_copy(
        update={"expect": tuple(one for one in claim["raid.sequential"].expect if one.covers("seqread"))}
    )
    (found,) = judge_claims(claim, {"raid.sequential": ["raid10"]}, judgement, attribute(seen), {})
    assert found.verdict == verdict
