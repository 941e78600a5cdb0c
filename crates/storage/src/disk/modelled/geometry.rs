//! The position of bytes on a rotating drive, and the time that the arm takes from one position to another.

use super::drives::{RotatingSheet, SeekTimes};
use linerate_io::Nanos;

/// Zones of a drive; all tracks of a zone have the same length.
const ZONES: u32 = 32;
const TRACK_UNIT_BYTES: u64 = 4096;

/// Tracks in zones: as many as the disk's bytes fill, over the full stroke of the drive.
#[derive(Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    /// One revolution.
    period: Nanos,
    /// From the end of a track to the start of the next one, while the platter turns: the skew of the tracks.
    switch: Nanos,
    heads: u64,
    read_seek: SeekCurve,
    write_seek: SeekCurve,
}

#[derive(Debug)]
struct Zone {
    first_byte: u64,
    bytes: u64,
    track_bytes: u64,
}

/// A place on the medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    zone: u32,
    /// Counted from the zone's first.
    track: u64,
    /// Time in a revolution at which the place passes under the head.
    angle: Nanos,
    /// Share of the stroke.
    stroke: f64,
}

impl Geometry {
    /// A drive of `size_bytes` with the seeks and rates of the sheet, at a smaller scale if the drive of the sheet is
    /// larger.
    pub(super) fn new(sheet: &RotatingSheet, size_bytes: u64) -> Self {
        let period = (60e9 / sheet.rpm).round();
        let switch = (sheet.write_seek.single_us * 1e3).round();
        let track_bytes = |zone: u32| {
            let inwards = f64::from(zone) / f64::from(ZONES - 1);
            let rate = sheet.outer_mb_s + (sheet.inner_mb_s - sheet.outer_mb_s) * inwards;
            let bytes = rate * 1e6 * (period + switch) / 1e9;
            (bytes / TRACK_UNIT_BYTES as f64).round() as u64 * TRACK_UNIT_BYTES
        };
        let all: u64 = (0..ZONES).map(track_bytes).sum();
        let mut first_byte = 0;
        let zones = (0..ZONES)
            .map(|zone| {
                let track_bytes = track_bytes(zone);
                let share = size_bytes as f64 * track_bytes as f64 / all as f64;
                let last = zone == ZONES - 1;
                let rounded = (share / TRACK_UNIT_BYTES as f64).round() as u64 * TRACK_UNIT_BYTES;
                let left = size_bytes - first_byte;
                let bytes = if last { left } else { rounded.min(left) };
                first_byte += bytes;
                Zone { first_byte: first_byte - bytes, bytes, track_bytes }
            })
            .filter(|zone| zone.bytes > 0)
            .collect();
        Self {
            zones,
            period: period as Nanos,
            switch: switch as Nanos,
            heads: sheet.heads.into(),
            read_seek: SeekCurve::new(sheet.read_seek),
            write_seek: SeekCurve::new(sheet.write_seek),
        }
    }

    /// One revolution.
    pub(super) fn period(&self) -> Nanos {
        self.period
    }

    /// The position of a byte.
    pub(super) fn place(&self, offset: u64) -> Place {
        let nth = self.zones.partition_point(|zone| zone.first_byte <= offset).saturating_sub(1);
        let zone = &self.zones[nth];
        let within = offset - zone.first_byte;
        let (track, on_track) = (within / zone.track_bytes, within % zone.track_bytes);
        let turned = (u128::from(on_track) * u128::from(self.period) / u128::from(zone.track_bytes)) as Nanos;
        let skewed = (u128::from(track) * u128::from(self.switch) % u128::from(self.period)) as Nanos;
        Place {
            zone: nth as u32,
            track,
            angle: (turned + skewed) % self.period,
            stroke: (nth as f64 + within as f64 / zone.bytes as f64) / self.zones.len() as f64,
        }
    }

    /// Time from one place to the track of another, until a transfer can start there.
    pub(super) fn seek(&self, from: &Place, to: &Place, writes: bool) -> Nanos {
        if (from.zone, from.track / self.heads) == (to.zone, to.track / self.heads) {
            return if from.track == to.track { 0 } else { self.switch };
        }
        let curve = if writes { &self.write_seek } else { &self.read_seek };
        curve.time((from.stroke - to.stroke).abs())
    }

    /// Time until a place is under the head, from an instant on.
    pub(super) fn rotation(&self, at: Nanos, to: &Place) -> Nanos {
        /// Gap between two sectors; it also covers rounding to nanoseconds.
        const GAP_NS: Nanos = 1000;
        let wait = (to.angle + self.period - at % self.period) % self.period;
        if wait + GAP_NS > self.period { 0 } else { wait }
    }

    /// Time of `len` bytes from `offset` on under the heads, with the changes of tracks between them.
    pub(super) fn transfer(&self, offset: u64, len: u64) -> Nanos {
        let (mut at, mut left, mut time) = (offset, len, 0);
        for zone in self.zones.iter().skip(self.place(offset).zone as usize) {
            let within = at - zone.first_byte;
            let here = left.min(zone.bytes - within);
            if here > 0 {
                let changes = (within + here - 1) / zone.track_bytes - within / zone.track_bytes;
                let turning = u128::from(here) * u128::from(self.period) / u128::from(zone.track_bytes);
                time += turning as Nanos + changes * self.switch;
            }
            (at, left) = (at + here, left - here);
            if left == 0 {
                break;
            }
            time += self.switch;
        }
        time
    }

    /// How many bytes from `offset` on pass under the heads in `time`, if its zone did not end.
    pub(super) fn passed(&self, offset: u64, time: Nanos) -> u64 {
        let zone = &self.zones[self.place(offset).zone as usize];
        let bytes =
            |time: Nanos| (u128::from(time) * u128::from(zone.track_bytes) / u128::from(self.period)) as u64;
        let on_track = zone.track_bytes - (offset - zone.first_byte) % zone.track_bytes;
        let here = bytes(time);
        if here <= on_track {
            return here;
        }
        let left = time.saturating_sub(self.transfer(offset, on_track));
        let (tracks, rest) = (left / (self.period + self.switch), left % (self.period + self.switch));
        on_track + tracks * zone.track_bytes + bytes(rest.saturating_sub(self.switch))
    }
}

/// Seek time over distance, in nanoseconds. One part grows with the square root (the arm accelerates all the time), and
/// one is linear (the arm has its full speed). They are chosen to match single track, average and full stroke of the
/// sheet.
#[derive(Clone, Copy, Debug)]
struct SeekCurve {
    single: f64,
    root: f64,
    even: f64,
}

impl SeekCurve {
    fn new(times: SeekTimes) -> Self {
        // The distance f between two random places has the density 2 (1 - f): its mean is 1/3, that of its root 8/15.
        let (average, full) = (times.average_us - times.single_us, times.full_us - times.single_us);
        let root_us = (average - full / 3.0) / (8.0 / 15.0 - 1.0 / 3.0);
        Self { single: times.single_us * 1e3, root: root_us * 1e3, even: (full - root_us) * 1e3 }
    }

    fn time(&self, distance: f64) -> Nanos {
        (self.single + self.root * distance.sqrt() + self.even * distance).round() as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::super::drives::{DRIVES, Mechanism};
    use super::*;
    use proptest::prelude::*;

    fn sheets() -> impl Iterator<Item = (&'static str, &'static RotatingSheet)> {
        DRIVES.iter().filter_map(|drive| match &drive.mechanism {
            Mechanism::Rotating(sheet) => Some((drive.name, sheet)),
            Mechanism::Flash(_) => None,
        })
    }

    #[test]
    fn the_curve_meets_the_sheets_three_figures() {
        for (name, sheet) in sheets() {
            for times in [sheet.read_seek, sheet.write_seek] {
                let curve = SeekCurve::new(times);
                assert_eq!(curve.time(0.0), (times.single_us * 1e3) as Nanos, "{name}");
                assert_eq!(curve.time(1.0), (times.full_us * 1e3) as Nanos, "{name}");
                let distances =
                    (0..500 * 500).map(|pair: i32| f64::from((pair / 500).abs_diff(pair % 500)) / 500.0);
                let sum: Nanos = distances.map(|distance| curve.time(distance)).sum();
                let off = sum as f64 / 250e6 / times.average_us - 1.0;
                assert!(off.abs() < 0.01, "{name}: {off}");
            }
        }
    }

    proptest! {
        /// A single transfer takes as long as its parts one after another.
        #[test]
        fn transfers_add_up(size_mib in 1_u64..5000, at in 0.0..1.0_f64, len in 1_u64..2000, cut in 0.0..1.0_f64) {
            for (name, sheet) in sheets() {
                let size_bytes = size_mib << 20;
                let geometry = Geometry::new(sheet, size_bytes);
                let offset = (at * size_bytes as f64) as u64 / 512 * 512;
                let len = (len * 512).min(size_bytes - offset);
                let first = (cut * len as f64) as u64 / 512 * 512;
                let whole = geometry.transfer(offset, len);
                let (one, two) = (geometry.transfer(offset, first), geometry.transfer(offset + first, len - first));
                let next = geometry.place(offset + first);
                let from = geometry.place(offset + first.saturating_sub(1));
                let gap = if first == 0 || first == len { 0 } else {
                    let gap = geometry.seek(&from, &next, true);
                    if gap == 0 { 0 } else { geometry.switch }
                };
                prop_assert!(whole.abs_diff(one + two + gap) <= 3, "{name} {whole} {one} {two} {gap}");
            }
        }
    }
}
