"""Why one case differs from another, from planted figures: what their disks did, and what a network would hide."""

from __future__ import annotations

import pytest
from linerate.analysis.verdict import Attribution, Effect, Judgement, judge_claims, shipped_claims
from linerate.analysis.verdict.explanation import disks_apart, hidden_by_network

PARITY = {
    "iops": 1000.0, "disk_iops": 1980.0, "disk_ios_per_io": 1.98, "disk_service_ms": 6.0, "disk_queue": 3.25,
    "disk_writes_per_write": 2.0, "disk_reads_per_read": 1.97, "full_stripe_percent": 0.0, "disk_io_kib": 8.0,
}  # fmt: skip
MIRRORS = {
    "iops": 1500.0, "disk_iops": 1980.0, "disk_ios_per_io": 1.32, "disk_service_ms": 6.0, "disk_queue": 3.25,
    "disk_writes_per_write": 2.0, "disk_reads_per_read": 1.0, "disk_io_kib": 8.0,
}  # fmt: skip


def test_a_rate_is_the_product_of_what_the_disks_did() -> None:
    assert disks_apart("raid10", MIRRORS, "raid50", PARITY) == (
        "Rate of raid10 over raid50: x 1.50 = 1.50 (1.32 disk I/Os per host I/O against 1.98) "
        "x 1.00 (6 ms of work per disk I/O against 6) x 1.00 (11.9 disks at work against 11.9); "
        "disk writes per host write 2.00 against 2.00, disk reads per host read 1.00 against 1.97, "
        "whole stripes among writes to stripes with parity none against 0 %, KiB per disk I/O 8 against 8, "
        "I/Os queued at each disk 3.25 against 3.25."
    )


def test_whichever_part_changes_its_factor_says_so() -> None:
    slower = PARITY | {"iops": 500.0, "disk_iops": 990.0, "disk_service_ms": 9.0}
    said = disks_apart("slow", slower, "raid50", PARITY)
    assert "x 0.50 = 1.00 (1.98 disk I/Os per host I/O against 1.98)" in said
    assert "x 0.67 (9 ms of work per disk I/O against 6)" in said
    assert "x 0.75 (8.9 disks at work against 11.9)" in said


def test_without_watched_disks_nothing_is_said() -> None:
    assert disks_apart("raid10", {"iops": 1.0}, "raid50", PARITY) == ""
    assert disks_apart("raid10", MIRRORS | {"disk_service_ms": 0.0}, "raid50", PARITY) == ""


def effect(case: str, workload: str, metric: str, baseline: float, value: float) -> Effect:
    """A difference that was shown, within one percent."""
    ratio = value / baseline
    return Effect(
        case=case, workload=workload, metric=metric, scale="ratio", primary=True, baseline=baseline, value=value,
        estimate=ratio, low=ratio - 0.01, high=ratio + 0.01, p=0.01, p_adjusted=0.02, p_equivalent=0.9,
        verdict="better" if (ratio > 1) == (metric != "response_ms") else "worse", blocks=6, blocks_needed=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("baseline", "value", "says"),
    [
        (
            3000.0,
            2000.0,
            "Both move more than the 1,792 MB/s that the line carried (raid50 3,000 and raid10 2,000):",
        ),
        (3000.0, 2000.0, "behind it, 0.0 % would be left."),
        (
            2240.0,
            896.0,
            "raid50 moves more than the 1,792 MB/s that the line carried (raid50 2,240 and raid10 896):",
        ),
        (2240.0, 896.0, "behind it, -50.0 % would be left."),
        (700.0, 896.0, "Neither fills the 1,792 MB/s that the line carried (raid50 700 and raid10 896)"),
    ],
)
def test_what_a_network_leaves_of_a_difference(baseline: float, value: float, says: str) -> None:
    found = effect("raid10", "seqread", "mib_s", baseline, value)
    assert says in hidden_by_network(found, "raid50", 1792.0, "the line")


def test_only_throughput_is_held_against_a_network() -> None:
    assert (
        hidden_by_network(effect("raid10", "random-1", "iops", 1.0, 2.0), "raid50", 1792.0, "the line") == ""
    )
    assert hidden_by_network(effect("raid10", "seqread", "mib_s", 1.0, 2.0), "raid50", None, "") == ""


def test_a_finding_that_differs_is_explained_by_disks_and_network() -> None:
    slow, fast = PARITY | {"mib_s": 2400.0}, MIRRORS | {"mib_s": 3600.0}
    judgement = Judgement("raid50", 0.05, 0.05, (effect("raid10", "seqread", "mib_s", 2400.0, 3600.0),), ())
    limits = [
        Attribution("raid50", "seqread", "disks", "The disks were the limit.", slow),
        Attribution("raid10", "seqread", "disks", "The disks were the limit.", fast),
    ]
    (claim,) = judge_claims(shipped_claims(), {"raid.sequential": ["raid10"]}, judgement, limits, {})
    assert claim.verdict == "differs"
    assert "A larger difference was measured: seqread: throughput +50.0 % (+49.0 to +51.0)." in claim.reason
    assert "Rate of raid10 over raid50: x 1.50 = 1.50 (1.32 disk I/Os per host I/O" in claim.reason
    assert "Both move more than the 1,792 MB/s that the paper's two 10 GbE ports" in claim.reason


def test_many_workloads_are_objected_to_once_and_the_two_farthest_explained() -> None:
    gains = {"random-1": 1.6, "random-5": 1.9, "random-10": 1.7, "random-2": 1.65}
    effects = tuple(effect("raid10", name, "iops", 1000.0, 1000.0 * gain) for name, gain in gains.items())
    limits = [
        Attribution(
            case, name, "disks", "The disks were the limit.", figures | {"disk_service_ms": 4.0 + nth}
        )
        for nth, name in enumerate(gains)
        for case, figures in (("raid50", PARITY), ("raid10", MIRRORS))
    ]
    judgement = Judgement("raid50", 0.05, 0.05, effects, ())
    (claim,) = judge_claims(shipped_claims(), {"raid.random": ["raid10"]}, judgement, limits, {})
    assert claim.reason.count("In the published direction, but larger than published:") == 1
    assert all(f"{name}: i/o rate" in claim.reason for name in gains)
    assert claim.reason.count("Rate of raid10 over raid50") == 2
    assert "(5 ms of work per disk I/O against 5)" in claim.reason, "random-5, the farthest"
    assert "(6 ms of work per disk I/O against 6)" in claim.reason, "random-10, the next"
