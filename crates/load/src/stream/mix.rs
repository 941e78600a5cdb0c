//! Kinds of I/O that take turns in one stream: each has its own size, share of reads and of random places, and grid, and
//! all move one position (the lines of an access specification of Iometer).

use super::rng::{Chance, Weighted};
use crate::spec::MixPartSpec;

/// The kinds by their shares.
pub(crate) type Mix = Weighted<MixPart>;

/// One kind of I/O.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MixPart {
    pub(crate) size: u32,
    pub(crate) reads: Chance,
    pub(crate) jump: Chance,
    pub(crate) align: u64,
}

/// From a validated specification; `None` for a stream with one kind of I/O.
pub(crate) fn mix_of(parts: &[MixPartSpec]) -> Option<Box<Mix>> {
    let part = |part: &MixPartSpec| {
        let kind = MixPart {
            size: part.size_bytes,
            reads: Chance::percent(part.read_percent),
            jump: Chance::percent(part.random_percent),
            align: part.align_bytes,
        };
        (part.share_percent, kind)
    };
    Weighted::new(parts.iter().map(part).collect()).map(Box::new)
}
