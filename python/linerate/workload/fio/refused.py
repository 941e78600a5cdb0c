"""fio's keywords and engines that change the load in ways that Linerate does not have, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from linerate.workload.files import FileOp

_ZONES = "zones of a device are not modelled"
_OFF = ("0",)

UNLESS = (
    ("verify_only", _OFF, "a run does not check the data of an earlier one"),
    ("iodepth_low", _OFF, "a queue is refilled as I/Os complete"),
    ("iodepth_batch_complete_min", ("0", "1"), "an I/O starts as soon as another has completed"),
    ("iodepth_batch_complete_max", ("0", "1"), "an I/O starts as soon as another has completed"),
    ("serialize_overlap", _OFF, "I/Os that overlap are not put in order"),
    ("bs_unaligned", _OFF, "sizes and places are multiples of blocks"),
    ("bs_is_seq_rand", _OFF, "sizes do not depend on whether an I/O is random"),
    ("file_append", _OFF, "files are not written behind their end"),
    ("offset_align", _OFF, "an offset is used as it is written"),
    ("create_only", _OFF, "files are made by the run that uses them"),
    ("pre_read", _OFF, "files are not read before the run; ramp_time= warms up"),
    ("dedupe_percentage", _OFF, "duplicate data is not generated"),
    ("ignore_error", ("none",), "errors are counted, never ignored"),
    ("lockfile", ("none",), "files are not locked between jobs"),
    ("latency_target", _OFF, "the depth is not searched; a sweep of a TOML file measures each"),
    ("flow", _OFF, "jobs are not kept in proportion; streams of a TOML file have shares"),
    ("zonemode", ("none",), _ZONES),
    ("zonesize", _OFF, _ZONES),
    ("zonerange", _OFF, _ZONES),
    ("zoneskip", _OFF, _ZONES),
    ("atomic", _OFF, "writes are not made atomic"),
    ("trim_percentage", _OFF, "blocks are not trimmed"),
    ("sync_file_range", ("none", "0"), "files are not synchronised in ranges"),
    ("write_barrier", _OFF, "writes have no barriers; fsync=1 makes each one durable"),
    ("prio", _OFF, "I/Os have no priority"),
    ("prioclass", _OFF, "I/Os have no priority"),
    ("cmdprio_percentage", _OFF, "I/Os have no priority"),
    ("cmdprio", _OFF, "I/Os have no priority"),
    ("cmdprio_class", _OFF, "I/Os have no priority"),
    ("write_hint", ("none",), "writes have no hints"),
    ("readwritev_hint", _OFF, "reads have no hints"),
)
"""Keyword, the values that change nothing, and the reason to refuse others."""

OF_WRITES = {"dedupe_percentage", "dedupe_mode", "dedupe_working_set_percentage", "dedupe_global"} | {
    *("buffer_compress_chunk", "write_barrier", "sync_file_range", "write_hint"),
}
"""Keywords of these and of `REASONS` that concern writes alone: a job that only reads may have them."""

REASONS = {
    "trace replay is not supported": (
        *("read_iolog", "read_iolog_chunked", "replay_time_scale", "replay_skip", "merge_blktrace_file"),
        *("merge_blktrace_scalars", "merge_blktrace_iters"),
    ),
    "the data pattern cannot be chosen: write data is random, or compressible": (
        *("buffer_compress_chunk", "dedupe_mode", "dedupe_working_set_percentage"),
        *("dedupe_global",),
    ),
    "a run ends after a time or an amount, not when it is steady": (
        *("steadystate", "steadystate_duration", "steadystate_ramp_time"),
    ),
    "the depth is not searched; a sweep of a TOML file measures each": (
        *("latency_window", "latency_percentile", "latency_run"),
    ),
    _ZONES: (
        *("zonecapacity", "read_beyond_wp", "max_open_zones", "job_max_open_zones", "ignore_zone_limits"),
        *("zone_reset_threshold", "zone_reset_frequency"),
    ),
    "blocks are not trimmed": ("trim_verify_zero", "trim_backlog", "trim_backlog_batch"),
    "jobs are not kept in proportion; streams of a TOML file have shares": ("flow_id", "flow_sleep"),
    "a run has the user and the control group of its process": (
        *("uid", "gid", "cgroup", "cgroup_weight", "cgroup_nodelete"),
    ),
    "write the jobs that the profile would make": ("profile",),
    "I/Os have no priority": ("cmdprio_bssplit", "cmdprio_split"),
    "it belongs to an engine that Linerate does not have": (
        *(
            "cpuload",
            "cpumode",
            "cpuchunks",
            "exit_on_io_done",
            "thp",
            "hostname",
            "port",
            "protocol",
            "proto",
        ),
        *("nodelay", "listen", "pingpong", "interface", "ttl", "window_size", "mss", "program"),
        *("arguments", "grace_time", "std_redirect", "donorname", "inplace", "volume", "brick"),
        *("single-instance", "skip_bad", "readfua", "writefua", "sg_write_mode", "stream_id", "cmd_type"),
        *("uri", "bindname", "verb", "clustername", "pool", "clientname", "conf", "touch_objects", "rbdname"),
        *(
            "busy_poll",
            "nfs_url",
            "namenode",
            "chunk_size",
            "http_host",
            "http_user",
            "http_pass",
            "http_mode",
        ),
        *("spdk_conf", "spdk_json_conf", "spdk_mem", "spdk_single_seg", "initial_zone_reset", "zone_append"),
        *("pi_act", "pi_chk", "apptag", "digest_enable", "hostnqn", "hostaddr", "enable_sgl", "enable_wrr"),
        *("http_verbose", "https", "http_s3_key", "http_s3_keyid", "http_s3_region", "http_swift_auth_token"),
    ),
}
"""Keywords that are always refused, by reason."""

ASYNCHRONOUS = ("libaio", "io_uring", "posixaio", "solarisaio", "windowsaio", "libiscsi", "null")
"""Engines that keep `iodepth` I/Os in flight."""
SYNCHRONOUS = ("sync", "psync", "vsync", "pvsync", "pvsync2")
"""Engines with one I/O in flight for each copy of a job."""
ENTRY_OPERATIONS: Mapping[str, FileOp] = {
    "filecreate": "create",
    "filestat": "getattr",
    "filedelete": "delete",
}
"""Engines that make, look up or remove files, and the operation of a file system workload that does the same."""
_FILES = "a file system workload has no such operation"
_FILE_ENGINES = ("ftruncate", "falloc", "e4defrag", "dircreate", "dirstat", "dirdelete")
_OTHER_PROTOCOL = "Linerate has no client for it; map the block device of the host instead"
_NO_STORAGE = "it makes no I/O on storage"
ENGINE_NAMES = {"linuxaio": "libaio", "aio": "libaio"}
"""Other names of engines."""
REFUSED_ENGINES = {
    "page_fault": "page faults of mapped memory cannot be kept in flight and timed as I/Os",
    "mmap": "page faults of mapped memory cannot be kept in flight and timed as I/Os",
    "splice": "pages are moved between pipes, not read and written as I/Os",
    "sg": "SCSI commands go to an iSCSI LUN directly: map the job to its URL with --map",
    "io_uring_cmd": "NVMe commands are not passed through; map the block device instead",
    **dict.fromkeys(("cpuio", "net", "netsplice", "exec"), _NO_STORAGE),
    **dict.fromkeys(_FILE_ENGINES, _FILES),
    **dict.fromkeys(
        (
            *(
                "rbd",
                "rados",
                "rdma",
                "gfapi",
                "gfapi_async",
                "libhdfs",
                "http",
                "nbd",
                "pmemblk",
                "dev-dax",
                "mtd",
            ),
            *("spdk", "spdk_bdev", "external", "cpp_null"),
            *("libpmem", "libzbc", "xnvme", "dfs", "nfs", "guasi", "libcufile", "libhipfile"),
            *("libblkio", "ime_psync", "ime_psyncv", "ime_aio"),
        ),
        _OTHER_PROTOCOL,
    ),
}
"""Engine and the reason to refuse it."""
