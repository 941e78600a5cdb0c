//! Contradictions in a specification, found before anything is opened.

use super::options::{multipath_options, session_options, smb_options};
use super::{
    ArrivalSpec, DedupSpec, DistributionSpec, RangeSpec, RangeUnit, RunSpec, SPEC_VERSION, SessionUse,
    ShareMode, SizeSpec, StreamSpec, VerifyMode, VolumeSpec,
};
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// Most I/Os in flight per volume.
const OUTSTANDING_MAX: u32 = 65_536;
/// Largest I/O in bytes.
const SIZE_MAX: u32 = 1 << 30;
/// A year: keeps every time far from the end of a 64-bit nanosecond clock.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;
/// Most of an amount in percent of a part of a volume.
const STOP_PERCENT_MAX: f64 = 1e15;

impl RunSpec {
    /// Reads the JSON form and validates it.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(text).map_err(|error| SpecError::Json(error.to_string()))?;
        spec.validate()?;
        Ok(spec)
    }

    /// Finds the first contradiction.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.version != SPEC_VERSION {
            return Err(SpecError::Version(self.version));
        }
        between("warmup_s", self.warmup_s, 0.0, SECONDS_MAX)?;
        between("elapsed_s", self.elapsed_s, 0.001, SECONDS_MAX)?;
        between("interval_s", self.interval_s, 0.001, SECONDS_MAX)?;
        if let ArrivalSpec::Open { rate_iops, .. } = self.arrival {
            between("arrival.rate_iops", rate_iops, 0.001, 1e9)?;
        }
        require(
            self.cpus.as_ref().is_none_or(|cpus| !cpus.is_empty()),
            "cpus",
            "name at least one CPU, or none at all",
        )?;
        require(!self.volumes.is_empty(), "volumes", "a run needs at least one volume")?;
        require(!self.streams.is_empty(), "streams", "a run needs at least one stream")?;
        unique("volumes", self.volumes.iter().map(|volume| &volume.name))?;
        unique("streams", self.streams.iter().map(|stream| &stream.name))?;
        for volume in &self.volumes {
            volume.check(&format!("volumes.{}", volume.name))?;
        }
        let netns: HashSet<_> = self.volumes.iter().map(|volume| &volume.netns).collect();
        require(
            self.workers == 0 || self.workers >= netns.len(),
            "workers",
            &format!("each of {} network namespaces needs a worker of its own", netns.len()),
        )?;
        for stream in &self.streams {
            stream.check(&format!("streams.{}", stream.name), &self.volumes)?;
        }
        self.check_shares()?;
        self.check_times()?;
        self.check_queues()?;
        let closed = self.arrival == ArrivalSpec::Closed;
        require(
            closed || self.streams.iter().all(|stream| stream.think_time.is_none()),
            "arrival",
            "a run with a rate has no think time",
        )?;
        require(
            self.verify == VerifyMode::On || !self.streams.iter().any(|stream| stream.read_back),
            "verify",
            "read_back compares what it reads: turn verify on",
        )?;
        if self.verify == VerifyMode::On {
            require(
                !self.streams.iter().any(|stream| stream.dedup.is_some()),
                "verify",
                "data with duplicates cannot be checked: leave dedup out",
            )?;
            require(
                !self.volumes.iter().any(|volume| volume.shares_device),
                "verify",
                "what other volumes write to a shared device is not known",
            )?;
            unique(
                "volumes (verify mode needs each device once)",
                self.volumes.iter().map(|volume| &volume.url),
            )?;
        }
        Ok(())
    }

    /// Slots of a shared queue change their volume, so no volume of one may wait for the times of its I/Os.
    fn check_queues(&self) -> Result<(), SpecError> {
        for volume in &self.volumes {
            let Some(queue) = &volume.queue else { continue };
            let key = format!("volumes.{}.queue", volume.name);
            require(queue.weight > 0, &key, "the weight must be above 0")?;
            let is_same = |other: &VolumeSpec| {
                (&other.netns, other.outstanding) == (&volume.netns, volume.outstanding)
                    || other.queue.as_ref().is_none_or(|other| other.name != queue.name)
            };
            let same = self.volumes.iter().all(is_same);
            require(same, &key, "its volumes need the same outstanding and the same netns")?;
            let streams = self.streams.iter().filter(|stream| stream.volumes.contains(&volume.name));
            let is_steady = |stream: &StreamSpec| {
                stream.trace.is_none() && stream.rate_iops.is_none() && stream.think_time.is_none()
            };
            let are_steady = streams.clone().count() > 0 && streams.clone().all(is_steady);
            require(are_steady, &key, "needs streams, and only such without a rate or a pause")?;
        }
        self.check_queue_times()?;
        let is_plain = self.arrival == ArrivalSpec::Closed
            && self.verify == VerifyMode::Off
            && self.shares == ShareMode::Uncontrolled;
        let has_queues = self.volumes.iter().any(|volume| volume.queue.is_some());
        require(!has_queues || is_plain, "volumes.queue", "not with a rate, verify, or shares that are kept")
    }

    /// All volumes of a shared queue begin and end together.
    fn check_queue_times(&self) -> Result<(), SpecError> {
        let (mut first_of, mut queue_of) = (HashMap::new(), HashMap::new());
        for volume in &self.volumes {
            if let Some(queue) = &volume.queue {
                queue_of.insert(&volume.name, *first_of.entry(&queue.name).or_insert(&volume.name));
            }
        }
        let mut times_of = HashMap::new();
        for stream in &self.streams {
            let times = (stream.start_after_s, stream.stop_after_s);
            for first in stream.volumes.iter().filter_map(|name| queue_of.get(name)) {
                let same = *times_of.entry(first).or_insert(times) == times;
                require(same, &format!("volumes.{first}.queue"), "its streams have one start and one end")?;
            }
        }
        Ok(())
    }

    /// Streams that begin later than others have no shares to keep.
    fn check_times(&self) -> Result<(), SpecError> {
        for stream in &self.streams {
            let key = format!("streams.{}", stream.name);
            let (start_s, stop_s) = (stream.start_after_s, stream.stop_after_s.unwrap_or(SECONDS_MAX));
            between(&format!("{key}.start_after_s"), start_s, 0.0, SECONDS_MAX)?;
            between(&format!("{key}.stop_after_s"), stop_s, 0.001, SECONDS_MAX)?;
            require(start_s < stop_s, &format!("{key}.stop_after_s"), "ends before it begins")?;
            let has_times = start_s > 0.0 || stream.stop_after_s.is_some();
            let may = self.shares == ShareMode::Uncontrolled && stream.trace.is_none();
            require(
                !has_times || may,
                &format!("{key}.start_after_s"),
                "neither this nor stop_after_s of a trace, or where shares are kept",
            )?;
        }
        let reopens = |name: &String| {
            self.volumes.iter().any(|volume| volume.name == *name && volume.reopen_after_ios.is_some())
        };
        let of_trace = self.streams.iter().find(|one| one.trace.is_some() && one.volumes.iter().any(reopens));
        require(of_trace.is_none(), "volumes.reopen_after_ios", "not under a trace")
    }

    fn check_shares(&self) -> Result<(), SpecError> {
        let shared = self.streams.iter().filter(|stream| stream.rate_iops.is_none());
        let sum: f64 = shared.clone().filter_map(|stream| stream.share_percent).sum();
        let all_given = shared.clone().all(|stream| stream.share_percent.is_some());
        let key = "streams.share_percent";
        require(
            sum <= 100.01,
            key,
            &format!("the shares add up to {sum} percent; at most 100 are possible"),
        )?;
        let complete = !all_given || shared.count() == 0 || sum >= 99.99;
        require(complete, key, &format!("the shares add up to {sum} percent instead of 100"))
    }
}

impl VolumeSpec {
    fn check(&self, key: &str) -> Result<(), SpecError> {
        require(!self.name.is_empty(), &format!("{key}.name"), "a volume needs a name")?;
        let url_is_known = ["iscsi://", "smb://", "file:", "null:", "array:"]
            .iter()
            .any(|scheme| self.url.starts_with(scheme));
        require(
            url_is_known,
            &format!("{key}.url"),
            "expected iscsi://..., smb://..., file:/path or null:SIZE",
        )?;
        let netns = self.netns.as_ref().is_none_or(|path| path.starts_with('/'));
        require(netns, &format!("{key}.netns"), "expected the path of a network namespace")?;
        let outstanding = (1..=OUTSTANDING_MAX).contains(&self.outstanding);
        require(
            outstanding,
            &format!("{key}.outstanding"),
            &format!("must lie between 1 and {OUTSTANDING_MAX}"),
        )?;
        require(self.size_bytes != Some(0), &format!("{key}.size_bytes"), "must not be 0")?;
        let sized = !self.create || self.size_bytes.is_some();
        require(sized, &format!("{key}.create"), "a file to be created needs size_bytes")?;
        let chap = self.user.is_some() == self.secret.is_some()
            && self.mutual_user.is_some() == self.mutual_secret.is_some();
        require(chap, &format!("{key}.user"), "a user and a secret belong together")?;
        session_options(self).map_err(|problem| SpecError::value(&format!("{key}.iscsi"), problem))?;
        smb_options(self).map_err(|problem| SpecError::value(&format!("{key}.smb"), problem))?;
        self.check_upkeep(key)?;
        self.check_paths(key)
    }

    fn check_upkeep(&self, key: &str) -> Result<(), SpecError> {
        let after = self.flush.is_none_or(|flush| flush.after_writes > 0);
        require(after, &format!("{key}.flush.after_writes"), "must not be 0")?;
        let key = &format!("{key}.reopen_after_ios");
        require(self.reopen_after_ios != Some(0), key, "must not be 0")?;
        let can = self.reopen_after_ios.is_none() || !self.url.starts_with("smb://");
        require(can, key, "a file of a share stays open through a run")?;
        let own = self.queue.is_none() || (self.reopen_after_ios.is_none() && self.flush.is_none());
        require(own, key, "neither this nor flush of a volume with a shared queue")
    }

    fn check_paths(&self, key: &str) -> Result<(), SpecError> {
        let paths = format!("{key}.paths");
        let multipath = format!("{key}.multipath");
        require(
            self.multipath.is_empty() || !self.paths.is_empty(),
            &multipath,
            "there is only one path; name the others in paths",
        )?;
        require(
            self.paths.is_empty() || self.url.starts_with("iscsi://"),
            &paths,
            "only an iscsi:// volume has paths",
        )?;
        require(
            self.paths.is_empty() || self.session == SessionUse::Own,
            &format!("{key}.session"),
            "paths have sessions of their own; leave shared out",
        )?;
        multipath_options(self)
            .map(|_| ())
            .map_err(|(part, problem)| SpecError::value(&format!("{key}.{part}"), problem))
    }
}

impl StreamSpec {
    fn check(&self, key: &str, volumes: &[VolumeSpec]) -> Result<(), SpecError> {
        require(!self.volumes.is_empty(), &format!("{key}.volumes"), "a stream needs at least one volume")?;
        unique(&format!("{key}.volumes"), self.volumes.iter())?;
        let known: HashSet<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
        if let Some(name) = self.volumes.iter().find(|name| !known.contains(name.as_str())) {
            return Err(SpecError::value(&format!("{key}.volumes"), format!("there is no volume {name}")));
        }
        self.sizes.check(&format!("{key}.sizes"))?;
        for (name, percent) in [
            ("read_percent", Some(self.read_percent)),
            ("random_percent", Some(self.random_percent)),
            ("share_percent", self.share_percent),
            ("hit_area.read_percent", self.hit_area.map(|hit| hit.read_percent)),
            ("hit_area.write_percent", self.hit_area.map(|hit| hit.write_percent)),
        ] {
            between(&format!("{key}.{name}"), percent.unwrap_or(0.0), 0.0, 100.0)?;
        }
        between(&format!("{key}.rate_iops"), self.rate_iops.unwrap_or(1.0), 0.001, 1e9)?;
        between(&format!("{key}.compression_ratio"), self.compression_ratio.unwrap_or(1.0), 1.0, 512.0)?;
        let one = self.rate_iops.is_none() || self.share_percent.is_none();
        require(one, &format!("{key}.rate_iops"), "a stream has a rate or a share, not both")?;
        require(
            self.share_percent != Some(0.0),
            &format!("{key}.share_percent"),
            "leave the stream out instead",
        )?;
        require(self.align_bytes != Some(0), &format!("{key}.align_bytes"), "must not be 0")?;
        require(
            (1..=4096).contains(&self.cursors),
            &format!("{key}.cursors"),
            "must lie between 1 and 4096",
        )?;
        let ordered = self.stride.is_none_or(|stride| stride.min_bytes <= stride.max_bytes);
        require(ordered, &format!("{key}.stride"), "min_bytes is larger than max_bytes")?;
        self.check_passes(key)?;
        self.check_of_fio(key)?;
        self.dedup.map_or(Ok(()), |dedup| dedup.check(&format!("{key}.dedup")))?;
        self.check_trace(key)?;
        self.check_distribution(key)?;
        self.check_mix(key)?;
        let hit_is_whole = self.hit_area.is_none_or(|hit| hit.bytes >= u64::from(self.largest_io_bytes()));
        require(hit_is_whole, &format!("{key}.hit_area.bytes"), "must hold at least one I/O")?;
        for (name, range) in [("range", &self.range), ("hotband", &self.hotband)] {
            range.as_ref().map_or(Ok(()), |range| range.check(&format!("{key}.{name}")))?;
        }
        Ok(())
    }
}

impl StreamSpec {
    /// Passes of a stride that begin one after the other fill what the stride skips.
    fn check_passes(&self, key: &str) -> Result<(), SpecError> {
        let Some(stride) = self.stride.filter(|stride| stride.passes != 1) else { return Ok(()) };
        let fills = u64::from(stride.passes) * u64::from(self.largest_io_bytes()) <= u64::MAX / 2
            && stride.passes > 0
            && stride.min_bytes == stride.max_bytes
            && self.cursors == 1
            && self.random_percent >= 100.0
            && !self.separate_directions
            && !self.is_finite();
        let what =
            "at least 1; more only of a stride of one length, of a stream without an end, with one cursor";
        require(fills, &format!("{key}.stride.passes"), what)
    }

    /// What only job files of fio ask for.
    fn check_of_fio(&self, key: &str) -> Result<(), SpecError> {
        self.write_sizes.as_ref().map_or(Ok(()), |sizes| sizes.check(&format!("{key}.write_sizes")))?;
        let single = self.cursors == 1 && self.random_percent >= 100.0 && self.stride.is_none();
        require(
            self.ios_per_place == 1 || (self.ios_per_place > 1 && single),
            &format!("{key}.ios_per_place"),
            "at least 1; more only of a random stream without stride, with one cursor",
        )?;
        require(
            !self.read_back || (self.is_finite() && self.read_percent == 0.0),
            &format!("{key}.read_back"),
            "only of a stream of writes with stop_at_end, stop_after_bytes or stop_after_percent",
        )?;
        between(
            &format!("{key}.stop_after_percent"),
            self.stop_after_percent.unwrap_or(100.0),
            1e-6,
            STOP_PERCENT_MAX,
        )?;
        require(
            self.stop_after_bytes.is_none() || self.stop_after_percent.is_none(),
            &format!("{key}.stop_after_percent"),
            "not beside stop_after_bytes",
        )?;
        require(self.stop_after_bytes != Some(0), &format!("{key}.stop_after_bytes"), "must not be 0")?;
        require(
            !self.separate_directions || !self.stop_at_end,
            &format!("{key}.separate_directions"),
            "only of a stream that goes on at the end",
        )?;
        let Some(think) = self.think_time else { return Ok(()) };
        between(&format!("{key}.think_time.pause_s"), think.pause_s, 0.0, SECONDS_MAX)?;
        require(think.after_ios > 0, &format!("{key}.think_time.after_ios"), "must not be 0")?;
        require(
            self.rate_iops.is_none(),
            &format!("{key}.think_time"),
            "a stream has a rate or a think time, not both",
        )
    }
}

impl StreamSpec {
    /// A trace says all that a stream otherwise draws.
    fn check_trace(&self, key: &str) -> Result<(), SpecError> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let key = format!("{key}.trace");
        require(self.volumes.len() == 1, &key, "a trace is replayed on one volume")?;
        require(self.rate_iops.is_some(), &key, "a trace needs its mean rate as rate_iops")?;
        require(!self.read_back, &key, "a trace is not read back")?;
        require(trace.ios > 0, &format!("{key}.ios"), "must not be 0")?;
        require(trace.span_bytes > 0, &format!("{key}.span_bytes"), "must not be 0")?;
        between(&format!("{key}.time_scale"), trace.time_scale, 1e-6, 1e6)
    }
}

impl StreamSpec {
    /// Kinds of I/O have one position and nothing else together.
    fn check_mix(&self, key: &str) -> Result<(), SpecError> {
        if self.mix.is_empty() {
            return Ok(());
        }
        let key = format!("{key}.mix");
        let total: f64 = self.mix.iter().map(|part| part.share_percent).sum();
        require((total - 100.0).abs() < 0.5, &key, &format!("the shares add up to {total} instead of 100"))?;
        for part in &self.mix {
            for percent in [part.share_percent, part.read_percent, part.random_percent] {
                between(&key, percent, 0.0, 100.0)?;
            }
            let fits = (1..=self.largest_io_bytes()).contains(&part.size_bytes)
                && (1..=self.grid_bytes()).contains(&part.align_bytes);
            require(fits, &key, "a part is larger than the largest of sizes, or its grid than align_bytes")?;
        }
        let alone = self.distribution.is_none()
            && self.hotband.is_none()
            && self.hit_area.is_none()
            && self.stride.is_none()
            && !self.separate_directions
            && self.ios_per_place == 1
            && !self.is_finite();
        require(
            alone,
            &key,
            "only of a stream without an end, stride, hotband, hit_area, distribution and the like",
        )
    }

    fn check_distribution(&self, key: &str) -> Result<(), SpecError> {
        let Some(distribution) = &self.distribution else { return Ok(()) };
        let key = format!("{key}.distribution");
        let alone = self.hotband.is_none() && self.hit_area.is_none() && self.stride.is_none();
        require(alone, &key, "not together with hotband, hit_area or stride")?;
        distribution.check(&key)
    }
}

impl DistributionSpec {
    fn check(&self, key: &str) -> Result<(), SpecError> {
        require(!self.parts.is_empty(), key, "at least one [share, length] pair is needed")?;
        let is_in_percent = self.unit == RangeUnit::Percent;
        let (shares, lengths): (Vec<f64>, Vec<f64>) = self.parts.iter().copied().unzip();
        require(shares.iter().all(|share| *share >= 0.0), key, "shares must not be negative")?;
        let total: f64 = shares.iter().sum();
        require((total - 100.0).abs() < 0.5, key, &format!("the shares add up to {total} instead of 100"))?;
        let may_be_zero = |nth: usize| !is_in_percent && nth + 1 == lengths.len();
        let are_positive = lengths
            .iter()
            .enumerate()
            .all(|(nth, &length)| length > 0.0 || (length == 0.0 && may_be_zero(nth)));
        require(are_positive, key, "lengths must be above 0; in bytes the last one may be 0")?;
        let sum: f64 = lengths.iter().sum();
        require(
            if is_in_percent { (sum - 100.0).abs() < 1e-6 } else { sum < 2_f64.powi(62) },
            key,
            &format!("the lengths add up to {sum}; in percent 100 is needed, in bytes less than 2^62"),
        )
    }
}

impl SizeSpec {
    fn check(&self, key: &str) -> Result<(), SpecError> {
        match self {
            Self::Mix { parts } => {
                require(!parts.is_empty(), key, "at least one [bytes, percent] pair is needed")?;
                let total: f64 = parts.iter().map(|part| part.1).sum();
                require(
                    (total - 100.0).abs() < 0.5,
                    key,
                    &format!("the percentages add up to {total} instead of 100"),
                )?;
                require(parts.iter().all(|part| part.1 >= 0.0), key, "percentages must not be negative")?;
            }
            Self::Range { min_bytes, max_bytes, align_bytes } => {
                require(*align_bytes > 0 && *align_bytes <= SIZE_MAX, key, "align_bytes must not be 0")?;
                let room = min_bytes.div_ceil(*align_bytes).max(1) <= max_bytes / align_bytes
                    && *max_bytes <= SIZE_MAX;
                require(room, key, "no multiple of align_bytes is between min_bytes and max_bytes")?;
                require(*min_bytes > 0, key, "min_bytes must not be 0")?;
            }
        }
        let (smallest, largest) = self.bounds();
        require(smallest > 0 && largest <= SIZE_MAX, key, "sizes must lie between 1 byte and 1 GiB")
    }
}

impl DedupSpec {
    pub(crate) fn check(self, key: &str) -> Result<(), SpecError> {
        between(&format!("{key}.ratio"), self.ratio, 1.0, 1e9)?;
        between(&format!("{key}.sets_percent"), self.sets_percent, 0.0, 100.0)?;
        require(self.sets != Some(0), &format!("{key}.sets"), "must not be 0")?;
        let unit = &format!("{key}.unit_bytes");
        require(self.unit_bytes > 0 && self.unit_bytes.is_multiple_of(512), unit, "needs a multiple of 512")?;
        require(self.unit_bytes <= 16 << 20, unit, "at most 16 MiB")
    }
}

impl RangeSpec {
    fn check(&self, key: &str) -> Result<(), SpecError> {
        require(self.start >= 0.0 && self.end > self.start, key, "needs 0 <= start < end")?;
        let percent = self.unit == RangeUnit::Percent;
        let inside = !percent || (self.start < 100.0 && self.end <= 200.0 && self.end - self.start <= 100.0);
        require(
            inside,
            key,
            "a range in percent starts below 100, covers at most 100, and may wrap up to 200",
        )?;
        require(self.end.is_finite(), key, "must be finite")
    }
}

fn require(condition: bool, key: &str, problem: &str) -> Result<(), SpecError> {
    if condition { Ok(()) } else { Err(SpecError::value(key, problem.to_owned())) }
}

fn between(key: &str, value: f64, least: f64, most: f64) -> Result<(), SpecError> {
    require((least..=most).contains(&value), key, &format!("{value} does not lie between {least} and {most}"))
}

fn unique<'a>(key: &str, names: impl Iterator<Item = &'a String>) -> Result<(), SpecError> {
    let mut seen = HashSet::new();
    for name in names {
        require(seen.insert(name), key, &format!("{name} is named twice"))?;
    }
    Ok(())
}

/// The specification is wrong (fault: always the user). The message names the key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// Not the JSON form.
    #[error("the run specification is not valid: {0}")]
    Json(String),
    /// Another version.
    #[error("run specification version {0} is not supported; this build reads version {SPEC_VERSION}")]
    Version(u32),
    /// A value is outside its range or contradicts another.
    #[error("{key}: {problem}")]
    Value {
        /// The key, such as `streams.wd1.read_percent`.
        key: String,
        /// What is wrong and what is accepted.
        problem: String,
    },
}

impl SpecError {
    pub(crate) fn value(key: &str, problem: impl Into<String>) -> Self {
        Self::Value { key: key.to_owned(), problem: problem.into() }
    }
}
