"""verify= of a job: where Linerate's check of data does what fio does, and the true reason where it does not.

fio writes a header into each block. After an amount was written it reads all of it back and compares; after a time
(time_based) and with do_verify=0 it never reads back. Linerate stamps each block and compares every read of a block
that the same run has written.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from linerate.workload.fio.options import SectionOptions
from linerate.workload.fio.values import flag

_CHECKSUMS = {"md5", "crc64", "crc32c", "crc32c-intel", "crc32", "crc16", "crc7", "xxhash", "meta"} | {
    *("sha512", "sha256", "sha1", "sha3-224", "sha3-256", "sha3-384", "sha3-512"),
}
_PATTERN = "the data pattern cannot be chosen: each block has a stamp of its own"
_OFF = "write verify=0; --verify checks every block that a run has written and reads again"
_NO_READ_BACK = "write do_verify=0 or time_based: fio does not read back then either"


class VerifyUse(Enum):
    """How a job checks data."""

    OFF = auto()
    STAMPS = auto()
    """Written blocks are stamped, and reads of them are compared."""
    READ_BACK = auto()
    """The same, and all is read once after it was written."""


def read_verify(options: SectionOptions, *, reads: bool, writes: bool) -> VerifyUse:
    """What verify= asks of a job that reads, writes or both; what Linerate does not do is noted."""
    method = options.text("verify", "none")
    if method in ("0", "none"):
        return VerifyUse.OFF
    refused = list(_reasons(options, method, writes=writes))
    for name, reason, accepted in refused:
        options.refuse(name, reason, accepted)
    if refused:
        return VerifyUse.OFF
    if (options.flag("time_based") and options.is_on("runtime")) or not options.value(
        "do_verify", flag, True
    ):
        return VerifyUse.STAMPS
    if not reads:
        return VerifyUse.READ_BACK
    reason = "fio reads all that the job wrote after the mix has ended; Linerate does so for writes alone"
    options.refuse("verify", reason, _NO_READ_BACK)
    return VerifyUse.OFF


def _reasons(options: SectionOptions, method: str, *, writes: bool) -> Iterator[tuple[str, str, str]]:
    """Keyword, reason and what is accepted, of all that cannot be done."""
    if method in ("pattern", "pattern_hdr"):
        yield "verify", _PATTERN, _OFF
    elif method == "null":
        yield "verify", "fio reads back without comparing", _OFF
    elif method not in _CHECKSUMS:
        yield "verify", "no method that fio has", "write verify=crc32c"
    elif not writes:
        yield "verify", "a run does not know what an earlier one wrote", _OFF
    if "verify_pattern" in options:
        yield "verify_pattern", _PATTERN, "leave it out"
    if options.is_on("verify_backlog"):
        yield "verify_backlog", "no reads are put between the writes", "leave it out"
    if options.is_on("verify_state_load"):
        yield "verify_state_load", "the state that fio kept of an earlier run is not read", "leave it out"
