//! A part of a volume in one or two pieces, and random places in it.

use super::bound;
use crate::{spec::RangeSpec, stream::rng::Rng};
use thiserror::Error;

/// How fast the probability decays over a hot band: its end has e^-3, a twentieth, of the probability of its start.
const BAND_DECAY: f64 = 3.0;

/// A part of a volume. Positions run from 0 through the first piece and then through the second.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    first: AreaPiece,
    second: AreaPiece,
}

/// Bytes from `start`.
#[derive(Clone, Copy, Debug)]
struct AreaPiece {
    start: u64,
    len: u64,
}

impl Area {
    /// The part of the volume `[start, end)` that `range` names; all of it without one.
    pub(crate) fn new(
        start: u64,
        end: u64,
        range: Option<&RangeSpec>,
        block: u64,
    ) -> Result<Self, PlaceError> {
        let size = end.checked_sub(start).filter(|&size| size > 0);
        let size = size.ok_or(PlaceError::TooSmall { needed: start + block, found: end })?;
        let Some(range) = range else {
            return Ok(Self { first: AreaPiece { start, len: size }, second: AreaPiece { start, len: 0 } });
        };
        let down = |value| bound(value, range.unit, start, end) / block * block;
        let (from, to) = (down(range.start).max(start), down(range.end));
        if from >= end || to <= from {
            return Err(PlaceError::Outside { from, to, end });
        }
        let second = to.saturating_sub(end).min(from - start);
        Ok(Self {
            first: AreaPiece { start: from, len: to.min(end) - from },
            second: AreaPiece { start, len: second },
        })
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.first.len + self.second.len
    }

    /// Position where the second piece starts; no I/O crosses it.
    pub(crate) fn joint(&self) -> u64 {
        self.first.len
    }

    /// The first `bytes` and the rest.
    pub(crate) fn split(&self, bytes: u64) -> Result<(Self, Self), PlaceError> {
        if bytes >= self.first.len {
            return Err(PlaceError::TooSmall { needed: bytes + 1, found: self.first.len });
        }
        let AreaPiece { start, len } = self.first;
        let none = AreaPiece { start, len: 0 };
        let inside = Self { first: AreaPiece { start, len: bytes }, second: none };
        Ok((
            inside,
            Self { first: AreaPiece { start: start + bytes, len: len - bytes }, second: self.second },
        ))
    }

    /// An I/O of `bytes` on a grid of `grid` bytes must fit into every piece.
    pub(crate) fn must_hold(&self, bytes: u64, grid: u64) -> Result<(), PlaceError> {
        for piece in [self.first, self.second].into_iter().filter(|piece| piece.len > 0) {
            let needed = piece.start.next_multiple_of(grid) - piece.start + bytes;
            if piece.len < needed {
                return Err(PlaceError::TooSmall { needed, found: piece.len });
            }
        }
        Ok(())
    }

    /// A random position; all are equally likely.
    pub(crate) fn even(&self, bytes: u64, grid: u64, rng: &mut Rng) -> u64 {
        self.lead(grid) + rng.below(self.places(bytes, grid)) * grid
    }

    /// A random position; earlier ones are more probable.
    pub(crate) fn decaying(&self, bytes: u64, grid: u64, rng: &mut Rng) -> u64 {
        let weight = 1.0 - (-BAND_DECAY).exp();
        let share = -(1.0 - rng.unit() * weight).ln() / BAND_DECAY;
        let places = self.places(bytes, grid);
        self.lead(grid) + ((share * places as f64) as u64).min(places - 1) * grid
    }

    /// The offset in the volume of a position.
    pub(crate) fn at(&self, position: u64) -> u64 {
        if position < self.first.len {
            self.first.start + position
        } else {
            self.second.start + position - self.first.len
        }
    }

    /// The offset in the volume of an I/O at a random position. It is moved back if the I/O would cross the joint or,
    /// in the second piece, be off the grid.
    pub(crate) fn on_grid(&self, position: u64, bytes: u64, grid: u64) -> u64 {
        let piece = if position < self.first.len { self.first } else { self.second };
        let offset = self.at(position).min(piece.start + piece.len - bytes);
        (offset / grid * grid).max(piece.start.next_multiple_of(grid))
    }

    /// Distance from the start to the first grid line.
    pub(super) fn lead(&self, grid: u64) -> u64 {
        self.first.start.next_multiple_of(grid) - self.first.start
    }

    /// Grid lines where an I/O may start.
    pub(super) fn places(&self, bytes: u64, grid: u64) -> u64 {
        (self.len() - self.lead(grid)).saturating_sub(bytes) / grid + 1
    }
}

/// A stream does not fit onto a volume (fault: always the user).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum PlaceError {
    /// Too small for one I/O.
    #[error("{found} bytes are too small: the stream needs at least {needed}")]
    TooSmall {
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        found: u64,
    },
    /// An empty range.
    #[error("range {from} to {to} is empty or starts behind the volume's end ({end} bytes)")]
    Outside {
        /// First byte.
        from: u64,
        /// End.
        to: u64,
        /// Size of the volume.
        end: u64,
    },
    /// A distribution in bytes without a part for this volume.
    #[error("no part of the distribution that has I/Os begins in the {found} bytes that are used")]
    Nowhere {
        /// Bytes there are.
        found: u64,
    },
}
