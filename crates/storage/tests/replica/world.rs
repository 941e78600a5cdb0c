//! Two arrays, a network that loses messages, hosts that write, and the driver of replication between them.

use crate::{
    link::Wire,
    store::{MemoryStore, PAGE_BYTES},
};
use bytes::Bytes;
use futures::channel::oneshot;
use linerate_sim::Rng;
use linerate_storage::{
    Runtime,
    replica::{Commit, CopyOptions, Group, Pair, ReplicaError, Replicator, Role, Store},
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::Future,
    rc::Rc,
};

/// Limit of the time of a step.
const STEP_NS_MAX: u64 = 1_000_000_000;
pub(crate) const GROUP: &str = "mail";

/// An array: the state that survives, and the process that serves it now.
pub(crate) struct Array {
    pub(crate) store: MemoryStore,
    pub(crate) replicator: Rc<Replicator<MemoryStore>>,
    pub(crate) identity: String,
    /// The partner's identity, as configured.
    pub(crate) partner: String,
    /// Which array its partner's address leads to.
    pub(crate) leads_to: usize,
}

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) rng: Rc<RefCell<Rng>>,
    pub(crate) arrays: Vec<RefCell<Array>>,
    /// Required contents of a point's volumes, by its name: taken from the array that made it.
    truth: RefCell<BTreeMap<String, Vec<Vec<u8>>>>,
    /// Breaks the link that is in use.
    cable: RefCell<Rc<Cell<bool>>>,
    /// How many more faults may happen.
    pub(crate) trouble: Cell<u32>,
    at_s: Cell<u32>,
}

impl World {
    /// Arrays; the first two are partners, and the others consider themselves partners of the first one.
    pub(crate) fn new(runtime: Runtime, seed: u64, arrays: usize) -> Rc<Self> {
        let rng = Rc::new(RefCell::new(Rng::new(seed)));
        let array = |number: usize| {
            let store = MemoryStore::new(runtime.clone(), Rc::clone(&rng));
            let replicator = open(&store, &runtime, &rng);
            let leads_to = usize::from(number == 0);
            let (identity, partner) = (format!("array {number}"), format!("array {leads_to}"));
            RefCell::new(Array { store, replicator, identity, partner, leads_to })
        };
        let arrays = (0..arrays).map(array).collect();
        Rc::new(Self {
            runtime,
            arrays,
            rng,
            truth: RefCell::default(),
            cable: RefCell::default(),
            trouble: Cell::new(0),
            at_s: Cell::new(0),
        })
    }

    pub(crate) fn range(&self, low: u64, high: u64) -> u64 {
        self.rng.borrow_mut().range(low, high)
    }

    pub(crate) fn chance(&self, percent: u32) -> bool {
        self.rng.borrow_mut().chance(percent)
    }

    pub(crate) fn store(&self, array: usize) -> MemoryStore {
        self.arrays[array].borrow().store.clone()
    }

    pub(crate) fn replicator(&self, array: usize) -> Rc<Replicator<MemoryStore>> {
        Rc::clone(&self.arrays[array].borrow().replicator)
    }

    /// Kills an array's process and starts it anew.
    pub(crate) async fn restart(&self, array: usize) {
        self.cable.borrow().set(true);
        let replicator = {
            let mut array = self.arrays[array].borrow_mut();
            array.store.power_cut();
            array.replicator = open(&array.store, &self.runtime, &self.rng);
            Rc::clone(&array.replicator)
        };
        self.check_points(array);
        let _ = self.ask(array, async move { replicator.recover().await }).await;
    }

    /// Runs a step on an array's process. None if it was killed meanwhile, or if its answer was lost.
    pub(crate) async fn ask<T: 'static>(
        &self,
        array: usize,
        step: impl Future<Output = Result<T, ReplicaError>> + 'static,
    ) -> Option<Result<T, ReplicaError>> {
        let store = self.store(array);
        let (sender, mut receiver) = oneshot::channel();
        self.runtime.spawn(async move {
            let result = step.await;
            // No caller waits once the process was killed.
            let _ = sender.send(result);
        });
        let until = self.runtime.now() + STEP_NS_MAX;
        loop {
            if let Ok(Some(result)) = receiver.try_recv() {
                let is_lost = self.trouble.get() > 0 && self.chance(3);
                return (!is_lost).then_some(result);
            }
            if !store.is_alive() {
                return None;
            }
            self.runtime.sleep(1_000).await;
            assert!(self.runtime.now() < until, "a step never ends");
        }
    }

    /// Injects faults, while some are left.
    pub(crate) async fn make_trouble(self: Rc<Self>) {
        while self.trouble.get() > 0 {
            self.runtime.sleep(self.range(1_000, 1_500_000)).await;
            self.trouble.set(self.trouble.get().saturating_sub(1));
            match self.range(0, 3) {
                0 | 1 => self.cable.borrow().set(true),
                2 => self.restart(0).await,
                _ => self.restart(1).await,
            }
        }
    }

    /// A host's writes to random pages of the primary's volumes, one after the other.
    pub(crate) async fn write(&self, array: usize, writes: u64) {
        let store = self.store(array);
        for _ in 0..writes {
            if !store.is_alive() {
                return;
            }
            let names: Vec<String> = store.platters.borrow().volumes.keys().cloned().collect();
            let name = &names[self.range(0, names.len() as u64 - 1) as usize];
            let Some(volume) = store.volume(name) else { return };
            let pages = volume.size_bytes() / PAGE_BYTES as u64;
            let offset = self.range(0, pages - 1) * PAGE_BYTES as u64;
            let byte = if self.chance(20) { 0 } else { self.range(1, 255) as u8 };
            let is_durable = self.chance(50);
            let write = volume.write(offset, Bytes::from(vec![byte; PAGE_BYTES]), is_durable);
            if self.ask(array, async move { Ok(write.await?) }).await.is_none() {
                return;
            }
        }
    }

    /// Runs a step on the current process of a group's array.
    pub(crate) async fn ask_group<T: 'static, F: Future<Output = Result<T, ReplicaError>> + 'static>(
        &self,
        array: usize,
        step: impl FnOnce(Rc<Group<MemoryStore>>) -> F,
    ) -> Option<Result<T, ReplicaError>> {
        let step = step(self.group(array)?);
        self.ask(array, step).await
    }

    /// One attempt to copy `from`'s newest state to the other array. Returns the commit that both know, if there is
    /// one.
    pub(crate) async fn replicate(
        self: &Rc<Self>,
        from: usize,
        volumes: &[String],
        keep: usize,
    ) -> Option<Commit> {
        let (names, at_s) = (volumes.to_vec(), f64::from(self.at_s.replace(self.at_s.get() + 1)));
        let source = self.replicator(from);
        let pair = self.pair(from);
        self.ask(from, async move { source.primary(GROUP, &names, &pair).await }).await?.ok()?;
        let prepare = |group: Rc<Group<_>>| async move { group.prepare(at_s, keep).await };
        let offer = self.ask_group(from, prepare).await?.ok()?;
        self.learn(from, &offer.point.name, volumes);
        let to = self.leads_to(from);
        let (partner, partner_store, pair) = (self.replicator(to), self.store(to), self.met(to, from));
        let begin = async move { partner.begin(&offer, &pair).await };
        let begun = self.ask(to, begin).await?.ok()?;
        let cable = Rc::new(Cell::new(false));
        *self.cable.borrow_mut() = Rc::clone(&cable);
        let (runtime, rng) = (self.runtime.clone(), Rc::clone(&self.rng));
        let wire = Rc::new(Wire::new(begun.fences, partner_store, runtime, rng, cable));
        let options = self.options();
        let answer = begun.answer;
        let copy = |group: Rc<Group<_>>| async move { group.copy(&answer, wire, options).await };
        let commit = self.ask_group(from, copy).await?.ok()?;
        let sent = commit.clone();
        let seal = |group: Rc<Group<_>>| async move { group.commit(&sent).await };
        self.ask_group(to, seal).await?.ok()?;
        self.check_points(to);
        let sent = commit.clone();
        let confirm = |group: Rc<Group<_>>| async move { group.confirm(&sent).await };
        self.ask_group(from, confirm).await?.ok()?;
        Some(commit)
    }

    pub(crate) fn leads_to(&self, array: usize) -> usize {
        self.arrays[array].borrow().leads_to
    }

    /// The pair as configured on an array.
    pub(crate) fn pair(&self, array: usize) -> Pair {
        let Array { identity, partner, .. } = &*self.arrays[array].borrow();
        Pair { here: identity.clone(), partner: partner.clone() }
    }

    /// The pair as an array sees it when another one has proved its identity.
    pub(crate) fn met(&self, array: usize, other: usize) -> Pair {
        let identity = |array: usize| self.arrays[array].borrow().identity.clone();
        Pair { here: identity(array), partner: identity(other) }
    }

    fn options(&self) -> CopyOptions {
        CopyOptions {
            rate_bytes_per_s: if self.chance(10) { 1 << 28 } else { 0 },
            piece_bytes: (PAGE_BYTES as u32) << self.range(0, 2),
            window: self.range(1, 5) as usize,
            checkpoint_bytes: self.range(1, 20) * 4096,
        }
    }

    /// The source's snapshot of a point defines the contents of the point.
    fn learn(&self, array: usize, point: &str, volumes: &[String]) {
        let store = self.store(array);
        let platters = store.platters.borrow();
        let bytes = volumes.iter().map(|volume| platters.volumes[volume].snapshot(point).cloned());
        let Some(bytes) = bytes.collect::<Option<Vec<_>>>() else { return };
        let mut truth = self.truth.borrow_mut();
        let known = truth.entry(point.to_owned()).or_insert_with(|| bytes.clone());
        assert_eq!(*known, bytes, "the source's own point {point} has changed");
    }

    /// Every point that an array shows for all volumes has its original contents.
    pub(crate) fn check_points(&self, array: usize) {
        let store = self.store(array);
        let Ok(group) = self.replicator(array).group(GROUP) else { return };
        let platters = store.platters.borrow();
        let truth = self.truth.borrow();
        for (at, volume) in group.volumes().iter().enumerate() {
            for (point, bytes) in platters.volumes.get(volume).map(|v| &v.snapshots[..]).unwrap_or_default() {
                // Only its own array knows a point that was never offered.
                if let Some(truth) = truth.get(point) {
                    assert!(
                        truth[at] == *bytes,
                        "array {array}: point {point} of {volume} is not what it was"
                    );
                }
            }
        }
    }

    /// The volumes that hosts see on an array are those of a point.
    pub(crate) fn check_volumes(&self, array: usize, point: &str) {
        let store = self.store(array);
        let platters = store.platters.borrow();
        let group = self.replicator(array).group(GROUP).unwrap();
        assert_eq!(group.role(), Role::Primary);
        for (at, volume) in group.volumes().iter().enumerate() {
            let is_same = self.truth.borrow()[point][at] == platters.volumes[volume].now;
            assert!(is_same, "array {array} was promoted to {point}, but {volume} shows something else");
        }
    }

    pub(crate) fn group(&self, array: usize) -> Option<Rc<Group<MemoryStore>>> {
        self.replicator(array).group(GROUP).ok()
    }
}

pub(crate) fn open(
    store: &MemoryStore,
    runtime: &Runtime,
    rng: &Rc<RefCell<Rng>>,
) -> Rc<Replicator<MemoryStore>> {
    let rng = Rc::clone(rng);
    let random = move || rng.borrow_mut().next_u64();
    Rc::new(Replicator::open(Rc::new(store.clone()), runtime.clone(), random).unwrap())
}
