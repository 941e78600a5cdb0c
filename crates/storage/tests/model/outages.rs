//! RAID sets of every level with power cuts, also such with a disk failure, and such after which all disks are missing
//! for a while.

use crate::{
    clients::Volume,
    oracle::Oracle,
    rig::{Drive, oracle, pass, run, start_clients},
};
use bytes::BytesMut;
use fastrand::Rng;
use linerate_sim::for_each_seed;
use linerate_storage::{
    Disk, DiskError, Executor,
    raid::{Initialise, JournalUse, MemberState, RaidConfig, RaidLevel, RaidSet, RaidState},
};
use std::{cell::RefCell, rc::Rc};

const DRIVE_BYTES: u64 = 3 << 19;
/// Most bytes of a set that are used.
const USED_BYTES: usize = 256 << 10;
const LEVELS: [(RaidLevel, usize, usize); 7] = [
    (RaidLevel::Raid0, 3, 1),
    (RaidLevel::Raid1, 2, 2),
    (RaidLevel::Raid5, 3, 3),
    (RaidLevel::Raid6, 4, 4),
    (RaidLevel::Raid10, 4, 2),
    (RaidLevel::Raid50, 6, 3),
    (RaidLevel::Raid60, 8, 4),
];

/// An array with one RAID set, with one clock: until the power is cut.
struct Array {
    executor: Executor,
    config: RaidConfig,
    set: Rc<RaidSet>,
    /// All drives: members, spares, and replaced ones.
    drives: Vec<Drive>,
    oracle: Rc<RefCell<Oracle>>,
    block_bytes: u32,
    /// Whether all drives are quick at times.
    are_quick: bool,
    /// Drives of a group.
    group: usize,
}

impl Array {
    /// A set of a random level that tolerates this many failures, on new drives.
    fn new(rng: &mut Rng, tolerance: usize) -> Self {
        Self::on(false, USED_BYTES, rng, tolerance)
    }

    /// The same on new drives, or on used ones, which must be initialised; at most `used_bytes` of the set are used.
    fn on(used: bool, used_bytes: usize, rng: &mut Rng, tolerance: usize) -> Self {
        let suits = |level: &&(RaidLevel, usize, usize)| level.0.tolerance(level.2) >= tolerance;
        let levels: Vec<_> = LEVELS.iter().filter(suits).collect();
        let &&(level, least, group) = rng.choice(&levels).unwrap();
        let more = if matches!(level, RaidLevel::Raid1 | RaidLevel::Raid5 | RaidLevel::Raid6) {
            rng.usize(0..3)
        } else {
            0
        };
        let config = RaidConfig {
            chunk_bytes: 4096 << rng.u32(0..5),
            initialise: if used || rng.bool() { Initialise::Background } else { Initialise::AssumeClean },
            journal: if rng.u8(0..3) == 0 { JournalUse::Always } else { JournalUse::Degraded },
            rebuild_bytes_per_s: rng.bool().then_some(20 << 20),
            checksums: rng.u8(0..3) > 0,
            ..RaidConfig::new("r0", level)
        };
        let block_bytes = if rng.bool() { 512 } else { 4096 };
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        let are_quick = rng.clone().u8(0..3) == 0;
        let drive = |number| {
            Drive::quick_or_not(are_quick, &runtime, &format!("d{number}"), DRIVE_BYTES, block_bytes, rng)
        };
        let drives: Vec<Drive> = (0..least + more).map(drive).collect();
        for drive in drives.iter().filter(|_| used) {
            let mut bytes = BytesMut::zeroed(DRIVE_BYTES as usize);
            rng.fill(&mut bytes);
            run(&mut executor, drive.disk().write(0, bytes.freeze(), true)).unwrap();
        }
        let disks = drives.iter().map(Drive::disk).collect();
        let set = run(&mut executor, RaidSet::create(runtime, config.clone(), disks, Vec::new())).unwrap();
        let size_bytes = (set.size_bytes() as usize).min(used_bytes);
        let oracle = oracle(size_bytes / block_bytes as usize, block_bytes as usize);
        Self { executor, config, set, drives, are_quick, oracle, block_bytes, group: group + more }
    }

    fn volume(&self) -> Volume {
        Volume::new(Rc::clone(&self.set) as Rc<dyn Disk>, Rc::clone(&self.oracle))
    }

    /// A volume that tolerates a disk failure in a power cut: if the level does not, blocks may be lost, but never
    /// wrong.
    fn torn_volume(&self) -> Volume {
        use RaidLevel::{Raid5, Raid6, Raid50, Raid60};
        let has_parity = matches!(self.config.level, Raid5 | Raid6 | Raid50 | Raid60);
        let is_torn = has_parity && self.config.journal == JournalUse::Degraded;
        if is_torn { self.unsure_volume() } else { self.volume() }
    }

    /// A volume whose blocks may be lost, but never wrong.
    fn unsure_volume(&self) -> Volume {
        let is_honest =
            |error: &DiskError| matches!(error, DiskError::Unreadable { .. } | DiskError::Lost(_));
        Volume { excuses: Rc::new(is_honest), ..self.volume() }
    }

    fn start(&mut self, volume: &Volume, rng: &mut Rng) {
        let (clients, operations) = (rng.usize(1..6), rng.usize(1..150));
        drop(start_clients(&self.executor.runtime(), volume, rng, clients, operations));
    }

    /// Lets time pass: mostly a little, sometimes so much that everything is idle and clean again.
    fn pass_some(&mut self, rng: &mut Rng, most_ms: u64) {
        let most_ms = if rng.u8(0..4) == 0 { 6000 } else { most_ms };
        pass(&mut self.executor, rng.u64(0..most_ms * 1_000_000));
    }

    /// A drive that is not a member: a new one, or a former member.
    fn spare_drive(&mut self, rng: &mut Rng) -> Drive {
        let members = self.set.status().members;
        let is_free = |drive: &&Drive| {
            let name = drive.faulty.name();
            drive.is_sound() && members.iter().all(|member| member.name != name)
        };
        let free = self.drives.iter().find(is_free).cloned();
        free.filter(|_| rng.bool()).unwrap_or_else(|| self.new_drive(rng))
    }

    fn new_drive(&mut self, rng: &mut Rng) -> Drive {
        let name = format!("d{}", self.drives.len());
        let drive = Drive::quick_or_not(
            self.are_quick,
            &self.executor.runtime(),
            &name,
            DRIVE_BYTES,
            self.block_bytes,
            rng,
        );
        self.drives.push(drive.clone());
        drive
    }

    /// Cuts the power and assembles the set from the present drives, in any order.
    fn cut_power(&mut self, rng: &mut Rng) {
        let next = Executor::new();
        let runtime = next.runtime();
        self.drives = self.drives.iter().map(|drive| drive.after_power_cut(&runtime, rng)).collect();
        self.executor = next;
        self.oracle.borrow_mut().cut_power();
        let mut disks: Vec<Rc<dyn Disk>> = self.drives.iter().map(Drive::disk).collect();
        rng.shuffle(&mut disks);
        self.config.rebuild_bytes_per_s = rng.bool().then_some(20 << 20);
        let assembling = RaidSet::assemble(runtime, self.config.clone(), disks, Vec::new());
        self.set = run(&mut self.executor, assembling).unwrap();
    }

    /// A serving member of a group that does not need it.
    fn choose_member(&self, rng: &mut Rng) -> Option<String> {
        let members = self.set.status().members;
        let tolerance = self.config.level.tolerance(self.group);
        let groups = members.chunks(self.group).filter(|group| {
            group.iter().filter(|member| member.state != MemberState::Online).count() < tolerance
        });
        let groups: Vec<_> = groups.collect();
        let online = rng.choice(&groups)?.iter().filter(|member| member.state == MemberState::Online);
        rng.choice(online.collect::<Vec<_>>()).map(|member| member.name.clone())
    }

    fn drive(&self, name: &str) -> &Drive {
        self.drives.iter().find(|drive| drive.disk().name() == name).unwrap()
    }

    /// A member fails in a random way; some faults are noticed only when it is used.
    fn fail_one(&mut self, rng: &mut Rng) {
        let Some(name) = self.choose_member(rng) else { return };
        match rng.u8(0..4) {
            0 => self.drive(&name).faulty.fail(),
            1 => self.drive(&name).hang(&self.executor.runtime(), rng),
            2 => self.drive(&name).faulty.fail_after(rng.u64(0..40)),
            _ => self.take_out(name),
        }
    }

    /// The owner fails a member.
    fn take_out(&mut self, name: String) {
        let set = Rc::clone(&self.set);
        run(&mut self.executor, async move { set.fail_disk(&name).await }).unwrap();
    }

    /// Replaces a failed member, if there is one, by a new drive.
    fn replace_one(&mut self, rng: &mut Rng) {
        let members = self.set.status().members;
        let out = |state| matches!(state, MemberState::Failed | MemberState::Missing);
        let Some(old) = members.into_iter().find(|member| out(member.state)) else { return };
        let new = self.spare_drive(rng).disk();
        let set = Rc::clone(&self.set);
        if rng.bool() {
            run(&mut self.executor, async move { set.replace_disk(&old.name, new).await }).unwrap();
        } else {
            run(&mut self.executor, async move { set.add_spare(new).await }).unwrap();
        }
    }

    fn read_all(&mut self, volume: &Volume) {
        let volume = volume.clone();
        run(&mut self.executor, async move { volume.read_all().await });
    }

    /// Waits until there is no background work left.
    fn rest(&mut self) {
        for _ in 0..1000 {
            if self.set.status().task.is_none() {
                return;
            }
            pass(&mut self.executor, 100_000_000);
        }
        panic!("still busy: {:?}", self.set.status());
    }

    /// Checks that copies and parity agree, by a scrub.
    fn scrub(&mut self) -> (u64, u64) {
        let scrubbing = self.set.scrub();
        let report = run(&mut self.executor, scrubbing).unwrap();
        assert_eq!(report.lost, 0, "{report:?}");
        (report.mismatches_found, report.mismatches_mended)
    }
}

#[test]
fn power_cuts_lose_nothing_that_was_promised() {
    for_each_seed(500, |seed| {
        let mut rng = Rng::with_seed(seed);
        let mut array = Array::new(&mut rng, 0);
        for _ in 0..rng.usize(1..4) {
            let volume = array.volume();
            array.start(&volume, &mut rng);
            array.pass_some(&mut rng, 200);
            array.cut_power(&mut rng);
            let volume = array.volume();
            array.read_all(&volume);
        }
        array.rest();
        assert_eq!(array.scrub(), (0, 0));
    });
}

#[test]
fn a_disk_that_fails_with_the_power_costs_blocks_but_brings_no_wrong_ones() {
    for_each_seed(600, |seed| {
        let mut rng = Rng::with_seed(seed);
        let mut array = Array::new(&mut rng, 1);
        for _ in 0..rng.usize(1..4) {
            let volume = array.torn_volume();
            array.start(&volume, &mut rng);
            array.pass_some(&mut rng, 200);
            array.fail_one(&mut rng);
            array.pass_some(&mut rng, 10);
            array.cut_power(&mut rng);
            let volume = array.torn_volume();
            array.read_all(&volume);
            array.replace_one(&mut rng);
            if rng.bool() {
                array.rest();
            }
            array.read_all(&volume);
        }
    });
}

#[test]
fn one_failure_too_many_is_an_honest_error() {
    for_each_seed(300, |seed| {
        let mut rng = Rng::with_seed(seed);
        let mut array = Array::new(&mut rng, 0);
        let volume = array.unsure_volume();
        array.start(&volume, &mut rng);
        array.pass_some(&mut rng, 200);
        let victims = array.config.level.tolerance(array.group) + 1;
        array.drives[..victims].iter().for_each(|drive| drive.faulty.fail());
        let lost = Rc::clone(&array.set);
        let result = run(&mut array.executor, async move { lost.flush().await });
        assert_eq!(result, Err(DiskError::Lost("r0".into())));
        assert_eq!(array.set.status().state, RaidState::Failed);
        // When its disks are back, acknowledged data must be present.
        array.drives.iter().for_each(|drive| drive.faulty.revive());
        array.cut_power(&mut rng);
        let volume = array.volume();
        array.read_all(&volume);
    });
}

#[test]
fn what_was_acknowledged_while_a_disk_failed_is_there_when_the_disk_is_back() {
    for_each_seed(200, |seed| {
        let mut rng = Rng::with_seed(seed);
        let mut array = Array::new(&mut rng, 1);
        let volume = array.torn_volume();
        array.start(&volume, &mut rng);
        array.pass_some(&mut rng, 2000);
        let name = array.choose_member(&mut rng).unwrap();
        array.drive(&name).faulty.fail_after(rng.u64(0..8));
        let (writer, set, mut places) = (volume.clone(), Rc::clone(&array.set), rng.fork());
        let blocks = array.oracle.borrow().blocks();
        run(&mut array.executor, async move {
            // The power is cut at the moment at which a write that the member missed is acknowledged.
            while set.status().state == RaidState::Optimal {
                let start = places.usize(0..blocks);
                writer.write(start..start + 1, true).await;
            }
        });
        array.drives.iter().for_each(|drive| drive.faulty.revive());
        array.cut_power(&mut rng);
        let volume = array.torn_volume();
        array.read_all(&volume);
    });
}

#[test]
fn disks_that_fail_and_are_back_with_the_power_cost_nothing() {
    for_each_seed(400, |seed| {
        let mut rng = Rng::with_seed(seed);
        // So many regions that superblocks with new flags are written while disks fail.
        let mut array = Array::on(false, 2 << 20, &mut rng, 1);
        let volume = array.volume();
        array.start(&volume, &mut rng);
        pass(&mut array.executor, rng.u64(0..60_000_000));
        // As many as the level tolerates, at nearly the same time: a cable, an expander, an enclosure.
        for _ in 0..array.config.level.tolerance(array.group) {
            let Some(name) = array.choose_member(&mut rng) else { break };
            array.drive(&name).faulty.fail_after(rng.u64(0..8));
        }
        pass(&mut array.executor, rng.u64(0..20_000_000));
        array.drives.iter().for_each(|drive| drive.faulty.revive());
        array.cut_power(&mut rng);
        let volume = array.volume();
        array.read_all(&volume);
    });
}

#[test]
fn what_was_made_to_agree_before_a_power_cut_agrees_after_it() {
    for_each_seed(100, |seed| {
        let mut rng = Rng::with_seed(seed);
        let mut array = Array::on(true, USED_BYTES, &mut rng, 1);
        array.pass_some(&mut rng, 500);
        array.cut_power(&mut rng);
        array.rest();
        assert_eq!(array.scrub(), (0, 0));
    });
}

#[test]
fn what_was_read_after_a_power_cut_stays_whichever_disk_the_next_one_takes() {
    for_each_seed(200, |seed| {
        let mut rng = Rng::with_seed(seed);
        let mut array = Array::new(&mut rng, 1);
        let volume = array.torn_volume();
        array.start(&volume, &mut rng);
        array.pass_some(&mut rng, 200);
        array.cut_power(&mut rng);
        let volume = array.torn_volume();
        array.read_all(&volume);
        let name = array.choose_member(&mut rng).unwrap();
        array.drive(&name).faulty.fail();
        array.cut_power(&mut rng);
        let volume = array.torn_volume();
        array.read_all(&volume);
    });
}

#[test]
fn who_was_made_a_member_is_one_after_a_power_cut_wherever_it_served_before() {
    for_each_seed(300, |seed| {
        let mut rng = Rng::with_seed(seed);
        let mut array = Array::new(&mut rng, 1);
        for _ in 0..rng.usize(2..5) {
            let volume = array.volume();
            array.start(&volume, &mut rng);
            array.pass_some(&mut rng, 1000);
            let name = array.choose_member(&mut rng).unwrap();
            array.take_out(name);
            array.replace_one(&mut rng);
            array.cut_power(&mut rng);
            let members = array.set.status().members;
            let is_there = |state| matches!(state, MemberState::Online | MemberState::Rebuilding);
            assert!(members.iter().all(|member| is_there(member.state)), "{members:?}");
            let volume = array.volume();
            array.read_all(&volume);
            array.rest();
        }
    });
}
