"""The seam to the data plane: specs go in as JSON, columns, histograms and small frozen objects come out.

Every blocking call releases the interpreter and answers Ctrl-C within 200 ms. Failures are raised as the classes of
`linerate.errors`, by whose fault they are. Times are seconds unless a name says otherwise.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict, final, type_check_only

from linerate.errors import LinerateError

__all__ = [
    "Array",
    "BackupJob",
    "BulkSink",
    "BulkSource",
    "Fabric",
    "FilesRun",
    "Histogram",
    "Interval",
    "Log",
    "PreparedFilesRun",
    "PreparedRun",
    "Run",
    "Summary",
    "WrittenFiles",
    "__doc__",
    "__version__",
    "anchor_names",
    "discover",
    "host_probe",
    "limits",
    "raid_level_fault",
    "schemas",
    "shares",
    "volume_ends",
]

__version__: str

@type_check_only
class _Rows(TypedDict):
    stream: list[str]
    volume: list[str]
    op: list[Literal["read", "write"]]
    ios: list[int]
    bytes: list[int]
    errors: list[int]
    service_sum_ns: list[int]
    service_sumsq_ns2: list[float]
    service_max_ns: list[int]
    response_sum_ns: list[int]
    response_max_ns: list[int]
    flushes: list[int]
    flush_sum_ns: list[int]
    flush_max_ns: list[int]

@type_check_only
class _Usage(TypedDict):
    outstanding_mean: float
    load_cpu_user_s: float
    load_cpu_system_s: float
    load_cpu_polled_s: float
    host_cpu_user_s: float
    host_cpu_system_s: float
    host_cpu_idle_s: float
    host_cpu_wait_s: float
    tsc_hz: float
    retransmits: int
    data_segments_sent: int
    bytes_sent: int
    bytes_received: int
    busy_us: int
    rwnd_limited_us: int
    sndbuf_limited_us: int
    rtt_us_mean: float
    late_arrivals: int
    backlog_max: int

@type_check_only
class _Paths(TypedDict):
    volume: list[str]
    path: list[str]
    state: list[str]
    read_ios: list[int]
    write_ios: list[int]
    read_bytes: list[int]
    write_bytes: list[int]
    service_sum_ns: list[int]
    service_max_ns: list[int]
    requeued: list[int]
    retransmits: list[int]
    bytes_sent: list[int]
    bytes_received: list[int]

@type_check_only
class _Event(TypedDict):
    at_s: float
    kind: str
    volume: str
    path: str
    message: str
    blame: str

@type_check_only
class _Share(TypedDict):
    name: str
    type: Literal["disk", "printer", "device", "pipe", "other"]
    special: bool
    temporary: bool
    comment: str

@type_check_only
class _Ends(TypedDict):
    volume: str
    capacity_bytes: int
    block_bytes: int
    session: dict[str, Any]
    first: bytes
    last: bytes
    failure: str | None

@final
class Histogram:
    """Counts of nanoseconds in HDR buckets of three significant digits."""

    def __init__(self) -> None: ...
    @staticmethod
    def decode(data: bytes, /) -> Histogram:
        """From HdrHistogram V2 bytes, compressed or not. Raises UserError on anything else."""

    def encode(self) -> bytes:
        """HdrHistogram V2, compressed: what a .hlog line holds in base64."""

    def record(self, value_ns: int, count: int = 1) -> None:
        """Adds `count` values."""

    def merge(self, other: Histogram, /) -> None:
        """Adds the counts of `other`."""

    def quantile(self, q: float, /) -> int:
        """The value that the share `q` (0 to 1) of the counts does not exceed; 0 when empty."""

    def buckets(self) -> list[tuple[int, int, int]]:
        """Buckets in use, ascending: lowest value, highest value, count."""

    @property
    def count(self) -> int:
        """Values recorded."""

    @property
    def min(self) -> int:
        """Smallest value; 0 when empty."""

    @property
    def max(self) -> int:
        """Largest value; 0 when empty."""

    @property
    def mean(self) -> float:
        """Mean; 0 when empty."""

@final
class Interval:
    """What one interval measured; the summary of a run has the same shape over its measured time."""

    @property
    def index(self) -> int:
        """Counts from 0, warm-up included."""

    @property
    def start_s(self) -> float:
        """Start, since the start of the run."""

    @property
    def end_s(self) -> float:
        """End, since the start of the run."""

    @property
    def warmup(self) -> bool:
        """Belongs to the warm-up."""

    @property
    def rows(self) -> _Rows:
        """Counters by (stream, volume, op), as columns of equal length."""

    @property
    def paths(self) -> _Paths:
        """What each path of the volumes with several paths carried, as columns of equal length."""

    @property
    def usage(self) -> _Usage:
        """CPU of load and host, TCP of all sessions, and how the generator kept up."""

    @property
    def events(self) -> list[_Event]:
        """What happened, in order."""

    @property
    def latencies(self) -> list[tuple[str, str, str, str, Histogram]]:
        """Distributions as (stream, volume, op, kind, histogram).

        Volume is empty for those of a whole stream, stream for those of a whole volume; kind is service or response.
        In a closed loop response times are the service times and are not listed again.
        """

@final
class Run:
    """A run that is going on."""

    @staticmethod
    def start(spec_json: str, /) -> Run:
        """Opens every volume of a RunSpec (version 1) and starts the load."""

    @staticmethod
    def prepare(spec_json: str, /) -> PreparedRun:
        """Opens every volume of a RunSpec (version 1), so that the load can start at an instant."""

    @staticmethod
    def in_virtual_time(spec_json: str, array_json: str, /) -> Run:
        """Runs a RunSpec (version 1) in virtual time on the volumes of an array's configuration, `array:NAME` each.

        As fast as it can be computed: the clock jumps from event to event. Raises UserError for disks without a model.
        """

    def storage(self) -> dict[str, Any]:
        """What the array of a run in virtual time said of its storage at the end of the interval last given, or at
        the start: disks, raid_sets, pools and volumes, with counters that only grow. Empty for a run in real time.
        """

    def facts(self) -> dict[str, Any]:
        """What was negotiated and read back: driver, workers, CPUs, and per volume its size, session and socket."""

    def next_interval(self, timeout_s: float, /) -> Interval | None:
        """The next interval, or None when the timeout passes or the run has ended (see `finished`)."""

    @property
    def finished(self) -> bool:
        """No further interval will come."""

    def stop(self) -> None:
        """Lets I/Os in flight finish and starts no more; returns at once."""

    def finish(self) -> Summary:
        """Waits for the end and gives the summary."""

@final
class PreparedRun:
    """A run that is ready to start: its volumes are open."""

    def facts(self) -> dict[str, Any]:
        """What was negotiated and read back, as `Run.facts`."""

    def start_at(self, monotonic_ns: int, /) -> Run:
        """Starts the load at an instant of `time.monotonic_ns`, once.

        Raises HostError if the instant is over; the volumes are closed then.
        """

    def discard(self) -> None:
        """Closes the volumes again and waits until that is done."""

@final
class Summary:
    """How a run ended, and what it measured until then."""

    @property
    def total(self) -> Interval:
        """The measured time as one interval, warm-up left out."""

    @property
    def outcome(self) -> Literal["completed", "stopped", "failed"]:
        """Its time was over or a limit reached; `stop` was called; or it could not go on."""

    @property
    def error(self) -> LinerateError | None:
        """What made the run fail; None if nothing did."""

@final
class WrittenFiles:
    """What runs of this process have written into files: a run checks what those before it wrote."""

    def __new__(cls) -> WrittenFiles:
        """Nothing was written yet."""

@final
class FilesRun:
    """A run of a file system workload that is going on."""

    @staticmethod
    def start(spec_json: str, written: WrittenFiles, /) -> FilesRun:
        """Looks at the structures of a FilesRunSpec (version 1) and starts the threads. `written` is what runs before
        it wrote, for a run that checks data."""

    @staticmethod
    def prepare(spec_json: str, written: WrittenFiles, /) -> PreparedFilesRun:
        """Looks at the structures of a FilesRunSpec (version 1), so that the threads can start at an instant."""

    def facts(self) -> dict[str, Any]:
        """Threads, and per structure the size of its files."""

    def next_interval(self, timeout_s: float, /) -> Interval | None:
        """The next interval, or None when the timeout passes or the run has ended (see `finished`)."""

    @property
    def finished(self) -> bool:
        """No further interval will come."""

    def stop(self) -> None:
        """Lets operations in flight end and starts no more; returns at once."""

    def finish(self) -> Summary:
        """Waits for the end and returns the summary."""

@final
class PreparedFilesRun:
    """A run of a file system workload that is ready to start."""

    def facts(self) -> dict[str, Any]:
        """Threads, and per structure the size of its files, as `FilesRun.facts`."""

    def start_at(self, monotonic_ns: int, /) -> FilesRun:
        """Starts the threads at an instant of `time.monotonic_ns`, once. Raises HostError if the instant is over."""

    def discard(self) -> None:
        """Logs off again and waits until that is done."""

@final
class BackupJob:
    """A phase of an image backup that is going on."""

    @staticmethod
    def start(spec_json: str, /) -> BackupJob:
        """Opens the volumes of a BackupJobSpec (version 1) and starts the phase."""

    def facts(self) -> dict[str, Any]:
        """What was negotiated and read back: driver, and per volume its size, session and socket."""

    @property
    def data_bytes(self) -> int:
        """Bytes of data that the phase copies, or makes zeros."""

    def next_interval(self, timeout_s: float, /) -> Interval | None:
        """The next interval, or None when the timeout passes or the job has ended (see `finished`)."""

    @property
    def finished(self) -> bool:
        """No further interval will come."""

    def stop(self) -> None:
        """Lets I/Os in flight finish and starts no more; returns at once."""

    def finish(self) -> Summary:
        """Waits for the end and gives the summary."""

    def totals(self) -> dict[str, Any]:
        """Waits for the end and gives counters of what is not an I/O of data: `flushes`, `flush_s`,
        `length_changes`, `length_change_s`, `allocated_blocks`, `verified_bytes`."""

@final
class Array:
    """An iSCSI array that serves in this process until `stop`."""

    @staticmethod
    def start(config_json: str, /) -> Array:
        """Opens the volumes of an ArrayConfig and listens on its portals."""

    @staticmethod
    def inspect(config_json: str, /) -> dict[str, Any]:
        """Looks at the storage of an ArrayConfig as a start would find it, and changes nothing.

        `findings`: what was noticed, each with `severity` (note, care, refused), `about` and `text`; `storage`: as
        `stats` has it. Raises UserError for storage that does not fit together.
        """

    @property
    def portals(self) -> list[tuple[str, int]]:
        """Addresses and ports that it listens on now, as the kernel chose them; none once stopped."""

    def stats(self) -> dict[str, Any]:
        """Counters since the start; `by_portal` (where it listens now) and `by_session` (who is logged in now,
        counters at most 0.1 s old; times on the clock of `time.monotonic_ns`). An array with disks has `storage`:
        `disks`, `raid_sets`, `pools` and `volumes`. Empty once stopped.
        """

    def change(self, change_json: str, /) -> None:
        """Changes access states while the array serves, and tells initiators. If anything is wrong nothing changes.

        `{"alua": [{"group": 2, "state": "standby", "target": iSCSI name or null, "volume": name or null}]}`
        """

    def manage(self, command_json: str, /) -> str:
        """Carries out a command on the array's storage while it serves, and gives its reply: an object as JSON.

        `{"verb": "resize", "volume": name, "size_bytes": n}` and so on; docs/array.md lists the verbs. Waits until it
        is done. Raises UserError, HostError or InternalError; then nothing has changed.
        """

    def stop(self) -> None:
        """Closes all sessions and waits until nothing is left."""

@final
class Log:
    """What the arrays of this process report: a queue with an end, in which floods are counted instead of kept."""

    @staticmethod
    def open(level: str, /) -> Log:
        """Collects events of this level and above: error, warning, info or debug. There is one log per process."""

    def put(self, event_json: str, /) -> None:
        """Adds an event: `{"level", "event": kind, "message", "peer": address, "fields": {...}, "time_s"}` as JSON."""

    def take(self, wait_s: float, /) -> list[str]:
        """Events in that form, the oldest first; waits for the first one, at most 0.2 s. For a thread of its own."""

@final
class Fabric:
    """A network of TAP interfaces, NICs, links and switches that carries packets in this process until `stop`."""

    @staticmethod
    def start(spec_json: str, /) -> Fabric:
        """Makes the TAPs of a FabricSpec and carries packets among them from now on."""

    def stats(self) -> dict[str, Any]:
        """Counters since the start."""

    def change(self, change_json: str, /) -> int:
        """Changes what a ChangeSpec names while packets flow. If anything in it is wrong nothing changes.

        Returns when it took effect: nanoseconds as of `time.monotonic_ns`.
        """

    def stop(self) -> None:
        """Ends it and removes its TAPs. A second call does nothing."""

@final
class BulkSink:
    """The end of bulk TCP streams that takes bytes in and counts them."""

    @staticmethod
    def start(spec_json: str, /) -> BulkSink:
        """Listens: `{"address": "10.0.0.1:0", "netns": path or null}`."""

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens, as the kernel chose it."""

    def stats(self) -> dict[str, Any]:
        """Counters since the start: `bytes_received`, and `connections` that are open. Empty once stopped."""

    def stop(self) -> None:
        """Closes its connections. A second call does nothing."""

@final
class BulkSource:
    """The end of bulk TCP streams that sends, as fast as they go or at a rate."""

    @staticmethod
    def start(spec_json: str, /) -> BulkSource:
        """Connects and sends: `address`, and if wanted `netns`, `source_address`, `connections`, `rate_bits_per_s`,
        `congestion_control`, `connect_timeout_s`."""

    def stats(self) -> dict[str, Any]:
        """What the kernel counted since the start, at most 50 ms old: `bytes_sent`, `segments_sent`,
        `segments_retransmitted`, `busy_us`, `rwnd_limited_us`, `sndbuf_limited_us`; and as of now `rtt_us`,
        `congestion_control`, `connections`, `lost` (why a connection was lost, or null). Empty once stopped.
        """

    def stop(self) -> None:
        """Closes its connections. A second call does nothing."""

def discover(url: str, options_json: str = "{}") -> list[Mapping[str, Any]]:
    """Targets behind `iscsi://[user%secret@]host[:port][/target]`, with portals and LUNs: that target, or all.

    A LUN tells its blocks, its optimal I/O size, its write cache, whether and how full it is thin, and whether it has
    access states; what the target does not tell is None.

    A target whose LUNs could not be listed has `failure` with `blame`, and `wrong_credentials` if it refused user or
    secret.
    """

def shares(
    url: str, user: str | None = None, secret: str | None = None, options_json: str = "{}"
) -> list[_Share]:
    """The shares of the server `smb://host[:port]`. Without a user the logon is that of guest.

    Raises LinerateError, by whose fault it is, if the server refuses the user or does not list its shares.
    """

def anchor_names(
    spec_json: str, structure: str, /
) -> list[tuple[str, Literal["file", "folder", "other"]]] | None:
    """The names in the anchor of a structure of a FilesRunSpec (version 1), each with what it is.

    None: there is no anchor. Raises LinerateError, as the run would, if it cannot be looked at.
    """

def volume_ends(spec_json: str, /) -> list[_Ends]:
    """What the first and the last 2 MiB of every LUN and every file of a share of a RunSpec (version 1) hold.

    Nothing is written. They are opened as the run would open them, and raise as it would; files that the run creates
    are left out. `failure` says why a part could not be read; zeros stand for it then.
    """

def host_probe() -> dict[str, Any]:
    """What this host gives: drivers, allowed CPUs, TSC frequency."""

def schemas() -> dict[str, dict[str, Any]]:
    """JSON Schemas of the texts that the data plane reads, by name: run, array, fabric, ..."""

def limits() -> dict[str, Any]:
    """Limits that configurations share: `raid_levels`, `parity_levels`, `chunk_bytes` (least, most), `drives`."""

def raid_level_fault(level: str, disks: int, groups: int, spares: int) -> str | None:
    """Why a RAID set of so many disks and spares cannot have this level; None if it can.

    `groups` counts for RAID 50 and 60. Raises UserError for a level that does not exist.
    """
