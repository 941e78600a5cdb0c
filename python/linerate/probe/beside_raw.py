"""iSCSI beside raw TCP: what is left to iSCSI, the array and the load where raw TCP carries more."""

from __future__ import annotations

from collections.abc import Iterator

from linerate.probe.evidence import Evidence
from linerate.probe.windows import MORE

SHARE = 0.8
"""iSCSI that carries less than this of raw TCP is held back by something above TCP."""


def is_below_raw(seen: Evidence) -> bool:
    """Whether raw TCP shows that the line carries clearly more than the best reads."""
    raw_mb_s = seen.raw_mb_s(is_write=False)
    return raw_mb_s is not None and _best_read_mb_s(seen) < SHARE * raw_mb_s


def as_raw(seen: Evidence) -> str:
    """The sentence for reads that are as fast as raw TCP, with one session as with several; else nothing."""
    raw_mb_s = seen.raw_mb_s(is_write=False)
    one_mb_s, best_mb_s = seen.measured["large"].mb_s, _best_read_mb_s(seen)
    if not raw_mb_s or one_mb_s < SHARE * raw_mb_s or best_mb_s > MORE * one_mb_s:
        return ""
    return (
        f"The line or TCP is the limit: raw TCP carries {raw_mb_s:.0f} MB/s from the far side, iSCSI reads "
        f"{one_mb_s:.0f} MB/s with one session, and {best_mb_s:.0f} MB/s with the best number of them."
    )


def raw_notes(seen: Evidence) -> tuple[str, ...]:
    """A note for each direction, and one if the far side of raw TCP has another address than the array."""
    return (*_notes(seen),) if seen.measured and seen.raw else ()


def _notes(seen: Evidence) -> Iterator[str]:
    for is_write in (False, True):
        one = seen.measured.get("write" if is_write else "large")
        raw_mb_s = seen.raw_mb_s(is_write=is_write)
        if one is None or not raw_mb_s:
            continue
        rates = (
            f"One session {'writes' if is_write else 'reads'} {one.mb_s:.0f} MB/s, {100 * one.mb_s / raw_mb_s:.0f} % "
            f"of the {raw_mb_s:.0f} MB/s of raw TCP"
        )
        if one.mb_s < SHARE * raw_mb_s:
            yield f"{rates}: not the line, but iSCSI, the array or the load on this host takes the rest."
        else:
            yield f"{rates}: the line or TCP limits it, not iSCSI."
    address = str(seen.measured["floor"].session.get("peer_address", "")).rpartition(":")[0].strip("[]")
    peer = seen.raw[0].peer
    if address and peer != address:
        yield f"Raw TCP went to {peer}, iSCSI to {address}: if these are different ports, the paths differ."


def _best_read_mb_s(seen: Evidence) -> float:
    return max(one.mb_s for one in seen.bulk if not one.trial.is_write)
