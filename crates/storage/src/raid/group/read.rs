//! Reading: each chunk is read from its disk and checked; if it is wrong, it is computed from the rest of the stripe.

use super::{
    Group,
    geometry::{Piece, UNIT},
    state::{Hold, SlotState},
};
use crate::{
    disk::{Disk, DiskError},
    raid::config::Code,
};
use bytes::BytesMut;
use futures::future::join_all;
use std::rc::Rc;

impl Group {
    /// Fills `into` from `offset`.
    pub(in super::super) async fn read(
        self: Rc<Self>,
        offset: u64,
        mut into: BytesMut,
    ) -> Result<BytesMut, DiskError> {
        self.check()?;
        let pieces = self.geometry.pieces(offset, into.len() as u64);
        let reading = pieces.map(|piece| {
            let part = into.split_to(piece.len as usize);
            self.read_piece(piece, part)
        });
        let mut parts = join_all(reading.collect::<Vec<_>>()).await.into_iter();
        let mut whole = parts.next().unwrap_or(Ok(into))?;
        for part in parts {
            whole.unsplit(part?);
        }
        Ok(whole)
    }

    async fn read_piece(self: &Rc<Self>, piece: Piece, into: BytesMut) -> Result<BytesMut, DiskError> {
        self.make_sure(piece.stripe).await;
        let position = self.choose(piece);
        self.next_turn();
        let slot = self.geometry.slot(piece.stripe, position);
        let len = into.len();
        let quick = self.usable(slot, piece.stripe).filter(|_| !self.has_marks(slot, piece.rows()));
        if quick.is_none() {
            self.count(|counters| counters.degraded_reads += 1);
        }
        if let Some(disk) = quick
            && let Some(bytes) = self.read_quickly(piece, slot, disk, into).await
        {
            return Ok(bytes);
        }
        self.read_surely(piece, position, len).await
    }

    /// Reads from one disk without a lock. None if the read fails, or if the bytes disagree with their checksums; they
    /// also disagree during a write.
    async fn read_quickly(
        self: &Rc<Self>,
        piece: Piece,
        slot: usize,
        disk: Rc<dyn Disk>,
        into: BytesMut,
    ) -> Option<BytesMut> {
        let rows = piece.rows();
        self.load_sums(rows, std::iter::once(slot)).await;
        let buffer = if piece.is_whole_units() { into } else { BytesMut::zeroed(rows.len as usize) };
        self.change_reads(slot, 1);
        let read = disk.read(self.geometry.place(rows), buffer).await;
        self.change_reads(slot, -1);
        let mut bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => {
                if !matches!(error, DiskError::Unreadable { .. }) {
                    self.member_failed(slot, &disk);
                }
                return None;
            }
        };
        if self.options.checksums
            && !self.checksums.disagree(slot, self.geometry.unit(rows), &bytes).is_empty()
        {
            return None;
        }
        let before = (piece.from - rows.from) as usize;
        let _ = bytes.split_to(before);
        bytes.truncate(piece.len as usize);
        Some(bytes)
    }

    async fn read_surely(
        self: &Rc<Self>,
        piece: Piece,
        position: usize,
        len: usize,
    ) -> Result<BytesMut, DiskError> {
        let rows = piece.rows();
        let _stripe = self.locks.take(piece.stripe, Hold::Shared).await;
        let mut fetched = self.fetch(rows, &[position]).await;
        self.check()?;
        let gone = fetched.lost.iter().chain(&fetched.marked).filter(|(of, _)| *of == position);
        let gone = gone.map(|(_, unit)| rows.from + *unit as u64 * UNIT);
        let is_asked_for = |at: &u64| at + UNIT > piece.from && *at < piece.from + piece.len;
        if { gone }.any(|at| is_asked_for(&at)) {
            let offset_bytes = self.geometry.offset(piece);
            return Err(DiskError::Unreadable { offset_bytes, len_bytes: piece.len });
        }
        let mut bytes = fetched.take(position);
        let _ = bytes.split_to((piece.from - rows.from) as usize);
        bytes.truncate(len);
        Ok(bytes)
    }

    /// The position to read: of equal copies, the one on the disk with the fewest reads in progress.
    pub(super) fn choose(&self, piece: Piece) -> usize {
        if self.geometry.code != Code::Copies {
            return piece.position;
        }
        let usable = (0..self.geometry.members).filter(|&slot| self.usable(slot, piece.stripe).is_some());
        if !self.write_intent.is_synced(piece.stripe) {
            return { usable }.next().unwrap_or(0);
        }
        let (turn, slots) = (self.turn.get(), self.slots.borrow());
        let load = |slot: &usize| (slots[*slot].reads, slot.wrapping_add(turn) % self.geometry.members);
        usable.min_by_key(load).unwrap_or(0)
    }

    /// A read of a position begins: among equally busy copies the next read takes another one.
    pub(super) fn next_turn(&self) {
        self.turn.set(self.turn.get().wrapping_add(1));
    }

    fn change_reads(&self, slot: usize, by: isize) {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[slot];
        if slot.state == SlotState::InSync {
            slot.reads = slot.reads.saturating_add_signed(by);
        }
    }
}
