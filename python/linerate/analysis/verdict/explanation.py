"""Why a case differs from another one as it does, in measured figures: what its disks did, and what no network hid.

Of disks the answer is arithmetic and leaves nothing over. Host I/Os per second are the disks' I/Os per second over the
disk I/Os that each host I/O costs; the disks' I/Os per second are the number of disks at work over the work of one disk
I/O. So the ratio of two cases is the product of three ratios, each of them counted by the array and none of them by the
load.
"""

from __future__ import annotations

from collections.abc import Mapping

from linerate.analysis.verdict.model import Effect

Figures = Mapping[str, float]

_OF_DISKS = ("iops", "disk_iops", "disk_ios_per_io", "disk_service_ms")
_BESIDE = (
    ("disk_writes_per_write", "disk writes per host write", "{:.2f}"),
    ("disk_reads_per_read", "disk reads per host read", "{:.2f}"),
    ("disk_read_per_byte", "bytes read from disks per byte written", "{:.2f}"),
    ("disk_written_per_byte", "bytes written to disks per byte written", "{:.2f}"),
    ("full_stripe_percent", "whole stripes among writes to stripes with parity", "{:.0f} %"),
    ("disk_io_kib", "KiB per disk I/O", "{:,.0f}"),
    ("disk_queue", "I/Os queued at each disk", "{:.2f}"),
    ("task_percent", "of a background task done", "{:.1f} %"),
)
"""Figure, what it is, how it is written: the figures behind the three ratios."""
_NONE = "none"


def disks_apart(case: str, figures: Figures, against: str, others: Figures) -> str:
    """One case's I/O rate over another's as a product of what their disks did; empty if disks were not watched."""
    if not all(one.get(name) for name in _OF_DISKS for one in (figures, others)):
        return ""
    rate = figures["iops"] / others["iops"]
    cost, theirs = figures["disk_ios_per_io"], others["disk_ios_per_io"]
    work_ms, theirs_ms = figures["disk_service_ms"], others["disk_service_ms"]
    at_work, theirs_at_work = _at_work(figures), _at_work(others)
    product = (
        f"{theirs / cost:.2f} ({cost:.2f} disk I/Os per host I/O against {theirs:.2f}) "
        f"x {theirs_ms / work_ms:.2f} ({work_ms:.3g} ms of work per disk I/O against {theirs_ms:.3g}) "
        f"x {at_work / theirs_at_work:.2f} ({at_work:.1f} disks at work against {theirs_at_work:.1f})"
    )
    beside = [
        f"{what} {_written(figures.get(name), form)} against {_written(others.get(name), form)}"
        for name, what, form in _BESIDE
        if name in figures or name in others
    ]
    behind = f"; {', '.join(beside)}" if beside else ""
    return f"Rate of {case} over {against}: x {rate:.2f} = {product}{behind}."


def hidden_by_network(effect: Effect, against: str, carried_mib_s: float | None, carried_by: str) -> str:
    """What a network between would have left of a difference in throughput; empty for other figures.

    `carried_mib_s` is what the publication's own network was seen to carry.
    """
    if carried_mib_s is None or effect.metric != "mib_s":
        return ""
    moved = {against: effect.baseline, effect.case: effect.value}
    shown = " and ".join(f"{name} {mib_s:,.0f}" for name, mib_s in moved.items())
    beyond = [name for name, mib_s in moved.items() if mib_s > carried_mib_s]
    if not beyond:
        return (
            f"Neither fills the {carried_mib_s:,.0f} MB/s that {carried_by} carried ({shown}): a network of that speed "
            "would have hidden nothing."
        )
    left = 100 * (min(effect.value, carried_mib_s) / min(effect.baseline, carried_mib_s) - 1)
    rest = f"{left:+.1f}" if round(left, 1) else "0.0"
    who = "Both move" if len(beyond) == 2 else f"{beyond[0]} moves"
    return (
        f"{who} more than the {carried_mib_s:,.0f} MB/s that {carried_by} carried ({shown}): behind it, "
        f"{rest} % would be left."
    )


def _at_work(figures: Figures) -> float:
    """Disks at work at a time, as a mean."""
    return figures["disk_iops"] * figures["disk_service_ms"] / 1e3


def _written(value: float | None, form: str) -> str:
    return _NONE if value is None else form.format(value)
