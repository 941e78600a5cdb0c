//! Streams: the sequence of I/Os.
//!
//! A *flow* is one stream on one volume. It has its own generator ([`rng`]), so its sequence of sizes ([`size`]),
//! operations and offsets ([`address`]) depends only on the run's seed, not on timing and not on other flows. The start
//! of its next I/O is separate: as soon as a slot is free and the shares permit it ([`share`]), or at intended times
//! that are fixed in advance ([`arrival`]).

pub(crate) mod address;
pub(crate) mod arrival;
pub(crate) mod rng;
pub(crate) mod share;
pub(crate) mod size;

use crate::{record::Op, spec::StreamSpec};
use address::{Address, PlaceError};
use rng::{Chance, Rng, Use};
use size::Sizes;

/// One I/O of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shot {
    /// Direction.
    pub(crate) op: Op,
    /// Offset in the volume, in bytes.
    pub(crate) offset: u64,
    /// Length in bytes.
    pub(crate) len: u32,
}

/// The sequence of I/Os of one stream on one volume.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    rng: Rng,
    reads: Chance,
    sizes: Sizes,
    address: Address,
}

impl Sequence {
    /// For the stream and volume with these indices.
    pub(crate) fn new(
        spec: &StreamSpec,
        (seed, stream, volume): (u64, u32, u32),
        volume_bytes: u64,
        block_bytes: u32,
    ) -> Result<Self, PlaceError> {
        Ok(Self {
            rng: Rng::new(seed, stream, volume, Use::Shots),
            reads: Chance::percent(spec.read_percent),
            sizes: Sizes::new(&spec.sizes),
            address: Address::new(spec, volume_bytes, block_bytes)?,
        })
    }

    /// The next I/O; `None` at the end of a stream that stops there.
    pub(crate) fn draw(&mut self) -> Option<Shot> {
        let is_read = self.reads.roll(&mut self.rng);
        let size = self.sizes.draw(&mut self.rng);
        let (offset, len) = self.address.draw(size, is_read, &mut self.rng)?;
        Some(Shot { op: if is_read { Op::Read } else { Op::Write }, offset, len })
    }
}

#[cfg(test)]
mod tests {
    use super::{Sequence, Shot};
    use crate::record::Op;

    fn shots(seed: u64, volume: u32, json: &str) -> Vec<Shot> {
        let text = format!(
            r#"{{"name": "s", "volumes": ["v"], "sizes": {{"kind": "mix", "parts": [[4096, 60], [8192, 40]]}}, {json}}}"#
        );
        let spec = serde_json::from_str(&text).unwrap();
        let mut sequence = Sequence::new(&spec, (seed, 0, volume), 1 << 30, 512).unwrap();
        (0..50_000).map_while(|_| sequence.draw()).collect()
    }

    #[test]
    fn the_seed_decides_the_whole_sequence() {
        let json = r#""read_percent": 67, "random_percent": 80"#;
        assert_eq!(shots(1, 0, json), shots(1, 0, json));
        assert_ne!(shots(1, 0, json), shots(2, 0, json));
        assert_ne!(shots(1, 0, json), shots(1, 1, json));
    }

    #[test]
    fn reads_come_in_the_requested_proportion() {
        for percent in [0.0, 33.0, 67.0, 100.0] {
            let drawn = shots(3, 0, &format!(r#""read_percent": {percent}"#));
            let reads = drawn.iter().filter(|shot| shot.op == Op::Read).count() as f64;
            assert!((reads / drawn.len() as f64 * 100.0 - percent).abs() < 1.0, "{reads} reads");
        }
    }
}
