//! Recorded I/Os: a trace that one stream replays on one volume. It is read and placed on the volume when the volume is
//! opened, so that the path of an I/O only walks along it.

use super::Shot;
use crate::{
    record::Op,
    spec::{TracePlacement, TraceSpec},
};
use linerate_io::Nanos;
use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    sync::Arc,
};
use thiserror::Error;

/// Bytes of one I/O in the file: time in ns, offset in bytes, length in bytes, direction (0 = read, 1 = write), all
/// little endian.
const RECORD_BYTES: u64 = 24;

/// The I/Os of one flow in the order of their times, placed on its volume.
#[derive(Debug)]
pub(crate) struct Trace {
    ios: Box<[TraceIo]>,
}

/// One I/O, with its scaled time since the start of the run.
#[derive(Clone, Copy, Debug)]
struct TraceIo {
    at_ns: Nanos,
    shot: Shot,
}

impl Trace {
    /// Reads the part of the file that `spec` names and places it on a volume of `volume_bytes`. `largest_bytes`: the
    /// largest read and write that the buffers hold.
    pub(crate) fn read(
        spec: &TraceSpec,
        volume_bytes: u64,
        block_bytes: u32,
        largest_bytes: (u32, u32),
    ) -> Result<Self, TraceError> {
        let unreadable = |error: std::io::Error| TraceError::Unreadable(spec.path.clone(), error.to_string());
        let mut file = File::open(&spec.path).map_err(unreadable)?;
        file.seek(SeekFrom::Start(spec.first_io.saturating_mul(RECORD_BYTES))).map_err(unreadable)?;
        let mut file = BufReader::with_capacity(1 << 16, file);
        let volume = Place::new(spec, volume_bytes, block_bytes);
        let mut ios = Vec::new();
        let mut last_ns = 0;
        for nth in 0..spec.ios {
            let mut record = [0; RECORD_BYTES as usize];
            file.read_exact(&mut record).map_err(unreadable)?;
            let damaged = || TraceError::Damaged(spec.path.clone(), spec.first_io + nth);
            let (recorded_ns, offset, len, op) = decoded(&record).ok_or_else(damaged)?;
            let at_ns = (recorded_ns as f64 * spec.time_scale) as Nanos;
            let most = if op == Op::Read { largest_bytes.0 } else { largest_bytes.1 };
            let (offset, len) = volume.place(offset, len)?;
            if at_ns < last_ns || len > most {
                return Err(damaged());
            }
            last_ns = at_ns;
            ios.push(TraceIo { at_ns, shot: Shot { op, offset, len } });
        }
        Ok(Self { ios: ios.into() })
    }

    /// The intended time of an I/O; a time that never comes after the last one.
    pub(crate) fn time(&self, at: usize, start: Nanos) -> Nanos {
        self.ios.get(at).map_or(Nanos::MAX, |io| start + io.at_ns)
    }
}

/// A position in a trace.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    pub(crate) trace: Arc<Trace>,
    at: usize,
}

impl Replay {
    /// At the first I/O.
    pub(crate) fn new(trace: Trace) -> Self {
        Self { trace: Arc::new(trace), at: 0 }
    }

    /// The next I/O.
    pub(crate) fn draw(&mut self) -> Option<Shot> {
        let shot = self.trace.ios.get(self.at)?.shot;
        self.at += 1;
        Some(shot)
    }

    /// Whether no I/O is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.trace.ios.len()
    }
}

/// How I/Os of a trace are placed on a volume.
struct Place {
    placement: TracePlacement,
    volume_bytes: u64,
    block_bytes: u64,
    span_bytes: u64,
}

impl Place {
    fn new(spec: &TraceSpec, volume_bytes: u64, block_bytes: u32) -> Self {
        let block_bytes = u64::from(block_bytes);
        Self {
            placement: spec.placement,
            volume_bytes: volume_bytes / block_bytes * block_bytes,
            block_bytes,
            span_bytes: spec.span_bytes,
        }
    }

    /// The whole blocks that an I/O touches, inside the volume.
    fn place(&self, offset: u64, len: u32) -> Result<(u64, u32), TraceError> {
        let first = offset / self.block_bytes * self.block_bytes;
        let end = (offset + u64::from(len)).next_multiple_of(self.block_bytes);
        let len = end - first;
        let Some(last) = self.volume_bytes.checked_sub(len) else {
            return Err(TraceError::TooLong { len, volume_bytes: self.volume_bytes });
        };
        let first = match self.placement {
            TracePlacement::Fold if end <= self.volume_bytes => first,
            TracePlacement::Fold => first % self.volume_bytes,
            TracePlacement::Scale => self.scaled(first),
        };
        let len =
            u32::try_from(len).map_err(|_| TraceError::TooLong { len, volume_bytes: self.volume_bytes })?;
        Ok((first.min(last), len))
    }

    fn scaled(&self, first: u64) -> u64 {
        let place = u128::from(first) * u128::from(self.volume_bytes) / u128::from(self.span_bytes.max(1));
        let place = u64::try_from(place).unwrap_or(u64::MAX);
        place / self.block_bytes * self.block_bytes
    }
}

/// Time in ns, offset, length and direction of a record; None: it is none.
fn decoded(record: &[u8; RECORD_BYTES as usize]) -> Option<(u64, u64, u32, Op)> {
    let long = |at: usize| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
    let (at_ns, offset, len) = (long(0)?, long(8)?, short(16)?);
    let op = match short(20)? {
        0 => Op::Read,
        1 => Op::Write,
        _ => return None,
    };
    let is_sound = len > 0 && offset < 1 << 62 && at_ns < 1 << 62;
    is_sound.then_some((at_ns, offset, len, op))
}

/// A trace cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum TraceError {
    /// Fault: the host.
    #[error("the compiled trace {0} cannot be read: {1}")]
    Unreadable(String, String),
    /// Fault: us.
    #[error("I/O {1} of the compiled trace {0} is damaged; compile it again")]
    Damaged(String, u64),
    /// Fault: the user.
    #[error("an I/O of the trace has {len} bytes, and the volume has {volume_bytes}; use a larger volume")]
    TooLong {
        /// Of the I/O, in whole blocks.
        len: u64,
        /// Of the volume.
        volume_bytes: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::{Place, TraceError};
    use crate::spec::{TracePlacement, TraceSpec};

    fn place(placement: TracePlacement, span_bytes: u64, volume_bytes: u64, block_bytes: u32) -> Place {
        let path = String::new();
        let spec = TraceSpec { path, first_io: 0, ios: 0, time_scale: 1.0, placement, span_bytes };
        Place::new(&spec, volume_bytes, block_bytes)
    }

    #[test]
    fn an_io_takes_whole_blocks() {
        let volume = place(TracePlacement::Fold, 1 << 20, 1 << 20, 4096);
        assert_eq!(volume.place(8192, 4096), Ok((8192, 4096)));
        assert_eq!(volume.place(3584, 1024), Ok((0, 8192)));
    }

    #[test]
    fn folding_moves_only_what_is_beyond_the_end() {
        let volume = place(TracePlacement::Fold, 4 << 20, 1 << 20, 512);
        assert_eq!(volume.place((1 << 20) - 4096, 4096), Ok(((1 << 20) - 4096, 4096)));
        assert_eq!(volume.place((3 << 20) + 1024, 4096), Ok((1024, 4096)));
        assert_eq!(volume.place((1 << 20) - 512, 4096), Ok(((1 << 20) - 4096, 4096)), "it ends at the end");
    }

    #[test]
    fn scaling_keeps_the_order_and_uses_the_whole_volume() {
        for volume_bytes in [1 << 20, 16 << 20] {
            let volume = place(TracePlacement::Scale, 4 << 20, volume_bytes, 512);
            assert_eq!(volume.place(0, 4096), Ok((0, 4096)));
            assert_eq!(volume.place(2 << 20, 4096), Ok((volume_bytes / 2, 4096)));
            let (offset, len) = volume.place((4 << 20) - 512, 512).unwrap();
            assert!(offset + u64::from(len) <= volume_bytes && offset > volume_bytes * 9 / 10);
        }
    }

    #[test]
    fn an_io_longer_than_the_volume_is_refused() {
        let volume = place(TracePlacement::Fold, 1 << 20, 8192, 512);
        assert_eq!(volume.place(0, 16_384), Err(TraceError::TooLong { len: 16_384, volume_bytes: 8192 }));
    }
}
