//! Positions of a group's bytes on its members.
//!
//! A stripe is one chunk of every member. Parity rotates (left-symmetric): it moves one member to the left from stripe to
//! stripe, and a stripe's data begins right of its parity, so that a sequential reader visits all members in turn.
//! Positions count a stripe's chunks: the data from 0, then P, then Q. Copies are positions that all hold the same.

use super::super::config::Code;

/// Checksums, repairs and all I/O of a group are in units of this.
pub(super) const UNIT: u64 = 4096;

/// Sizes and positions in bytes, and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) code: Code,
    pub(super) members: usize,
    pub(super) chunk: u64,
    pub(super) stripes: u64,
    /// Offset of the first stripe on every member.
    pub(super) start: u64,
}

/// Rows of a stripe: a range within each of its chunks, in whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) stripe: u64,
    /// Offset in the chunk.
    pub(super) from: u64,
    pub(super) len: u64,
}

/// A run of bytes in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) stripe: u64,
    /// Number of the data chunk.
    pub(super) position: usize,
    /// Offset in the chunk.
    pub(super) from: u64,
    pub(super) len: u64,
}

impl Geometry {
    /// Data chunks of a stripe.
    pub(super) fn data(&self) -> usize {
        match self.code {
            Code::None | Code::Copies => 1,
            Code::Parity(parity) => self.members - parity,
        }
    }

    /// How many members may be missing.
    pub(super) fn tolerance(&self) -> usize {
        self.members - self.data()
    }

    pub(super) fn has_parity(&self) -> bool {
        matches!(self.code, Code::Parity(_))
    }

    /// Data of a stripe.
    pub(super) fn width(&self) -> u64 {
        self.chunk * self.data() as u64
    }

    pub(super) fn size(&self) -> u64 {
        self.width() * self.stripes
    }

    /// The member that holds a position of a stripe.
    pub(super) fn slot(&self, stripe: u64, position: usize) -> usize {
        // Copies do not rotate.
        let Code::Parity(parity) = self.code else { return position };
        let first_parity = self.members - 1 - (stripe % self.members as u64) as usize;
        let right_of_parity = first_parity + parity + position;
        match position.checked_sub(self.data()) {
            Some(which) => (first_parity + which) % self.members,
            None => right_of_parity % self.members,
        }
    }

    /// The position of a member in a stripe.
    pub(super) fn position(&self, stripe: u64, slot: usize) -> usize {
        (0..self.members).find(|&position| self.slot(stripe, position) == slot).unwrap_or(slot)
    }

    /// Offset of the rows on every member.
    pub(super) fn place(&self, rows: Rows) -> u64 {
        self.start + rows.stripe * self.chunk + rows.from
    }

    /// The first unit of the rows on a member.
    pub(super) fn unit(&self, rows: Rows) -> u64 {
        (rows.stripe * self.chunk + rows.from) / UNIT
    }

    /// All rows of a stripe.
    pub(super) fn all_rows(&self, stripe: u64) -> Rows {
        Rows { stripe, from: 0, len: self.chunk }
    }

    /// Offset of a piece in the group.
    pub(super) fn offset(&self, piece: Piece) -> u64 {
        piece.stripe * self.width() + piece.position as u64 * self.chunk + piece.from
    }

    /// The stripe and the unit of an offset on a member.
    pub(super) fn stripe_and_unit(&self, place: u64) -> (u64, u64) {
        let at = place - self.start;
        (at / self.chunk, at / UNIT)
    }

    /// A range of the group, chunk by chunk.
    pub(super) fn pieces(self, mut offset: u64, len: u64) -> impl Iterator<Item = Piece> {
        let end = offset + len;
        std::iter::from_fn(move || {
            if offset == end {
                return None;
            }
            let from = offset % self.chunk;
            let len = (self.chunk - from).min(end - offset);
            let chunk = offset / self.chunk;
            let data = self.data() as u64;
            offset += len;
            Some(Piece { stripe: chunk / data, position: (chunk % data) as usize, from, len })
        })
    }
}

impl Piece {
    /// The rows of the piece.
    pub(super) fn rows(&self) -> Rows {
        let from = self.from / UNIT * UNIT;
        Rows { stripe: self.stripe, from, len: (self.from + self.len).next_multiple_of(UNIT) - from }
    }

    pub(super) fn is_whole_units(&self) -> bool {
        self.from.is_multiple_of(UNIT) && self.len.is_multiple_of(UNIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(code: Code, members: usize) -> Geometry {
        Geometry { code, members, chunk: 8192, stripes: 64, start: 0 }
    }

    #[test]
    fn parity_rotates_to_the_left_and_data_follows_it() {
        let five = geometry(Code::Parity(1), 4);
        let stripes: Vec<Vec<usize>> =
            (0..5).map(|stripe| (0..4).map(|position| five.slot(stripe, position)).collect()).collect();
        assert_eq!(stripes, [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1], [1, 2, 3, 0], [0, 1, 2, 3]]);
        let six = geometry(Code::Parity(2), 5);
        let first: Vec<usize> = (0..5).map(|position| six.slot(0, position)).collect();
        assert_eq!(first, [1, 2, 3, 4, 0]);
    }

    #[test]
    fn every_member_holds_one_position_of_every_stripe() {
        for (code, members) in
            [(Code::Copies, 3), (Code::Parity(1), 3), (Code::Parity(2), 4), (Code::Parity(2), 14)]
        {
            let geometry = geometry(code, members);
            for stripe in 0..2 * members as u64 {
                for slot in 0..members {
                    assert_eq!(geometry.slot(stripe, geometry.position(stripe, slot)), slot);
                }
            }
        }
    }

    #[test]
    fn a_range_is_cut_at_chunks() {
        let pieces: Vec<Piece> = geometry(Code::Parity(1), 3).pieces(8192 - 512, 512 + 8192 + 1024).collect();
        let piece = |stripe, position, from, len| Piece { stripe, position, from, len };
        assert_eq!(pieces, [piece(0, 0, 7680, 512), piece(0, 1, 0, 8192), piece(1, 0, 0, 1024)]);
        assert_eq!(pieces[0].rows(), Rows { stripe: 0, from: 4096, len: 4096 });
    }
}
