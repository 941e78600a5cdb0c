"""flatfile.html: one line of blank-separated columns per interval and per average, for programs to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from linerate.report.vdbench.layout import clock
from linerate.report.vdbench.rows import ReportRow, StepRows
from linerate.results import RunDirectory, StepRecord

RATE_MAX = 9_999_988
RATE_CURVE = 9_999_977
_NOT_KNOWN = "n/a"

# Column, width, what it means.
_COLUMNS = (
    ("tod", 13, "time of day"),
    ("timestamp", 24, "month/day/year-time-zone"),
    ("Run", 16, "name of the run (RD)"),
    ("Interval", 12, "number of the interval, or avg_first-last"),
    ("reqrate", 10, f"rate asked for; {RATE_MAX} = max, {RATE_CURVE} = curve"),
    ("rate", 12, "I/Os per second"),
    ("MB/sec", 10, "2**20 bytes per second"),
    ("bytes/io", 10, "mean size of an I/O"),
    ("read%", 8, "share of reads"),
    ("resp", 10, "mean service time, ms"),
    ("read_resp", 10, "mean service time of reads, ms"),
    ("write_resp", 10, "mean service time of writes, ms"),
    ("resp_max", 10, "largest service time, ms"),
    ("resp_std", 10, "standard deviation of service times, ms"),
    ("xfersize", 10, "transfer size asked for, bytes"),
    ("threads", 8, "outstanding I/Os per volume asked for"),
    ("rdpct", 8, "read percentage asked for"),
    ("rhpct", 8, "read hit percentage asked for"),
    ("whpct", 8, "write hit percentage asked for"),
    ("seekpct", 8, "random percentage asked for"),
    ("lunsize", 10, "bytes of all volumes in use, GB of 2**30"),
    ("version", 10, "version of Linerate"),
    ("compratio", 10, "compression ratio of written data"),
    ("dedupratio", 10, "deduplication ratio of written data"),
    ("queue_depth", 12, "mean number of I/Os in flight"),
    ("cpu_used", 9, "cpu% sys+u of the load host"),
    ("cpu_user", 9, "cpu% user"),
    ("cpu_kernel", 10, "cpu% system"),
    ("cpu_wait", 9, "cpu% waiting for I/O"),
    ("cpu_idle", 9, "cpu% idle"),
)
COLUMNS = tuple(name for name, _, _ in _COLUMNS)


def lines(run: RunDirectory, steps: Iterable[tuple[StepRecord, StepRows]]) -> Iterable[str]:
    """The file: what each column means, the header, then every interval and average of every step."""
    for name, _, meaning in _COLUMNS:
        yield f"* {name}: {meaning}"
    yield "*"
    yield _joined(COLUMNS)
    version = run.manifest.versions.get("linerate", _NOT_KNOWN)
    for record, rows in steps:
        asked = _asked(record, version)
        for row in (*rows.intervals, *([rows.total] if rows.total else [])):
            yield _joined(_values(row, record, asked))


def _joined(values: Sequence[str]) -> str:
    """Columns at fixed places; a value too wide for its column moves the rest, and always keeps its blank."""
    return "".join(f" {value:>{width}}" for value, (_, width, _) in zip(values, _COLUMNS, strict=True))


def _values(row: ReportRow, record: StepRecord, asked: dict[str, str]) -> list[str]:
    measured = {
        "tod": clock(row.at),
        "timestamp": f"{row.at:%m/%d/%Y-%H:%M:%S-%Z}",
        "Run": "_".join(record.name.split()) or _NOT_KNOWN,
        "Interval": row.label,
        "rate": f"{row.rate:.4f}",
        "MB/sec": f"{row.mib_s:.4f}",
        "bytes/io": f"{row.bytes_per_io:.0f}",
        "read%": f"{row.read_percent:.4f}",
        "resp": f"{row.resp:.4f}",
        "read_resp": f"{row.read_resp:.4f}",
        "write_resp": f"{row.write_resp:.4f}",
        "resp_max": f"{row.resp_max:.4f}",
        "resp_std": f"{row.resp_stddev:.4f}",
        "queue_depth": f"{row.queue_depth:.4f}",
        "cpu_used": _cpu(row.cpu_used),
        "cpu_user": _cpu(row.cpu_user),
        "cpu_kernel": _cpu(row.cpu_system),
        "cpu_wait": _cpu(row.cpu_wait),
        "cpu_idle": _cpu(row.cpu_idle),
    }
    return [measured.get(name) or asked[name] for name in COLUMNS]


def _asked(record: StepRecord, version: str) -> dict[str, str]:
    """What the spec asked for; `n/a` where streams or volumes disagree, as vdbench has it."""
    spec = record.spec
    streams = spec.get("streams", ())
    hits = [stream.get("hit_area") or {} for stream in streams]
    size = sum(int(volume.get("size_bytes") or 0) for volume in record.facts.get("volumes") or ())
    return {
        "reqrate": _requested(record),
        "xfersize": _common(_one_size(stream.get("sizes", {})) for stream in streams),
        "threads": _common(volume.get("outstanding") for volume in spec.get("volumes", ())),
        "rdpct": _common(stream.get("read_percent", 100.0) for stream in streams),
        "rhpct": _common(hit.get("read_percent", 0.0) for hit in hits),
        "whpct": _common(hit.get("write_percent", 0.0) for hit in hits),
        "seekpct": _common(stream.get("random_percent", 100.0) for stream in streams),
        "lunsize": f"{size / 2**30:.4f}" if size else _NOT_KNOWN,
        "version": "".join(version.split()),
        "compratio": _common(stream.get("compression_ratio") for stream in streams),
        "dedupratio": _common((stream.get("dedup") or {}).get("ratio") for stream in streams),
    }


def _requested(record: StepRecord) -> str:
    if "curve" in record.requested_rate.lower():
        return str(RATE_CURVE)
    arrival = record.spec.get("arrival", {})
    return f"{arrival.get('rate_iops', 0):g}" if arrival.get("kind") == "open" else str(RATE_MAX)


def _one_size(sizes: dict[str, Any]) -> Any:
    parts = list(sizes.get("parts") or [])
    return parts[0][0] if len(parts) == 1 else None


def _common(values: Iterable[Any]) -> str:
    found = set(values)
    value = found.pop() if len(found) == 1 else None
    return _NOT_KNOWN if value is None else f"{value:.12g}"


def _cpu(value: float) -> str:
    return _NOT_KNOWN if value != value else f"{value:.1f}"
