//! Written data with duplicates, by vdbench's rules (5.04.06).
//!
//! A volume is seen as units. A unit has data of its own, or those of a set: `unit % sets`. The share of the units
//! with their own data is 1 / ratio less the share of the sets, so that units divided by different units is the ratio.
//! The place decides it: all runs and hosts make the same duplicates on a volume, which its name tells from others.

use crate::{
    spec::DedupSpec,
    stream::rng::{Chance, Rng, Use, mix},
};
use std::sync::Arc;

const PAGE_BYTES: u64 = 4096;
/// Units begin at one of the pages of this part of the pattern.
const PATTERN_BYTES: u64 = 1 << 20;

/// Random bytes of which units are cut, always the same.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    unit: u64,
    ratio: f64,
    bytes: Arc<[u8]>,
}

/// The duplicates of one stream on one volume.
#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    pattern: Pattern,
    sets: u64,
    own: Chance,
    key: u64,
    seed: u64,
}

/// A part of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitPart {
    /// Distance from the start of the write, in bytes.
    pub(crate) at: u64,
    from: u64,
    to: u64,
    number: u64,
}

impl Pattern {
    /// For units of `unit` bytes that compress `ratio` to one.
    pub(crate) fn new(unit: u64, ratio: f64) -> Self {
        let mut rng = Rng::new(0, u32::MAX, 0, Use::Payload);
        let chunk = unit.min(PAGE_BYTES);
        let random = ((chunk as f64 / ratio.max(1.0)) as u64).next_multiple_of(8);
        let word = |at: u64| if at % chunk < random { rng.bits() } else { 0 };
        let words = (0..PATTERN_BYTES + unit).step_by(8).map(word);
        Self { unit, ratio, bytes: words.flat_map(u64::to_le_bytes).collect() }
    }

    /// Whether it is that of such units.
    pub(crate) fn is_of(&self, unit: u64, ratio: f64) -> bool {
        self.unit == unit && self.ratio.total_cmp(&ratio).is_eq()
    }
}

impl Duplicates {
    /// For the used part of a volume. The error: what is wrong with the number of sets.
    pub(crate) fn new(
        spec: DedupSpec,
        pattern: Pattern,
        volume_bytes: u64,
        (seed, volume): (u64, &str),
    ) -> Result<Self, String> {
        let units = (volume_bytes / pattern.unit).max(1) as f64;
        let sets = spec.sets.map_or(units * spec.sets_percent / 100.0, |sets| sets as f64).floor().max(1.0);
        let own_percent = 100.0 / spec.ratio - sets * 100.0 / units;
        if own_percent < 0.0 && sets > 1.0 {
            return Err(format!(
                "dedup: {sets} sets are more than the {:.0} different units that a ratio of {} leaves of {units}; \
                 ask for fewer sets (vdbench: dedupsets=) or a smaller ratio",
                units / spec.ratio,
                spec.ratio
            ));
        }
        // A ratio of 1 has no duplicates, whatever the sets.
        let own = Chance::percent(if spec.ratio <= 1.0 { 100.0 } else { own_percent });
        Ok(Self {
            pattern,
            sets: sets as u64,
            own,
            key: volume.bytes().fold(0, |key, byte| mix(key ^ u64::from(byte))),
            seed: mix(seed),
        })
    }

    /// The parts of units that a write covers.
    pub(crate) fn parts(&self, offset: u64, len: u64) -> impl Iterator<Item = UnitPart> + use<> {
        let (unit, end) = (self.pattern.unit, offset + len);
        (offset / unit..end.div_ceil(unit)).map(move |number| {
            let start = number * unit;
            let (from, to) = (offset.max(start) - start, end.min(start + unit) - start);
            UnitPart { at: start + from - offset, from, to, number }
        })
    }

    /// The bytes of a part without its stamps. `own`: a number that no other write has.
    pub(crate) fn bytes(&self, part: UnitPart, own: u64) -> &[u8] {
        let pages = PATTERN_BYTES / PAGE_BYTES;
        let start = self.name(part.number, own) % pages * PAGE_BYTES;
        &self.pattern.bytes[(start + part.from) as usize..(start + part.to) as usize]
    }

    /// The stamps of a part: distance from the start of the write, and 8 bytes that make the data its own or its set's.
    pub(crate) fn stamps(&self, part: UnitPart, own: u64) -> impl Iterator<Item = (u64, [u8; 8])> + use<> {
        let chunk = self.pattern.unit.min(PAGE_BYTES);
        let name = self.name(part.number, own);
        let first = part.from.next_multiple_of(chunk);
        (first..part.to).step_by(chunk as usize).map(move |at| {
            let stamp = mix(name.wrapping_add(at / chunk));
            (part.at + at - part.from, stamp.to_le_bytes())
        })
    }

    /// Equal for units with equal data.
    fn name(&self, number: u64, own: u64) -> u64 {
        match self.set_of(number) {
            Some(set) => mix(self.key ^ set),
            None => mix(!self.key ^ mix(self.seed ^ own)),
        }
    }

    /// The set of a unit; None: it has data of its own.
    fn set_of(&self, number: u64) -> Option<u64> {
        let is_own = match self.own {
            Chance::Never => false,
            Chance::Below(limit) => mix(self.key.wrapping_add(number)) < limit,
            Chance::Always => true,
        };
        (!is_own).then(|| number % self.sets)
    }
}

#[cfg(test)]
mod tests {
    use super::{Duplicates, Pattern};
    use crate::spec::DedupSpec;
    use std::collections::HashSet;

    const UNITS: u64 = 10_000;

    fn spec(ratio: f64, unit_bytes: u32, sets: Option<u64>) -> DedupSpec {
        DedupSpec { ratio, unit_bytes, sets_percent: 5.0, sets }
    }

    fn made(ratio: f64, unit: u64, sets: Option<u64>) -> Result<Duplicates, String> {
        let pattern = Pattern::new(unit, 1.0);
        Duplicates::new(spec(ratio, unit as u32, sets), pattern, UNITS * unit, (1, "sd1"))
    }

    /// A volume that is written by I/Os of one size.
    fn written(duplicates: &Duplicates, unit: u64, io: u64) -> Vec<u8> {
        let mut volume = vec![0; (UNITS * unit) as usize];
        let mut own = 0;
        for offset in (0..UNITS * unit).step_by(io as usize) {
            for part in duplicates.parts(offset, io) {
                own += 100;
                let at = (offset + part.at) as usize;
                let bytes = duplicates.bytes(part, own);
                volume[at..at + bytes.len()].copy_from_slice(bytes);
                for (at, stamp) in duplicates.stamps(part, own) {
                    let at = (offset + at) as usize;
                    volume[at..at + 8].copy_from_slice(&stamp);
                }
            }
        }
        volume
    }

    fn different(volume: &[u8], unit: u64) -> usize {
        volume.chunks(unit as usize).collect::<HashSet<_>>().len()
    }

    #[test]
    fn a_volume_has_as_many_different_units_as_its_ratio_says() {
        for (ratio, unit, io, sets) in [
            (2.0, 4096, 8192, None),
            (4.0, 512, 4096, None),
            (3.0, 1536, 3072, Some(7)),
            (1.0, 512, 512, None),
        ] {
            let volume = written(&made(ratio, unit, sets).unwrap(), unit, io);
            let found = UNITS as f64 / different(&volume, unit) as f64;
            assert!((found / ratio - 1.0).abs() < 0.03, "{found}:1 instead of {ratio}:1");
        }
    }

    #[test]
    fn ios_smaller_than_a_unit_make_the_same_duplicates() {
        let duplicates = made(2.5, 4096, None).unwrap();
        let whole = different(&written(&duplicates, 4096, 4096), 4096);
        assert_eq!(different(&written(&duplicates, 4096, 1024), 4096), whole);
    }

    #[test]
    fn one_set_may_be_all_there_is_but_too_many_are_refused() {
        assert_eq!(different(&written(&made(1e6, 512, Some(1)).unwrap(), 512, 512), 512), 1);
        let error = made(40.0, 512, None).unwrap_err();
        assert!(error.contains("500 sets are more than the 250 different units"), "{error}");
    }

    #[test]
    fn units_compress_as_asked() {
        let pattern = Pattern::new(4096, 4.0);
        let zeros = pattern.bytes[..4096].iter().map(|byte| usize::from(*byte == 0)).sum::<usize>();
        assert!((3072..3100).contains(&zeros), "{zeros}");
    }
}
