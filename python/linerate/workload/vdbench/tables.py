"""vdbench's keywords as data: block, name, accepted form, default, what Linerate does with it.

The order of the rows matters: a keyword may be shortened to any prefix of two letters or more, and the first
row it fits wins, as in vdbench (`wd=..,st=` is stride, `stre=` is streams). A whole word always wins over a
prefix.

Three effects: DOES what it says; NONE, accepted but without effect here, with the reason; REFUSED by name,
with the reason. docs/vdbench.md is made from these rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto


class Block(Enum):
    """The block of a keyword; the value is the keyword that starts the block."""

    GENERAL = ""
    HD = "hd"
    SD = "sd"
    WD = "wd"
    FSD = "fsd"
    FWD = "fwd"
    RD = "rd"

    @property
    def title(self) -> str:
        """For messages: `general` or `sd`."""
        return self.value or "general"


class Form(Enum):
    """How a value is read."""

    TEXT = auto()
    """As it is; a list of texts in parentheses, where `-` is just a character."""
    NAMES = auto()
    """Names, ranges such as (sd1-sd8), a trailing * as wildcard."""
    NUMBERS = auto()
    """Numbers with k, m, g, t (1024-based), h (3600) or %, and ranges with a step."""
    TIMES = auto()
    """As NUMBERS, but m means minutes."""
    RATES = auto()
    """As NUMBERS, and the words max and curve."""
    WORDS_OR_NUMBERS = auto()
    """Each item by itself a word or a number; no ranges."""


class Effect(Enum):
    """What Linerate does with a keyword."""

    DOES = "supported"
    NONE = "accepted, no effect"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Keyword:
    """One row. `meaning` is what it does here, or why it has no effect or is refused."""

    name: str
    accepted: str
    meaning: str
    default: str = ""
    form: Form = Form.TEXT
    effect: Effect = Effect.DOES
    same_as: str = ""
    """The keyword that this one is another name of."""
    whole_word: bool = False
    """Cannot be shortened."""

    @property
    def canonical(self) -> str:
        """The name under which readers look it up."""
        return self.same_as or self.name

    def fits(self, typed: str) -> bool:
        """Whether `typed` is this keyword or an accepted shortening."""
        return typed == self.name or (not self.whole_word and len(typed) >= 2 and self.name.startswith(typed))


def _none(name: str, accepted: str, reason: str) -> Keyword:
    return Keyword(name, accepted, reason, effect=Effect.NONE)


def _refused(reason: str, *names: str) -> tuple[Keyword, ...]:
    return tuple(Keyword(name, "", reason, effect=Effect.REFUSED) for name in names)


_DEDUP = "duplicates are generated as the general dedupratio= asks, on all SDs and FSDs alike, and always the same ones"
_JOURNAL = "there is no journal: verify mode keeps its state in memory for one run"
_NO_JOURNAL = "nothing is journalled: that takes journal=yes, which is refused"
_REPLAY = "trace replay is not supported"
_RESET = "device resets are not part of a workload"
_PATTERN = "the data pattern cannot be chosen: write data is random, or compressible with compratio"
_INSTALLED = "`linerate hosts install` brings Linerate to hosts, and --hosts-python names another place"
_PORTS = "--hosts-ports names the ports of hosts"
_REPORTS = "the report always holds everything"

_OPENFLAGS = Keyword(
    "openflags",
    "o_direct, directio, o_sync, o_dsync, o_rsync, fsync, or a list (a,b)",
    "o_direct and directio go past the page cache; o_sync, o_dsync and fsync make each write durable (FUA)",
    "buffered; devices are always opened direct",
)
_RANGE = Keyword(
    "range",
    "(low,high)",
    "part of each volume: percent if high is at most 200 (beyond 100 it wraps), else bytes",
    "all of it",
    Form.NUMBERS,
)
_SD_HOSTS = Keyword(
    "host",
    "label or system, (list), h* or *",
    "hosts that use it; several luns go in pairs: lun=a,host=h1,lun=b,host=h2",
    "*",
    Form.TEXT,
)
_WD_HOSTS = Keyword(
    "host", "label, (list), h* or *", "hosts that run it, on those of its SDs that they use", "*"
)
_STARTCMD = Keyword(
    "startcmd", "command or (list)", "run before the run; cons, sum, log and master are ignored"
)
_ENDCMD = Keyword("endcmd", "command or (list)", "run after the run; cons, sum, log and master are ignored")

GENERAL = (
    Keyword(
        "include", "file", "its lines are read in place; beside the including file first", whole_word=True
    ),
    Keyword("compratio", "n", "write data compresses about n:1", "incompressible", Form.NUMBERS),
    Keyword("validate", "yes or no", "verify mode: each block carries its address and a checksum", "no"),
    Keyword("data_errors", "n", "number of I/O errors that ends a run", "50", Form.WORDS_OR_NUMBERS),
    _STARTCMD,
    _ENDCMD,
    Keyword(
        "histogram",
        "(default,20,40,..,2s), at most 64 limits in us, ms or s",
        "limits of the buckets in histogram.html; Linerate's own histograms have 3 digits throughout",
        "default",
    ),
    Keyword("formatsds", "yes or no", "fill all SDs with sequential writes before the first run", "no"),
    Keyword("formatxfersize", "bytes", "I/O size of that fill", "128k", Form.NUMBERS),
    _none("messagescan", "yes, no, nodisplay", "the system log is not scanned"),
    _none("report", "words", _REPORTS),
    _none("report_run_totals", "yes or no", _REPORTS),
    _none("debug", "n", "debug switches of vdbench mean nothing here"),
    _none("port", "n", _PORTS),
    *_refused(_PATTERN, "pattern", "pattern_buffer"),
    Keyword(
        "dedupratio",
        "n, at least 1",
        "units of written data by different units; duplicates are within an SD or FSD, vdbench makes some between them",
        "no duplicates",
        Form.NUMBERS,
    ),
    Keyword("dedupunit", "bytes, multiple of 512", "size of a unit; goes with dedupratio", "", Form.NUMBERS),
    Keyword(
        "dedupsets", "n% or n", "sets of equal units: percent of all units, or a number", "5%", Form.NUMBERS
    ),
    *_refused(_DEDUP, "dedup", "deduphotsets", "dedupflipflop"),
    *_refused(_JOURNAL, "journal"),
    *_refused("errors are not faked", "force_error_after"),
    *_refused("a run is stopped with Ctrl-C, not by a monitored file", "monitor"),
    *_refused("use one WD per SD, or shares over all volumes in a TOML file", "concatenatesds"),
    *_refused("the report shows the achieved shares; no run is aborted for them", "abort_failed_skew"),
    Keyword("create_anchors", "yes or no", "make the anchors of FSDs, and the folders above them", "no"),
    *_refused("no plug-in reports", "auxreport"),
    *_refused("repeat the command instead", "loop"),
    *_refused("not documented by vdbench", "misc"),
    *_refused("the Swat tool is gone", "swat"),
    *_refused("processor sets are a Solaris feature; pin workers with --cpus", "psrset"),
)

HD = (
    Keyword(
        "system", "host name or address", "the host; SSH reaches it unless it is this machine", "the label"
    ),
    Keyword("user", "name", "user there", "as SSH is configured"),
    Keyword("shell", "ssh, rsh or vdbench", "a host is reached by SSH; rsh and vdbench are noted"),
    _none("vdbench", "directory", _INSTALLED),
    _none(
        "jvms",
        "n",
        "one process makes the load of a host; --workers sets its threads, default one per CPU in use",
    ),
    Keyword("clients", "n", "n hosts, label_cl0 and on, all of them this system", "", Form.NUMBERS),
    _none("master", "address", "--hosts-address says how hosts reach this machine"),
    *_refused("mounting is not part of a workload", "mount"),
)

SD = (
    Keyword(
        "lun",
        "path, iscsi:// or smb:// URL, or null:SIZE",
        "where it is; --map says it for a name or a Windows device",
    ),
    Keyword(
        "size", "bytes or (total,n)", "used length; a file is made or lengthened to it", "all", Form.NUMBERS
    ),
    Keyword(
        "threads", "n or (n,m)", "outstanding I/Os of this SD, over all WDs and hosts", "8", Form.NUMBERS
    ),
    Keyword("hitarea", "bytes", "size of the area for rhpct and whpct", "1m", Form.NUMBERS),
    Keyword("offset", "bytes, multiple of 512", "where the used part begins", "0", Form.NUMBERS),
    Keyword("align", "bytes, multiple of 512", "grid of random offsets", "transfer size", Form.NUMBERS),
    _RANGE,
    _SD_HOSTS,
    Keyword("hd", "label, (list) or *", "same as host", same_as="host"),
    _OPENFLAGS,
    Keyword(
        "count", "(start,n)", "n copies, numbered at *, at %d or at the end of name and lun", "", Form.NUMBERS
    ),
    *_refused(_REPLAY, "replay"),
    *_refused(_RESET, "resetlun", "resetbus"),
    _none("journal", "directory", _NO_JOURNAL),
    *_refused(_DEDUP, "dedup", "dedupratio", "dedupunit", "dedupsets", "deduphotsets", "dedupflipflop"),
    *_refused("moved to the WD: write wd=..,streams=n", "streams"),
    *_refused("a Solaris feature", "kstat", "instance"),
)

WD = (
    Keyword("readpct", "0 to 100", "same as rdpct", form=Form.NUMBERS, same_as="rdpct"),
    Keyword("rdpct", "0 to 100", "percent of I/Os that read", "100", Form.NUMBERS),
    _RANGE,
    Keyword("rhpct", "0 to 100", "percent of reads that go to the hit area", "0", Form.NUMBERS),
    Keyword("whpct", "0 to 100", "percent of writes that go to the hit area", "0", Form.NUMBERS),
    Keyword(
        "seekpct",
        "0 to 100, sequential, seq, random, rand, eof or -1",
        "percent of I/Os that start at a new random place; eof: sequential and finished at the end",
        "100",
        Form.WORDS_OR_NUMBERS,
    ),
    Keyword(
        "skew",
        "percent",
        "share of the run's I/Os; the sum must be 100",
        "an equal share of the rest",
        Form.NUMBERS,
    ),
    Keyword("stride", "(min,max) bytes", "skip ahead this far instead of a random jump", form=Form.NUMBERS),
    Keyword("streams", "n", "sequential streams per SD", "1", Form.NUMBERS),
    Keyword(
        "xfersize",
        "n, (s1,p1,s2,p2,..) or (min,max,align)",
        "I/O size: fixed, by percent, or multiples of align in min..max",
        "4k",
        Form.NUMBERS,
    ),
    Keyword("writepct", "0 to 100", "100 - rdpct", form=Form.NUMBERS, same_as="wrpct"),
    Keyword("wrpct", "0 to 100", "100 - rdpct", form=Form.NUMBERS),
    Keyword("priority", "1, 2, ..", "rank among WDs, one for each, without gaps", form=Form.NUMBERS),
    Keyword("iorate", "n", "fixed rate of this WD; needs priority, excludes skew", form=Form.NUMBERS),
    _OPENFLAGS,
    Keyword(
        "hotband",
        "(low,high)",
        "area where the access probability decays; see range",
        form=Form.NUMBERS,
    ),
    _WD_HOSTS,
    Keyword("hd", "label, (list) or *", "same as host", same_as="host"),
    Keyword("sd", "name, (list), (sd1-sd8) or sd*", "SDs that it uses, each once", form=Form.NAMES),
    *_refused("it needs concatenatesds; set threads in the SD or the RD", "threads"),
    *_refused("custom workload classes are Java code", "user"),
    *_refused(_PATTERN, "pattern"),
)

FSD = (
    Keyword(
        "anchor",
        "path of a folder, or smb://user@host/share/folder",
        "the folder that the structure is in",
    ),
    Keyword("width", "n", "folders in each folder", "1", Form.NUMBERS),
    Keyword("depth", "n", "levels of folders", "1", Form.NUMBERS),
    Keyword(
        "sizes",
        "bytes, (s1,p1,s2,p2,..) or (bytes,0)",
        "size of files: fixed, by percent, or around one size; as vdbench draws them",
        "4k",
        Form.NUMBERS,
    ),
    Keyword(
        "shared",
        "yes or no",
        "several hosts may use it at the same time, and each has its own files of it",
        "no",
    ),
    Keyword(
        "wss", "bytes or (bytes,n)", "same as workingsetsize", "", Form.NUMBERS, same_as="workingsetsize"
    ),
    Keyword(
        "workingsetsize", "bytes or (bytes,n)", "only files of so many bytes are used", "all", Form.NUMBERS
    ),
    Keyword("total_size", "bytes or (bytes,n)", "same as totalsize", "", Form.NUMBERS, same_as="totalsize"),
    Keyword(
        "totalsize",
        "bytes or (bytes,n)",
        "only files of so many bytes are made and used",
        "all",
        Form.NUMBERS,
    ),
    Keyword("files", "n", "files in each folder that has files", "10", Form.NUMBERS),
    Keyword("distribution", "bottom or all", "folders that have files: of the last level, or all", "bottom"),
    _OPENFLAGS,
    Keyword("count", "(start,n)", "n copies, numbered at the end of name and anchor", "", Form.NUMBERS),
    _none("journal", "directory", _NO_JOURNAL),
    *_refused("an FSD has no host: write host= in the FWD", "host", "hd"),
    *_refused("vdbench has given it up too: write format=", "cleanup"),
    *_refused("operations are not logged", "log"),
    *_refused(_DEDUP, "dedup", "dedupratio", "dedupunit", "dedupsets", "deduphotsets", "dedupflipflop"),
)

FWD = (
    Keyword("fsd", "name, (list), (fsd1-fsd8) or fsd*", "FSDs that it uses", form=Form.NAMES),
    Keyword("readpct", "0 to 100", "same as rdpct", form=Form.NUMBERS, same_as="rdpct"),
    Keyword(
        "rdpct",
        "0 to 100",
        "reads and writes of each file, whatever operation= says, as in vdbench; needs fileio=random",
        form=Form.NUMBERS,
    ),
    Keyword(
        "stopafter",
        "n or n%",
        "with fileio=random: a file is closed after n blocks, or after n % of its size",
        "after the size of the file",
        Form.NUMBERS,
    ),
    Keyword(
        "operation",
        "read, write, mkdir, rmdir, create, delete, getattr, setattr, access, open, close, copy or move",
        "what it does; fwd=format needs none",
        "read",
    ),
    Keyword("operations", "as operation", "same as operation", same_as="operation"),
    Keyword(
        "fileselect", "random, sequential or once", "how the next file or folder is chosen", "sequential"
    ),
    Keyword(
        "fileio",
        "random, sequential or (random,shared)",
        "places of blocks; shared: several threads may use one file",
        "sequential",
        whole_word=True,
    ),
    Keyword(
        "xfersizes", "bytes or (s1,p1,s2,p2,..)", "same as xfersize", "", Form.NUMBERS, same_as="xfersize"
    ),
    Keyword(
        "xfersize", "bytes or (s1,p1,s2,p2,..)", "size of blocks: fixed, or by percent", "4k", Form.NUMBERS
    ),
    Keyword(
        "skew",
        "percent",
        "share of the operations; the sum must be 100",
        "an equal share of the rest",
        Form.NUMBERS,
    ),
    Keyword(
        "threads", "n", "threads, divided over its FSDs, hosts and the RD's operations", "1", Form.NUMBERS
    ),
    Keyword("host", "label, (list), h* or *", "hosts that run it, on all of its FSDs", "*"),
    Keyword("hd", "label, (list) or *", "same as host", same_as="host"),
    _OPENFLAGS,
    Keyword("target", "name", "FSD that copies go to; it has the structure of the FWD's own"),
)

_LOOPS = (
    ("xfersize", "bytes", "I/O size of all WDs", Form.NUMBERS),
    ("threads", "n", "outstanding I/Os of every SD", Form.NUMBERS),
    ("rdpct", "0 to 100", "read percentage of all WDs", Form.NUMBERS),
    ("rhpct", "0 to 100", "read hit percentage of all WDs", Form.NUMBERS),
    ("whpct", "0 to 100", "write hit percentage of all WDs", Form.NUMBERS),
    ("seekpct", "as in a WD", "seek percentage of all WDs", Form.WORDS_OR_NUMBERS),
    ("hitarea", "bytes", "hit area of all SDs", Form.NUMBERS),
    ("compratio", "n", "compression ratio of all written data", Form.NUMBERS),
)
LOOP_KEYWORDS = tuple(name for name, *_ in _LOOPS)

_FILE_LOOPS = (
    ("depth", "n", "depth of all FSDs", Form.NUMBERS),
    ("width", "n", "width of all FSDs", Form.NUMBERS),
    ("files", "n", "files of all FSDs", Form.NUMBERS),
    ("sizes", "bytes", "size of the files of all FSDs", Form.NUMBERS),
    ("totalsize", "bytes", "totalsize of all FSDs", Form.NUMBERS),
    ("wss", "bytes", "workingsetsize of all FSDs", Form.NUMBERS),
    ("operations", "as in an FWD", "operation of all FWDs", Form.TEXT),
)
FILE_LOOP_KEYWORDS = (*(name for name, *_ in _FILE_LOOPS), "xfersize", "threads", "rdpct", "compratio")
"""Loops of an RD with FWDs."""
FILE_RD_KEYWORDS = ("fwd", "fwdrate", "operations", "format", *(f"for{name}" for name, *_ in _FILE_LOOPS))
"""Of an RD with FWDs alone."""
BLOCK_RD_KEYWORDS = (
    *("wd", "sd", "iorate", "curve", "stopcurve", "maxdata", "maxdataread", "maxdatawritten"),
    *("rhpct", "whpct", "seekpct", "hitarea"),
)
"""Of an RD with WDs alone."""

RD = (
    Keyword(
        "wd", "name, (list), (wd1-wd3) or wd*", "WDs that run together", "wd=default with sd=", Form.NAMES
    ),
    Keyword(
        "sd",
        "name, (list), (sd1-sd8), sd*, single, range or setsofN",
        "replaces the WDs' SDs; single: a run per SD; range: 1, 2, 3.. SDs; setsofN: N at a time",
        "",
        Form.NAMES,
    ),
    Keyword("iorate", "n, (list), (a-b,step), max, curve or n%", "rate of the run", "max", Form.RATES),
    Keyword("elapsed", "seconds, 5m or 2h", "length of the run; see the averages below", "30", Form.TIMES),
    Keyword("interval", "seconds", "length of a reporting interval", "1", Form.TIMES),
    Keyword("warmup", "seconds", "time before the measured part", "the first interval", Form.TIMES),
    Keyword("pause", "seconds", "wait before the run", "0", Form.TIMES),
    Keyword(
        "curve",
        "(p1,p2,..)",
        "percents of the maximum for iorate=curve",
        "(10,50,70,80,90,100)",
        Form.NUMBERS,
    ),
    Keyword("stopcurve", "ms", "stop after a curve point with a longer average response", "", Form.NUMBERS),
    _STARTCMD,
    Keyword(
        "distribution",
        "exponential, uniform or deterministic",
        "times between I/O starts at a given rate; variable and spike are refused",
        "exponential",
    ),
    _ENDCMD,
    Keyword(
        "fwd", "name, (list), (fwd1-fwd3) or fwd*", "FWDs that run together", form=Form.NAMES, whole_word=True
    ),
    Keyword(
        "fwdrate",
        "n, (list), (a-b,step) or max",
        "operations per second, opens and closes apart",
        form=Form.RATES,
    ),
    Keyword("operations", "as in an FWD, or a list", "each FWD does all of these in place of its own"),
    Keyword(
        "format",
        "yes, no, only, restart, clean, once, directories; (only,limited); or a list",
        "a run before the RD that removes the old structure and makes the new one; no effect with WDs",
        "no",
    ),
    _OPENFLAGS,
    Keyword(
        "maxdata", "bytes, or below 100 times all SDs", "ends the run", form=Form.NUMBERS, whole_word=True
    ),
    Keyword("maxdataread", "as maxdata", "ends the run, reads counted", form=Form.NUMBERS, whole_word=True),
    Keyword(
        "maxdatawritten", "as maxdata", "ends the run, writes counted", form=Form.NUMBERS, whole_word=True
    ),
    *(
        Keyword(f"for{name}", f"{accepted} or a list", f"loop: {meaning}", form=form, same_as=name)
        for name, accepted, meaning, form in _LOOPS
    ),
    *(
        Keyword(name, f"{accepted} or a list", f"same as for{name}", form=form)
        for name, accepted, meaning, form in _LOOPS
    ),
    *_refused("mounting is not part of a workload", "mount"),
    *_refused(_REPLAY, "replay"),
    *(
        Keyword(f"for{name}", f"{accepted} or a list", f"loop: {meaning}", form=form)
        for name, accepted, meaning, form in _FILE_LOOPS
    ),
    *_refused("write skew= in the FWDs", "skew"),
)

TABLES: dict[Block, tuple[Keyword, ...]] = {
    Block.GENERAL: GENERAL,
    Block.HD: HD,
    Block.SD: SD,
    Block.WD: WD,
    Block.FSD: FSD,
    Block.FWD: FWD,
    Block.RD: RD,
}

REFUSED_BLOCKS = {"rg": _REPLAY}
"""Keywords that start a block which is refused as a whole."""


def find(block: Block, typed: str) -> Keyword | None:
    """The row that `typed` means in this block: the whole word, else the first row it is a prefix of."""
    rows = TABLES[block]
    whole = next((row for row in rows if row.name == typed), None)
    return whole or next((row for row in rows if row.fits(typed)), None)


def is_keyword(typed: str) -> bool:
    """Whether `typed` can start a parameter somewhere."""
    starts = {block.value for block in Block} | REFUSED_BLOCKS.keys()
    return typed in starts or any(find(block, typed) for block in Block)


def blocks_with(typed: str) -> Iterator[Block]:
    """The blocks that know `typed` as a whole word."""
    for block, rows in TABLES.items():
        if any(row.name == typed for row in rows):
            yield block


def nearest(block: Block, typed: str) -> str | None:
    """The keyword of this block that looks most like `typed`."""
    close = difflib.get_close_matches(typed, [row.name for row in TABLES[block]], n=1, cutoff=0.6)
    return close[0] if close else None
