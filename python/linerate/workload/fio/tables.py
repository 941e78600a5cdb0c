"""fio's keywords as data: name, aliases, form of the value, what Linerate does with it.

Four effects. DOES: what it says. NONE: accepted without effect, with the reason. UNLESS: accepted with the values of
`harmless` alone, because another value changes the load in a way that Linerate does not have. REFUSED: always, with
the reason. docs/fio.md is made from these rows.
"""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass
from enum import Enum, auto

from linerate.workload.fio.refused import REASONS, UNLESS


class JobEffect(Enum):
    """What Linerate does with a keyword."""

    DOES = auto()
    NONE = auto()
    UNLESS = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class JobKeyword:
    """One row. `meaning` is what it does here, or why it has no effect or is refused.

    alone: fio takes it without a value, as 1. harmless: of UNLESS, the values without effect. silent: without
    effect on the load, so no notice is given.
    """

    name: str
    accepted: str
    meaning: str
    default: str = ""
    aliases: tuple[str, ...] = ()
    effect: JobEffect = JobEffect.DOES
    alone: bool = False
    harmless: tuple[str, ...] = ()
    silent: bool = False


_FORMS = "read, write, randread, randwrite, rw, readwrite, randrw; with :number behind it"

_DOES = (
    JobKeyword("name", "word", "name of the job, instead of that of its section"),
    JobKeyword("description", "text", "shown among the options of the job in fio's JSON"),
    JobKeyword(
        "rw",
        _FORMS,
        "direction, sequential or random; number: bytes left out between sequential I/Os, I/Os at each random place",
        "read",
        ("readwrite",),
    ),
    JobKeyword(
        "rw_sequencer", "sequential", "identical is refused where rw= has a number of I/Os", "sequential"
    ),
    JobKeyword("rwmixread", "percent", "share of the reads of rw and randrw", "50"),
    JobKeyword("rwmixwrite", "percent", "100 less rwmixread; the later one counts"),
    JobKeyword(
        "percentage_random", "percent, or read,write", "share of random places of a random job", "100"
    ),
    JobKeyword(
        "random_distribution",
        "random, zoned:share/percent:share/percent, or zoned_abs:share/size:share/size",
        "random places by areas of the used part, which follow each other: each has its share of them",
        "random",
    ),
    JobKeyword("bs", "size, or read,write,trim", "size of an I/O", "4096", ("blocksize",)),
    JobKeyword(
        "bsrange",
        "low-high, or two with a comma",
        "sizes in multiples of the lowest",
        "",
        ("blocksize_range",),
    ),
    JobKeyword("bssplit", "size/percent:size/percent, or two with a comma", "sizes by share"),
    JobKeyword("ba", "size", "grid of random places", "smallest size", ("blockalign",)),
    JobKeyword(
        "filename",
        "files with : between them; a : in a name as \\:",
        "the volumes; --map puts each elsewhere",
        "made from filename_format",
    ),
    JobKeyword("directory", "folder, or several with :", "where files without filename= are"),
    JobKeyword(
        "filename_format",
        "$jobname, $jobnum, $filenum",
        "names of files without filename=",
        "$jobname.$jobnum.$filenum",
    ),
    JobKeyword("nrfiles", "number", "files of a job without filename=", "1", ("nr_files",)),
    JobKeyword(
        "file_service_type",
        "roundrobin, sequential, random",
        "the order of files of filecreate, filestat and filedelete; roundrobin alone where a job has several files",
        "roundrobin",
    ),
    JobKeyword(
        "stat_type", "stat, lstat, statx", "of filestat: lstat is used, which is one look-up too", "stat"
    ),
    JobKeyword(
        "create_on_open", "0 or 1", "of filestat and filedelete: 1: files are not made before the run", "0"
    ),
    JobKeyword("filesize", "size", "size of each file"),
    JobKeyword(
        "size", "size or percent", "part of the files that is used, and how much is moved if no time is given"
    ),
    JobKeyword("io_size", "size", "how much is moved", "size", ("io_limit",)),
    JobKeyword("number_ios", "number", "how many I/Os are made, if that is less"),
    JobKeyword("offset", "size or percent", "where the used part begins", "0", ("fileoffset",)),
    JobKeyword("offset_increment", "size or percent", "added to the offset for each copy of numjobs", "0"),
    JobKeyword("loops", "number", "the amount to move is that many times as large", "1"),
    JobKeyword("numjobs", "number", "copies of the job at the same time", "1"),
    JobKeyword(
        "iodepth", "number", "I/Os in flight of each copy; 1 with a synchronous engine, as in fio", "1"
    ),
    JobKeyword("ioengine", "see below", "whether iodepth counts; the I/O is always Linerate's own", "psync"),
    JobKeyword("direct", "0 or 1", "past the page cache of the host", "0"),
    JobKeyword("buffered", "0 or 1", "the opposite of direct; the later one counts", "1"),
    JobKeyword(
        "sync", "none, 0, sync, dsync, 1", "each write is on stable storage before it completes", "none"
    ),
    JobKeyword("fsync", "number", "a flush after so many writes of a copy, in the place of an I/O", "0"),
    JobKeyword("fdatasync", "number", "as fsync", "0"),
    JobKeyword("runtime", "time (s)", "the measured time, at most", "until all is moved", ("timeout",)),
    JobKeyword("time_based", "0 or 1", "runs for the whole of runtime", "0", alone=True),
    JobKeyword("ramp_time", "time (s)", "warm-up before the measured time", "0"),
    JobKeyword("startdelay", "time (s)", "pause before the job begins", "0"),
    JobKeyword(
        "stonewall", "0 or 1", "a new run begins with this job", "0", ("wait_for_previous",), alone=True
    ),
    JobKeyword("rate_iops", "number, or read,write", "I/Os per second of each copy, as an open loop"),
    JobKeyword("rate", "size, or read,write", "bytes per second of each copy, with one I/O size"),
    JobKeyword("thinktime", "time (us)", "pause of each copy after its I/Os; with one I/O in flight", "0"),
    JobKeyword("thinktime_blocks", "number", "I/Os of a copy before each pause", "1"),
    JobKeyword("thinktime_iotime", "0", "pauses come after a number of I/Os, not after a time", "0"),
    JobKeyword("verify", "0, none, a checksum of fio, meta", "data is checked: see above", "none"),
    JobKeyword(
        "do_verify", "0 or 1", "1: what was written is read back; never with time_based, as in fio", "1"
    ),
    JobKeyword("verify_pattern", "with verify=0", "refused with verify=: each block has a stamp of its own"),
    JobKeyword("verify_backlog", "0", "refused with verify=: no reads are put between the writes", "0"),
    JobKeyword(
        "verify_state_load", "0", "refused with verify=: the state of an earlier run is not read", "0"
    ),
    JobKeyword("rate_process", "linear or poisson", "times between I/Os at a rate", "linear"),
    JobKeyword("randseed", "number", "seed of the run", "1"),
    JobKeyword("norandommap", "0 or 1", "random places may repeat, as they always do here", "0", alone=True),
    JobKeyword("buffer_compress_percentage", "percent", "write data compresses by that much", "0"),
    JobKeyword(
        "zero_buffers", "0 or 1", "1 only for jobs that read: write data cannot be zeros", "0", alone=True
    ),
    JobKeyword(
        "buffer_pattern", "with buffer_compress_percentage", "refused without: write data is random otherwise"
    ),
    JobKeyword("fill_device", "1 with a device", "a pass ends with the device", "0", ("fill_fs",)),
    JobKeyword("wait_for", "name", "as stonewall, where the job waits for all that are before it"),
    JobKeyword("continue_on_error", "none, all, 0, 1", "none: the first I/O error ends the run", "none"),
    JobKeyword("exec_prerun", "command", "run before the run"),
    JobKeyword("exec_postrun", "command", "run after the run"),
    JobKeyword("kb_base", "1000 or 1024", "what k, m, g, t and p mean in sizes", "1024"),
    JobKeyword("include", "file", "read in place: from the current folder, then beside the including file"),
)

_OUTPUT = "it concerns fio's output only; the report always holds everything"
_LOGS = "no log of fio is written; the run directory holds intervals and histograms"
_CLOCK = "it concerns how fio takes times"
_MEMORY = "it concerns the buffers of fio"
_OPENING = "it concerns how fio opens and makes files"
_HOST = "Linerate does not change this setting of the host for a run"
_VERIFYING = "it concerns the headers and threads with which fio checks data"
_WITH_THINKTIME = "it says how a copy passes its pause"
_LOGS_WITH_NAMES = (
    *("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "per_job_logs", "bwavgtime"),
    *("iopsavgtime", "log_entries", "log_avg_msec", "log_hist_msec", "log_hist_coarseness", "log_max_value"),
    *("log_offset", "log_prio", "log_compression", "log_compression_cpus", "log_store_compressed"),
    *("log_unix_epoch", "log_alternate_epoch", "log_alternate_epoch_clock_id", "write_iolog"),
)
_NONE = {
    _OUTPUT: (
        *("group_reporting", "new_group", "stats", "clat_percentiles", "lat_percentiles", "slat_percentiles"),
        *("percentile_list", "significant_figures", "disk_util", "unified_rw_reporting", "unit_base"),
        *("block_error_percentiles", "error_dump", "eta_newline"),
    ),
    _LOGS: _LOGS_WITH_NAMES,
    _CLOCK: (
        *("gtod_reduce", "disable_lat", "disable_clat", "disable_slat", "disable_bw_measurement", "gtod_cpu"),
        *("clocksource",),
    ),
    _MEMORY: ("mem", "iomem_align", "lockmem", "hugepage-size"),
    _OPENING: (
        *("invalidate", "fadvise_hint", "fallocate", "openfiles", "unique_filename", "create_serialize"),
        *("create_fsync", "allow_file_create", "overwrite", "unlink", "unlink_each_loop"),
        *("end_fsync", "fsync_on_close", "allow_mounted_write", "opendir"),
    ),
    _HOST: ("ioscheduler", "nice"),
    "Linerate has threads of its own; --workers and --cpus choose them": (
        *("thread", "cpumask", "cpus_allowed", "cpus_allowed_policy", "numa_cpu_nodes", "numa_mem_policy"),
    ),
    _VERIFYING: (
        *("verify_interval", "verify_offset", "verify_fatal", "verify_dump", "verify_header_seed"),
        *("verify_async", "verify_async_cpus", "verify_backlog_batch", "verify_state_save"),
        *("experimental_verify", "verify_write_sequence"),
    ),
    _WITH_THINKTIME: ("thinktime_spin", "thinktime_blocks_type"),
    "write data is random": ("refill_buffers", "scramble_buffers"),
    "the places of a run follow from its seed alone": ("randrepeat", "allrandrepeat", "random_generator"),
    "all jobs of a run end together": ("exitall", "exit_what", "exitall_on_error"),
    "no run ends because it is too slow; the report shows what was achieved": (
        *("rate_min", "rate_iops_min", "rate_cycle", "rate_ignore_thinktime", "max_latency"),
    ),
    "a run with a rate is an open loop in any case": ("io_submit_mode",),
    "it goes with read_iolog=": ("replay_no_stall", "replay_redirect", "replay_scale", "replay_align"),
    "Linerate submits and reaps I/Os as they come": ("iodepth_batch", "hipri", "hipri_percentage"),
    "it concerns the engine of fio, and Linerate has its own": (
        *("userspace_reap", "fixedbufs", "registerfiles", "sqthread_poll", "sqthread_poll_cpu", "nowait"),
        *("nonvectored", "uncached", "initiator", "force_async"),
    ),
}
_ALIASES = {
    "bs_unaligned": ("blocksize_unaligned",),
    "iodepth_batch": ("iodepth_batch_submit",),
    "iodepth_batch_complete_min": ("iodepth_batch_complete",),
    "mem": ("iomem",),
    "rate_min": ("ratemin",),
    "rate_cycle": ("ratecycle",),
    "disable_bw_measurement": ("disable_bw",),
    "steadystate": ("ss",),
    "steadystate_duration": ("ss_dur",),
    "steadystate_ramp_time": ("ss_ramp",),
}
_SILENT = (_OUTPUT, _LOGS, _CLOCK, _MEMORY, _VERIFYING, _WITH_THINKTIME)
_ALONE = {"group_reporting", "new_group", "thread", "exitall", "exitall_on_error", "refill_buffers"} | {
    *("userspace_reap", "fixedbufs", "registerfiles", "sqthread_poll", "hipri"),
    *("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "nowait", "nonvectored"),
}


def _row(
    name: str, accepted: str, reason: str, effect: JobEffect, harmless: tuple[str, ...] = ()
) -> JobKeyword:
    return JobKeyword(
        name,
        accepted,
        reason,
        aliases=_ALIASES.get(name, ()),
        effect=effect,
        alone=name in _ALONE or effect is JobEffect.REFUSED,
        harmless=harmless,
        silent=reason in _SILENT,
    )


KEYWORDS = (
    *_DOES,
    *(_row(name, "any", reason, JobEffect.NONE) for reason, names in _NONE.items() for name in names),
    *(_row(name, " or ".join(fine), reason, JobEffect.UNLESS, fine) for name, fine, reason in UNLESS),
    *(_row(name, "", reason, JobEffect.REFUSED) for reason, names in REASONS.items() for name in names),
)
"""All rows."""

_BY_NAME = {name: row for row in KEYWORDS for name in (row.name, *row.aliases)}


def find_keyword(typed: str) -> JobKeyword | None:
    """The row of a keyword or of one of its aliases."""
    return _BY_NAME.get(typed)


@functools.cache
def nearest_keyword(typed: str) -> str | None:
    """The keyword that looks most like `typed`."""
    close = difflib.get_close_matches(typed.lower()[:40], _BY_NAME, n=1, cutoff=0.6)
    return close[0] if close else None
