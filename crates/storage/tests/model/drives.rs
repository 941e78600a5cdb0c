//! The drives alone: the oracle accepts what drives may do, and detects drives that break the rules.

use crate::{
    clients::Volume,
    rig::{Drive, oracle, pass, run, start_clients},
};
use bytes::{Bytes, BytesMut};
use fastrand::Rng;
use linerate_sim::for_each_seed;
use linerate_storage::{
    Disk, DiskError, Executor,
    disk::{DiskStats, Reading, Writing},
};
use std::{cell::Cell, panic, rc::Rc};

const BLOCKS: usize = 96;

fn cut_and_check(seed: u64, spoil: impl Fn(Rc<dyn Disk>) -> Rc<dyn Disk>) -> u64 {
    let mut rng = Rng::with_seed(seed);
    let mut executor = Executor::new();
    let mut drive = Drive::new(&executor.runtime(), "d0", (BLOCKS * 512) as u64, 512, &mut rng);
    let oracle = oracle(BLOCKS, 512);
    let mut done = 0;
    for _ in 0..3 {
        let volume = Volume::new(spoil(drive.disk()), Rc::clone(&oracle));
        let clients = rng.usize(1..6);
        drop(start_clients(&executor.runtime(), &volume, &mut rng, clients, usize::MAX));
        pass(&mut executor, rng.u64(0..100_000_000));
        done += volume.done.get();
        let next = Executor::new();
        drive = drive.after_power_cut(&next.runtime(), &mut rng);
        executor = next;
        oracle.borrow_mut().cut_power();
        let volume = Volume::new(drive.disk(), Rc::clone(&oracle));
        run(&mut executor, async move { volume.read_all().await });
    }
    done
}

#[test]
fn drives_keep_what_they_promise() {
    let mut done = 0;
    for_each_seed(1000, |seed| done += cut_and_check(seed, |disk| disk));
    assert!(done > 0, "no operation succeeded");
}

/// The fault of a broken drive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    ForgetsFlushes,
    ForgetsDurability,
    LosesWrites,
    MisplacesWrites,
    TearsBlocks,
}

struct Liar {
    inner: Rc<dyn Disk>,
    lie: Lie,
    writes: Cell<u64>,
}

impl Disk for Liar {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.inner.block_bytes()
    }

    fn stats(&self) -> DiskStats {
        self.inner.stats()
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        self.inner.read(offset, into)
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        self.writes.set(self.writes.get() + 1);
        let is_turn = self.writes.get().is_multiple_of(5);
        match self.lie {
            Lie::ForgetsDurability => self.inner.write(offset, data, false),
            Lie::LosesWrites if is_turn => Box::pin(std::future::ready(Ok(()))),
            Lie::MisplacesWrites if is_turn => self.inner.write(0, data, durable),
            Lie::TearsBlocks if is_turn => {
                let mut torn = BytesMut::from(&data[..]);
                torn[200..512].fill(0);
                self.inner.write(offset, torn.freeze(), durable)
            }
            _ => self.inner.write(offset, data, durable),
        }
    }

    fn flush(&self) -> Writing {
        match self.lie {
            Lie::ForgetsFlushes => Box::pin(std::future::ready(Ok::<(), DiskError>(()))),
            _ => self.inner.flush(),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        self.inner.discard(offset, len)
    }
}

#[test]
fn drives_that_lie_are_found_out() {
    let lies = [
        Lie::ForgetsFlushes,
        Lie::ForgetsDurability,
        Lie::LosesWrites,
        Lie::MisplacesWrites,
        Lie::TearsBlocks,
    ];
    let found = lies.map(|lie| {
        (0..40).any(|seed| {
            let spoil = |inner| Rc::new(Liar { inner, lie, writes: Cell::default() }) as Rc<dyn Disk>;
            panic::catch_unwind(|| cut_and_check(seed, spoil)).is_err()
        })
    });
    assert_eq!(found, [true; 5], "{lies:?}");
}
