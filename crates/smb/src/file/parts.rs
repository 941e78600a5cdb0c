//! I/Os that are longer than one request: their parts, and their common end.
//!
//! A part is cut off when it is sent, so the limit is that of the connection that it is sent on. The I/O ends with its last
//! part, and fails if any part failed.

use crate::event::{SmbIo, SmbIoDone, SmbIoError, SmbOp, SmbSink};
use linerate_io::{Nanos, Seg};

/// An I/O, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IoPart {
    pub(super) io: SmbIo,
    /// The I/O that it is a part of; None: it is whole.
    split: Option<u32>,
    /// It was sent before.
    pub(super) is_replay: bool,
}

impl IoPart {
    pub(super) fn whole(io: SmbIo) -> Self {
        Self { io, split: None, is_replay: false }
    }

    /// The same, sent again.
    pub(super) fn again(self) -> Self {
        Self { is_replay: true, ..self }
    }
}

/// What sending requests again needs (`replays.rs`).
#[derive(Debug, Default)]
pub(super) struct Replays {
    /// `ChannelSequence`.
    pub(super) sequence: u16,
    /// The server does not know the sequence yet.
    pub(super) is_new: bool,
    /// Requests that the server refuses for now.
    pub(super) refused: Vec<IoPart>,
    /// When a refusal becomes an error.
    pub(super) until: Nanos,
}

/// An I/O that was split.
#[derive(Clone, Copy, Debug)]
struct SplitIo {
    /// Parts that have not ended.
    left: u32,
    /// The first error of a part.
    error: Option<SmbIoError>,
}

/// The I/Os that were split. Entries are reused, so that a busy file allocates none.
#[derive(Debug, Default)]
pub(crate) struct SplitIos {
    entries: Vec<SplitIo>,
    free: Vec<u32>,
}

impl SplitIos {
    /// Cuts a part of at most `most_bytes` off the start of `rest`; None: `rest` is short enough itself.
    #[inline]
    pub(super) fn cut(&mut self, rest: &mut IoPart, most_bytes: u32) -> Option<IoPart> {
        if rest.io.len_bytes <= most_bytes || most_bytes == 0 {
            return None;
        }
        let split = rest.split.unwrap_or_else(|| self.start());
        self.entries[split as usize].left += 1;
        let op = rest.io.op;
        let part =
            SmbIo { len_bytes: most_bytes, op: with_segment(op, |seg| seg.len = most_bytes), ..rest.io };
        rest.split = Some(split);
        rest.io.offset_bytes += u64::from(most_bytes);
        rest.io.len_bytes -= most_bytes;
        rest.io.op = with_segment(op, |seg| {
            seg.offset += u64::from(most_bytes);
            seg.len -= most_bytes;
        });
        Some(IoPart { io: part, split: Some(split), ..*rest })
    }

    /// A split I/O of which nothing is cut off yet.
    fn start(&mut self) -> u32 {
        let entry = SplitIo { left: 1, error: None };
        if let Some(split) = self.free.pop() {
            self.entries[split as usize] = entry;
            return split;
        }
        self.entries.push(entry);
        self.entries.len() as u32 - 1
    }

    /// A part, or a whole I/O, has ended. Reports the I/O if nothing of it is left.
    #[inline]
    pub(super) fn end<S: SmbSink>(&mut self, part: IoPart, result: Result<(), SmbIoError>, sink: &mut S) {
        let slot = part.io.slot;
        let Some(split) = part.split else { return sink.done(SmbIoDone { slot, result }) };
        let entry = &mut self.entries[split as usize];
        entry.left -= 1;
        entry.error = entry.error.or(result.err());
        if entry.left == 0 {
            let result = entry.error.map_or(Ok(()), Err);
            self.free.push(split);
            sink.done(SmbIoDone { slot, result });
        }
    }
}

fn with_segment(op: SmbOp, change: impl Fn(&mut Seg)) -> SmbOp {
    match op {
        SmbOp::Read(Some(mut seg)) => {
            change(&mut seg);
            SmbOp::Read(Some(seg))
        }
        SmbOp::Write { mut from, durable } => {
            change(&mut from);
            SmbOp::Write { from, durable }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_io::RegionId;
    use proptest::prelude::*;

    fn seg(offset: u64, len: u32) -> Seg {
        Seg { region: RegionId::new(0), offset, len }
    }

    proptest! {
        #[test]
        fn the_parts_are_the_io_and_it_ends_once_with_its_first_error(
            len in 1u32..100_000,
            most in 1u32..40_000,
            failing in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let io = SmbIo { slot: 3, op: SmbOp::Read(Some(seg(77, len))), offset_bytes: 1000, len_bytes: len };
            let (mut splits, mut rest) = (SplitIos::default(), IoPart::whole(io));
            let mut parts: Vec<IoPart> = std::iter::from_fn(|| splits.cut(&mut rest, most)).collect();
            parts.push(rest);
            prop_assert_eq!(parts.len() as u32, len.div_ceil(most));
            let mut at = 0;
            for part in &parts {
                prop_assert_eq!(part.io.offset_bytes, 1000 + u64::from(at));
                let SmbOp::Read(Some(seg)) = part.io.op else { panic!("another operation") };
                prop_assert_eq!((seg.offset, seg.len), (77 + u64::from(at), part.io.len_bytes));
                at += part.io.len_bytes;
            }
            prop_assert_eq!(at, len);
            let failing = failing.map(|index| index.index(parts.len()));
            let mut done = Vec::new();
            for (number, part) in parts.iter().enumerate().rev() {
                prop_assert!(done.is_empty(), "it ended before its last part");
                let result = if failing == Some(number) { Err(SmbIoError::Timeout) } else { Ok(()) };
                splits.end(*part, result, &mut done);
            }
            let result = if failing.is_some() { Err(SmbIoError::Timeout) } else { Ok(()) };
            prop_assert_eq!(done, vec![SmbIoDone { slot: 3, result }]);
            prop_assert_eq!(splits.free.len(), splits.entries.len());
        }
    }
}
