//! A RAID set: its groups, their spares, and the disk that they form.

use super::{
    RaidConfig, RaidError, RaidStatus, ScrubReport,
    config::{Code, JournalUse, Shape},
    group::{
        Former, Found, Group, MEMBER_BYTES_MIN, Opening, Options, SlotRecordState, Spares, Superblock,
        Superblocks, look, scrubbed,
    },
    pages::StripedPages,
    status::{RaidCounters, RaidState},
    striping::Striping,
};
use crate::{
    Runtime,
    disk::{Chunk, Disk, DiskError, DiskStats, NextAccess, OpKind, Reading, Writing, check_range},
};
use bytes::{Bytes, BytesMut};
use futures::future::{LocalBoxFuture, join_all, ready};
use linerate_io::Nanos;
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
};

/// Several disks that form one disk.
pub struct RaidSet {
    runtime: Runtime,
    config: RaidConfig,
    groups: Vec<Rc<Group>>,
    striping: Striping,
    spares: Spares,
    former: Former,
    size_bytes: u64,
    block_bytes: u32,
    raw_bytes: u64,
    counted: Rc<Counted>,
    pages: Option<Arc<StripedPages>>,
}

/// A superblock and its disk.
type OnDisk = (Found, Rc<dyn Disk>);

/// Counters of the set's own operations.
#[derive(Default)]
struct Counted {
    stats: Cell<DiskStats>,
    under_way: Cell<usize>,
    busy_since: Cell<Nanos>,
}

impl RaidSet {
    /// Makes a set of disks, in this order; their old contents are lost. The set serves when this completes.
    pub async fn create(
        runtime: Runtime,
        config: RaidConfig,
        disks: Vec<Rc<dyn Disk>>,
        spares: Vec<Rc<dyn Disk>>,
    ) -> Result<Rc<Self>, RaidError> {
        let shape = config.shape(disks.len())?;
        check_names(&config.name, disks.iter().chain(&spares))?;
        let member_bytes = disks.iter().map(|disk| disk.size_bytes()).min().unwrap_or(0);
        let block_bytes = disks.iter().map(|disk| disk.block_bytes()).max().unwrap_or(512);
        // Distinguishes sets of the same name; it has no other use.
        let set = RandomState::new().build_hasher().finish();
        let mut groups = Vec::new();
        let parts = parts(&runtime, &config, shape, spares);
        for (number, disks) in disks.chunks(shape.members).enumerate() {
            let meta = Superblock::new(&config, shape, number, set, disks, member_bytes, block_bytes);
            if let Err(least_bytes) = meta.check_size(shape.code) {
                let smallest = disks.iter().min_by_key(|disk| disk.size_bytes());
                let name = smallest.map_or_else(String::new, |disk| disk.name().to_owned());
                return Err(RaidError::TooSmall { name, size_bytes: member_bytes, least_bytes });
            }
            groups.push(Group::create(parts.clone(), meta, shape.code, config.initialise, disks.to_vec()));
        }
        let groups = join_all(groups).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Self::of(parts, config, groups, shape))
    }

    /// Assembles a set from the superblocks of its disks, in any order. Some disks may be missing or out of date, as
    /// far as the level tolerates it. Spares wait until they are needed.
    pub async fn assemble(
        runtime: Runtime,
        config: RaidConfig,
        disks: Vec<Rc<dyn Disk>>,
        spares: Vec<Rc<dyn Disk>>,
    ) -> Result<Rc<Self>, RaidError> {
        check_names(&config.name, disks.iter().chain(&spares))?;
        let mut found = Vec::new();
        for disk in disks.iter().chain(&spares) {
            if let Superblocks::Whole { found: superblock, .. } = look(&**disk).await {
                found.push((*superblock, Rc::clone(disk)));
            }
        }
        let found = of_one_set(&config.name, found)?;
        let newest = &found[0].0.meta;
        let shape = config.shape(newest.slots.len() * newest.groups as usize)?;
        check_same(&config, newest, shape)?;
        let spares = spares.into_iter().filter(|spare| !is_member(spare, &found)).collect();
        let parts = parts(&runtime, &config, shape, spares);
        let mut groups = Vec::new();
        for number in 0..shape.groups {
            let of_group = found.iter().filter(|(found, _)| found.meta.group as usize == number);
            let Some((newest, _)) = of_group.clone().max_by_key(|(found, _)| found.meta.generation) else {
                let lacks = format!("all of group {number}");
                return Err(RaidError::Incomplete { set: config.name, lacks });
            };
            let meta = newest.meta.clone();
            let place = |(slot, member): (usize, &super::group::SlotRecord)| {
                let is_it = |(found, _): &&OnDisk| found.own == Some((slot, member.id));
                of_group.clone().find(is_it).map(|(_, disk)| Rc::clone(disk))
            };
            let disks = meta.slots.iter().enumerate().map(place).collect();
            groups.push(Group::open(parts.clone(), meta, shape.code, disks).await?);
        }
        Ok(Self::of(parts, config, groups, shape))
    }

    fn of(parts: Opening, config: RaidConfig, groups: Vec<Rc<Group>>, shape: Shape) -> Rc<Self> {
        let unit = match shape.code {
            Code::Parity(_) => groups[0].width_bytes(),
            Code::None | Code::Copies => u64::from(config.chunk_bytes),
        };
        let striping = Striping { groups: groups.len(), unit };
        let group_bytes = groups[0].size_bytes();
        let whole = if groups.len() == 1 { group_bytes } else { group_bytes / unit * unit };
        let (block_bytes, member_bytes) = groups[0].member_sizes();
        let of_group = |group: &Rc<Group>| {
            let (disk, start) = group.plain()?;
            Some((disk.pages()?, start))
        };
        let pages: Option<Vec<_>> = groups.iter().map(of_group).collect();
        let pages = pages.map(|pages| StripedPages::new(striping, pages.into_iter(), parts.is_served));
        Rc::new(Self {
            runtime: parts.runtime,
            config,
            striping,
            spares: parts.spares,
            former: parts.former,
            size_bytes: whole * groups.len() as u64,
            block_bytes,
            raw_bytes: member_bytes * (shape.groups * shape.members) as u64,
            groups,
            counted: Rc::default(),
            pages: pages.map(Arc::new),
        })
    }

    /// How the set is.
    pub fn status(&self) -> RaidStatus {
        let mut counters = RaidCounters::default();
        self.groups.iter().for_each(|group| counters += group.counters());
        let tasks: Vec<_> = self.groups.iter().filter_map(|group| group.task()).collect();
        RaidStatus {
            name: self.config.name.clone(),
            level: self.config.level,
            state: self.groups.iter().map(|group| group.state()).max().unwrap_or(RaidState::Failed),
            size_bytes: self.size_bytes,
            raw_bytes: self.raw_bytes,
            // The task that will take longest.
            task: tasks.into_iter().min_by(|one, other| one.done.total_cmp(&other.done)),
            counters,
            members: self.groups.iter().flat_map(|group| group.members()).collect(),
            spares: self.spares.borrow().iter().map(|spare| spare.name().to_owned()).collect(),
            former: self.former.borrow().clone(),
            id: self.groups[0].identity().0,
            generations: self.groups.iter().map(|group| group.identity().1).collect(),
        }
    }

    /// Removes a disk, as if it had failed; a spare takes its place if there is one. This can fail the set: when the
    /// disk is back, the set can be assembled again.
    pub async fn fail_disk(&self, name: &str) -> Result<(), RaidError> {
        let is_spare = |spare: &Rc<dyn Disk>| spare.name() == name;
        if self.spares.borrow().iter().any(is_spare) {
            self.spares.borrow_mut().retain(|spare| !is_spare(spare));
            self.former.borrow_mut().push(name.to_owned());
            return Ok(());
        }
        for group in &self.groups {
            let failing = self.runtime.start(Rc::clone(group).fail(name.to_owned()));
            if failing.await {
                return Ok(());
            }
        }
        Err(self.no_such(name))
    }

    /// Replaces a member by another disk; its rebuild has begun when this completes. A member that still serves is
    /// removed first; this is refused if the set needs it.
    pub async fn replace_disk(&self, old: &str, new: Rc<dyn Disk>) -> Result<(), RaidError> {
        let taken = self.status();
        let mut names = taken.members.iter().map(|member| &member.name).chain(&taken.spares);
        if names.any(|name| name == new.name() && name != old) {
            return Err(RaidError::SameName { set: self.config.name.clone(), disk: new.name().to_owned() });
        }
        for group in &self.groups {
            let replacing = self.runtime.start(Rc::clone(group).replace(old.to_owned(), Rc::clone(&new)));
            if replacing.await? {
                return Ok(());
            }
        }
        Err(self.no_such(old))
    }

    /// Adds a spare for the next member that fails, or for one that has failed already.
    pub async fn add_spare(&self, disk: Rc<dyn Disk>) -> Result<(), RaidError> {
        let taken = self.status();
        let mut names = taken.members.iter().map(|member| &member.name).chain(&taken.spares);
        if names.any(|name| name == disk.name()) {
            return Err(RaidError::SameName { set: self.config.name.clone(), disk: disk.name().to_owned() });
        }
        self.groups[0].fits(&*disk)?;
        self.spares.borrow_mut().push(disk);
        for group in self.groups.iter().filter(|group| group.has_redundancy()) {
            let group = Rc::clone(group);
            self.runtime.start(async move { group.take_spares().await }).await;
        }
        Ok(())
    }

    /// Whether a scrub is possible. Errors: there is no redundancy to compare with, or too many disks are missing.
    pub fn may_scrub(&self) -> Result<(), RaidError> {
        let why = if !self.groups.iter().any(|group| group.has_redundancy()) {
            "no redundancy to compare with"
        } else if self.groups.iter().any(|group| group.state() == RaidState::Failed) {
            "lost more disks than its level bears"
        } else {
            return Ok(());
        };
        Err(RaidError::NoScrub { set: self.config.name.clone(), why })
    }

    /// Reads and checks everything, and repairs what it can. It begins now; the future only returns the result.
    pub fn scrub(&self) -> LocalBoxFuture<'static, Result<ScrubReport, RaidError>> {
        let redundant = self.groups.iter().filter(|group| group.has_redundancy());
        let begun: Vec<_> = redundant.map(|group| scrubbed(Rc::clone(group), group.start_scrub())).collect();
        Box::pin(async move {
            let mut sum = ScrubReport::default();
            for report in join_all(begun).await {
                let report = report?;
                sum.mismatches_found += report.mismatches_found;
                sum.mismatches_mended += report.mismatches_mended;
                sum.lost += report.lost;
            }
            Ok(sum)
        })
    }

    /// Completes all work, so that the next start has none. A set that is not closed is also safe, but takes longer to
    /// start.
    pub async fn close(&self) -> Result<(), RaidError> {
        let closing: Vec<_> =
            self.groups.iter().map(|group| self.runtime.start(Rc::clone(group).close())).collect();
        for closed in join_all(closing).await {
            closed?;
        }
        Ok(())
    }

    /// For a RAID 0 of memory disks only: the positions of its bytes.
    pub fn striped_pages(&self) -> Option<Arc<StripedPages>> {
        self.pages.clone()
    }

    fn no_such(&self, name: &str) -> RaidError {
        RaidError::NoSuchDisk { set: self.config.name.clone(), disk: name.to_owned() }
    }
}

impl Disk for RaidSet {
    fn name(&self) -> &str {
        &self.config.name
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn stats(&self) -> DiskStats {
        self.counted.at(self.runtime.now())
    }

    fn is_thin(&self) -> bool {
        self.groups.iter().any(|group| group.is_thin())
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let len = into.len() as u64;
        if let Err(error) = check_range(self, offset, len) {
            return self.refuse(error);
        }
        let run = self.striping.run(offset, len);
        if run.len == len {
            let reading = self.groups[run.group].begin_read(run.offset, into);
            return self.counting(reading, move |stats| stats.count(OpKind::Read, len));
        }
        let runs = self.striping.runs(offset, len);
        let reading: Vec<_> = runs
            .map(|run| self.groups[run.group].begin_read(run.offset, into.split_to(run.len as usize)))
            .collect();
        let whole = async move {
            let mut whole = BytesMut::new();
            for part in join_all(reading).await {
                whole.unsplit(part?);
            }
            Ok(whole)
        };
        self.counting(Box::pin(whole), move |stats| stats.count(OpKind::Read, len))
    }

    fn write(&self, offset: u64, mut data: Bytes, durable: bool) -> Writing {
        let len = data.len() as u64;
        if let Err(error) = check_range(self, offset, len) {
            return self.refuse(error);
        }
        let runs = self.striping.runs(offset, len);
        let writing = runs.map(|run| {
            self.groups[run.group].begin_write(run.offset, data.split_to(run.len as usize), durable)
        });
        self.counting(all(writing), move |stats| stats.count(OpKind::Write, len))
    }

    fn flush(&self) -> Writing {
        let flushing = self.groups.iter().map(Group::begin_flush);
        self.counting(all(flushing), |stats| stats.flushes += 1)
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = check_range(self, offset, len) {
            return self.refuse(error);
        }
        let runs = self.striping.joined(offset, len);
        let discarding =
            runs.into_iter().map(|run| self.groups[run.group].begin_discard(run.offset, run.len));
        self.counting(all(discarding), |stats| stats.discards += 1)
    }

    fn reserve(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = check_range(self, offset, len) {
            return self.refuse(error);
        }
        let runs = self.striping.joined(offset, len);
        all(runs.into_iter().map(|run| self.groups[run.group].begin_reserve(run.offset, run.len)))
    }

    fn read_nowait(&self, offset: u64, len: u64, each: &mut dyn FnMut(Chunk<'_>)) -> Option<()> {
        check_range(self, offset, len).ok()?;
        for run in self.striping.runs(offset, len) {
            self.groups[run.group].read_nowait(run.offset, run.len, each)?;
        }
        self.counted.change(|stats| stats.count(OpKind::Read, len));
        Some(())
    }

    fn prefetch(&self, offset: u64, len: u64, next: NextAccess) {
        if check_range(self, offset, len).is_ok() {
            self.striping
                .runs(offset, len)
                .for_each(|run| self.groups[run.group].prefetch(run.offset, run.len, next));
        }
    }

    fn write_nowait(&self, offset: u64, data: &[u8], durable: bool) -> Option<()> {
        let len = data.len() as u64;
        check_range(self, offset, len).ok()?;
        let mut rest = data;
        for run in self.striping.runs(offset, len) {
            let (now, later) = rest.split_at(run.len as usize);
            self.groups[run.group].write_nowait(run.offset, now, durable)?;
            rest = later;
        }
        self.counted.change(|stats| stats.count(OpKind::Write, len));
        Some(())
    }
}

impl RaidSet {
    fn refuse<T: 'static>(&self, error: DiskError) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        self.counted.change(|stats| stats.errors += 1);
        Box::pin(ready(Err(error)))
    }

    /// Counts an operation that begins now when it ends.
    fn counting<T: 'static>(
        &self,
        operation: LocalBoxFuture<'static, Result<T, DiskError>>,
        change: impl FnOnce(&mut DiskStats) + 'static,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        let (runtime, counted) = (self.runtime.clone(), Rc::clone(&self.counted));
        let since = runtime.now();
        counted.begin(since);
        let ending = Ending { runtime, counted };
        Box::pin(async move {
            let result = operation.await;
            let took = ending.runtime.now() - since;
            ending.counted.change(|stats| {
                match result {
                    Ok(_) => change(stats),
                    Err(_) => stats.errors += 1,
                }
                stats.response_ns += took;
            });
            drop(ending);
            result
        })
    }
}

/// Ends an operation's time, even if its caller has stopped waiting.
struct Ending {
    runtime: Runtime,
    counted: Rc<Counted>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.counted.end(self.runtime.now());
    }
}

impl Counted {
    fn begin(&self, now: Nanos) {
        if self.under_way.get() == 0 {
            self.busy_since.set(now);
        }
        self.under_way.set(self.under_way.get() + 1);
    }

    fn end(&self, now: Nanos) {
        self.under_way.set(self.under_way.get() - 1);
        if self.under_way.get() == 0 {
            self.change(|stats| stats.busy_ns += now - self.busy_since.get());
        }
    }

    fn change(&self, change: impl FnOnce(&mut DiskStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    fn at(&self, now: Nanos) -> DiskStats {
        let mut stats = self.stats.get();
        if self.under_way.get() > 0 {
            stats.busy_ns += now - self.busy_since.get();
        }
        stats
    }
}

/// Completes when all have completed; all of them begin first.
fn all(writing: impl Iterator<Item = Writing>) -> Writing {
    let mut writing: Vec<Writing> = writing.collect();
    if writing.len() == 1 {
        return writing.remove(0);
    }
    Box::pin(async move { join_all(writing).await.into_iter().collect() })
}

fn parts(runtime: &Runtime, config: &RaidConfig, shape: Shape, spares: Vec<Rc<dyn Disk>>) -> Opening {
    let options = Options {
        rebuild_bytes_per_s: config.rebuild_bytes_per_s,
        is_always_journaled: config.journal == JournalUse::Always,
        checksums: config.checksums && shape.code != Code::None,
    };
    let spares: Spares = Rc::new(RefCell::new(spares));
    let (set_name, is_served) = (config.name.as_str().into(), Arc::new(AtomicBool::new(true)));
    Opening { runtime: runtime.clone(), set_name, options, spares, former: Former::default(), is_served }
}

fn check_names<'a>(set: &str, disks: impl Iterator<Item = &'a Rc<dyn Disk>>) -> Result<(), RaidError> {
    let mut names = Vec::new();
    for disk in disks {
        if names.contains(&disk.name()) {
            return Err(RaidError::SameName { set: set.to_owned(), disk: disk.name().to_owned() });
        }
        if disk.size_bytes() < MEMBER_BYTES_MIN {
            let (name, size_bytes) = (disk.name().to_owned(), disk.size_bytes());
            return Err(RaidError::TooSmall { name, size_bytes, least_bytes: MEMBER_BYTES_MIN });
        }
        names.push(disk.name());
    }
    Ok(())
}

/// The superblocks of the set with this name. If there are several sets, the one with most disks: a disk of an earlier
/// set of that name may be among them.
fn of_one_set(name: &str, mut found: Vec<OnDisk>) -> Result<Vec<OnDisk>, RaidError> {
    found.retain(|(found, _)| found.meta.name == name);
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for (found, _) in &found {
        *counts.entry(found.meta.set).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(set, count)| (*count, *set));
    let (set, _) = most.ok_or_else(|| RaidError::NotFound(name.to_owned()))?;
    found.retain(|(found, _)| found.meta.set == set);
    Ok(found)
}

fn check_same(config: &RaidConfig, meta: &Superblock, shape: Shape) -> Result<(), RaidError> {
    let differs = |what: String| Err(RaidError::Differs { set: config.name.clone(), what });
    if meta.level != config.level {
        return differs(format!("it is {}, not {}", meta.level, config.level));
    }
    if meta.chunk != config.chunk_bytes {
        return differs(format!("its chunks have {} bytes, not {}", meta.chunk, config.chunk_bytes));
    }
    if meta.groups as usize != shape.groups {
        return differs(format!("it has {} groups, not {}", meta.groups, shape.groups));
    }
    Ok(())
}

/// Whether a disk has a slot in the superblocks found.
fn is_member(disk: &Rc<dyn Disk>, found: &[OnDisk]) -> bool {
    let newest = |group| {
        let of_group = found.iter().map(|(found, _)| &found.meta).filter(move |meta| meta.group == group);
        of_group.max_by_key(|meta| meta.generation)
    };
    found.iter().filter(|(_, member)| Rc::ptr_eq(member, disk)).any(|(found, _)| {
        let place = found.own.zip(newest(found.meta.group));
        place.is_some_and(|((slot, id), meta)| {
            meta.slots.get(slot).is_some_and(|slot| slot.id == id && slot.state != SlotRecordState::Out)
        })
    })
}
