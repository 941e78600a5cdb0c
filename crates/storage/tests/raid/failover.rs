//! A set whose spare has taken over is opened again after a kill: its rebuild goes on, and stripes that agree are not
//! initialised again.

use super::{as_disks, run, write};
use bytes::BytesMut;
use linerate_storage::{
    Disk, Executor,
    disk::CrashDisk,
    raid::{Initialise, MemberState, RaidConfig, RaidLevel, RaidSet, RaidState, RaidStatus, TaskKind},
};
use std::rc::Rc;

const DRIVE_BYTES: u64 = 2 << 20;
const MS: u64 = 1_000_000;
/// The level, and its members without the spare.
const LEVELS: [(RaidLevel, usize); 3] = [(RaidLevel::Raid1, 2), (RaidLevel::Raid5, 3), (RaidLevel::Raid6, 4)];
/// The member that fails.
const FAILED: &str = "d1";

/// The last drive is the spare.
struct Rig {
    executor: Executor,
    config: RaidConfig,
    drives: Vec<CrashDisk>,
    set: Rc<RaidSet>,
}

/// What a kill leaves of the caches of the drives.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// The process ended: everything.
    Process,
    /// The power failed: nothing.
    Power,
}

impl Rig {
    fn new(level: RaidLevel, members: usize, initialise: Initialise, rebuild_bytes_per_s: u64) -> Self {
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        let drive = |number| CrashDisk::new(&runtime, format!("d{number}"), DRIVE_BYTES, 512, number);
        let drives: Vec<CrashDisk> = (0..=members as u64).map(drive).collect();
        // Before they are initialised, stripes do not agree.
        for (number, drive) in drives.iter().enumerate() {
            let byte = if initialise == Initialise::Background { 1 << number } else { 0 };
            run(&mut executor, drive.write(0, vec![byte; DRIVE_BYTES as usize].into(), true)).unwrap();
        }
        let config = RaidConfig {
            chunk_bytes: 4096,
            initialise,
            rebuild_bytes_per_s: Some(rebuild_bytes_per_s),
            ..RaidConfig::new("r0", level)
        };
        let [disks, spares] = with_spare(&drives);
        let set = run(&mut executor, RaidSet::create(runtime, config.clone(), disks, spares)).unwrap();
        Self { executor, config, drives, set }
    }

    fn sleep(&mut self, ns: u64) {
        sleep(&mut self.executor, ns);
    }

    /// A member fails, and the others have recorded it.
    fn fail(&mut self) {
        let set = Rc::clone(&self.set);
        run(&mut self.executor, async move { set.fail_disk(FAILED).await }).unwrap();
    }

    /// The task and the part of it that is done.
    fn task(&self) -> Option<(TaskKind, f64)> {
        self.set.status().task.map(|task| (task.kind, task.done))
    }

    /// Sleeps until a rebuild has come that far.
    fn rebuild_until(&mut self, done: f64) -> f64 {
        loop {
            self.sleep(MS);
            match self.task() {
                Some((TaskKind::Rebuild, now)) if now < done => {}
                Some((TaskKind::Rebuild, now)) => return now,
                task => panic!("{task:?} instead of a rebuild"),
            }
        }
    }

    fn bytes(&mut self) -> BytesMut {
        bytes(&mut self.executor, &self.set)
    }

    /// The set that is opened after a kill, of all of its drives: the failed one is back.
    fn killed(&self, cut: Cut) -> Self {
        let mut executor = Executor::new();
        let pick = |_, contents: usize| match cut {
            Cut::Process => contents - 1,
            Cut::Power => 0,
        };
        let drives: Vec<CrashDisk> =
            self.drives.iter().map(|drive| drive.image(&executor.runtime(), 0, pick)).collect();
        let [disks, spares] = with_spare(&drives);
        let assembling = RaidSet::assemble(executor.runtime(), self.config.clone(), disks, spares);
        let set = run(&mut executor, assembling).unwrap();
        Self { executor, config: self.config.clone(), drives, set }
    }

    /// Ends the rebuild, during which nothing is initialised. The spare then holds what the others say.
    fn ends_its_rebuild(mut self, expected: &BytesMut) {
        while let Some((kind, _)) = self.task() {
            assert_eq!(kind, TaskKind::Rebuild);
            self.sleep(MS);
        }
        assert_eq!(self.set.status().state, RaidState::Optimal);
        assert!(self.bytes() == *expected);
        let set = Rc::clone(&self.set);
        run(&mut self.executor, async move { set.fail_disk("d0").await }).unwrap();
        assert!(self.bytes() == *expected, "without d0 other bytes are read");
    }
}

/// The members, and the spare.
fn with_spare(drives: &[CrashDisk]) -> [Vec<Rc<dyn Disk>>; 2] {
    let mut disks = as_disks(drives);
    let spare = disks.split_off(disks.len() - 1);
    [disks, spare]
}

fn sleep(executor: &mut Executor, ns: u64) {
    let runtime = executor.runtime();
    run(executor, async move { runtime.sleep(ns).await });
}

fn bytes(executor: &mut Executor, set: &RaidSet) -> BytesMut {
    run(executor, set.read(0, BytesMut::zeroed(set.size_bytes() as usize))).unwrap()
}

/// The disk in the slot of the failed member, and its state.
fn in_its_place(status: &RaidStatus) -> (&str, MemberState) {
    (&status.members[1].name, status.members[1].state)
}

#[test]
fn a_rebuild_goes_on_where_it_was_killed_and_ends_the_initialisation() {
    for (level, members) in LEVELS {
        for initialise in [Initialise::AssumeClean, Initialise::Background] {
            let mut rig = Rig::new(level, members, initialise, 1 << 20);
            // Initialisation ends after about 2 s.
            rig.sleep(700 * MS);
            let begun = rig.task();
            assert_eq!(begun.is_some(), initialise == Initialise::Background);
            rig.fail();
            let done = rig.rebuild_until(0.5);
            let expected = rig.bytes();
            let again = rig.killed(Cut::Process);
            let spare = format!("d{members}");
            assert_eq!(in_its_place(&again.set.status()), (&*spare, MemberState::Rebuilding));
            match again.task() {
                Some((TaskKind::Rebuild, now)) if now >= done => {}
                task => panic!("{level}, {initialise:?}: {task:?} after {done} of the rebuild"),
            }
            again.ends_its_rebuild(&expected);
        }
    }
}

#[test]
fn a_set_that_is_killed_as_soon_as_its_spare_is_rebuilt_stays_clean() {
    for (level, members) in LEVELS {
        let mut rig = Rig::new(level, members, Initialise::Background, 1 << 20);
        rig.sleep(700 * MS);
        rig.fail();
        while rig.set.status().state != RaidState::Optimal {
            rig.sleep(MS);
        }
        let expected = rig.bytes();
        for cut in [Cut::Process, Cut::Power] {
            let again = rig.killed(cut);
            assert_eq!((again.set.status().state, again.task()), (RaidState::Optimal, None), "{level}");
            again.ends_its_rebuild(&expected);
        }
    }
}

#[test]
fn writes_to_the_only_copy_do_not_delay_the_rebuild_after_a_kill() {
    let mut rig = Rig::new(RaidLevel::Raid1, 2, Initialise::AssumeClean, 1 << 20);
    rig.fail();
    let done = rig.rebuild_until(0.25);
    assert!(done < 0.4);
    // The spare has none of it.
    let (start, size) = (rig.set.size_bytes() / 2, rig.set.size_bytes());
    write(&mut rig.executor, &rig.set, start, size - start, 7);
    let expected = rig.bytes();
    for cut in [Cut::Process, Cut::Power] {
        let again = rig.killed(cut);
        assert_eq!(again.task().unwrap().0, TaskKind::Rebuild);
        again.ends_its_rebuild(&expected);
    }
}

/// The superblocks of all drives as they would be found now.
fn superblocks(drives: &[CrashDisk]) -> Vec<Vec<u8>> {
    let mut executor = Executor::new();
    let one = |drive: &CrashDisk| {
        let image = drive.image(&executor.runtime(), 0, |_, contents| contents - 1);
        run(&mut executor, image.read(0, BytesMut::zeroed(128 << 10))).unwrap().to_vec()
    };
    drives.iter().map(one).collect()
}

#[test]
fn members_whose_superblocks_differ_after_a_kill_go_on_with_the_rebuild() {
    for (level, members) in LEVELS {
        for initialise in [Initialise::AssumeClean, Initialise::Background] {
            let mut rig = Rig::new(level, members, initialise, 64 << 20);
            rig.sleep(12 * MS);
            // From now on, superblocks reach the drives one after the other.
            rig.drives.iter().for_each(|drive| drive.set_delay(20_000, 2_000_000));
            rig.fail();
            let expected = rig.killed(Cut::Process).bytes();
            let (mut seen, mut kills, mut last) = (Vec::new(), 0, [0.0; 2]);
            while rig.set.status().state != RaidState::Optimal {
                rig.sleep(50_000);
                let now = superblocks(&rig.drives);
                if now == seen {
                    continue;
                }
                (seen, kills) = (now, kills + 1);
                for (cut, last) in [Cut::Process, Cut::Power].into_iter().zip(&mut last) {
                    let again = rig.killed(cut);
                    let spare = format!("d{members}");
                    let status = again.set.status();
                    assert_eq!(in_its_place(&status).0, spare, "{level}, {initialise:?}: {FAILED} is old");
                    let done = again.task().map_or(1.0, |(_, done)| done);
                    assert!(done >= *last, "{level}, {initialise:?}, {cut:?}: {done} after {last}");
                    *last = done;
                    again.ends_its_rebuild(&expected);
                }
            }
            assert!(kills > 3 * members, "{kills} kills");
        }
    }
}
