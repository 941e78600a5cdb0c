//! Streams: the sequence of I/Os.
//!
//! A *flow* is one stream on one volume. It has its own generator ([`rng`]), so its sequence of sizes ([`size`]),
//! operations and offsets ([`address`]) depends only on the run's seed, not on timing and not on other flows. The start
//! of its next I/O is separate: as soon as a slot is free and the shares permit it ([`share`]), or at intended times
//! that are fixed in advance ([`arrival`]). A trace ([`trace`]) replaces both, the I/Os and their times.

pub(crate) mod address;
pub(crate) mod arrival;
pub(crate) mod mix;
pub(crate) mod rng;
pub(crate) mod share;
pub(crate) mod size;
pub(crate) mod trace;

use crate::{record::Op, spec::StreamSpec};
use address::{Address, PlaceError};
use mix::{Mix, MixPart, mix_of};
use rng::{Chance, Rng, Use};
use size::Sizes;
use std::sync::Arc;
use trace::{Replay, Trace};

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
    /// Those of writes, if they are others.
    write_sizes: Option<Box<Sizes>>,
    address: Address,
    /// Of a stream with several kinds of I/O.
    mix: Option<Box<Mix>>,
    /// Of a stream that stops after an amount, or that reads back.
    amount: Option<Box<Amount>>,
    /// Recorded I/Os, which are not drawn.
    replay: Option<Box<Replay>>,
}

/// How much a stream does before it stops.
#[derive(Clone, Debug)]
struct Amount {
    limit_bytes: u64,
    left_bytes: u64,
    reading_back: ReadBack,
    /// The generator at the start, to draw the same places again.
    first_rng: Rng,
}

/// Whether a stream that stops then reads what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadBack {
    Never,
    AfterWrites,
    Now,
}

impl Sequence {
    /// For the stream and volume with these indices.
    pub(crate) fn new(
        spec: &StreamSpec,
        (seed, stream, volume): (u64, u32, u32),
        volume_bytes: u64,
        block_bytes: u32,
    ) -> Result<Self, PlaceError> {
        let rng = Rng::new(seed, stream, volume, Use::Shots);
        let address = Address::new(spec, volume_bytes, block_bytes)?;
        let limit_bytes = match spec.stop_after_percent {
            Some(percent) => ((address.part_bytes() as f64 * percent / 100.0) as u64).max(1),
            None => spec.stop_after_bytes.unwrap_or(u64::MAX),
        };
        let amount = || Amount {
            limit_bytes,
            left_bytes: limit_bytes,
            reading_back: if spec.read_back { ReadBack::AfterWrites } else { ReadBack::Never },
            first_rng: rng.clone(),
        };
        Ok(Self {
            amount: (spec.read_back || spec.stops_after_an_amount()).then(|| Box::new(amount())),
            reads: Chance::percent(spec.read_percent),
            sizes: Sizes::new(&spec.sizes),
            write_sizes: spec.write_sizes.as_ref().map(|sizes| Box::new(Sizes::new(sizes))),
            address,
            mix: mix_of(&spec.mix),
            rng,
            replay: None,
        })
    }

    /// The same with the I/Os of a trace.
    pub(crate) fn replaying(self, trace: Trace) -> Self {
        Self { replay: Some(Box::new(Replay::new(trace))), ..self }
    }

    /// The trace that it replays.
    pub(crate) fn trace(&self) -> Option<&Arc<Trace>> {
        self.replay.as_ref().map(|replay| &replay.trace)
    }

    /// Sequential places begin anew.
    pub(crate) fn rewind(&mut self) {
        self.address.rewind();
    }

    /// Whether it is known that no I/O follows.
    pub(crate) fn is_at_end(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.is_at_end())
    }

    /// The next I/O; `None` at the end of a stream that stops there.
    #[inline]
    pub(crate) fn draw(&mut self) -> Option<Shot> {
        if let Some(replay) = &mut self.replay {
            return replay.draw();
        }
        if self.amount.is_some() {
            return self.draw_of_amount();
        }
        if let Some(mix) = &self.mix {
            let part = *mix.draw(&mut self.rng);
            return self.draw_of_part(&part);
        }
        let is_read = self.reads.roll(&mut self.rng);
        self.draw_in(is_read)
    }

    /// The next I/O of a kind.
    fn draw_of_part(&mut self, part: &MixPart) -> Option<Shot> {
        let is_read = part.reads.roll(&mut self.rng);
        let place = self.address.draw_with(part.size, is_read, (part.jump, Some(part.align)), &mut self.rng);
        let (offset, len) = place?;
        Some(Shot { op: if is_read { Op::Read } else { Op::Write }, offset, len })
    }

    /// The same for a stream that stops after an amount, or that reads back.
    fn draw_of_amount(&mut self) -> Option<Shot> {
        if let Some(shot) = self.draw_of_pass() {
            return Some(shot);
        }
        let amount = self.amount.as_mut()?;
        if amount.reading_back != ReadBack::AfterWrites {
            return None;
        }
        amount.reading_back = ReadBack::Now;
        amount.left_bytes = amount.limit_bytes;
        self.rng = amount.first_rng.clone();
        self.address.rewind();
        self.draw_of_pass()
    }

    fn draw_of_pass(&mut self) -> Option<Shot> {
        let amount = self.amount.as_ref()?;
        if amount.left_bytes == 0 {
            return None;
        }
        let is_read = amount.reading_back == ReadBack::Now || self.reads.roll(&mut self.rng);
        let shot = self.draw_in(is_read)?;
        let amount = self.amount.as_mut()?;
        amount.left_bytes = amount.left_bytes.saturating_sub(shot.len.into());
        Some(shot)
    }

    /// The next I/O of a direction.
    #[inline]
    fn draw_in(&mut self, is_read: bool) -> Option<Shot> {
        let sizes = match &self.write_sizes {
            Some(sizes) if !is_read => sizes,
            _ => &self.sizes,
        };
        let size = sizes.draw(&mut self.rng);
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
    fn writes_have_sizes_and_places_of_their_own() {
        let json = r#""read_percent": 50, "random_percent": 0, "separate_directions": true, "write_sizes":
            {"kind": "mix", "parts": [[16384, 100]]}"#;
        let drawn = shots(7, 0, json);
        for (op, sizes) in [(Op::Read, vec![4096, 8192]), (Op::Write, vec![16384])] {
            let own: Vec<&Shot> = drawn.iter().filter(|shot| shot.op == op).take(1000).collect();
            assert_eq!(own[0].offset, 0);
            assert!(own.windows(2).all(|pair| pair[1].offset == pair[0].offset + u64::from(pair[0].len)));
            assert!(own.iter().all(|shot| sizes.contains(&shot.len)), "{op:?}");
        }
    }

    #[test]
    fn what_was_written_to_the_end_is_read_once() {
        let json = r#""read_percent": 0, "stop_at_end": true, "read_back": true,
            "range": {"unit": "bytes", "start": 65536, "end": 1048576}"#;
        let drawn = shots(8, 0, json);
        let of = |op| drawn.iter().filter(|shot| shot.op == op).map(|shot| u64::from(shot.len)).sum::<u64>();
        assert_eq!((of(Op::Write), of(Op::Read)), (1_048_576 - 65_536, 1_048_576 - 65_536));
        let first_read = drawn.iter().position(|shot| shot.op == Op::Read).unwrap();
        assert!(drawn[first_read..].iter().all(|shot| shot.op == Op::Read));
        assert_eq!(drawn[first_read].offset, 65_536);
    }

    #[test]
    fn an_amount_of_random_writes_is_read_at_the_same_places() {
        let json = r#""read_percent": 0, "stop_after_bytes": 1000000, "read_back": true"#;
        let drawn = shots(9, 0, json);
        let (writes, reads) = drawn.split_at(drawn.len() / 2);
        let bytes: u64 = writes.iter().map(|shot| u64::from(shot.len)).sum();
        assert!((1_000_000..1_008_192).contains(&bytes), "{bytes}");
        assert!(writes.iter().all(|shot| shot.op == Op::Write));
        assert!(reads.iter().zip(writes).all(|(read, write)| {
            (read.op, read.offset, read.len) == (Op::Read, write.offset, write.len)
        }));
        assert_eq!(reads.len(), writes.len());
    }

    #[test]
    fn an_amount_in_percent_is_of_the_part_of_the_volume() {
        let part = r#""range": {"unit": "bytes", "start": 1048576, "end": 5242880}"#;
        for (percent, expected) in [(50, 2 << 20), (100, 4 << 20), (250, 10 << 20)] {
            let drawn = shots(4, 0, &format!(r#""stop_after_percent": {percent}, {part}"#));
            let bytes: u64 = drawn.iter().map(|shot| u64::from(shot.len)).sum();
            assert!((expected..expected + 8192).contains(&bytes), "{percent} %: {bytes}");
            assert!(drawn.iter().all(|shot| (1 << 20..5 << 20).contains(&shot.offset)));
        }
        let drawn = shots(4, 0, r#""stop_after_percent": 1e-6, "read_percent": 0, "read_back": true"#);
        assert_eq!(drawn.len(), 2, "at least one I/O, read back");
    }

    #[test]
    fn kinds_of_io_have_shares_and_places_of_their_own_and_one_position() {
        let json = r#""align_bytes": 4096, "mix": [
            {"share_percent": 25, "size_bytes": 8192, "read_percent": 100, "random_percent": 100, "align_bytes": 8192},
            {"share_percent": 75, "size_bytes": 4096, "read_percent": 0, "random_percent": 0, "align_bytes": 4096}]"#;
        let drawn = shots(6, 0, json);
        let reads: Vec<&Shot> = drawn.iter().filter(|shot| shot.op == Op::Read).collect();
        let percent = reads.len() as f64 / drawn.len() as f64 * 100.0;
        assert!((percent - 25.0).abs() < 1.0, "{percent} % are of the first kind");
        assert!(drawn.iter().all(|shot| (shot.len == 8192) == (shot.op == Op::Read)));
        assert!(reads.iter().all(|shot| shot.offset % 8192 == 0));
        let follows = |pair: &[Shot]| pair[1].offset == pair[0].offset + u64::from(pair[0].len);
        let goes_on = drawn.windows(2).filter(|pair| pair[1].op == Op::Write).all(follows);
        assert!(goes_on, "what is not random follows the last I/O of any kind");
        assert!(drawn.windows(2).filter(|pair| pair[1].op == Op::Read && follows(pair)).count() < 20);
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
