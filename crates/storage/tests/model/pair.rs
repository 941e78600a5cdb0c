//! Two arrays that replicate: a pool on a RAID set and a pool on one drive; either is the source. Hosts write, disks
//! fail and are rebuilt, links break, one array is killed, or the power of both is cut.
//!
//! Every snapshot of a point has the contents of the source's volumes at one instant, and never changes. Writes of
//! hosts are present, as without replication. A promotion restores exactly the newest point.

use crate::{
    clients::Volume,
    oracle::{Oracle, Seen, Settled, Watch},
    raid::{self, Rig},
    rig::{Drive, FULL_NS, oracle, pass, start_clients},
    way::Way,
};
use bytes::BytesMut;
use fastrand::Rng;
use futures::{channel::oneshot, future::LocalBoxFuture};
use linerate_io::Nanos;
use linerate_sim::for_each_seed;
use linerate_storage::{
    Disk, DiskError, Runtime,
    pool::{Pool, PoolConfig, PoolError},
    replica::{self, CopyOptions, Fence, Group, Promotion, Replicator},
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

const POOL_BYTES: u64 = 12 << 20;
const GROUP: &str = "g";
const VOLUMES: [&str; 2] = ["v0", "v1"];
const BLOCKS: usize = 48;
const LIFE_NS: Nanos = 250_000_000;
/// Number of attempts when nothing fails any more.
const ATTEMPTS: usize = 4;

/// An array as it serves now.
#[derive(Clone)]
struct Array {
    pool: Pool,
    replicator: Rc<Replicator<Pool>>,
}

/// State that outlives the processes of the arrays.
struct Book {
    /// What hosts wrote, per volume.
    oracles: Vec<Rc<RefCell<Oracle>>>,
    points: RefCell<BTreeMap<String, Point>>,
    /// A point that is being made: its name is not known yet.
    pending: RefCell<Vec<Watch>>,
    /// Possible contents of points whose names were not reported.
    nameless: RefCell<Vec<Vec<Seen>>>,
    taken: Cell<u32>,
}

/// Possible contents of a point: one of these, and after it was read, only that one.
struct Point {
    may_hold: Vec<Vec<Seen>>,
    holds: Option<Vec<Settled>>,
}

impl Book {
    fn begin_point(&self) {
        let begin = |oracle: &Rc<RefCell<Oracle>>| oracle.borrow_mut().begin_read(0..BLOCKS);
        *self.pending.borrow_mut() = self.oracles.iter().map(begin).collect();
    }

    /// The point has this name, or perhaps none.
    fn end_point(&self, name: Option<&str>) {
        let watches = self.pending.take();
        if !watches.is_empty() {
            let ends = watches.into_iter().zip(&self.oracles);
            let seen = ends.map(|(watch, oracle)| oracle.borrow_mut().end_read(watch));
            self.nameless.borrow_mut().push(seen.collect());
        }
        if let Some(name) = name.filter(|name| !self.points.borrow().contains_key(*name)) {
            let point = Point { may_hold: self.nameless.take(), holds: None };
            self.points.borrow_mut().insert(name.to_owned(), point);
        }
    }

    fn cut_power(&self) {
        self.end_point(None);
        self.oracles.iter().for_each(|oracle| oracle.borrow_mut().cut_power());
    }

    fn check_point(&self, name: &str, volumes: &[BytesMut]) {
        let mut points = self.points.borrow_mut();
        let Some(point) = points.get_mut(name) else { return };
        let block_bytes = self.oracles[0].borrow().block_bytes();
        let mut faults = Vec::new();
        point.may_hold.retain_mut(|all| {
            let checked: Result<Vec<_>, String> =
                all.iter().zip(volumes).map(|(seen, bytes)| seen.check(bytes, block_bytes)).collect();
            match checked {
                Ok(found) => {
                    let settle = |(seen, found): (&mut Seen, &Vec<_>)| seen.settle(found);
                    let holds: Vec<_> = all.iter_mut().zip(&found).map(settle).collect();
                    assert_eq!(*point.holds.get_or_insert_with(|| holds.clone()), holds, "{name} changed");
                    true
                }
                Err(fault) => {
                    faults.push(fault);
                    false
                }
            }
        });
        assert!(!point.may_hold.is_empty(), "point {name}: {faults:?}");
    }
}

impl Array {
    async fn open(
        runtime: Runtime,
        config: PoolConfig,
        disk: Rc<dyn Disk>,
        seed: u64,
        excuses: impl Fn(&DiskError) -> bool,
    ) -> Self {
        let pool = loop {
            match Pool::open(runtime.clone(), config.clone(), Rc::clone(&disk)).await {
                Ok(pool) => break pool,
                Err(PoolError::Disk(error)) if excuses(&error) => runtime.sleep(FULL_NS).await,
                Err(error) => panic!("open: {error}"),
            }
        };
        let array = Self::new(runtime, pool, seed);
        array.replicator.recover().await.unwrap();
        array
    }

    fn new(runtime: Runtime, pool: Pool, seed: u64) -> Self {
        let numbers = RefCell::new(Rng::with_seed(seed));
        let random = move || numbers.borrow_mut().u64(..);
        let replicator = Rc::new(Replicator::open(Rc::new(pool.clone()), runtime, random).unwrap());
        Self { pool, replicator }
    }

    fn group(&self) -> Option<Rc<Group<Pool>>> {
        self.replicator.group(GROUP).ok()
    }

    /// Checks every point that shows.
    async fn check_points(&self, book: &Book) {
        let volumes = self.pool.volumes();
        let Some(first) = volumes.first() else { return };
        for snapshot in &first.snapshots {
            let mut all = Vec::new();
            for volume in VOLUMES {
                let view = self.pool.view(volume, &snapshot.name);
                let view =
                    view.unwrap_or_else(|error| panic!("{} is not there for all: {error}", snapshot.name));
                let bytes = BytesMut::zeroed(view.size_bytes() as usize);
                all.push(view.read(0, bytes).await.unwrap());
            }
            book.check_point(&snapshot.name, &all);
        }
    }

    /// One attempt to copy the newest state to `other`. Returns whether it was completed.
    async fn replicate(&self, other: &Self, book: &Book, way: &Breaking, mut rng: Rng, keep: usize) -> bool {
        let names = VOLUMES.map(str::to_owned);
        let [mine, theirs] = identities();
        let Ok(group) = self.replicator.primary(GROUP, &names, &mine).await else { return false };
        book.begin_point();
        let at_s = f64::from(book.taken.replace(book.taken.get() + 1));
        let offer = group.prepare(at_s, keep).await;
        book.end_point(offer.as_ref().ok().map(|offer| offer.point.name.as_str()));
        let Ok(offer) = offer else { return false };
        let Ok(begun) = other.replicator.begin(&offer, &theirs).await else { return false };
        let link = way.lay(begun.fences, rng.fork());
        let options = CopyOptions {
            piece_bytes: 4096 << rng.u32(0..3),
            window: rng.usize(1..4),
            checkpoint_bytes: 4096 << rng.u32(0..6),
            ..CopyOptions::default()
        };
        let Ok(commit) = group.copy(&begun.answer, link, options).await else { return false };
        let Some(theirs) = other.group() else { return false };
        theirs.commit(&commit).await.is_ok() && group.confirm(&commit).await.is_ok()
    }
}

/// The arrays, as the source and the copy know each other.
fn identities() -> [replica::Pair; 2] {
    let [source, copy] = ["source", "copy"].map(str::to_owned);
    let mine = replica::Pair { here: source.clone(), partner: copy.clone() };
    [mine, replica::Pair { here: copy, partner: source }]
}

/// The connection between the arrays, which can break.
#[derive(Clone)]
struct Breaking {
    runtime: Runtime,
    is_broken: Rc<RefCell<Rc<Cell<bool>>>>,
}

impl Breaking {
    fn lay(&self, fences: Vec<Rc<Fence>>, rng: Rng) -> Rc<Way> {
        let is_broken = Rc::new(Cell::new(false));
        *self.is_broken.borrow_mut() = Rc::clone(&is_broken);
        Rc::new(Way::new(fences, self.runtime.clone(), rng, is_broken))
    }

    fn cut(&self) {
        self.is_broken.borrow().set(true);
    }
}

/// Both arrays: number 0 is on the RAID set, number 1 on the drive.
struct Pair {
    rig: Rig,
    drive: Drive,
    config: PoolConfig,
    arrays: Vec<Array>,
    source: usize,
    book: Rc<Book>,
    way: Breaking,
    keep: usize,
    /// Whether the array on the drive is being killed: then every request fails.
    is_dying: Rc<Cell<bool>>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut rig = Rig::new(seed, POOL_BYTES);
        let page_bytes = rig.rng.choice([4096, 16_384]).unwrap();
        let config = PoolConfig { page_bytes, merge_leaves: 1, ..PoolConfig::new("p0") };
        let runtime = rig.executor.runtime();
        let block_bytes = rig.world.set.block_bytes();
        let drive = Drive::new(&runtime, "other", POOL_BYTES, block_bytes, &mut rig.rng);
        let source = rig.rng.usize(0..2);
        let mut arrays = Vec::new();
        for (number, disk) in
            [Rc::clone(&rig.world.set) as Rc<dyn Disk>, drive.disk()].into_iter().enumerate()
        {
            let (runtime, config) = (runtime.clone(), config.clone());
            let pool = rig.run(Pool::create(runtime.clone(), config, disk)).unwrap();
            if number == source {
                for volume in VOLUMES {
                    rig.run(pool.create_volume(volume, (BLOCKS * block_bytes as usize) as u64)).unwrap();
                }
            }
            arrays.push(Array::new(runtime, pool, rig.rng.u64(..)));
        }
        let book = Book {
            oracles: VOLUMES.iter().map(|_| oracle(BLOCKS, block_bytes as usize)).collect(),
            points: RefCell::default(),
            pending: RefCell::default(),
            nameless: RefCell::default(),
            taken: Cell::default(),
        };
        let keep = rig.rng.usize(1..4);
        let way = Breaking { runtime, is_broken: Rc::default() };
        Self { rig, drive, config, arrays, source, book: Rc::new(book), way, keep, is_dying: Rc::default() }
    }

    fn volumes(&self) -> Vec<Volume> {
        let volume = |(name, oracle): (&str, &Rc<RefCell<Oracle>>)| {
            let disk = self.arrays[self.source].pool.volume(name).unwrap() as Rc<dyn Disk>;
            let is_dying = Rc::clone(&self.is_dying);
            let lacks_space = self.rig.excuses();
            let excuses = Rc::new(move |error: &DiskError| is_dying.get() || lacks_space(error));
            Volume { excuses, ..Volume::new(disk, Rc::clone(oracle)) }
        };
        VOLUMES.into_iter().zip(&self.book.oracles).map(volume).collect()
    }

    /// Begins everything that may run at the same time; the receivers report each end.
    fn start(&mut self) -> Vec<oneshot::Receiver<()>> {
        let runtime = self.rig.executor.runtime();
        let mut works: Vec<LocalBoxFuture<'static, ()>> = Vec::new();
        for volume in self.volumes() {
            let (clients, operations) = (self.rig.rng.usize(0..3), self.rig.rng.usize(1..60));
            works.push(Box::pin(start_clients(&runtime, &volume, &mut self.rig.rng, clients, operations)));
        }
        let (raid, mut rng): (raid::World, _) = (self.rig.world.clone(), self.rig.rng.fork());
        let events = rng.usize(0..5);
        works.push(Box::pin(async move { raid.suffer(&mut rng, events).await }));
        let (drive, shortage) = (self.drive.clone(), self.rig.world.shortage.clone());
        let (clock, mut rng) = (runtime.clone(), self.rig.rng.fork());
        works.push(Box::pin(async move {
            for _ in 0..rng.usize(0..3) {
                clock.sleep(rng.u64(0..LIFE_NS)).await;
                shortage.begin(&clock, [&drive].into_iter(), &mut rng);
            }
        }));
        let (way, mut rng) = (self.way.clone(), self.rig.rng.fork());
        works.push(Box::pin(async move {
            for _ in 0..rng.usize(0..3) {
                way.runtime.sleep(rng.u64(0..LIFE_NS)).await;
                way.cut();
            }
        }));
        let (from, to) = (self.arrays[self.source].clone(), self.arrays[1 - self.source].clone());
        let (book, way, mut rng) = (Rc::clone(&self.book), self.way.clone(), self.rig.rng.fork());
        let keep = self.keep;
        works.push(Box::pin(async move {
            for _ in 0..rng.usize(0..5) {
                from.replicate(&to, &book, &way, rng.fork(), keep).await;
                way.runtime.sleep(rng.u64(0..LIFE_NS / 8)).await;
            }
        }));
        let start = |work: LocalBoxFuture<'static, ()>| {
            let (done, end) = oneshot::channel();
            runtime.spawn(async move {
                work.await;
                // No caller waits after a power cut.
                let _ = done.send(());
            });
            end
        };
        works.into_iter().map(start).collect()
    }

    fn open(&mut self, number: usize) {
        let (runtime, config, seed) =
            (self.rig.executor.runtime(), self.config.clone(), self.rig.rng.u64(..));
        let disk: Rc<dyn Disk> = match number {
            0 => Rc::clone(&self.rig.world.set) as Rc<dyn Disk>,
            _ => self.drive.disk(),
        };
        let excuses = self.rig.excuses();
        self.arrays[number] = self.rig.run(Array::open(runtime, config, disk, seed, excuses));
    }

    /// The array on the drive is killed. It is started again when its unanswered operations have ended.
    fn kill(&mut self, under_way: Vec<oneshot::Receiver<()>>) {
        let next = self.drive.after_power_cut(&self.rig.executor.runtime(), &mut self.rig.rng);
        self.is_dying.set(true);
        self.drive.faulty.fail();
        self.way.cut();
        self.rig.run(async move {
            futures::future::join_all(under_way).await;
        });
        self.is_dying.set(false);
        if self.source == 1 {
            self.book.cut_power();
        }
        self.drive = next;
        let runtime = self.rig.executor.runtime();
        self.rig.world.shortage.go_on(&runtime, [&self.drive].into_iter(), &mut self.rig.rng);
        self.open(1);
    }

    fn cut_power(&mut self) {
        let book = Rc::clone(&self.book);
        self.rig.cut_power(|| book.cut_power());
        let runtime = self.rig.executor.runtime();
        self.drive = self.drive.after_power_cut(&runtime, &mut self.rig.rng);
        self.rig.world.shortage.go_on(&runtime, [&self.drive].into_iter(), &mut self.rig.rng);
        self.way = Breaking { runtime, is_broken: Rc::default() };
        self.open(0);
        self.open(1);
    }

    fn check(&mut self) {
        let (volumes, arrays, book) = (self.volumes(), self.arrays.clone(), Rc::clone(&self.book));
        self.rig.run(async move {
            for volume in volumes {
                volume.read_all().await;
            }
            for array in arrays {
                array.check_points(&book).await;
            }
        });
    }

    /// Replication completes once nothing fails any more, and the other array becomes primary.
    fn take_over(mut self) {
        let (from, to) = (self.arrays[self.source].clone(), self.arrays[1 - self.source].clone());
        let (book, way, mut rng, keep) =
            (Rc::clone(&self.book), self.way.clone(), self.rig.rng.fork(), self.keep);
        // Until then every file system has space again.
        pass(&mut self.rig.executor, FULL_NS);
        self.rig.run(async move {
            let mut attempts = 0..ATTEMPTS;
            while !from.replicate(&to, &book, &way, rng.fork(), keep).await {
                assert!(attempts.next().is_some(), "replication does not come through");
            }
            let points = [&from, &to].map(|array| array.group().unwrap().points().pop().unwrap().name);
            assert_eq!(points[0], points[1], "both know the newest point");
            let promoted = to.group().unwrap().promote(Promotion::Force).await.unwrap().unwrap();
            assert_eq!(promoted.name, points[0]);
            let mut all = Vec::new();
            for name in VOLUMES {
                let volume = to.pool.volume(name).unwrap();
                let bytes = BytesMut::zeroed(volume.size_bytes() as usize);
                all.push(volume.read(0, bytes).await.unwrap());
            }
            book.check_point(&promoted.name, &all);
            to.check_points(&book).await;
        });
    }
}

fn replicated(seed: u64) {
    let mut pair = Pair::new(seed);
    for _ in 0..pair.rig.rng.usize(0..4) {
        let under_way = pair.start();
        pair.rig.pass(LIFE_NS);
        if pair.rig.rng.bool() {
            pair.kill(under_way);
        } else {
            pair.cut_power();
        }
        pair.check();
    }
    pair.take_over();
}

#[test]
fn points_are_of_one_instant_on_real_pools_too() {
    for_each_seed(500, replicated);
}
