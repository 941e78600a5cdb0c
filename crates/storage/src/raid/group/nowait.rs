//! Operations without waiting: in the caller's call, without a task and without memory of their own.
//!
//! They take the same steps as [`super::read`] and [`super::write`], in the same order of bytes, checksums and parity. If
//! one of these steps would have to wait (a lock, a flag, a member, a repair), nothing is done here, and the caller takes
//! the other way. No other operation runs during the call, so it needs no lock: it only checks that the lock is free.

use super::{
    GROUP_LOCK, Group,
    geometry::{Geometry, Piece, Rows, UNIT},
    state::{Hold, Slot, SlotState},
    write::Way,
};
use crate::{
    disk::{Chunk, CopySum, NextAccess},
    raid::{config::Code, parity},
};
use std::{ops::Range, rc::Rc};

/// Most data blocks of a stripe.
const DATA_MAX: usize = 32;
/// Reads that one copy serves before the next copy does.
const READS_PER_TURN: usize = 16;

/// Buffers that are used again.
#[derive(Default)]
pub(super) struct Scratch {
    /// New P and Q.
    parity: [Vec<u8>; 2],
    /// Contents of another chunk.
    other: Vec<u8>,
}

/// Consecutive data chunks of a stripe: the same whole units of each.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunks {
    rows: Rows,
    positions: Range<usize>,
}

impl Geometry {
    /// What one step can write of a range: whole chunks, or a part of one.
    fn first_chunks(&self, offset: u64, len: u64) -> Chunks {
        let (chunk, from, data) = (offset / self.chunk, offset % self.chunk, self.data() as u64);
        let (stripe, position) = (chunk / data, chunk % data);
        if from == 0 && len >= self.chunk {
            let end = data.min(position + len / self.chunk);
            return Chunks { rows: self.all_rows(stripe), positions: position as usize..end as usize };
        }
        let rows = Rows { stripe, from, len: len.min(self.chunk - from) };
        Chunks { rows, positions: position as usize..position as usize + 1 }
    }

    /// As [`Group::cheapest`], for `new` chunks of a group that is calm. Of two ways with as many reads, Modify takes less
    /// time in memory: it writes only bytes that it has read, so fewer bytes come from memory.
    fn way_in_memory(&self, new: usize) -> Way {
        let rest = self.data() - new;
        match rest {
            0 => Way::Full,
            _ if new + self.tolerance() <= rest => Way::Modify,
            _ => Way::Reconstruct,
        }
    }
}

impl Group {
    /// Fills `into` from `offset`, if that needs no waiting.
    pub(super) fn fill_nowait(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        self.read_nowait(offset, into.len() as u64, &mut filling(into))
    }

    /// See [`Disk::read_nowait`].
    pub(in super::super) fn read_nowait(
        &self,
        offset: u64,
        len: u64,
        each: &mut dyn FnMut(Chunk<'_>),
    ) -> Option<()> {
        if let Some((disk, start)) = self.plain() {
            return disk.read_nowait(start + offset, len, each);
        }
        if self.has_failed.get() {
            return None;
        }
        for piece in self.geometry.pieces(offset, len) {
            if !self.write_intent.is_synced(piece.stripe) || self.write_intent.is_unsure(piece.stripe) {
                return None;
            }
            let (rows, end) = (piece.rows(), piece.from + piece.len);
            let mut at = rows.from;
            self.read_position_nowait(rows, self.choose_nowait(piece), &mut |chunk| {
                let next = at + chunk.len() as u64;
                let (first, last) = (piece.from.max(at), end.min(next));
                if first < last {
                    each(chunk.part((first - at) as usize..(last - at) as usize));
                }
                at = next;
            })?;
            self.next_turn();
        }
        Some(())
    }

    /// See [`Disk::prefetch`].
    pub(in super::super) fn prefetch(&self, offset: u64, len: u64, next: NextAccess) {
        if let Some((disk, start)) = self.plain() {
            return disk.prefetch(start + offset, len, next);
        }
        match next {
            NextAccess::Read => {
                for piece in self.geometry.pieces(offset, len) {
                    self.prefetch_position(piece.rows(), self.choose_nowait(piece));
                }
            }
            NextAccess::Write if self.geometry.has_parity() => {
                let Chunks { rows, positions } = self.geometry.first_chunks(offset, len);
                let (data, members) = (self.geometry.data(), self.geometry.members);
                match self.geometry.way_in_memory(positions.len()) {
                    Way::Modify => {
                        positions.chain(data..members).for_each(|at| self.prefetch_position(rows, at));
                    }
                    Way::Reconstruct => (0..data)
                        .filter(|at| !positions.contains(at))
                        .for_each(|at| self.prefetch_position(rows, at)),
                    Way::Full | Way::NoParity => {}
                }
            }
            NextAccess::Write => {
                for piece in self.geometry.pieces(offset, len) {
                    (0..self.geometry.members).for_each(|slot| self.prefetch_sums(slot, piece.rows()));
                }
            }
        }
    }

    fn prefetch_position(&self, rows: Rows, position: usize) {
        let slot = self.geometry.slot(rows.stripe, position);
        if let Some(disk) = self.usable(slot, rows.stripe) {
            self.prefetch_sums(slot, rows);
            disk.prefetch(self.geometry.place(rows), rows.len, NextAccess::Read);
        }
    }

    /// The checksums of rows are in one cache line in most cases.
    fn prefetch_sums(&self, slot: usize, rows: Rows) {
        if self.options.checksums {
            self.checksums.prefetch(slot, self.geometry.unit(rows));
        }
    }

    /// The position of a read that does not wait. A copy's turn is several reads long, so that [`Disk::prefetch`] finds the
    /// same one in most cases.
    fn choose_nowait(&self, piece: Piece) -> usize {
        if self.geometry.code != Code::Copies {
            return piece.position;
        }
        let slot = self.turn.get() / READS_PER_TURN % self.geometry.members;
        let is_usable = self.slots.borrow()[slot].usable(piece.stripe).is_some();
        if is_usable { slot } else { self.choose(piece) }
    }

    /// Passes the bytes of a position on, if they are right by their checksums.
    fn read_position_nowait(
        &self,
        rows: Rows,
        position: usize,
        each: &mut dyn FnMut(Chunk<'_>),
    ) -> Option<()> {
        let slot = self.geometry.slot(rows.stripe, position);
        let disk = self.usable(slot, rows.stripe)?;
        let at_once = disk.at_once()?;
        if self.has_marks(slot, rows) || !self.has_sums(slot, rows) {
            return None;
        }
        let (mut unit, mut is_right) = (self.geometry.unit(rows), true);
        at_once.read_now(self.geometry.place(rows), rows.len, &mut |chunk| {
            if !self.options.checksums {
                return each(chunk);
            }
            for from in (0..chunk.len()).step_by(UNIT as usize) {
                let (part, copied) = (chunk.part(from..from + UNIT as usize), CopySum::default());
                each(part.summed(&copied));
                is_right &= self.checksums.agrees(slot, unit, || part.crc32c(&copied));
                unit += 1;
            }
        });
        is_right.then_some(())
    }

    /// Whether the checksums of the rows are in memory, or not used.
    fn has_sums(&self, slot: usize, rows: Rows) -> bool {
        let first = self.geometry.unit(rows);
        !self.options.checksums || self.checksums.are_here(slot, first..first + rows.len / UNIT)
    }

    /// See [`Disk::write_nowait`].
    pub(in super::super) fn write_nowait(
        self: &Rc<Self>,
        offset: u64,
        data: &[u8],
        durable: bool,
    ) -> Option<()> {
        if let Some((disk, start)) = self.plain() {
            return disk.write_nowait(start + offset, data, durable);
        }
        let whole_units = offset.is_multiple_of(UNIT) && data.len().is_multiple_of(UNIT as usize);
        if !whole_units || !self.is_calm() {
            return None;
        }
        let (mut offset, mut rest) = (offset, data);
        while !rest.is_empty() {
            let chunks = self.geometry.first_chunks(offset, rest.len() as u64);
            let (now, later) = rest.split_at(chunks.positions.len() * chunks.rows.len as usize);
            self.write_chunks_nowait(&chunks, now, durable)?;
            (offset, rest) = (offset + now.len() as u64, later);
        }
        Some(())
    }

    /// Whether all members are there, take writes at once, and no change of members is in progress or due.
    fn is_calm(&self) -> bool {
        let is_ready = |slot: &Slot| {
            let disk = slot.disk.as_ref().filter(|_| slot.state == SlotState::InSync);
            disk.is_some_and(|disk| disk.at_once().is_some() && !disk.is_thin())
        };
        !self.has_failed.get()
            && !self.is_journaled.get()
            && self.settling.done.get() == self.settling.asked.get()
            && self.locks.is_free(GROUP_LOCK, Hold::Shared)
            && self.meta.borrow().marks.is_empty()
            && self.slots.borrow().iter().all(is_ready)
    }

    /// Writes to one stripe of a group that is calm. None: nothing was written.
    fn write_chunks_nowait(self: &Rc<Self>, chunks: &Chunks, data: &[u8], durable: bool) -> Option<()> {
        let Chunks { rows, positions } = chunks;
        let is_ready = self.locks.is_free(rows.stripe, Hold::Exclusive)
            && self.write_intent.is_synced(rows.stripe)
            && self.is_flagged(rows.stripe)
            && (0..self.geometry.members).all(|slot| self.has_sums(slot, *rows));
        if !is_ready {
            return None;
        }
        let _region = self.enter(rows.stripe);
        if self.geometry.code == Code::Copies {
            if self.options.checksums {
                self.checksums.set_on_each(0..self.geometry.members, self.geometry.unit(*rows), data);
            }
            (0..self.geometry.members).for_each(|slot| self.put_at_once(slot, *rows, data, durable));
            return Some(());
        }
        let mut scratch = self.scratch.borrow_mut();
        let tolerance = self.geometry.tolerance();
        let way = self.geometry.way_in_memory(positions.len());
        self.compute_nowait(way, chunks, data, &mut scratch)?;
        self.count_way(way);
        let new = positions.clone().zip(data.chunks_exact(rows.len as usize));
        let first = self.geometry.data();
        let parity = (first..).zip(scratch.parity[..tolerance].iter().map(Vec::as_slice));
        for (position, bytes) in new.chain(parity) {
            let slot = self.geometry.slot(rows.stripe, position);
            self.sums_set(slot, self.geometry.unit(*rows), bytes);
            self.put_at_once(slot, *rows, bytes, durable);
        }
        Some(())
    }

    /// Computes the new parity of chunks that change to `data`. None: something that it needs cannot be read here.
    fn compute_nowait(&self, way: Way, chunks: &Chunks, data: &[u8], scratch: &mut Scratch) -> Option<()> {
        let Chunks { rows, positions } = chunks;
        let (len, count, tolerance) = (rows.len as usize, self.geometry.data(), self.geometry.tolerance());
        let Scratch { parity: [p, q], other } = scratch;
        for buffer in [&mut *p, &mut *q, &mut *other] {
            buffer.resize(len, 0);
        }
        let mut parity = [p, q];
        let parity = &mut parity[..tolerance];
        match way {
            Way::Full => {
                let mut blocks: [&[u8]; DATA_MAX] = [&[]; DATA_MAX];
                for (block, bytes) in blocks.iter_mut().zip(data.chunks_exact(len)) {
                    *block = bytes;
                }
                match parity {
                    [p, q] => parity::generate(&blocks[..count], p, Some(q)),
                    [p] => parity::generate(&blocks[..count], p, None),
                    _ => unreachable!("a stripe has one or two parity blocks"),
                }
            }
            Way::Modify => {
                for (which, bytes) in parity.iter_mut().enumerate() {
                    self.load_nowait(*rows, count + which, bytes)?;
                }
                for (position, new) in positions.clone().zip(data.chunks_exact(len)) {
                    self.load_nowait(*rows, position, other)?;
                    parity::add(other, new);
                    for (which, bytes) in parity.iter_mut().enumerate() {
                        parity::update(bytes, which, position, other);
                    }
                }
            }
            Way::Reconstruct => {
                for bytes in parity.iter_mut() {
                    bytes.fill(0);
                }
                for position in 0..count {
                    let new =
                        position.checked_sub(positions.start).and_then(|at| data.chunks_exact(len).nth(at));
                    if new.is_none() {
                        self.load_nowait(*rows, position, other)?;
                    }
                    let bytes = new.unwrap_or(other);
                    for (which, parity) in parity.iter_mut().enumerate() {
                        parity::update(parity, which, position, bytes);
                    }
                }
            }
            Way::NoParity => unreachable!("a group of chunks with parity has parity"),
        }
        Some(())
    }

    /// Reads a whole position of the rows.
    fn load_nowait(&self, rows: Rows, position: usize, into: &mut [u8]) -> Option<()> {
        self.read_position_nowait(rows, position, &mut filling(into))
    }

    /// Writes to a member of a group that is calm.
    fn put_at_once(&self, slot: usize, rows: Rows, data: &[u8], durable: bool) {
        let disk = self.usable(slot, rows.stripe);
        let Some(at_once) = disk.as_ref().and_then(|disk| disk.at_once()) else {
            unreachable!("every member of a calm group takes writes at once");
        };
        at_once.write_now(self.geometry.place(rows), data, durable);
    }
}

/// Puts pieces of bytes one after the other; all of them together fit.
fn filling(into: &mut [u8]) -> impl FnMut(Chunk<'_>) {
    let mut filled = 0;
    move |chunk| {
        let next = filled + chunk.len();
        chunk.copy_to_slice(&mut into[filled..next]);
        filled = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_writes_whole_chunks_of_one_stripe_or_a_part_of_one() {
        let geometry = Geometry { code: Code::Parity(1), members: 4, chunk: 16384, stripes: 8, start: 0 };
        let rows = |stripe, from, len| Rows { stripe, from, len };
        let (whole, part) = (rows(1, 0, 16384), rows(0, 8192, 8192));
        let cases = [
            (3 * 16384, 5 * 16384, Chunks { rows: whole, positions: 0..3 }),
            (4 * 16384, 5 * 16384, Chunks { rows: whole, positions: 1..3 }),
            (3 * 16384, 20480, Chunks { rows: whole, positions: 0..1 }),
            (8192, 65536, Chunks { rows: part, positions: 0..1 }),
            (3 * 16384, 4096, Chunks { rows: rows(1, 0, 4096), positions: 0..1 }),
        ];
        for (offset, len, expected) in cases {
            assert_eq!(geometry.first_chunks(offset, len), expected, "{len} bytes at {offset}");
        }
    }
    #[test]
    fn a_small_write_in_memory_reads_what_it_writes() {
        let way = |parity, members, new| {
            let geometry =
                Geometry { code: Code::Parity(parity), members, chunk: 16384, stripes: 8, start: 0 };
            geometry.way_in_memory(new)
        };
        assert_eq!(way(1, 5, 1), Way::Modify, "2 reads, else 3");
        assert_eq!(way(2, 6, 1), Way::Modify, "3 reads both ways");
        assert_eq!(way(1, 3, 1), Way::Reconstruct, "1 read, else 2");
        assert_eq!(way(2, 6, 2), Way::Reconstruct, "2 reads, else 4");
        assert_eq!(way(2, 6, 4), Way::Full);
    }
}
