//! Reconstructs chunks of a stripe that are missing or wrong.
//!
//! A chunk that is missing, cannot be read, or does not match its checksum is computed from the others, and written again
//! if its disk is still there. Units that redundancy cannot restore are lost. When another part of their stripe is written,
//! they are marked: parity counts them as zeros from then on, and only a write to them removes the mark.

use super::{
    super::{config::Code, parity},
    Group,
    geometry::{Rows, UNIT},
};
use crate::disk::{Disk, DiskError};
use bytes::{Bytes, BytesMut};
use futures::future::join_all;
use std::rc::Rc;

const LEN: usize = UNIT as usize;

/// The result of [`Group::fetch`].
pub(super) struct StripeContents {
    /// By position; the requested ones are present. Lost and marked units are zeros.
    pub(super) blocks: Vec<Option<BytesMut>>,
    /// Lost units, requested or not: (position, unit within the rows).
    pub(super) lost: Vec<(usize, usize)>,
    /// Requested units that were already marked as lost.
    pub(super) marked: Vec<(usize, usize)>,
}

/// A member's part of the rows.
struct Strip {
    bytes: BytesMut,
    /// Wrong units, in order.
    bad: Vec<usize>,
    marked: Vec<usize>,
}

impl StripeContents {
    /// The bytes of a requested position.
    pub(super) fn take(&mut self, position: usize) -> BytesMut {
        self.blocks[position].take().unwrap_or_default()
    }
}

impl Group {
    /// The contents of positions of a stripe. The caller has the stripe's lock.
    pub(super) async fn fetch(self: &Rc<Self>, rows: Rows, want: &[usize]) -> StripeContents {
        let mut strips: Vec<Option<Strip>> = (0..self.geometry.members).map(|_| None).collect();
        self.read_strips(rows, want, &mut strips).await;
        let mut lost = Vec::new();
        if want.iter().any(|&position| strips[position].as_ref().is_some_and(|strip| !strip.bad.is_empty())) {
            let others: Vec<usize> =
                (0..strips.len()).filter(|&position| strips[position].is_none()).collect();
            self.read_strips(rows, &others, &mut strips).await;
            let mut strips: Vec<&mut Strip> = strips.iter_mut().flatten().collect();
            lost = self.mend(rows, &mut strips).await;
        }
        let marked = want.iter().flat_map(|&position| {
            let strip = strips[position].as_ref();
            strip.into_iter().flat_map(move |strip| strip.marked.iter().map(move |&unit| (position, unit)))
        });
        let marked = marked.filter(|unit| !lost.contains(unit)).collect();
        let blocks = strips.into_iter().map(|strip| Some(strip?.bytes)).collect();
        StripeContents { blocks, lost, marked }
    }

    async fn read_strips(self: &Rc<Self>, rows: Rows, positions: &[usize], strips: &mut [Option<Strip>]) {
        let slots = positions.iter().map(|&position| self.geometry.slot(rows.stripe, position));
        self.load_sums(rows, slots.clone()).await;
        let read = join_all(slots.map(|slot| self.read_strip(rows, slot))).await;
        for (position, strip) in positions.iter().zip(read) {
            strips[*position] = Some(strip);
        }
    }

    async fn read_strip(self: &Rc<Self>, rows: Rows, slot: usize) -> Strip {
        let units = rows.len as usize / LEN;
        let absent = || (BytesMut::zeroed(rows.len as usize), (0..units).collect());
        let (bytes, bad) = match self.usable(slot, rows.stripe) {
            None => absent(),
            Some(disk) => {
                let read = disk.read(self.geometry.place(rows), BytesMut::zeroed(rows.len as usize)).await;
                match read {
                    Ok(bytes) => {
                        let bad = self.disagree(slot, rows, &bytes);
                        (bytes, bad)
                    }
                    Err(DiskError::Unreadable { .. }) => self.read_units(rows, slot, &disk).await,
                    Err(_) => {
                        self.member_failed(slot, &disk);
                        absent()
                    }
                }
            }
        };
        let mut strip = Strip { bytes, bad, marked: self.marked(slot, rows) };
        match self.geometry.code {
            // Another copy may be right.
            Code::Copies | Code::None => {
                strip.bad.extend(&strip.marked);
                strip.bad.sort_unstable();
                strip.bad.dedup();
                strip.marked.clear();
            }
            Code::Parity(_) => {
                strip.bad.retain(|unit| !strip.marked.contains(unit));
                for &unit in &strip.marked {
                    strip.bytes[unit * LEN..][..LEN].fill(0);
                }
            }
        }
        strip
    }

    /// Reads unit by unit, after a read of the whole range has failed.
    async fn read_units(
        self: &Rc<Self>,
        rows: Rows,
        slot: usize,
        disk: &Rc<dyn Disk>,
    ) -> (BytesMut, Vec<usize>) {
        let mut bytes = BytesMut::with_capacity(rows.len as usize);
        let mut bad = Vec::new();
        for unit in 0..rows.len as usize / LEN {
            let at = self.geometry.place(rows) + (unit * LEN) as u64;
            match disk.read(at, BytesMut::zeroed(LEN)).await {
                Ok(read) => bytes.extend_from_slice(&read),
                Err(error) => {
                    if !matches!(error, DiskError::Unreadable { .. }) {
                        self.member_failed(slot, disk);
                    }
                    bad.push(unit);
                    bytes.resize(bytes.len() + LEN, 0);
                }
            }
        }
        if self.options.checksums {
            bad.extend(self.checksums.disagree(slot, self.geometry.unit(rows), &bytes));
            bad.sort_unstable();
            bad.dedup();
        }
        self.count(|counters| counters.mismatches_found += bad.len() as u64);
        (bytes, bad)
    }

    fn disagree(&self, slot: usize, rows: Rows, bytes: &[u8]) -> Vec<usize> {
        if !self.options.checksums {
            return Vec::new();
        }
        let wrong = self.checksums.disagree(slot, self.geometry.unit(rows), bytes);
        self.count(|counters| counters.mismatches_found += wrong.len() as u64);
        wrong
    }

    /// Computes bad units from good ones, and rewrites them if their disk is present. Returns the lost units.
    async fn mend(self: &Rc<Self>, rows: Rows, strips: &mut [&mut Strip]) -> Vec<(usize, usize)> {
        let mut lost = Vec::new();
        for unit in 0..rows.len as usize / LEN {
            let missing: Vec<usize> =
                (0..strips.len()).filter(|&position| strips[position].bad.contains(&unit)).collect();
            if missing.is_empty() {
                continue;
            }
            let at = unit * LEN..(unit + 1) * LEN;
            let mut blocks: Vec<&mut [u8]> =
                strips.iter_mut().map(|strip| &mut strip.bytes[at.clone()]).collect();
            if !self.compute(rows.stripe, &mut blocks, &missing) {
                for &position in &missing {
                    blocks[position].fill(0);
                }
                lost.extend(missing.iter().map(|&position| (position, unit)));
                continue;
            }
            let part = Rows { from: rows.from + at.start as u64, len: UNIT, ..rows };
            for position in missing {
                let slot = self.geometry.slot(rows.stripe, position);
                let Some(disk) = self.usable(slot, rows.stripe) else { continue };
                let bytes = Bytes::copy_from_slice(&strips[position].bytes[at.clone()]);
                self.checksums.set(slot, self.geometry.unit(part), &bytes);
                match disk.write(self.geometry.place(part), bytes, false).await {
                    Ok(()) => self.count(|counters| counters.mismatches_mended += 1),
                    // The unit stays bad, and is computed again at the next read.
                    Err(DiskError::NoSpace(_)) => {}
                    Err(_) => self.member_failed(slot, &disk),
                }
            }
        }
        lost
    }

    /// Computes the missing blocks, if that is possible and their parity can be trusted.
    fn compute(&self, stripe: u64, blocks: &mut [&mut [u8]], missing: &[usize]) -> bool {
        let Code::Parity(parity) = self.geometry.code else {
            let Some(good) = (0..blocks.len()).find(|position| !missing.contains(position)) else {
                return false;
            };
            let good = blocks[good].to_vec();
            for &position in missing {
                blocks[position].copy_from_slice(&good);
            }
            return true;
        };
        let data = self.geometry.data();
        let all_data_is_there = missing.iter().all(|&position| position >= data);
        if missing.len() > parity {
            return false;
        }
        parity::recover(blocks, data, missing);
        all_data_is_there
            || self.write_intent.can_rely(stripe)
            || missing.len() < parity && parity::agrees(blocks, data)
    }

    /// Units of the rows that are marked as lost.
    fn marked(&self, slot: usize, rows: Rows) -> Vec<usize> {
        let meta = self.meta.borrow();
        if meta.marks.is_empty() {
            return Vec::new();
        }
        let first = self.geometry.unit(rows);
        let is_marked = |unit: &usize| {
            let unit = first + *unit as u64;
            meta.marks
                .iter()
                .any(|&(of, from, len)| of as usize == slot && (from..from + len).contains(&unit))
        };
        (0..rows.len as usize / LEN).filter(is_marked).collect()
    }

    /// Whether reads of the rows must check marks.
    pub(super) fn has_marks(&self, slot: usize, rows: Rows) -> bool {
        !self.marked(slot, rows).is_empty()
    }

    /// Marks lost data units, durably: parity counts them as zeros from now on.
    pub(super) async fn mark_lost(self: &Rc<Self>, rows: Rows, lost: &[(usize, usize)]) {
        let is_data = |position: usize| !self.geometry.has_parity() || position < self.geometry.data();
        if !lost.iter().any(|(position, _)| is_data(*position)) {
            return;
        }
        {
            let mut meta = self.meta.borrow_mut();
            for &(position, unit) in lost.iter().filter(|(position, _)| is_data(*position)) {
                let slot = self.geometry.slot(rows.stripe, position);
                let unit = self.geometry.unit(rows) + unit as u64;
                self.checksums.forget(slot, unit..unit + 1);
                meta.mark(slot as u32, unit);
            }
            if !meta.fits() {
                // There is no space for the marks of blocks that must not be read: so no block may be read.
                self.give_up();
            }
        }
        self.commit().await;
    }

    /// Removes the marks of rows that have been written.
    pub(super) async fn unmark(self: &Rc<Self>, rows: Rows, position: usize) {
        let first = self.geometry.unit(rows);
        let units = first..first + rows.len / UNIT;
        let slots = match self.geometry.code {
            Code::Parity(_) => vec![self.geometry.slot(rows.stripe, position)],
            Code::Copies | Code::None => (0..self.geometry.members).collect(),
        };
        let has_mark = |slot: &usize| self.meta.borrow().has_mark(*slot as u32, units.clone());
        if !slots.iter().any(has_mark) {
            return;
        }
        // Without its mark, the old content would count as data again after a power cut.
        self.flush_members().await;
        for slot in slots {
            // A member that has just failed must not come back in sync: what it holds here was never read.
            self.slots.borrow_mut()[slot].settle();
            self.meta.borrow_mut().unmark(slot as u32, units.clone());
        }
        self.commit().await;
    }
}
