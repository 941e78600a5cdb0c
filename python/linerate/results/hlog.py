"""The latency log: HdrHistogram's interval log format 1.3, one tagged line per distribution and interval.

Any HdrHistogram tool opens it. A tag is five percent-encoded parts joined by `/`: step, stream, volume,
operation, kind; an empty part is written `-`. Timestamps are seconds since the start of the run (`BaseTime`);
the third column is the largest value in milliseconds, as those tools expect. The summary of a volume over a
whole step is a line that spans the step's measured time.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, unquote

from linerate.results.sample import LatencySample

_COOKIE_V2 = 0x1C849313
_COOKIE_V2_COMPRESSED = 0x1C849314
_NS_PER_MS = 1e6
_NO_NAME = "-"
_TAG = "Tag="


@dataclass(frozen=True, slots=True)
class Tag:
    """Whose distribution a line holds."""

    step: str
    stream: str
    volume: str
    op: str
    kind: str

    def encode(self) -> str:
        """The tag as it is in the log: no blank, comma or slash inside a part."""
        parts = (self.step, self.stream, self.volume, self.op, self.kind)
        return "/".join(_encode_part(part) for part in parts)

    @classmethod
    def decode(cls, text: str) -> Tag:
        """The tag that `encode` wrote."""
        parts = ["" if part == _NO_NAME else unquote(part) for part in text.split("/")]
        return cls(*parts)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One distribution of the log. `start_s` counts from the start of the run; `data` is the V2 encoding."""

    tag: Tag
    start_s: float
    length_s: float
    data: bytes


def header(started_at: datetime) -> str:
    """The comment and column lines that open a log."""
    epoch = started_at.timestamp()
    return (
        "#[Linerate latency log; values in nanoseconds, tag = step/stream/volume/operation/kind]\n"
        "#[Histogram log format version 1.3]\n"
        f"#[BaseTime: {epoch:.3f} (seconds since epoch)]\n"
        f"#[StartTime: {epoch:.3f} (seconds since epoch), {started_at:%a %b %d %H:%M:%S %Z %Y}]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def log_line(step: str, latency: LatencySample, start_s: float, length_s: float) -> str:
    """One line of the log, with its line end."""
    tag = Tag(step, latency.stream, latency.volume, latency.op, latency.kind)
    payload = base64.b64encode(compressed(latency.histogram.encode())).decode("ascii")
    largest = latency.histogram.max / _NS_PER_MS
    return f"Tag={tag.encode()},{start_s:.3f},{length_s:.3f},{largest:.3f},{payload}\n"


def read_log(path: Path) -> Iterator[LogLine]:
    """The lines of a log, without a last line that a killed process left torn."""
    if not path.exists():
        return
    with path.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            if not line.startswith(_TAG):
                continue
            if not line.endswith("\n") or (parsed := parse_line(line)) is None:
                return
            yield parsed


def parse_line(line: str) -> LogLine | None:
    """One whole line of a log. None for a comment, the head, or a line that is damaged."""
    fields = line.rstrip("\n").split(",")
    if not line.startswith(_TAG) or len(fields) != 5:
        return None
    tag, start, length, _, payload = fields
    data = base64.b64decode(payload)
    return LogLine(Tag.decode(tag.removeprefix(_TAG)), float(start), float(length), data)


def compressed(data: bytes) -> bytes:
    """V2 bytes in the compressed form that log readers ask for; compressed bytes come back as they are."""
    if struct.unpack_from(">I", data)[0] == _COOKIE_V2_COMPRESSED:
        return data
    packed = zlib.compress(data)
    return struct.pack(">Ii", _COOKIE_V2_COMPRESSED, len(packed)) + packed


def uncompressed(data: bytes) -> bytes:
    """V2 bytes in the plain form; plain bytes come back as they are."""
    if struct.unpack_from(">I", data)[0] == _COOKIE_V2:
        return data
    return zlib.decompress(data[8:])


def _encode_part(part: str) -> str:
    return quote(part, safe="") if part and part != _NO_NAME else (_NO_NAME if not part else "%2D")
