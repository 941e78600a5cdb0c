//! Makes a group, or assembles it from the superblocks of its members.

use super::{
    Former, Group, Options, Spares,
    background::Background,
    checksums::Checksums,
    geometry::UNIT,
    journal::{self, Change, Journal},
    state::{Commits, Locks, Settling, Slot, SlotState, Space, WriteIntent},
    superblock::{SlotRecordState, Superblock},
};
use crate::{
    Runtime,
    disk::{Disk, DiskError},
    raid::{
        RaidCounters, RaidError,
        config::{Code, Initialise},
    },
};
use bytes::BytesMut;
use futures::future::{join_all, try_join_all};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
};

/// State that all groups of a set share.
#[derive(Clone)]
pub(in super::super) struct Opening {
    pub(in super::super) runtime: Runtime,
    pub(in super::super) set_name: Rc<str>,
    pub(in super::super) options: Options,
    pub(in super::super) spares: Spares,
    pub(in super::super) former: Former,
    /// Becomes false when a group fails, for threads that access the set's bytes.
    pub(in super::super) is_served: Arc<AtomicBool>,
}

impl Group {
    /// Makes a group of disks. Their old contents are lost.
    pub(in super::super) async fn create(
        opening: Opening,
        mut meta: Superblock,
        code: Code,
        initialise: Initialise,
        disks: Vec<Rc<dyn Disk>>,
    ) -> Result<Rc<Self>, RaidError> {
        // A superblock of an earlier set could be newer than the first of this one.
        try_join_all(disks.iter().map(|disk| disk.write(0, Superblock::no_superblocks(), true))).await?;
        let (geometry, _) = meta.lay_out(code);
        if initialise == Initialise::AssumeClean || geometry.tolerance() == 0 {
            meta.initialised = geometry.stripes;
        }
        let group = Rc::new(Self::new(opening, meta, code, disks.iter().cloned().map(Some).collect()));
        try_join_all(disks.iter().map(|disk| group.reserve_own(&**disk))).await?;
        (0..geometry.members).for_each(|slot| group.begin_sums(slot, false));
        group.settle_once().await;
        group.settled().await;
        group.check()?;
        group.work();
        Ok(group)
    }

    /// Assembles a group. `disks` are in the order of the slots; a slot without a disk is missing.
    pub(in super::super) async fn open(
        opening: Opening,
        mut meta: Superblock,
        code: Code,
        disks: Vec<Option<Rc<dyn Disk>>>,
    ) -> Result<Rc<Self>, RaidError> {
        let (geometry, layout) = meta.lay_out(code);
        meta.fit_regions(geometry.stripes.div_ceil(layout.stripes_per_region));
        let had_sums = meta.sums_series != 0;
        match (opening.options.checksums, had_sums) {
            // Checksums of an earlier series were not updated.
            (true, false) => meta.sums_series = meta.generation + 1,
            (false, true) => meta.sums_series = 0,
            _ => {}
        }
        let is_whole = meta.slots.iter().all(|slot| slot.state == SlotRecordState::InSync);
        let was_journaled = geometry.has_parity() && (meta.is_journaled || !is_whole);
        let group = Rc::new(Self::new(opening, meta, code, disks));
        if group.out() > geometry.tolerance() {
            let is_out = |slot: &&Slot| slot.state != SlotState::InSync;
            let lacks: Vec<String> =
                group.slots.borrow().iter().filter(is_out).map(|slot| slot.name.clone()).collect();
            let set = group.set_name.to_string();
            return Err(RaidError::Incomplete { set, lacks: lacks.join(", ") });
        }
        group.reserve_own_again().await;
        if was_journaled {
            group.replay().await;
        }
        group.alive().into_iter().for_each(|(slot, _)| group.begin_sums(slot, had_sums));
        group.settle_once().await;
        group.settled().await;
        group.check()?;
        group.keep_clean();
        group.take_spares().await;
        group.check()?;
        group.work();
        Ok(group)
    }

    fn new(opening: Opening, meta: Superblock, code: Code, disks: Vec<Option<Rc<dyn Disk>>>) -> Self {
        let (geometry, layout) = meta.lay_out(code);
        let slots = disks.into_iter().zip(&meta.slots).map(|(disk, slot)| {
            let (state, saved) = match (slot.state, &disk) {
                (_, None) | (SlotRecordState::Out, _) => (SlotState::Missing, 0),
                (SlotRecordState::InSync, _) => (SlotState::InSync, 0),
                (SlotRecordState::Rebuilding(done), _) => (SlotState::Rebuilding(done), done),
            };
            // A renamed disk shows its new name.
            let name = disk.as_ref().map_or(slot.name.as_str(), |disk| disk.name()).to_owned();
            let disk = disk.filter(|_| state != SlotState::Missing);
            Slot { name, id: slot.id, disk, state, saved, reads: 0 }
        });
        let slots: Vec<Slot> = slots.collect();
        Self {
            runtime: opening.runtime,
            set_name: opening.set_name,
            options: opening.options,
            spares: opening.spares,
            former: opening.former,
            is_served: opening.is_served,
            geometry,
            layout,
            checksums: Checksums::new(layout, slots.len()),
            space: Space::new(geometry),
            slots: RefCell::new(slots),
            locks: Rc::new(Locks::default()),
            commits: Commits::after(meta.generation),
            settling: Settling::default(),
            write_intent: WriteIntent::new(geometry, layout.stripes_per_region, &meta),
            meta: RefCell::new(meta),
            journal: Journal::new(layout),
            is_journaled: Cell::new(false),
            background: Background::default(),
            counters: Cell::new(RaidCounters::default()),
            has_failed: Cell::new(false),
            is_closing: Cell::new(false),
            turn: Cell::new(0),
            scratch: RefCell::default(),
        }
    }

    /// The space for the group's own data was reserved when its members were added, unless they were not thin then.
    async fn reserve_own_again(self: &Rc<Self>) {
        for (slot, disk) in self.alive() {
            match self.reserve_own(&*disk).await {
                Ok(()) => {}
                Err(error @ DiskError::NoSpace(_)) => {
                    tracing::warn!(raid_set = &*self.set_name, %error, "writes will wait for space for superblocks");
                }
                Err(_) => self.member_failed(slot, &disk),
            }
        }
    }

    /// Writes the contents of the journal again: some of them may not have reached the stripes, or only in part.
    async fn replay(self: &Rc<Self>) {
        let epoch = self.meta.borrow().journal_epoch();
        let mut records = BTreeMap::new();
        for (slot, disk) in self.alive() {
            let area = BytesMut::zeroed(self.layout.journal_len as usize);
            match disk.read(self.layout.journal, area).await {
                Ok(area) => journal::read(&area.freeze(), epoch, &mut records),
                // The other copy may be readable.
                Err(DiskError::Unreadable { .. }) => {}
                Err(_) => self.member_failed(slot, &disk),
            }
        }
        for changes in records.into_values() {
            self.repeat(changes).await;
        }
    }

    /// Repeats the changes of one record, which concern one stripe. The written units are not lost any more.
    async fn repeat(self: &Rc<Self>, changes: Vec<Change>) {
        let alive: BTreeMap<usize, Rc<dyn Disk>> = self.alive().into_iter().collect();
        for change in &changes {
            let (stripe, unit) = self.geometry.stripe_and_unit(change.offset);
            if self.geometry.position(stripe, change.slot) < self.geometry.data() {
                let units = unit..unit + change.data.len() as u64 / UNIT;
                self.meta.borrow_mut().unmark(change.slot as u32, units);
            }
        }
        let writing = changes.into_iter().filter_map(|change| {
            let disk = Rc::clone(alive.get(&change.slot)?);
            Some(self.write_member(change.slot, disk, change.offset, change.data, false))
        });
        join_all(writing.collect::<Vec<_>>()).await;
    }
}
