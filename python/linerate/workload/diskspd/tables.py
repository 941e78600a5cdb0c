"""The options of diskspd and sqlio as data: spelling, value, what Linerate does with them.

diskspd's are those of version 2.2, from its own help and wiki; sqlio's are those of 1.5, with `-T` of sqlio2. Letters
are compared as they are, because `-r` and `-R` differ. docs/diskspd.md is made from these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

ToolName = Literal["diskspd", "sqlio"]


class OptionEffect(Enum):
    """What Linerate does with an option."""

    DOES = auto()
    NONE = auto()
    REFUSED = auto()


class ValueForm(Enum):
    """What stands behind the letters of an option."""

    NOTHING = ""
    NUMBER = "a whole number"
    PERCENT = "0 to 100"
    SIZE = "bytes, or with K, M, G, T, or b for blocks"
    OPTIONAL_SIZE = "nothing, or a size"
    OPTIONAL_NUMBER = "nothing, or a number"
    ANYTHING = "any text"
    LETTERS = "letters"


@dataclass(frozen=True, slots=True)
class CommandOption:
    """One row. letters: as behind the `-`. key: the field of the command that gets the value; empty: none."""

    tool: ToolName
    letters: str
    form: ValueForm
    meaning: str
    effect: OptionEffect = OptionEffect.DOES
    key: str = ""


def _does(tool: ToolName, letters: str, form: ValueForm, key: str, meaning: str) -> CommandOption:
    return CommandOption(tool, letters, form, meaning, OptionEffect.DOES, key)


def _none(tool: ToolName, letters: str, meaning: str, form: ValueForm = ValueForm.ANYTHING) -> CommandOption:
    return CommandOption(tool, letters, form, meaning, OptionEffect.NONE)


def _refused(tool: ToolName, letters: str, reason: str) -> CommandOption:
    return CommandOption(tool, letters, ValueForm.ANYTHING, reason, OptionEffect.REFUSED)


OPTIONS: tuple[CommandOption, ...] = (
    _does("diskspd", "b", ValueForm.SIZE, "size_bytes", "size of an I/O (64K)"),
    _does("diskspd", "o", ValueForm.NUMBER, "outstanding", "I/Os in flight per thread and target (2)"),
    _does("diskspd", "t", ValueForm.NUMBER, "threads", "threads per target (1)"),
    _does("diskspd", "F", ValueForm.NUMBER, "all_threads", "threads in all, each with I/Os on every target"),
    _does("diskspd", "w", ValueForm.PERCENT, "write_percent", "share of writes (0)"),
    _does("diskspd", "rs", ValueForm.PERCENT, "random_percent", "share of random I/Os; with reads or writes alone"),
    _does("diskspd", "rd", ValueForm.ANYTHING, "distribution", "uneven random places: `pct90/10:5/20`, `abs90/10G`"),
    _does("diskspd", "r", ValueForm.OPTIONAL_SIZE, "random_grid", "random places, on this grid (size of an I/O)"),
    _does("diskspd", "si", ValueForm.OPTIONAL_SIZE, "interlocked_stride", "as `-s`, with one position for all threads"),
    _does("diskspd", "s", ValueForm.OPTIONAL_SIZE, "stride", "sequential; from one I/O to the next (size of an I/O)"),
    _does("diskspd", "T", ValueForm.SIZE, "thread_stride_bytes", "distance of the threads' first places (0)"),
    _does("diskspd", "B", ValueForm.ANYTHING, "base", "first byte of the used part, and `:length`"),
    _does("diskspd", "c", ValueForm.SIZE, "create_bytes", "size of the file, which is made; else the used part"),
    _none("diskspd", "fr", "hint to Windows: random", ValueForm.NOTHING),
    _none("diskspd", "fs", "hint to Windows: sequential", ValueForm.NOTHING),
    _none("diskspd", "ft", "hint to Windows: a temporary file", ValueForm.NOTHING),
    _does("diskspd", "f", ValueForm.SIZE, "end_bytes", "end of the used part"),
    _does("diskspd", "d", ValueForm.NUMBER, "duration_s", "measured time (10)"),
    _does("diskspd", "W", ValueForm.NUMBER, "warmup_s", "warm-up (5)"),
    _none("diskspd", "C", "the load ends with the measured time"),
    _does("diskspd", "g", ValueForm.ANYTHING, "rate", "rate per thread and target: bytes/ms, or I/Os/s with `i`"),
    _does("diskspd", "i", ValueForm.NUMBER, "burst", "I/Os of a burst of all threads of a target; with `-j`"),
    _does("diskspd", "j", ValueForm.NUMBER, "pause_ms", "pause between bursts; with `-o1`"),
    _does("diskspd", "S", ValueForm.LETTERS, "caching", "`h`, `u`: past the cache; `h`, `w`: written through"),
    _does("diskspd", "h", ValueForm.NOTHING, "uncached", "as `-Sh`"),
    _does("diskspd", "Zr", ValueForm.NOTHING, "random_data", "write data does not compress"),
    _does("diskspd", "Z", ValueForm.ANYTHING, "data", "write data: zeros; random with a size; no file"),
    _does("diskspd", "z", ValueForm.OPTIONAL_NUMBER, "seed", "seed; without a number 1"),
    _does("diskspd", "p", ValueForm.NOTHING, "parallel", "with one I/O in flight only"),
    _none("diskspd", "D", "intervals are always kept"),
    _none("diskspd", "L", "response times are always kept", ValueForm.NOTHING),
    _refused("diskspd", "Rp", "diskspd prints its profile and makes no load"),
    _none("diskspd", "R", "form of the results: `--diskspd-xml`"),
    _none("diskspd", "v", "more messages", ValueForm.NOTHING),
    _none("diskspd", "P", "progress"),
    _none("diskspd", "a", "CPUs of the threads: `--cpus`"),
    _none("diskspd", "n", "CPUs of the threads: `--cpus`", ValueForm.NOTHING),
    _none("diskspd", "l", "pages of the buffers", ValueForm.NOTHING),
    _none("diskspd", "x", "how Windows reports an I/O", ValueForm.NOTHING),
    _none("diskspd", "I", "priority of the I/Os in Windows"),
    _none("diskspd", "e", "event tracing of Windows"),
    _refused("diskspd", "N", "memory-mapped I/O is not made"),
    _does("diskspd", "O", ValueForm.NUMBER, "all_outstanding", "I/Os in flight per thread on all targets; with `-F`"),
    _does("diskspd", "X", ValueForm.ANYTHING, "profile", "runs a profile; `-d -W -C -z -R -v` and targets go with it"),
    _refused("diskspd", "y", "events of Windows cannot be waited for"),
    _does("sqlio", "k", ValueForm.LETTERS, "direction", "`R` reads (default) or `W` writes"),
    _does("sqlio", "T", ValueForm.PERCENT, "read_percent", "share of reads (sqlio2)"),
    _does("sqlio", "s", ValueForm.NUMBER, "duration_s", "measured time (30)"),
    _does("sqlio", "f", ValueForm.ANYTHING, "order", "`random`, `sequential`, or blocks of a stripe (64)"),
    _does("sqlio", "b", ValueForm.NUMBER, "size_kib", "size of an I/O in KiB (2)"),
    _does("sqlio", "o", ValueForm.NUMBER, "outstanding", "I/Os in flight per thread and file (0: one)"),
    _does("sqlio", "t", ValueForm.NUMBER, "threads", "threads per file (1)"),
    _does("sqlio", "B", ValueForm.LETTERS, "caching", "`N` (default), `H`: past the cache; `N`, `S`: durable; `Y`"),
    _does("sqlio", "F", ValueForm.ANYTHING, "parameter_file", "files with their threads and sizes in MB"),
    _does("sqlio", "d", ValueForm.ANYTHING, "drives", "the file is on each of these drives"),
    _does("sqlio", "R", ValueForm.ANYTHING, "raw_drives", "raw drives"),
    _none("sqlio", "L", "response times are always kept"),
    _none("sqlio", "a", "CPUs of the threads: `--cpus`"),
    _none("sqlio", "p", "CPUs of the threads: `--cpus`"),
    _does("sqlio", "i", ValueForm.NUMBER, "run_ios", "stripes that are used, with blocks in `-f` (64)"),
    _none("sqlio", "m", "kind of the buffers"),
    _none("sqlio", "U", "counts CPU time, which is always kept"),
    _refused("sqlio", "q", "write data from a file is not made"),
    _does("sqlio", "S", ValueForm.NUMBER, "start_block", "first block of the file that is used (0)"),
    _refused("sqlio", "v", "blocks as in version 1.1.1 are not made"),
    _none("sqlio", "64", "operations of memory"),
    _none("sqlio", "D", "messages for its authors"),
)  # fmt: skip

EXCLUSIVE: tuple[tuple[str, str], ...] = (
    ("stride", "random_grid"),
    ("stride", "random_percent"),
    ("stride", "interlocked_stride"),
    ("interlocked_stride", "random_grid"),
    ("interlocked_stride", "random_percent"),
    ("interlocked_stride", "thread_stride_bytes"),
    ("interlocked_stride", "parallel"),
    ("parallel", "random_grid"),
    ("parallel", "random_percent"),
    ("thread_stride_bytes", "random_grid"),
    ("thread_stride_bytes", "random_percent"),
    ("all_threads", "threads"),
)
"""Keys of options that diskspd 2.2 refuses together."""


def option_of(tool: ToolName, word: str) -> CommandOption | None:
    """The row of a word of a command; None for a target, or an option that the tool does not have."""
    row = find_option(tool, word[1:]) if word[:1] in ("-", "/") else None
    return (
        None if word[:1] == "/" and "/" in word[1:] else row
    )  # a path of this machine begins with a slash too


def find_option(tool: ToolName, text: str) -> CommandOption | None:
    """The row of an option, `text` being without its `-`: the longest letters that it begins with."""
    rows = [row for row in OPTIONS if row.tool == tool and text.startswith(row.letters)]
    return max(rows, key=lambda row: len(row.letters), default=None)
