//! The input of a run: the validated specification as JSON (version 1).
//!
//! The lab plane resolves everything it can (files, presets, loops, defaults of other tools) before. Unknown keys are
//! refused. [`RunSpec::validate`] finds every contradiction that can be found without opening a volume.

mod check;
pub(crate) mod options;

use linerate_io::WaitMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use check::SpecError;

/// The version of the JSON form that this crate reads.
pub const SPEC_VERSION: u32 = 1;

/// One run: volumes, the streams of I/O over them, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Always [`SPEC_VERSION`].
    pub version: u32,
    /// A name for messages and results.
    #[serde(default)]
    pub name: String,
    /// Determines every sequence of addresses, sizes, operations and arrivals.
    #[serde(default)]
    pub seed: u64,
    /// Seconds at the start that are not measured.
    #[serde(default)]
    pub warmup_s: f64,
    /// Seconds measured after the warm-up.
    pub elapsed_s: f64,
    /// Seconds per interval.
    #[serde(default = "default_interval_s")]
    pub interval_s: f64,
    /// Worker threads; 0 = one per allowed CPU, at most one per volume, at least one per network namespace.
    #[serde(default)]
    pub workers: usize,
    /// CPUs to pin the workers to, in order; none = not pinned.
    #[serde(default)]
    pub cpus: Option<Vec<usize>>,
    /// The interface to the operating system.
    #[serde(default)]
    pub driver: DriverChoice,
    /// How a worker waits.
    #[serde(default)]
    pub wait: WaitMode,
    /// Whether data are checked.
    #[serde(default)]
    pub verify: VerifyMode,
    /// The volumes.
    pub volumes: Vec<VolumeSpec>,
    /// The streams.
    pub streams: Vec<StreamSpec>,
    /// How shares are kept.
    #[serde(default)]
    pub shares: ShareMode,
    /// When I/Os start.
    #[serde(default)]
    pub arrival: ArrivalSpec,
    /// Ends the run early.
    #[serde(default)]
    pub limits: LimitsSpec,
}

/// Which driver the workers use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverChoice {
    /// `io_uring` where it works, else epoll.
    #[default]
    Auto,
    /// `io_uring` or an error.
    IoUring,
    /// epoll.
    Epoll,
}

/// Whether written data carry a stamp that reads check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyMode {
    /// Data are not looked at.
    #[default]
    Off,
    /// Every block carries address, generation and checksum; a wrong block ends the run.
    On,
}

/// One volume under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// The name streams and results use.
    pub name: String,
    /// `iscsi://host:port/iqn/lun`, `smb://host:port/share/file`, `file:/path` (file or block device) or
    /// `null:SIZE_BYTES`; in virtual time `array:NAME`.
    pub url: String,
    /// Path of the network namespace of its sockets; None: this process's.
    #[serde(default)]
    pub netns: Option<String>,
    /// CHAP name; SMB: the user, as `user` or `DOMAIN\user`.
    #[serde(default)]
    pub user: Option<String>,
    /// CHAP secret; SMB: the password.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// CHAP name that the target must prove (mutual CHAP).
    #[serde(default)]
    pub mutual_user: Option<String>,
    /// The target's CHAP secret.
    #[serde(default)]
    pub mutual_secret: Option<Secret>,
    /// First used byte of the volume.
    #[serde(default)]
    pub first_byte: u64,
    /// Number of used bytes from there; None: all. A file that `create` makes gets this size.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// I/Os in flight (vdbench's threads of an SD).
    #[serde(default = "default_outstanding")]
    pub outstanding: u32,
    /// Files: bypass the page cache (`O_DIRECT`).
    #[serde(default = "yes")]
    pub direct: bool,
    /// Files, also on shares: create or extend to `size_bytes`.
    #[serde(default)]
    pub create: bool,
    /// Every write is on stable storage when it completes (files: `RWF_DSYNC`, iSCSI: FUA,
    /// SMB: write through).
    #[serde(default)]
    pub durable_writes: bool,
    /// Flushes of the volume's caches between its writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<FlushSpec>,
    /// The volume is closed and opened again after so many I/Os, when none is in flight; sequential streams then begin
    /// at their start (Iometer's transactions per connection). Of a LUN only that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopen_after_ios: Option<u32>,
    /// Other volumes of the run use the same part of the device, each with a queue of its own (jobs of fio).
    #[serde(default)]
    pub shares_device: bool,
    /// The queue that it shares with other volumes; None: its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<SharedQueueSpec>,
    /// iSCSI: whether volumes of one target share a session.
    #[serde(default)]
    pub session: SessionUse,
    /// iSCSI: the offer at login and the options of the socket.
    #[serde(default)]
    #[schemars(with = "linerate_iscsi_initiator::SessionOptions")]
    pub iscsi: SessionOptions,
    /// SMB: the session.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(with = "linerate_smb::SmbOptions")]
    pub smb: SmbOptions,
    /// iSCSI: the paths to the volume; None: one, by the URL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<linerate_iscsi_initiator::PathSpec>")]
    pub paths: Vec<PathOptions>,
    /// iSCSI: how several paths are used.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(with = "linerate_iscsi_initiator::MultipathOptions")]
    pub multipath: MultipathOptions,
}

/// Flushes of a volume (fsync, SYNCHRONIZE CACHE, FLUSH), each in the place of an I/O. They are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlushSpec {
    /// One after so many writes of the volume.
    pub after_writes: u32,
    /// No I/O of the volume starts before it is done.
    #[serde(default = "yes")]
    pub blocks: bool,
}

/// A queue of several volumes, as of diskspd's `-O`: they have `outstanding` I/Os in flight together, and each one goes
/// to a random volume of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedQueueSpec {
    /// The same for all volumes of the queue.
    pub name: String,
    /// How often the volume is taken, in proportion to the others.
    #[serde(default = "one")]
    pub weight: u32,
}

/// iSCSI session options as [`linerate_iscsi_initiator::SessionOptions`] reads them.
pub type SessionOptions = serde_json::Map<String, serde_json::Value>;

/// SMB session options as [`linerate_smb::SmbOptions`] reads them.
pub type SmbOptions = serde_json::Map<String, serde_json::Value>;

/// A path as [`linerate_iscsi_initiator::PathSpec`] reads it.
pub type PathOptions = serde_json::Map<String, serde_json::Value>;

/// Multipath settings as [`linerate_iscsi_initiator::MultipathOptions`] reads them.
pub type MultipathOptions = serde_json::Map<String, serde_json::Value>;

/// A secret: it is part of the input and never of the output, neither by `Debug` nor by serialisation.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the one place that logs in.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("**********")
    }
}

/// Sessions per target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionUse {
    /// One session per volume.
    #[default]
    Own,
    /// One session per target and worker.
    Shared,
}

/// A stream: one kind of I/O over some volumes (vdbench's WD).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// The name results use.
    pub name: String,
    /// Names of the volumes.
    pub volumes: Vec<String>,
    /// Share of the run's I/Os in percent; streams without one divide the rest evenly.
    #[serde(default)]
    pub share_percent: Option<f64>,
    /// Its own rate, over all its volumes; such a stream has no share.
    #[serde(default)]
    pub rate_iops: Option<f64>,
    /// 1 = served first when several streams of a volume have work due.
    #[serde(default)]
    pub priority: Option<u32>,
    /// I/O sizes.
    pub sizes: SizeSpec,
    /// Several kinds of I/O that move one position, as the lines of an access specification of Iometer; none: one kind.
    /// `sizes`, `read_percent` and the like then say what they are together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixPartSpec>,
    /// I/O sizes of writes; None: those of reads.
    #[serde(default)]
    pub write_sizes: Option<SizeSpec>,
    /// Share of reads in percent of the I/Os.
    #[serde(default = "hundred")]
    pub read_percent: f64,
    /// Percent of the I/Os that start at a new random place; the others continue at the end of the last one.
    #[serde(default = "hundred")]
    pub random_percent: f64,
    /// Instead of a random place: skip forward by this distance.
    #[serde(default)]
    pub stride: Option<StrideSpec>,
    /// The used part of the volume; None: all.
    #[serde(default)]
    pub range: Option<RangeSpec>,
    /// Random places are in this band, with a probability that decays from its start to its end.
    #[serde(default)]
    pub hotband: Option<RangeSpec>,
    /// Random places by parts of the used part, each with its share; None: all are equally likely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<DistributionSpec>,
    /// Grid of random places; none = the I/O's own size.
    #[serde(default)]
    pub align_bytes: Option<u64>,
    /// A small area at the start for a given part of the I/Os.
    #[serde(default)]
    pub hit_area: Option<HitAreaSpec>,
    /// Do not use the first transfer of the volume (vdbench's rule for raw devices).
    #[serde(default)]
    pub skip_first_block: bool,
    /// Sequential to the end, then stop; the run ends when all such streams have ended.
    #[serde(default)]
    pub stop_at_end: bool,
    /// Independent sequential cursors per volume (vdbench's streams=).
    #[serde(default = "one")]
    pub cursors: u32,
    /// Sequential reads and sequential writes each go on where the last one of their kind ended (fio's rw=rw).
    #[serde(default)]
    pub separate_directions: bool,
    /// So many I/Os follow each other from each random place (fio's rw=randread:8).
    #[serde(default = "one")]
    pub ios_per_place: u32,
    /// Finished after so many bytes on each volume; the run ends when all streams that stop have ended.
    #[serde(default)]
    pub stop_after_bytes: Option<u64>,
    /// As `stop_after_bytes`, in percent of its part of each volume: 200 is twice as many bytes as it has.
    #[serde(default)]
    pub stop_after_percent: Option<f64>,
    /// It begins so many seconds after the start of the run.
    #[serde(default)]
    pub start_after_s: f64,
    /// It ends so many seconds after the start of the run, warm-up included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after_s: Option<f64>,
    /// A stream of writes that stops then reads back, once, all that it wrote. Needs verify.
    #[serde(default)]
    pub read_back: bool,
    /// Each slot pauses after its I/Os.
    #[serde(default)]
    pub think_time: Option<ThinkTimeSpec>,
    /// Written data compress about this many times to one; None: incompressible.
    #[serde(default)]
    pub compression_ratio: Option<f64>,
    /// Written data have duplicates; None: no two pages are equal.
    #[serde(default)]
    pub dedup: Option<DedupSpec>,
    /// Recorded I/Os at their recorded times, instead of drawn ones; on one volume, with their mean rate as `rate_iops`.
    /// `sizes` and `write_sizes` say how large the largest are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSpec>,
}

impl StreamSpec {
    /// Whether it ends by itself.
    pub(crate) fn stops(&self) -> bool {
        self.is_finite() || self.stop_after_s.is_some()
    }

    /// Whether it has so many I/Os.
    pub(crate) fn is_finite(&self) -> bool {
        self.stop_at_end || self.stops_after_an_amount() || self.trace.is_some()
    }

    /// From the start of the run to its first I/O.
    pub(crate) fn start_ns(&self) -> u64 {
        (self.start_after_s * 1e9) as u64
    }

    /// Whether it ends when it has moved so many bytes.
    pub(crate) fn stops_after_an_amount(&self) -> bool {
        self.stop_after_bytes.is_some() || self.stop_after_percent.is_some()
    }
}

/// The I/Os of a trace on one volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The compiled trace: 24 bytes per I/O in the order of time (ns, offset, length, 0 = read or 1 = write).
    pub path: String,
    /// Index of the stream's first I/O in the file.
    #[serde(default)]
    pub first_io: u64,
    /// Number of the stream's I/Os.
    pub ios: u64,
    /// Recorded times are multiplied by it: 0.5 = twice as fast.
    #[serde(default = "one_to_one")]
    pub time_scale: f64,
    /// What happens to offsets.
    #[serde(default)]
    pub placement: TracePlacement,
    /// Where the last byte of the recorded device ends; offsets are scaled from it.
    pub span_bytes: u64,
}

/// How the offsets of a trace are placed on a volume of another size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TracePlacement {
    /// Offsets beyond the end of the volume are taken modulo its size; others stay.
    #[default]
    Fold,
    /// All offsets are multiplied by the volume's size over the span.
    Scale,
}

/// One kind of I/O of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixPartSpec {
    /// Share of the stream's I/Os.
    pub share_percent: f64,
    /// Its size, one of the stream's sizes.
    pub size_bytes: u32,
    /// Share of reads.
    pub read_percent: f64,
    /// Share of random places; the others follow the last I/O of any kind.
    pub random_percent: f64,
    /// Grid of its places.
    pub align_bytes: u64,
}

/// I/O sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SizeSpec {
    /// `[bytes, percent]` pairs; the percentages add up to 100.
    Mix {
        /// The pairs.
        parts: Vec<(u32, f64)>,
    },
    /// Evenly distributed multiples of `align_bytes`.
    Range {
        /// Smallest.
        min_bytes: u32,
        /// Largest.
        max_bytes: u32,
        /// Step.
        align_bytes: u32,
    },
}

/// Duplicates in written data, as of vdbench's dedupratio=.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DedupSpec {
    /// Units of a volume by different units.
    pub ratio: f64,
    /// Bytes of a unit.
    pub unit_bytes: u32,
    /// Sets of equal units, in percent of the units.
    #[serde(default = "five")]
    pub sets_percent: f64,
    /// Their number on each volume, instead of a percentage.
    #[serde(default)]
    pub sets: Option<u64>,
}

/// How far a stride skips, evenly distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StrideSpec {
    /// At least.
    pub min_bytes: u64,
    /// At most.
    pub max_bytes: u64,
    /// Behind the end it begins one I/O further than before, so many times; then at the start again.
    #[serde(default = "one")]
    pub passes: u32,
}

/// A pause of a slot, as of a user who looks at an answer before the next request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThinkTimeSpec {
    /// How long, in seconds.
    pub pause_s: f64,
    /// After so many I/Os of the slot.
    #[serde(default = "one")]
    pub after_ios: u32,
}

/// Part of a volume. An `end` beyond the volume's end continues at its start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangeSpec {
    /// The unit of `start` and `end`.
    pub unit: RangeUnit,
    /// Start.
    pub start: f64,
    /// End, exclusive.
    pub end: f64,
}

/// Unit of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RangeUnit {
    /// Percent of the volume.
    Percent,
    /// Bytes.
    Bytes,
}

/// Uneven random places, as of diskspd's `-rd`: parts that follow each other from the start of the used part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DistributionSpec {
    /// The unit of the lengths.
    pub unit: RangeUnit,
    /// `[share, length]` pairs. The share is in percent of the random I/Os; a part with 0 gets none. Lengths in percent
    /// add up to 100. In bytes the last one may be 0 for the rest, and parts behind the end are left out.
    pub parts: Vec<(f64, f64)>,
}

/// The hit area: a part that is small enough to stay in the array's cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HitAreaSpec {
    /// Size of the area, from the start of the stream's range.
    pub bytes: u64,
    /// Percent of the reads in the area.
    pub read_percent: f64,
    /// Percent of the writes in the area.
    pub write_percent: f64,
}

/// How the shares of streams are kept (the `share_percent` of closed-loop streams).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShareMode {
    /// They are not kept: a free slot takes the next of its volume's streams in turn (vdbench's uncontrolled maximum).
    #[default]
    Uncontrolled,
    /// Strictly, per stream and volume: one generator for all volumes; the slowest volume limits the run (vdbench's
    /// controlled maximum).
    Controlled,
    /// Over all volumes together: every volume runs as fast as it can, the streams' totals keep their shares.
    Total,
}

/// When I/Os start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalSpec {
    /// Closed loop: a slot starts its next I/O when the last one has completed.
    #[default]
    Closed,
    /// Open loop: I/Os start at times fixed in advance, whether or not earlier ones have completed.
    Open {
        /// How the times are spread.
        process: ArrivalProcess,
        /// I/Os per second over all streams and volumes.
        rate_iops: f64,
    },
}

/// Distribution of the time between two arrivals of one stream on one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalProcess {
    /// Always the mean.
    Deterministic,
    /// Exponential: independent users.
    Poisson,
    /// Even between zero and twice the mean.
    Uniform,
}

/// Limits that end a run early. Counted from the end of the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsSpec {
    /// Bytes moved.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Bytes read.
    #[serde(default)]
    pub read_bytes: Option<u64>,
    /// Bytes written.
    #[serde(default)]
    pub written_bytes: Option<u64>,
}

fn default_interval_s() -> f64 {
    1.0
}

fn default_outstanding() -> u32 {
    8
}

fn hundred() -> f64 {
    100.0
}

fn five() -> f64 {
    5.0
}

fn one_to_one() -> f64 {
    1.0
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}
