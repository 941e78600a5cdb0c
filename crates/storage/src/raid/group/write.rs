//! Writing: whole stripes, or parts of stripes; their parity is updated in the way that needs fewer reads.

use super::{
    super::{config::Code, parity},
    GROUP_LOCK, Group,
    geometry::{Piece, Rows, UNIT},
    journal::{Change, Reserved},
    state::Hold,
};
use crate::disk::{Disk, DiskError};
use bytes::{Bytes, BytesMut};
use futures::future::join_all;
use std::{collections::BTreeMap, rc::Rc};

/// New bytes in one chunk of a stripe.
#[derive(Clone)]
struct Part {
    piece: Piece,
    data: Bytes,
}

/// Rows in which a write covers certain chunks completely.
struct Band {
    rows: Rows,
    /// Position and new bytes.
    new: BTreeMap<usize, Bytes>,
}

impl Group {
    /// Writes `data` at `offset`.
    pub(in super::super) async fn write(
        self: Rc<Self>,
        offset: u64,
        mut data: Bytes,
        durable: bool,
    ) -> Result<(), DiskError> {
        self.check()?;
        let mut stripes: Vec<Vec<Part>> = Vec::new();
        for piece in self.geometry.pieces(offset, data.len() as u64) {
            let part = Part { piece, data: data.split_to(piece.len as usize) };
            match stripes.last_mut() {
                Some(parts) if parts[0].piece.stripe == piece.stripe => parts.push(part),
                _ => stripes.push(vec![part]),
            }
        }
        let written = join_all(stripes.into_iter().map(|parts| self.write_stripe(parts, durable))).await;
        // If a member failed during the write: first the others must record that it is old.
        self.settled().await;
        self.check()?;
        written.into_iter().collect()
    }

    async fn write_stripe(self: &Rc<Self>, parts: Vec<Part>, durable: bool) -> Result<(), DiskError> {
        while !self.try_write_stripe(parts.clone(), durable).await? {
            self.settled().await;
        }
        Ok(())
    }

    /// False: a member has failed, and nothing may be written before the other members record it. Completed parts of
    /// the write may be repeated.
    async fn try_write_stripe(
        self: &Rc<Self>,
        mut parts: Vec<Part>,
        durable: bool,
    ) -> Result<bool, DiskError> {
        let stripe = parts[0].piece.stripe;
        let (_group_lock, mut reserved) = self.take_group_lock(&parts).await?;
        let _stripe = self.locks.take(stripe, Hold::Exclusive).await;
        let needed = parts.iter().map(|part| part.piece.position);
        self.reserve_written(stripe, needed).await?;
        let _region = self.enter(stripe);
        self.make_ready(stripe).await?;
        for part in &mut parts {
            self.complete(part).await?;
        }
        for band in bands(&parts) {
            if !self.write_band(band, durable, reserved.as_mut()).await {
                return Ok(false);
            }
        }
        for part in &parts {
            self.unmark(part.piece.rows(), part.piece.position).await;
        }
        Ok(true)
    }

    /// Takes the group lock, with space in the journal if writes go through it.
    async fn take_group_lock(
        self: &Rc<Self>,
        parts: &[Part],
    ) -> Result<(super::state::Guard, Option<Reserved>), DiskError> {
        loop {
            let group_lock = self.locks.take(GROUP_LOCK, Hold::Shared).await;
            self.check()?;
            if !self.is_journaled.get() {
                return Ok((group_lock, None));
            }
            // The maximum: all parts, and parity for their rows; in up to three bands, each with a record.
            let parity = self.geometry.tolerance() as u64;
            let rows = parts.iter().map(|part| part.piece.rows().len);
            let bytes = rows.clone().sum::<u64>() + parity * rows.sum::<u64>().min(self.geometry.chunk);
            if let Some(reserved) = self.journal.reserve(3, bytes) {
                return Ok((group_lock, Some(reserved)));
            }
            drop(group_lock);
            self.ask_to_settle();
            self.settled().await;
        }
    }

    /// Reserves the chunks that a write to data at these positions changes.
    async fn reserve_written(
        self: &Rc<Self>,
        stripe: u64,
        positions: impl Iterator<Item = usize>,
    ) -> Result<(), DiskError> {
        match self.geometry.code {
            Code::Copies => self.reserve_chunks(stripe, 0..self.geometry.members).await,
            Code::Parity(_) | Code::None => {
                let parity = self.geometry.data()..self.geometry.members;
                self.reserve_chunks(stripe, positions.chain(parity)).await
            }
        }
    }

    /// Prepares a stripe for a write: checksums in memory, flags set, and the stripe in sync.
    pub(super) async fn make_ready(self: &Rc<Self>, stripe: u64) -> Result<(), DiskError> {
        self.load_all_sums(self.geometry.all_rows(stripe)).await;
        self.flag(stripe).await;
        if !self.write_intent.is_synced(stripe) {
            self.sync_stripe(stripe).await?;
        }
        self.check()
    }

    /// Extends a part to whole units, with the bytes around it.
    async fn complete(self: &Rc<Self>, part: &mut Part) -> Result<(), DiskError> {
        if part.piece.is_whole_units() {
            return Ok(());
        }
        let rows = part.piece.rows();
        let mut fetched = self.fetch(rows, &[part.piece.position]).await;
        self.check()?;
        let (before, len) = ((part.piece.from - rows.from) as usize, part.piece.len as usize);
        // A lost unit that is written only in part cannot be restored.
        let is_kept =
            |unit: usize| unit * (UNIT as usize) < before || (unit + 1) * UNIT as usize > before + len;
        let mut gone = fetched.lost.iter().chain(&fetched.marked);
        if gone.any(|(position, unit)| *position == part.piece.position && is_kept(*unit)) {
            let offset_bytes = self.geometry.offset(part.piece);
            return Err(DiskError::Unreadable { offset_bytes, len_bytes: part.piece.len });
        }
        let mut whole = fetched.take(part.piece.position);
        whole[before..before + len].copy_from_slice(&part.data);
        part.data = whole.freeze();
        part.piece = Piece { from: rows.from, len: rows.len, ..part.piece };
        Ok(())
    }

    async fn write_band(self: &Rc<Self>, band: Band, durable: bool, reserved: Option<&mut Reserved>) -> bool {
        let Band { rows, new } = band;
        let (data, members) = (self.geometry.data(), self.geometry.members);
        let is_usable =
            |position: &usize| self.usable(self.geometry.slot(rows.stripe, *position), rows.stripe).is_some();
        let parity: Vec<usize> = (data..members).filter(is_usable).collect();
        let mut content: Vec<Option<Bytes>> = vec![None; members];
        if self.geometry.code == Code::Copies {
            let bytes = new.values().next();
            content.fill(bytes.cloned());
        } else {
            let way = self.cheapest(|position| new.contains_key(position), parity.len(), is_usable);
            self.count_way(way);
            let changed = match way {
                Way::NoParity => Vec::new(),
                Way::Full => self.parity_of(rows, &new),
                Way::Modify => self.modified_parity(rows, &new, &parity).await,
                Way::Reconstruct => self.reconstructed_parity(rows, &new).await,
            };
            for (position, bytes) in new.into_iter().chain(changed) {
                content[position] = Some(bytes);
            }
        }
        if self.has_failed.get() {
            return true;
        }
        self.put(rows, content, durable, reserved.filter(|_| !parity.is_empty())).await
    }

    /// Writes contents to their members, through the journal if space is reserved in it. False: it was not done. A
    /// member has failed, so the journal would lack its contents, and after a power cut the member could return as if
    /// it had not failed.
    async fn put(
        self: &Rc<Self>,
        rows: Rows,
        content: Vec<Option<Bytes>>,
        durable: bool,
        reserved: Option<&mut Reserved>,
    ) -> bool {
        if reserved.is_some() && self.has_unknown_failure() {
            return false;
        }
        let offset = self.geometry.place(rows);
        let mut changes = Vec::new();
        for (position, bytes) in content.into_iter().enumerate() {
            let slot = self.geometry.slot(rows.stripe, position);
            if let Some(data) = bytes.filter(|_| self.usable(slot, rows.stripe).is_some()) {
                changes.push(Change { slot, offset, data });
            }
        }
        let is_journaled = reserved.is_some();
        if let Some(reserved) = reserved {
            self.append(reserved, &changes).await;
        }
        let unit = self.geometry.unit(rows);
        let writing = changes.into_iter().filter_map(|Change { slot, offset, data }| {
            self.sums_set(slot, unit, &data);
            let disk = self.usable(slot, rows.stripe)?;
            Some(self.write_member(slot, disk, offset, data, durable && !is_journaled))
        });
        join_all(writing.collect::<Vec<_>>()).await;
        true
    }

    /// The cheaper way to compute the parity of a band that has so many parity blocks.
    pub(super) fn cheapest(
        &self,
        is_new: impl Fn(&usize) -> bool,
        parity: usize,
        is_usable: impl Fn(&usize) -> bool,
    ) -> Way {
        let data = self.geometry.data();
        let new = (0..data).filter(&is_new).count();
        if parity == 0 {
            return Way::NoParity;
        }
        if new == data {
            return Way::Full;
        }
        let can_modify = (0..data).filter(&is_new).all(|position| is_usable(&position));
        let can_reconstruct =
            (0..data).filter(|position| !is_new(position)).all(|position| is_usable(&position));
        let modify_is_cheaper = new + parity < data - new;
        if can_modify && (modify_is_cheaper || !can_reconstruct) { Way::Modify } else { Way::Reconstruct }
    }

    pub(super) fn count_way(&self, way: Way) {
        self.count(|counters| match way {
            Way::NoParity => {}
            Way::Full => counters.full_stripe_writes += 1,
            Way::Modify => counters.read_modify_writes += 1,
            Way::Reconstruct => counters.reconstruct_writes += 1,
        });
    }

    /// Parity of a stripe's rows when all of its data is known.
    pub(super) fn parity_of(&self, rows: Rows, data: &BTreeMap<usize, Bytes>) -> Vec<(usize, Bytes)> {
        let blocks: Vec<&[u8]> = data.values().map(|bytes| &**bytes).collect();
        let first = self.geometry.data();
        let mut p = BytesMut::zeroed(rows.len as usize);
        if self.geometry.tolerance() == 1 {
            parity::generate(&blocks, &mut p, None);
            return vec![(first, p.freeze())];
        }
        let mut q = BytesMut::zeroed(rows.len as usize);
        parity::generate(&blocks, &mut p, Some(&mut q));
        vec![(first, p.freeze()), (first + 1, q.freeze())]
    }

    /// Parity from the old data and the old parity.
    async fn modified_parity(
        self: &Rc<Self>,
        rows: Rows,
        new: &BTreeMap<usize, Bytes>,
        parity: &[usize],
    ) -> Vec<(usize, Bytes)> {
        let want: Vec<usize> = new.keys().chain(parity).copied().collect();
        let mut fetched = self.fetch(rows, &want).await;
        if !fetched.lost.is_empty() {
            return self.reconstructed_parity(rows, new).await;
        }
        let mut changed: Vec<(usize, BytesMut)> =
            parity.iter().map(|&position| (position, fetched.take(position))).collect();
        for (&index, new) in new {
            let mut difference = fetched.take(index);
            parity::add(&mut difference, new);
            for (position, bytes) in &mut changed {
                parity::update(bytes, *position - self.geometry.data(), index, &difference);
            }
        }
        changed.into_iter().map(|(position, bytes)| (position, bytes.freeze())).collect()
    }

    /// Parity from the new data and the rest of the stripe.
    async fn reconstructed_parity(
        self: &Rc<Self>,
        rows: Rows,
        new: &BTreeMap<usize, Bytes>,
    ) -> Vec<(usize, Bytes)> {
        let rest: Vec<usize> =
            (0..self.geometry.data()).filter(|position| !new.contains_key(position)).collect();
        let mut fetched = self.fetch(rows, &rest).await;
        self.mark_lost(rows, &fetched.lost).await;
        let mut all = new.clone();
        all.extend(rest.into_iter().map(|position| (position, fetched.take(position).freeze())));
        self.parity_of(rows, &all)
    }

    async fn append(self: &Rc<Self>, reserved: &mut Reserved, changes: &[Change]) {
        let epoch = self.meta.borrow().journal_epoch();
        let (offset, record) = self.journal.record(reserved, epoch, changes);
        let slots = self.journal.slots();
        let alive = self.alive().into_iter().filter(|(slot, _)| slots.contains(slot));
        let writing = alive.map(|(slot, disk)| self.write_member(slot, disk, offset, record.clone(), true));
        join_all(writing.collect::<Vec<_>>()).await;
    }

    pub(super) fn sums_set(&self, slot: usize, unit: u64, bytes: &[u8]) {
        if self.options.checksums {
            self.checksums.set(slot, unit, bytes);
        }
    }

    /// Discards a range.
    pub(in super::super) async fn discard(self: Rc<Self>, offset: u64, len: u64) -> Result<(), DiskError> {
        const ZEROS: &[u8] = &[0; 64 << 10];
        let (mut at, end, width) = (offset, offset + len, self.geometry.width());
        while at < end {
            let whole = (end - at) / width;
            if at.is_multiple_of(width) && whole > 0 && !self.is_journaled.get() {
                let stripes = at / width..at / width + whole.min(16);
                at = stripes.end * width;
                let discarded = join_all(stripes.map(|stripe| self.discard_stripe(stripe))).await;
                self.settled().await;
                discarded.into_iter().collect::<Result<Vec<_>, _>>()?;
                continue;
            }
            let to_stripe = width - at % width;
            let len = (end - at).min(to_stripe).min(ZEROS.len() as u64);
            Rc::clone(&self).write(at, Bytes::from_static(&ZEROS[..len as usize]), false).await?;
            at += len;
        }
        self.check()
    }

    /// A stripe without data has zeros as parity.
    async fn discard_stripe(self: &Rc<Self>, stripe: u64) -> Result<(), DiskError> {
        let (group_lock, reserved) = self.take_group_lock(&[]).await?;
        if reserved.is_some() {
            // A member has failed since: this needs the journal now.
            drop(group_lock);
            let width = self.geometry.width();
            let zeros = Bytes::from(vec![0; width as usize]);
            return Box::pin(Rc::clone(self).write(stripe * width, zeros, false)).await;
        }
        let _stripe = self.locks.take(stripe, Hold::Exclusive).await;
        let _region = self.enter(stripe);
        self.make_ready(stripe).await?;
        let rows = self.geometry.all_rows(stripe);
        let unit = self.geometry.unit(rows);
        let discarding = self.alive().into_iter().map(|(slot, disk)| {
            if self.options.checksums {
                self.checksums.set_zeros(slot, unit..unit + rows.len / UNIT);
            }
            self.space.give_back(slot, stripe);
            self.discard_member(slot, disk, rows)
        });
        join_all(discarding.collect::<Vec<_>>()).await;
        for position in 0..self.geometry.data() {
            self.unmark(rows, position).await;
        }
        Ok(())
    }

    /// To discard a part of a file may also take space, for the rest of its extent.
    pub(super) async fn discard_member(self: &Rc<Self>, slot: usize, disk: Rc<dyn Disk>, rows: Rows) {
        loop {
            match disk.discard(self.geometry.place(rows), rows.len).await {
                Ok(()) => return,
                Err(DiskError::NoSpace(_)) if self.wait_for_space().await => {}
                Err(_) => return self.member_failed(slot, &disk),
            }
        }
    }
}

/// See [`Group::cheapest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    NoParity,
    Full,
    Modify,
    Reconstruct,
}

/// Splits the parts of one stripe, all in whole units, into bands: at most three, because the parts are consecutive.
fn bands(parts: &[Part]) -> Vec<Band> {
    let ends = parts.iter().flat_map(|part| [part.piece.from, part.piece.from + part.piece.len]);
    let mut cuts: Vec<u64> = ends.collect();
    cuts.sort_unstable();
    cuts.dedup();
    let band = |cut: &[u64]| {
        let covers = |part: &&Part| part.piece.from <= cut[0] && cut[1] <= part.piece.from + part.piece.len;
        let bytes = |part: &Part| {
            let from = (cut[0] - part.piece.from) as usize;
            (part.piece.position, part.data.slice(from..from + (cut[1] - cut[0]) as usize))
        };
        let new: BTreeMap<usize, Bytes> = parts.iter().filter(covers).map(bytes).collect();
        let rows = Rows { stripe: parts[0].piece.stripe, from: cut[0], len: cut[1] - cut[0] };
        (!new.is_empty()).then_some(Band { rows, new })
    };
    cuts.windows(2).filter_map(band).collect()
}
