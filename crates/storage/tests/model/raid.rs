//! A RAID set under random work, failing disks, bad sectors, silent corruption and power cuts.
//!
//! While the level tolerates it, no operation fails and no byte is wrong. Beyond that there are errors, and still no
//! wrong byte. At the end everything is repaired, a scrub finds no error, and the redundancy is proved by failing
//! disks.

use crate::{
    clients::Volume,
    oracle::Oracle,
    rig::{Drive, Shortage, oracle, pass, run, start_clients},
};
use fastrand::Rng;
use linerate_io::Nanos;
use linerate_sim::for_each_seed;
use linerate_storage::{
    Disk, DiskError, Executor, Runtime,
    raid::{
        Initialise, JournalUse, Label, MemberState, RaidConfig, RaidError, RaidLevel, RaidSet, RaidState,
        TaskKind, label,
    },
};
use std::{cell::RefCell, future::Future, rc::Rc};

/// Blocks of the set that are used: a window at a random place.
const BLOCKS: usize = 192;
/// Size of a set: small, so that whole drives are read and written quickly.
const SET_BYTES: u64 = 3 << 19;
/// Size that a drive needs besides data: superblocks, journal, checksums.
const DRIVE_BYTES_MIN: u64 = 5 << 18;
/// Limit of the time for a complete repair.
const PATIENCE_NS: Nanos = 3_600_000_000_000;

/// The drives in their bays.
struct Bays {
    drives: Vec<Drive>,
    drive_bytes: u64,
    block_bytes: u32,
    made: usize,
    /// Whether all drives are quick at times.
    are_quick: bool,
    /// Drives that fail, or soon will.
    doomed: Vec<String>,
}

/// A set at work.
#[derive(Clone)]
pub(crate) struct World {
    runtime: Runtime,
    pub(crate) set: Rc<RaidSet>,
    bays: Rc<RefCell<Bays>>,
    config: RaidConfig,
    /// Whether disks may corrupt data: not if a power cut may happen before the corruption is found. Blocks that were
    /// being written then have no checksums, and corruption in them cannot be repaired.
    pub(crate) may_rot: bool,
    pub(crate) shortage: Shortage,
}

impl Bays {
    fn new(runtime: &Runtime, count: usize, drive_bytes: u64, block_bytes: u32, rng: &mut Rng) -> Self {
        // Seeds without quick drives keep their course.
        let are_quick = rng.clone().u8(0..3) == 0;
        let (drives, doomed) = (Vec::new(), Vec::new());
        let mut bays = Self { drives, drive_bytes, block_bytes, made: 0, are_quick, doomed };
        for _ in 0..count {
            bays.add(runtime, rng);
        }
        bays
    }

    /// A new drive in a free bay.
    fn add(&mut self, runtime: &Runtime, rng: &mut Rng) -> Rc<dyn Disk> {
        self.made += 1;
        let drive = Drive::quick_or_not(
            self.are_quick,
            runtime,
            &format!("d{}", self.made),
            self.drive_bytes,
            self.block_bytes,
            rng,
        );
        self.drives.push(drive.clone());
        drive.disk()
    }

    fn disks(&self) -> Vec<Rc<dyn Disk>> {
        self.drives.iter().map(Drive::disk).collect()
    }

    fn drive(&self, name: &str) -> Option<&Drive> {
        self.drives.iter().find(|drive| drive.faulty.name() == name)
    }

    fn remove(&mut self, name: &str) {
        self.drives.retain(|drive| drive.faulty.name() != name);
        self.doomed.retain(|doomed| doomed != name);
    }

    fn after_power_cut(&self, runtime: &Runtime, rng: &mut Rng) -> Self {
        let drives: Vec<_> = self.drives.iter().map(|drive| drive.after_power_cut(runtime, rng)).collect();
        let failed = drives.iter().filter(|drive| drive.faulty.has_failed());
        let doomed = failed.map(|drive| drive.faulty.name().to_owned()).collect();
        Self { drives, doomed, ..*self }
    }
}

impl World {
    fn new(runtime: Runtime, set: Rc<RaidSet>, bays: Rc<RefCell<Bays>>, config: RaidConfig) -> Self {
        Self { runtime, set, bays, config, may_rot: false, shortage: Shortage::default() }
    }

    /// Names of members that serve fully, as far as can be known.
    fn sound(&self) -> Vec<String> {
        let (status, bays) = (self.set.status(), self.bays.borrow());
        let online = status.members.into_iter().filter(|member| member.state == MemberState::Online);
        online.map(|member| member.name).filter(|name| !bays.doomed.contains(name)).collect()
    }

    /// How many more members may fail now without a loss, in any combination. None while the set is initialised, or
    /// recovers from a power cut: then there is less redundancy than the disks suggest.
    fn headroom(&self) -> usize {
        let (status, sound) = (self.set.status(), self.sound().len());
        let is_initialising = status.task.is_some_and(|task| task.kind == TaskKind::Initialise);
        if is_initialising {
            return 0;
        }
        let members = status.members.len();
        self.config.level.tolerance(members).saturating_sub(members - sound)
    }

    /// A member fails: now, after some more operations, or silently.
    fn fail_one(&self, rng: &mut Rng) {
        let Some(name) = rng.choice(self.sound()) else { return };
        let mut bays = self.bays.borrow_mut();
        bays.doomed.push(name.clone());
        let drive = bays.drive(&name).unwrap();
        match rng.u8(0..3) {
            0 => drive.faulty.fail(),
            1 => drive.faulty.fail_after(rng.u64(0..20)),
            _ => drive.hang(&self.runtime, rng),
        }
    }

    /// Replaces missing members by new drives.
    async fn replace(&self, rng: &mut Rng) {
        let states = [MemberState::Failed, MemberState::Missing];
        let status = self.set.status();
        for member in status.members.into_iter().filter(|member| states.contains(&member.state)) {
            let disk = self.bays.borrow_mut().add(&self.runtime, rng);
            let replaced = self.set.replace_disk(&member.name, disk).await;
            // Before that the other members may not record that it has failed.
            self.bays.borrow_mut().remove(&member.name);
            match replaced {
                // A spare was quicker.
                Ok(()) | Err(RaidError::NoSuchDisk { .. }) => {}
                Err(RaidError::Disk(error)) if self.shortage.excuses(&self.runtime, &error) => {}
                Err(error) => panic!("replace {}: {error}", member.name),
            }
        }
    }

    /// A few blocks of one disk are corrupted, or unreadable. Some time later a scrub finds and repairs those that no
    /// read has found. There must be no other error.
    async fn spoil(&self, rng: &mut Rng) {
        let Some(name) = rng.choice(self.sound()) else { return };
        let drive = self.bays.borrow().drive(&name).unwrap().clone();
        let sectors = drive.faulty.size_bytes() / 4096;
        let at = rng.u64(sectors / 4..sectors - 16) * 4096;
        let len = rng.u64(1..8) * 4096;
        if self.config.checksums && rng.bool() {
            match drive.faulty.corrupt(at, len).await {
                Ok(()) => {}
                Err(error) => assert!(self.shortage.excuses(&self.runtime, &error), "{error}"),
            }
        } else {
            drive.faulty.make_unreadable(at, len);
        }
        self.runtime.sleep(rng.u64(0..50_000_000)).await;
        self.scrub().await;
    }

    /// Scrubs until everything is repaired: a member on a full file system has no space for a repair.
    async fn scrub(&self) {
        let deadline = self.runtime.now() + PATIENCE_NS;
        loop {
            let report = self.set.scrub().await.unwrap_or_else(|error| panic!("scrub: {error}"));
            assert_eq!(report.lost, 0, "{report:?}");
            if report.mismatches_mended == report.mismatches_found {
                return;
            }
            assert!(self.runtime.now() < deadline, "never repaired: {report:?}");
            self.runtime.sleep(100_000_000).await;
        }
    }

    /// Faults that the level tolerates.
    pub(crate) async fn suffer(&self, rng: &mut Rng, events: usize) {
        for _ in 0..events {
            self.runtime.sleep(rng.u64(0..50_000_000)).await;
            match rng.u8(0..10) {
                8.. => self.shortage.begin(&self.runtime, self.bays.borrow().drives.iter(), rng),
                0..3 if self.headroom() > 0 => self.fail_one(rng),
                3..5 => self.replace(rng).await,
                5 if self.may_rot && self.is_whole() => self.spoil(rng).await,
                6 if self.is_whole() => self.scrub().await,
                7 if self.set.status().spares.is_empty() => {
                    let spare = self.bays.borrow_mut().add(&self.runtime, rng);
                    self.set.add_spare(spare).await.unwrap_or_else(|error| panic!("add_spare: {error}"));
                }
                _ => {}
            }
        }
    }

    /// Whether all the redundancy is there.
    fn is_whole(&self) -> bool {
        let status = self.set.status();
        status.state == RaidState::Optimal
            && status.task.is_none()
            && self.sound().len() == status.members.len()
    }

    /// Repairs the set completely.
    pub(crate) async fn mend(&self, rng: &mut Rng) {
        let deadline = self.runtime.now() + PATIENCE_NS;
        while !self.is_whole() {
            assert!(self.runtime.now() < deadline, "never whole again: {:?}", self.set.status());
            // The failure of a disk is noticed only when it is used.
            let names = self.bays.borrow().doomed.clone();
            for name in names {
                _ = self.set.fail_disk(&name).await;
            }
            self.replace(rng).await;
            self.runtime.sleep(100_000_000).await;
        }
    }

    /// Works for a number of rounds.
    pub(crate) async fn live(self, volume: Volume, mut rng: Rng, rounds: usize) {
        for _ in 0..rounds {
            let (clients, operations) = (rng.usize(0..6), rng.usize(1..30));
            let done = start_clients(&self.runtime, &volume, &mut rng, clients, operations);
            let events = rng.usize(0..4);
            self.suffer(&mut rng, events).await;
            done.await;
        }
    }

    /// A set with all of its redundancy has no flags. Then it loses as many disks as it tolerates: reads are now
    /// computed.
    pub(crate) async fn strip(&self, rng: &mut Rng) {
        let report = self.set.scrub().await.unwrap_or_else(|error| panic!("scrub: {error}"));
        assert_eq!((report.mismatches_found, report.lost), (0, 0), "a scrub of a clean set: {report:?}");
        while self.headroom() > 0 {
            self.fail_one(rng);
        }
    }
}

/// The newest superblock of each group.
async fn generations(disks: Vec<Rc<dyn Disk>>, groups: usize) -> Vec<u64> {
    let mut newest = vec![0; groups];
    for disk in disks {
        if let Label::Member(member) = label(&*disk).await {
            newest[member.group] = newest[member.group].max(member.generation);
        }
    }
    newest
}

/// A level, a number of disks, and random options. A large set has large chunks, because it is read stripe by stripe.
fn config(rng: &mut Rng, set_bytes: u64) -> (RaidConfig, usize) {
    use RaidLevel::{Raid1, Raid5, Raid6, Raid10, Raid50, Raid60};
    let level = rng.choice([Raid1, Raid5, Raid5, Raid6, Raid6, Raid10, Raid50, Raid60]).unwrap();
    let disks = match level {
        Raid1 => rng.usize(2..=3),
        Raid6 => rng.usize(4..=6),
        Raid10 => 2 * rng.usize(2..=3),
        Raid50 => 6,
        Raid60 => 8,
        _ => rng.usize(3..=5),
    };
    let config = RaidConfig {
        chunk_bytes: if set_bytes > 4 << 20 { 16_384 << rng.u32(0..3) } else { 4096 << (2 * rng.u32(0..3)) },
        initialise: if rng.bool() { Initialise::Background } else { Initialise::AssumeClean },
        journal: if rng.u8(0..4) == 0 { JournalUse::Always } else { JournalUse::Degraded },
        rebuild_bytes_per_s: rng.choice([None, Some(1 << 20)]).unwrap(),
        checksums: rng.u8(0..4) > 0,
        ..RaidConfig::new("r0", level)
    };
    (config, disks)
}

/// The capacity of a set, in drives.
fn data_drives(level: RaidLevel, disks: usize) -> usize {
    match level {
        RaidLevel::Raid0 => disks,
        RaidLevel::Raid1 => 1,
        RaidLevel::Raid10 => disks / 2,
        RaidLevel::Raid5 => disks - 1,
        RaidLevel::Raid6 | RaidLevel::Raid50 => disks - 2,
        RaidLevel::Raid60 => disks - 4,
    }
}

/// A set, its drives and their clock.
pub(crate) struct Rig {
    pub(crate) rng: Rng,
    pub(crate) executor: Executor,
    pub(crate) world: World,
    config: RaidConfig,
    bays: Rc<RefCell<Bays>>,
}

impl Rig {
    pub(crate) fn new(seed: u64, set_bytes: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        let (config, disks) = config(&mut rng, set_bytes);
        let drive_bytes = (set_bytes / data_drives(config.level, disks) as u64 + DRIVE_BYTES_MIN) >> 12 << 12;
        let block_bytes = rng.choice([512, 4096, 4096, 4096]).unwrap();
        let mut bays = Bays::new(&runtime, disks, drive_bytes, block_bytes, &mut rng);
        let members = bays.disks();
        let spares = if rng.bool() { vec![bays.add(&runtime, &mut rng)] } else { Vec::new() };
        let creating = RaidSet::create(runtime.clone(), config.clone(), members, spares);
        let set = run(&mut executor, creating).unwrap();
        let bays = Rc::new(RefCell::new(bays));
        let world = World::new(runtime, set, Rc::clone(&bays), config.clone());
        Self { rng, executor, world, config, bays }
    }

    pub(crate) fn run<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> T {
        run(&mut self.executor, future)
    }

    /// Lets some time pass.
    pub(crate) fn pass(&mut self, most_ns: Nanos) {
        let len = self.rng.u64(0..most_ns);
        pass(&mut self.executor, len);
    }

    /// Cuts the power at a random moment. A disk must not fail at the same moment: the loss of a disk, and of the
    /// writes in progress, would be more than one parity can repair. So either the superblocks record the failed disks,
    /// or those disks return in the state before. `note` is called when the power is off.
    pub(crate) fn cut_power(&mut self, note: impl FnOnce()) {
        if self.rng.bool() {
            self.bays.borrow().drives.iter().for_each(|drive| drive.faulty.revive());
        } else {
            let (set, bays) = (Rc::clone(&self.world.set), Rc::clone(&self.bays));
            self.run(async move {
                // Another disk may fail while the failure of the first one is recorded.
                let mut recorded = Vec::new();
                while recorded != bays.borrow().doomed {
                    let doomed = bays.borrow().doomed.clone();
                    for name in &doomed {
                        // A disk that a spare has replaced is not a member any more.
                        _ = set.fail_disk(name).await;
                    }
                    recorded = doomed;
                }
            });
        }
        let served = self.world.set.status().generations;
        note();
        let next = Executor::new();
        let bays = self.bays.borrow().after_power_cut(&next.runtime(), &mut self.rng);
        (self.executor, self.bays) = (next, Rc::new(RefCell::new(bays)));
        let (runtime, mut disks) = (self.executor.runtime(), self.bays.borrow().disks());
        let found = self.run(generations(disks.clone(), served.len()));
        let is_newer = found.iter().zip(&served).all(|(found, served)| found >= served);
        assert!(is_newer, "superblocks {found:?} are older than those that were reported: {served:?}");
        let shortage = Shortage::default();
        shortage.go_on(&runtime, self.bays.borrow().drives.iter(), &mut self.rng);
        self.rng.shuffle(&mut disks);
        let assembling = RaidSet::assemble(runtime.clone(), self.config.clone(), disks, Vec::new());
        let set = self.run(assembling).unwrap_or_else(|error| panic!("assemble: {error}"));
        self.world = World::new(runtime, set, Rc::clone(&self.bays), self.config.clone());
        self.world.shortage = shortage;
    }

    /// Errors that the state of the file systems permits.
    pub(crate) fn excuses(&self) -> impl Fn(&DiskError) -> bool + use<> {
        let (shortage, runtime) = (self.world.shortage.clone(), self.executor.runtime());
        move |error| shortage.excuses(&runtime, error)
    }
}

/// The part of a set that is used.
struct Window {
    offset: u64,
    oracle: Rc<RefCell<Oracle>>,
}

impl Window {
    fn new(rig: &mut Rig) -> Self {
        let set = &rig.world.set;
        let block_bytes = u64::from(set.block_bytes());
        let blocks = set.size_bytes() / block_bytes;
        let offset = rig.rng.u64(0..=blocks - BLOCKS as u64) * block_bytes;
        Self { offset, oracle: oracle(BLOCKS, block_bytes as usize) }
    }

    fn volume(&self, rig: &Rig) -> Volume {
        let disk = Rc::clone(&rig.world.set) as Rc<dyn Disk>;
        let excuses = Rc::new(rig.excuses());
        Volume { offset: self.offset, excuses, ..Volume::new(disk, Rc::clone(&self.oracle)) }
    }
}

fn within_redundancy(seed: u64) {
    let mut rig = Rig::new(seed, SET_BYTES);
    let window = Window::new(&mut rig);
    for _ in 0..rig.rng.usize(0..4) {
        let living = rig.world.clone().live(window.volume(&rig), rig.rng.fork(), usize::MAX);
        rig.executor.runtime().spawn(living);
        rig.pass(400_000_000);
        rig.cut_power(|| window.oracle.borrow_mut().cut_power());
        let volume = window.volume(&rig);
        rig.run(async move { volume.read_all().await });
    }
    let (living, volume) = (rig.rng.fork(), window.volume(&rig));
    // Blocks that were assumed to be clean, and never written, have no checksum before the first scrub.
    let (world, mut mending) = (rig.world.clone(), rig.rng.fork());
    rig.run(async move {
        world.mend(&mut mending).await;
        world.scrub().await;
    });
    rig.world.may_rot = true;
    rig.run(rig.world.clone().live(volume.clone(), living, 3));
    let proving = rig.rng.fork();
    rig.run(prove(rig.world.clone(), volume, proving));
}

/// Repaired completely, with the redundancy that it reports.
async fn prove(world: World, volume: Volume, mut rng: Rng) {
    world.mend(&mut rng).await;
    volume.read_all().await;
    world.strip(&mut rng).await;
    volume.read_all().await;
}

/// More disks fail than the level tolerates: operations fail, and every read that succeeds is right.
fn beyond_redundancy(seed: u64) {
    let mut rig = Rig::new(seed, SET_BYTES);
    let window = Window::new(&mut rig);
    let mut volume = window.volume(&rig);
    rig.run(rig.world.clone().live(volume.clone(), Rng::with_seed(seed), 2));
    let (world, mut rng) = (rig.world.clone(), rig.rng.fork());
    let lacks_space = rig.excuses();
    volume.excuses = Rc::new(move |error| {
        matches!(error, DiskError::Lost(_) | DiskError::Unreadable { .. }) || lacks_space(error)
    });
    let work = start_clients(&rig.executor.runtime(), &volume, &mut rng, 4, 60);
    rig.run(async move {
        while world.set.status().state != RaidState::Failed && !world.sound().is_empty() {
            world.fail_one(&mut rng);
            world.runtime.sleep(20_000_000).await;
        }
        work.await;
        volume.read_all().await;
    });
}

#[test]
fn nothing_is_lost_that_redundancy_bears() {
    for_each_seed(600, within_redundancy);
}

#[test]
fn beyond_redundancy_errors_are_honest() {
    for_each_seed(300, beyond_redundancy);
}
