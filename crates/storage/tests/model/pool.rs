//! A pool under random work and random verbs: volumes, snapshots, clones, and power cuts at any instant.
//!
//! A completed change of a verb is present, and never in part. A snapshot never changes. Released pages are free again.

use crate::{
    clients::Volume,
    oracle::{Oracle, Seen, Settled, Watch},
    rig::{Drive, Shortage, oracle, pass, run, start_clients},
};
use bytes::BytesMut;
use fastrand::Rng;
use linerate_sim::for_each_seed;
use linerate_storage::{
    Disk, DiskError, Executor, Runtime,
    pool::{Pool, PoolConfig, PoolError},
};
use std::{cell::RefCell, collections::BTreeMap, mem, rc::Rc};

const MOST_BLOCKS: usize = 160;

/// Required contents of a pool: the book outlives power cuts.
#[derive(Default)]
pub(crate) struct Book {
    block_bytes: usize,
    volumes: BTreeMap<String, Kept>,
    /// The verb in progress.
    pending: Pending,
    names: u64,
    /// Whether the pool is so small that it may be full.
    may_be_full: bool,
}

#[derive(Clone)]
struct Kept {
    oracle: Rc<RefCell<Oracle>>,
    snapshots: BTreeMap<String, Snapshot>,
}

#[derive(Clone)]
struct Snapshot {
    seen: Seen,
    /// Once it was read.
    settled: Option<Settled>,
}

#[derive(Default)]
enum Pending {
    #[default]
    None,
    /// A volume, empty or a clone.
    Create(String, Rc<RefCell<Oracle>>),
    Delete(String),
    Resize(String, usize),
    Snapshot(String, Vec<(String, Watch)>),
    /// A snapshot that was in progress when the power was cut.
    Snapshotted(String, Vec<(String, Seen)>),
    DeleteSnapshot(String, String),
}

/// A pool at work, and its book.
#[derive(Clone)]
pub(crate) struct World {
    runtime: Runtime,
    pool: Pool,
    book: Rc<RefCell<Book>>,
    /// Of the file systems below.
    shortage: Shortage,
}

impl Book {
    pub(crate) fn new(block_bytes: usize, may_be_full: bool) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self { block_bytes, may_be_full, ..Self::default() }))
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }

    fn pick(&self, rng: &mut Rng) -> Option<String> {
        rng.choice(self.volumes.keys()).cloned()
    }

    fn pick_snapshot(&self, rng: &mut Rng) -> Option<(String, String)> {
        let all = |(volume, kept): (&String, &Kept)| -> Vec<_> {
            kept.snapshots.keys().map(|name| (volume.clone(), name.clone())).collect()
        };
        rng.choice(self.volumes.iter().flat_map(all).collect::<Vec<_>>())
    }

    fn oracle(&self, volume: &str) -> Rc<RefCell<Oracle>> {
        Rc::clone(&self.volumes[volume].oracle)
    }

    /// The power is cut.
    pub(crate) fn cut_power(&mut self) {
        self.pending = match mem::take(&mut self.pending) {
            Pending::Snapshot(name, watches) => {
                let end = |(volume, watch): (String, Watch)| {
                    let seen = self.oracle(&volume).borrow_mut().end_read(watch);
                    (volume, seen)
                };
                Pending::Snapshotted(name, watches.into_iter().map(end).collect())
            }
            other => other,
        };
        self.volumes.values().for_each(|kept| kept.oracle.borrow_mut().cut_power());
    }

    fn keep(&mut self, volume: &str, oracle: Rc<RefCell<Oracle>>) {
        self.volumes.insert(volume.to_owned(), Kept { oracle, snapshots: BTreeMap::new() });
    }

    fn keep_snapshot(&mut self, volume: &str, snapshot: &str, seen: Seen) {
        let kept = self.volumes.get_mut(volume).unwrap();
        kept.snapshots.insert(snapshot.to_owned(), Snapshot { seen, settled: None });
    }
}

impl World {
    pub(crate) fn new(runtime: Runtime, pool: Pool, book: Rc<RefCell<Book>>, shortage: Shortage) -> Self {
        let world = Self { runtime, pool, book, shortage };
        world.settle_pending();
        world.check_names();
        world
    }

    /// A verb that the power cut interrupted is done completely, or not at all.
    fn settle_pending(&self) {
        let mut book = self.book.borrow_mut();
        let volumes = self.pool.volumes();
        let volume = |name: &str| volumes.iter().find(|volume| volume.name == name);
        let has = |name: &str, snapshot: &str| {
            volume(name).is_some_and(|volume| volume.snapshots.iter().any(|own| own.name == snapshot))
        };
        match mem::take(&mut book.pending) {
            Pending::Create(name, oracle) if volume(&name).is_some() => book.keep(&name, oracle),
            Pending::Delete(name) if volume(&name).is_none() => _ = book.volumes.remove(&name),
            Pending::Resize(name, blocks) => {
                let size_bytes = volume(&name).map(|volume| volume.size_bytes);
                if size_bytes == Some((blocks * book.block_bytes) as u64) {
                    book.oracle(&name).borrow_mut().resize(blocks);
                }
            }
            Pending::Snapshotted(name, seen) => {
                let count = seen.iter().filter(|(volume, _)| has(volume, &name)).count();
                assert!(
                    count == 0 || count == seen.len(),
                    "snapshot {name} is there for {count} volumes of its group"
                );
                for (volume, seen) in seen.into_iter().take(count) {
                    book.keep_snapshot(&volume, &name, seen);
                }
            }
            Pending::DeleteSnapshot(volume, name) if !has(&volume, &name) => {
                book.volumes.get_mut(&volume).unwrap().snapshots.remove(&name);
            }
            _ => {}
        }
    }

    /// The pool has exactly the expected volumes and snapshots, with their sizes.
    fn check_names(&self) {
        let book = self.book.borrow();
        let found: BTreeMap<_, _> = self
            .pool
            .volumes()
            .into_iter()
            .map(|volume| {
                let snapshots: BTreeMap<_, _> = volume
                    .snapshots
                    .into_iter()
                    .map(|snapshot| (snapshot.name, snapshot.size_bytes))
                    .collect();
                (volume.name, (volume.size_bytes, snapshots))
            })
            .collect();
        let bytes = |blocks: usize| (blocks * book.block_bytes) as u64;
        let expected: BTreeMap<_, _> = book
            .volumes
            .iter()
            .map(|(name, kept)| {
                let snapshots = kept
                    .snapshots
                    .iter()
                    .map(|(name, own)| (name.clone(), bytes(own.seen.blocks())))
                    .collect();
                (name.clone(), (bytes(kept.oracle.borrow().blocks()), snapshots))
            })
            .collect();
        assert_eq!(found, expected);
    }

    /// A volume to work on.
    pub(crate) fn volume(&self, name: &str) -> Volume {
        let book = self.book.borrow();
        let disk: Rc<dyn Disk> = self.pool.volume(name).unwrap();
        let (may_be_full, shortage, runtime) =
            (book.may_be_full, self.shortage.clone(), self.runtime.clone());
        let excuses = move |error: &DiskError| {
            may_be_full && matches!(error, DiskError::Full(_)) || shortage.excuses(&runtime, error)
        };
        Volume { excuses: Rc::new(excuses), ..Volume::new(disk, book.oracle(name)) }
    }

    /// Whether a verb has succeeded. It may fail for lack of space.
    fn is_done<T>(&self, verb: &str, result: Result<T, PoolError>) -> bool {
        self.book.borrow_mut().pending = Pending::None;
        let may_be_full = self.book.borrow().may_be_full;
        match result {
            Ok(_) => true,
            Err(PoolError::Disk(DiskError::Full(_))) if may_be_full => false,
            Err(PoolError::Disk(error)) if self.shortage.excuses(&self.runtime, &error) => false,
            Err(error) => panic!("{verb}: {error}"),
        }
    }

    async fn create(&self, rng: &mut Rng) {
        let (name, blocks) = (self.book.borrow_mut().name("v"), rng.usize(1..=MOST_BLOCKS));
        let block_bytes = self.book.borrow().block_bytes;
        let fresh = oracle(blocks, block_bytes);
        self.book.borrow_mut().pending = Pending::Create(name.clone(), Rc::clone(&fresh));
        let result = self.pool.create_volume(&name, (blocks * block_bytes) as u64).await;
        if self.is_done("create", result) {
            self.book.borrow_mut().keep(&name, fresh);
        }
    }

    /// Deletes a volume that has no snapshots and no clients.
    async fn delete(&self, rng: &mut Rng) {
        let bare: Vec<_> = {
            let book = self.book.borrow();
            let bare = book.volumes.iter().filter(|(_, kept)| kept.snapshots.is_empty());
            bare.map(|(name, _)| name.clone()).collect()
        };
        let Some(name) = rng.choice(bare) else { return };
        self.book.borrow_mut().pending = Pending::Delete(name.clone());
        let result = self.pool.delete(&name).await;
        if self.is_done("delete", result) {
            self.book.borrow_mut().volumes.remove(&name);
        }
    }

    /// Resizes a volume that has no clients.
    async fn resize(&self, rng: &mut Rng) {
        let Some(name) = self.book.borrow().pick(rng) else { return };
        let (blocks, block_bytes) = (rng.usize(1..=MOST_BLOCKS), self.book.borrow().block_bytes);
        self.book.borrow_mut().pending = Pending::Resize(name.clone(), blocks);
        let result = self.pool.resize(&name, (blocks * block_bytes) as u64).await;
        if self.is_done("resize", result) {
            self.book.borrow().oracle(&name).borrow_mut().resize(blocks);
        }
    }

    async fn snapshot(&self, rng: &mut Rng) {
        let (name, mut volumes): (_, Vec<_>) = {
            let mut book = self.book.borrow_mut();
            (book.name("s"), book.volumes.keys().cloned().collect())
        };
        rng.shuffle(&mut volumes);
        volumes.truncate(rng.usize(1..=3));
        let watch = |volume: &String| {
            let oracle = self.book.borrow().oracle(volume);
            let blocks = oracle.borrow().blocks();
            let watch = oracle.borrow_mut().begin_read(0..blocks);
            (volume.clone(), watch)
        };
        let watches: Vec<_> = volumes.iter().map(watch).collect();
        self.book.borrow_mut().pending = Pending::Snapshot(name.clone(), watches);
        let names: Vec<&str> = volumes.iter().map(String::as_str).collect();
        let result = self.pool.snapshot(&names, &name, 0.0).await;
        let pending = mem::take(&mut self.book.borrow_mut().pending);
        let is_done = self.is_done("snapshot", result);
        let Pending::Snapshot(name, watches) = pending else { unreachable!() };
        for (volume, watch) in watches {
            let seen = self.book.borrow().oracle(&volume).borrow_mut().end_read(watch);
            if is_done {
                self.book.borrow_mut().keep_snapshot(&volume, &name, seen);
            }
        }
    }

    async fn delete_snapshot(&self, rng: &mut Rng) {
        let Some((volume, name)) = self.book.borrow().pick_snapshot(rng) else { return };
        self.book.borrow_mut().pending = Pending::DeleteSnapshot(volume.clone(), name.clone());
        let result = self.pool.delete_snapshot(&volume, &name).await;
        if self.is_done("delete_snapshot", result) {
            self.book.borrow_mut().volumes.get_mut(&volume).unwrap().snapshots.remove(&name);
        }
    }

    /// Restores a volume, also under load. It must have its old size.
    async fn restore(&self, rng: &mut Rng) {
        let Some((volume, name)) = self.book.borrow().pick_snapshot(rng) else { return };
        let was = self.read_snapshot(&volume, &name).await;
        let oracle = self.book.borrow().oracle(&volume);
        if oracle.borrow().blocks() != was.blocks() {
            return;
        }
        let restore = oracle.borrow_mut().begin_restore(&was);
        let result = self.pool.restore(&volume, &name).await;
        let is_done = self.is_done("restore", result);
        oracle.borrow_mut().end_write(restore, is_done);
    }

    async fn clone_snapshot(&self, rng: &mut Rng) {
        let Some((volume, snapshot)) = self.book.borrow().pick_snapshot(rng) else { return };
        let was = self.read_snapshot(&volume, &snapshot).await;
        let name = self.book.borrow_mut().name("c");
        let copy = Rc::new(RefCell::new(self.book.borrow().oracle(&volume).borrow().copy(&was)));
        self.book.borrow_mut().pending = Pending::Create(name.clone(), Rc::clone(&copy));
        let result = self.pool.clone_snapshot(&volume, &snapshot, &name).await;
        if self.is_done("clone", result) {
            self.book.borrow_mut().keep(&name, copy);
        }
    }

    /// Reads and checks a snapshot.
    async fn read_snapshot(&self, volume: &str, name: &str) -> Settled {
        let view = self.pool.view(volume, name).unwrap();
        let bytes = view.read(0, BytesMut::zeroed(view.size_bytes() as usize)).await;
        let bytes = bytes.unwrap_or_else(|error| panic!("read of {volume}@{name}: {error}"));
        let mut book = self.book.borrow_mut();
        let block_bytes = book.block_bytes;
        let snapshot = book.volumes.get_mut(volume).unwrap().snapshots.get_mut(name).unwrap();
        let found = snapshot.seen.check(&bytes, block_bytes);
        let found = found.unwrap_or_else(|fault| panic!("{volume}@{name}: {fault}"));
        let settled = snapshot.seen.settle(&found);
        assert_eq!(
            *snapshot.settled.get_or_insert_with(|| settled.clone()),
            settled,
            "{volume}@{name} changed"
        );
        settled
    }

    /// The pool's list of changes between two snapshots contains all of them.
    async fn compare(&self, rng: &mut Rng) {
        let Some((volume, to)) = self.book.borrow().pick_snapshot(rng) else { return };
        let from = {
            let book = self.book.borrow();
            rng.choice(book.volumes[&volume].snapshots.keys()).cloned().filter(|_| rng.bool())
        };
        let now = self.read_snapshot(&volume, &to).await;
        let before = match &from {
            Some(from) => Some(self.read_snapshot(&volume, from).await),
            None => None,
        };
        let block_bytes = self.book.borrow().block_bytes as u64;
        let mut is_changed = vec![false; now.blocks()];
        for change in self.pool.changed(&volume, from.as_deref(), &to).unwrap() {
            let blocks =
                change.offset_bytes / block_bytes..(change.offset_bytes + change.len_bytes) / block_bytes;
            for at in blocks {
                is_changed[at as usize] = true;
                assert!(
                    !change.is_hole || now.is_same(None, at as usize),
                    "{volume}@{to}: block {at} is no hole"
                );
            }
        }
        for (at, is_changed) in is_changed.into_iter().enumerate() {
            assert!(is_changed || now.is_same(before.as_ref(), at), "{volume}@{to}: block {at} has changed");
        }
    }

    /// Reads and checks everything.
    pub(crate) async fn read_all(&self) {
        let names: Vec<String> = self.book.borrow().volumes.keys().cloned().collect();
        for name in names {
            self.volume(&name).read_all().await;
            let snapshots: Vec<String> =
                self.book.borrow().volumes[&name].snapshots.keys().cloned().collect();
            for snapshot in snapshots {
                self.read_snapshot(&name, &snapshot).await;
            }
        }
        self.check_names();
    }

    /// Verbs that may run together with clients.
    async fn operate(&self, rng: &mut Rng, verbs: usize) {
        for _ in 0..verbs {
            self.runtime.sleep(rng.u64(0..10_000_000)).await;
            match rng.u8(0..10) {
                0..4 => self.snapshot(rng).await,
                4..6 => self.delete_snapshot(rng).await,
                6 => self.restore(rng).await,
                7 => self.clone_snapshot(rng).await,
                _ => self.compare(rng).await,
            }
        }
    }

    /// Works for a number of rounds: clients and verbs together, then verbs that need an idle pool.
    pub(crate) async fn live(self, mut rng: Rng, rounds: usize) {
        for _ in 0..rounds {
            if self.book.borrow().volumes.len() < 2 {
                self.create(&mut rng).await;
                self.create(&mut rng).await;
            }
            let names: Vec<String> = self.book.borrow().volumes.keys().cloned().collect();
            let clients: Vec<_> = names
                .iter()
                .map(|name| {
                    let (clients, operations) = (rng.usize(0..4), rng.usize(1..20));
                    start_clients(&self.runtime, &self.volume(name), &mut rng, clients, operations)
                })
                .collect();
            let verbs = rng.usize(0..6);
            self.operate(&mut rng, verbs).await;
            futures::future::join_all(clients).await;
            match rng.u8(0..6) {
                0 => self.create(&mut rng).await,
                1 => self.delete(&mut rng).await,
                2 => self.resize(&mut rng).await,
                3 => self.read_all().await,
                _ => {}
            }
        }
    }

    /// Deletes everything; after that no page is in use.
    pub(crate) async fn give_up(self, mut rng: Rng) {
        let snapshots: usize = self.book.borrow().volumes.values().map(|kept| kept.snapshots.len()).sum();
        for _ in 0..snapshots {
            self.delete_snapshot(&mut rng).await;
        }
        let volumes = self.book.borrow().volumes.len();
        for _ in 0..volumes {
            self.delete(&mut rng).await;
        }
        assert_eq!(self.pool.status().used_bytes, 0, "pages are lost");
    }
}

fn config(rng: &mut Rng) -> PoolConfig {
    let page_bytes = rng.choice([4096, 8192, 65_536]).unwrap();
    let merge_leaves = rng.choice([1, 128]).unwrap();
    // Drives begin as zeros.
    PoolConfig { page_bytes, merge_leaves, is_disk_zeroed: rng.bool(), ..PoolConfig::new("p0") }
}

fn on_a_drive(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut executor = Executor::new();
    let config = config(&mut rng);
    let block_bytes = rng.choice([512, 4096]).unwrap();
    let may_be_full = rng.u8(0..4) == 0;
    let room = if may_be_full { rng.u64(10..60) * config.page_bytes } else { 64 << 20 };
    let is_quick = !may_be_full && rng.clone().bool();
    let mut drive =
        Drive::quick_or_not(is_quick, &executor.runtime(), "d0", (9 << 20) + room, block_bytes, &mut rng);
    let book = Book::new(block_bytes as usize, may_be_full);
    let creating = Pool::create(executor.runtime(), config.clone(), drive.disk());
    let pool = run(&mut executor, creating).unwrap();
    let mut world = World::new(executor.runtime(), pool, Rc::clone(&book), Shortage::default());
    for _ in 0..rng.usize(0..4) {
        executor.runtime().spawn(run_full(world.clone(), drive.clone(), rng.fork()));
        executor.runtime().spawn(world.live(rng.fork(), usize::MAX));
        pass(&mut executor, rng.u64(0..300_000_000));
        book.borrow_mut().cut_power();
        let next = Executor::new();
        drive = drive.after_power_cut(&next.runtime(), &mut rng);
        executor = next;
        let shortage = Shortage::default();
        shortage.go_on(&executor.runtime(), [&drive].into_iter(), &mut rng);
        let opening = Pool::open(executor.runtime(), config.clone(), drive.disk());
        let pool = run(&mut executor, opening).unwrap();
        world = World::new(executor.runtime(), pool, Rc::clone(&book), shortage);
        let checked = world.clone();
        run(&mut executor, async move { checked.read_all().await });
    }
    run(&mut executor, world.clone().live(rng.fork(), 3));
    run(&mut executor, world.give_up(rng));
}

/// The file system of the drive is full at times.
async fn run_full(world: World, drive: Drive, mut rng: Rng) {
    for _ in 0..rng.usize(0..4) {
        world.runtime.sleep(rng.u64(0..100_000_000)).await;
        world.shortage.begin(&world.runtime, [&drive].into_iter(), &mut rng);
    }
}

#[test]
fn a_pool_keeps_what_it_promises() {
    for_each_seed(500, on_a_drive);
}
