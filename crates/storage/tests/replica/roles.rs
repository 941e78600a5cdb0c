//! Which array is primary, while arrays are killed, disconnected, have wrong addresses or are impersonated, and their
//! owners promote and demote them.
//!
//! Two arrays are partners. A third one has a group of the same name. A fourth has the identity of one of the partners,
//! and sometimes copies of its disks. Addresses lead to any of them, also back to the array itself. There are two
//! rules:
//!
//! - Without force there are never two primaries of a group, and a change of sides loses nothing that hosts wrote.
//! - After any history, force included: once both partners reach each other, `promote`, `demote` and `rejoin` are
//!   enough to copy again, and to change sides without force.

use crate::{
    store::PAGE_BYTES,
    world::{GROUP, World, open},
};
use linerate_sim::for_each_seed;
use linerate_storage::{
    Executor,
    replica::{Group, Pair, Promotion, ReplicaError, Role, Store},
};
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use crate::store::MemoryStore;

const SEEDS: u64 = 1500;
/// The two that are each other's partners.
const PARTNERS: [usize; 2] = [0, 1];
/// Has a group of the same name.
const OTHER: usize = 2;
/// Has the identity of a partner.
const DOUBLE: usize = 3;

type Bytes = Vec<Vec<u8>>;

struct Town {
    world: Rc<World>,
    volumes: Vec<String>,
    /// Arrays detect by its certificate that an unexpected array answers. Without this, the data plane alone must keep
    /// the rules.
    has_pins: bool,
    may_force: bool,
    /// Addresses and identities of the partners stay right.
    is_addressed_well: bool,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// No array can connect to another one.
    is_cut: bool,
    /// From the first forced promotion until it is repaired.
    was_forced: bool,
    /// Forced promotions in progress.
    forcing: u32,
    /// Promotions without force in progress.
    promoting: u32,
    /// The partner had agreed to one of those before the other array was promoted by force.
    had_agreed: bool,
    /// Both partners were primary, or about to be, at the last check.
    were_two: bool,
    double_is_off: bool,
    /// Messages get lost or are late.
    is_unreliable: bool,
    /// Arrays that admit no host: they send the last writes of hosts.
    closed: [bool; 4],
    /// Writes of hosts in progress.
    writes: [u32; 4],
    /// The data of hosts when a primary gave its role away, by claim.
    given: BTreeMap<String, Bytes>,
}

/// The partner's answer to an array that wants to be primary.
enum Said {
    /// The claim is valid, for the volumes at this point.
    Given(Option<String>),
    StoodBack,
}

#[test]
fn there_is_one_primary_without_force_and_roles_can_be_repaired() {
    for_each_seed(SEEDS, |seed| {
        let mut executor = Executor::new();
        let world = World::new(executor.runtime(), seed, 4);
        let end = executor.run_in_virtual_time(scenario(world));
        assert!(end.is_some(), "everything waits for nothing");
    });
}

async fn scenario(world: Rc<World>) {
    let town = Rc::new(Town {
        volumes: (0..world.range(1, 2)).map(|at| format!("v{at}")).collect(),
        has_pins: world.chance(30),
        may_force: world.chance(40),
        is_addressed_well: world.chance(50),
        state: RefCell::default(),
        world,
    });
    town.found().await;
    town.state.borrow_mut().is_unreliable = true;
    for _ in 0..town.world.range(4, 30) {
        let acting = Rc::clone(&town);
        if town.world.chance(50) {
            acting.act().await;
        } else {
            town.world.runtime.clone().spawn(acting.act());
            town.world.runtime.sleep(town.world.range(0, 60_000)).await;
        }
        town.check();
    }
    town.world.runtime.sleep(20_000_000).await;
    town.check();
    town.repair().await;
}

impl Town {
    /// The partners' first copy, the other array's own group, and which partner the double pretends to be.
    async fn found(&self) {
        let world = &self.world;
        for array in [0, OTHER] {
            for volume in &self.volumes {
                let size_bytes = world.range(1, 6) * PAGE_BYTES as u64;
                world.store(array).create_volume(volume, size_bytes).await.unwrap();
            }
            world.write(array, 8).await;
        }
        assert!(world.replicate(0, &self.volumes, 2).await.is_some());
        let (replicator, pair) = (world.replicator(OTHER), world.pair(OTHER));
        replicator.primary(GROUP, &self.volumes, &pair).await.unwrap();
        let pretended = PARTNERS[world.range(0, 1) as usize];
        self.pretend(pretended);
    }

    /// One random action of an owner, fault or mistake.
    async fn act(self: Rc<Self>) {
        let world = &self.world;
        let array = [0, 0, 0, 1, 1, 1, OTHER, DOUBLE][world.range(0, 7) as usize];
        match world.range(0, 19) {
            0..3 => self.promote(array).await,
            3..6 => self.promote_all().await,
            6..8 => drop(world.ask_group(array, |group| async move { group.demote().await }).await),
            8..10 if !self.is_addressed_well => self.readdress(array),
            10 => world.restart(array).await,
            11 => {
                let mut state = self.state.borrow_mut();
                state.is_cut = !state.is_cut;
            }
            12 => self.copy_disks(),
            13 => self.quarrel().await,
            14 if self.may_force => self.force(array).await,
            15 if self.may_force => self.fall_apart().await,
            15 if world.chance(20) && !self.is_addressed_well => {
                // The identity file is lost; its owner makes a new one.
                let name = format!("array {array} anew {}", world.range(0, 99));
                world.arrays[array].borrow_mut().identity = name;
            }
            16..18 => self.write(array).await,
            _ => drop(self.replicate(array).await),
        }
    }

    /// Neither is primary; then both partners and a copy of one of them want to be primary.
    async fn quarrel(self: &Rc<Self>) {
        for array in PARTNERS {
            self.world.ask_group(array, |group| async move { group.demote().await }).await;
        }
        for _ in 0..4 {
            self.copy_disks();
        }
        self.promote_all().await;
    }

    /// Both partners are promoted, and then both are demoted.
    async fn fall_apart(&self) {
        for array in PARTNERS {
            self.force(array).await;
        }
        for array in PARTNERS {
            self.world.ask_group(array, |group| async move { group.demote().await }).await;
        }
    }

    /// Owners who act independently.
    async fn promote_all(self: &Rc<Self>) {
        for array in [0, DOUBLE] {
            let (acting, after) = (Rc::clone(self), self.world.runtime.sleep(self.world.range(0, 100_000)));
            self.world.runtime.spawn(async move {
                after.await;
                acting.promote(array).await;
            });
        }
        self.world.runtime.sleep(self.world.range(0, 100_000)).await;
        self.promote(1).await;
    }

    /// A wrong line in the array file, an address that two hosts use, or the right address again.
    fn readdress(&self, array: usize) {
        let right = usize::from(array == 0);
        let leads_to = if self.world.chance(50) { right } else { self.world.range(0, 3) as usize };
        self.world.arrays[array].borrow_mut().leads_to = leads_to;
    }

    /// The double gets copies of a partner's disks, while that partner is only a copy and receives nothing. Later,
    /// copies to the partner and to the double could not be distinguished.
    fn copy_disks(&self) {
        let world = &self.world;
        let from = PARTNERS[world.range(0, 1) as usize];
        let store = world.store(from).copied();
        let replicator = open(&store, &world.runtime, &world.rng);
        let Ok(group) = replicator.group(GROUP) else { return };
        if group.role() != Role::Replica || group.has_token() || group.incoming_point().is_some() {
            return;
        }
        self.pretend(from);
        let mut double = world.arrays[DOUBLE].borrow_mut();
        (double.store, double.replicator) = (store, replicator);
    }

    /// The double has copies of a partner's identity file and array file.
    fn pretend(&self, to_be: usize) {
        let Pair { here, partner } = self.world.pair(to_be);
        let mut double = self.world.arrays[DOUBLE].borrow_mut();
        (double.identity, double.partner, double.leads_to) = (here, partner, 1 - to_be);
    }

    async fn write(&self, array: usize) {
        let is_primary = self.world.group(array).is_some_and(|group| group.role() == Role::Primary);
        if is_primary && !self.state.borrow().closed[array] {
            self.state.borrow_mut().writes[array] += 1;
            self.world.write(array, 1).await;
            self.state.borrow_mut().writes[array] -= 1;
        }
    }

    async fn force(&self, array: usize) {
        {
            let mut state = self.state.borrow_mut();
            state.was_forced = true;
            state.forcing += 1;
        }
        let force = |group: Rc<Group<_>>| async move { group.promote(Promotion::Force).await };
        let is_done = self.world.ask_group(array, force).await.is_some();
        let mut state = self.state.borrow_mut();
        // An interrupted promotion continues with the next start.
        state.forcing -= u32::from(is_done);
        state.were_two = !self.is_replica(0) && !self.is_replica(1);
        state.had_agreed |= state.promoting > 0;
    }

    async fn replicate(&self, array: usize) -> Option<()> {
        let to = self.world.leads_to(array);
        if self.state.borrow().is_cut || !self.knows(array, to) {
            return None;
        }
        self.world.replicate(array, &self.volumes, 2).await.map(drop)
    }

    /// Whether an array continues to communicate with the array that answers at its partner's address.
    fn knows(&self, array: usize, answers: usize) -> bool {
        !self.has_pins || self.world.pair(array).partner == self.world.met(array, answers).partner
    }

    /// Sends a request to the array at the partner's address. None: no answer, or not in time.
    async fn deliver<T: 'static, F: Future<Output = Option<Result<T, ReplicaError>>> + 'static>(
        self: &Rc<Self>,
        from: usize,
        serve: impl FnOnce(Rc<Self>, usize) -> F,
    ) -> Option<Result<T, ReplicaError>> {
        let to = self.world.leads_to(from);
        if self.state.borrow().is_cut || !self.knows(from, to) {
            return None;
        }
        let is_unreliable = self.state.borrow().is_unreliable;
        if is_unreliable && self.world.chance(5) {
            let (late, serving) =
                (self.world.runtime.sleep(self.world.range(0, 500_000)), serve(Rc::clone(self), to));
            self.world.runtime.spawn(async move {
                late.await;
                drop(serving.await);
            });
            return None;
        }
        let reply = serve(Rc::clone(self), to).await;
        if is_unreliable && self.world.chance(5) { None } else { reply }
    }

    /// The steps of the lab plane when an owner promotes.
    async fn promote(self: &Rc<Self>, array: usize) {
        self.state.borrow_mut().promoting += 1;
        self.lead(array).await;
        self.check();
        self.state.borrow_mut().promoting -= 1;
    }

    async fn lead(self: &Rc<Self>, array: usize) {
        let Some(group) = self.world.group(array) else { return };
        let claim = match group.role() {
            Role::Primary | Role::Promoting { claim: None, .. } => return,
            Role::Promoting { claim: Some(claim), .. } => claim,
            Role::Replica => {
                let claim = format!("{:x}", self.world.rng.borrow_mut().next_u64());
                let (seen, holds, id) = (group.changes(), group.has_token(), group.id());
                let asked = (id, claim.clone(), holds);
                let reply = self.deliver(array, |town, to| town.yield_to(to, array, asked)).await;
                let how = match reply {
                    Some(Ok(Said::Given(point))) => Promotion::Claim { claim: claim.clone(), point },
                    Some(Ok(Said::StoodBack)) => Promotion::Held { seen },
                    _ => return,
                };
                let is_over = matches!(how, Promotion::Held { .. });
                let begun =
                    self.world.ask_group(array, |group| async move { group.promote(how).await }).await;
                if is_over || !matches!(begun, Some(Ok(_))) {
                    return;
                }
                claim
            }
        };
        self.claim(array, group.id(), claim).await;
    }

    /// The second half of a promotion, which a restart may repeat.
    async fn claim(self: &Rc<Self>, array: usize, id: String, claim: String) {
        if self.world.chance(10) {
            return;
        }
        let mine = claim.clone();
        let passing = |town: Rc<Self>, to| async move {
            let group = town.asked(to, array, &id)?;
            town.world.ask(to, async move { group?.pass(&mine).await }).await
        };
        let passed = self.deliver(array, passing).await;
        self.check();
        let (key, store) = (claim.clone(), self.world.store(array));
        match passed {
            Some(Ok(true)) => {
                let take = |group: Rc<Group<_>>| async move { group.take(&claim).await };
                if let Some(Ok(_)) = self.world.ask_group(array, take).await {
                    self.check_given(&store, &key);
                }
            }
            Some(Ok(false)) => {
                self.world.ask_group(array, |group| async move { group.drop_claim(&claim).await }).await;
            }
            Some(Err(_)) | None => {}
        }
    }

    /// The group that a partner names, if it belongs to that partner.
    fn asked(
        &self,
        to: usize,
        from: usize,
        id: &str,
    ) -> Option<Result<Rc<Group<MemoryStore>>, ReplicaError>> {
        let group = self.world.group(to)?;
        let pair: Pair = self.world.met(to, from);
        let checked = group.check_pair(&pair);
        let is_same = group.id() == id;
        Some(checked.and_then(|()| is_same.then_some(group).ok_or(ReplicaError::OtherGroup(GROUP.into()))))
    }

    /// The steps of the lab plane when a partner wants to be primary.
    async fn yield_to(
        self: Rc<Self>,
        array: usize,
        asks: usize,
        (id, claim, holds): (String, String, bool),
    ) -> Option<Result<Said, ReplicaError>> {
        let group = match self.asked(array, asks, &id)? {
            Ok(group) => group,
            Err(error) => return Some(Err(error)),
        };
        let store = self.world.store(array);
        if group.role() != Role::Primary {
            if holds {
                let stood = self.world.ask(array, async move { group.stand_back().await }).await?;
                return Some(stood.map(|()| Said::StoodBack));
            }
            let given = self.world.ask(array, async move { group.give(&claim).await }).await?;
            return Some(given.map(|point| Said::Given(point.map(|point| point.name))));
        }
        self.replicate(array).await?;
        // One thread controls all changes of a group.
        if std::mem::replace(&mut self.state.borrow_mut().closed[array], true) {
            return None;
        }
        while self.state.borrow().writes[array] > 0 {
            self.world.runtime.sleep(1_000).await;
        }
        let given = self.give_last(array, &claim).await;
        // A process that was killed meanwhile controls no promotion any more.
        self.state.borrow_mut().closed[array] = false;
        if store.is_alive() { given } else { None }
    }

    /// Copies everything once more, while hosts are excluded; then gives the role away.
    async fn give_last(self: &Rc<Self>, array: usize, claim: &str) -> Option<Result<Said, ReplicaError>> {
        let (store, group) = (self.world.store(array), self.world.group(array)?);
        let abandoned = Rc::clone(&group);
        self.world.ask(array, async move { abandoned.abandon().await }).await?.ok()?;
        self.replicate(array).await?;
        if !store.is_alive() {
            return None;
        }
        let bytes = self.bytes(&store);
        self.state.borrow_mut().given.insert(claim.to_owned(), bytes);
        let claim = claim.to_owned();
        let given = self.world.ask(array, async move { group.give(&claim).await }).await?;
        Some(given.map(|point| Said::Given(point.map(|point| point.name))))
    }

    fn bytes(&self, store: &MemoryStore) -> Bytes {
        let platters = store.platters.borrow();
        self.volumes.iter().map(|volume| platters.volumes[volume].now.clone()).collect()
    }

    /// Hosts find their data on the other array.
    fn check_given(&self, store: &MemoryStore, claim: &str) {
        if let Some(given) = self.state.borrow_mut().given.remove(claim) {
            assert!(self.bytes(store) == given, "an array became primary without the last writes");
        }
    }

    fn arrays_by_group(
        &self,
        is_meant: impl Fn(&Group<MemoryStore>) -> bool,
    ) -> BTreeMap<String, Vec<usize>> {
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let arrays = if self.state.borrow().double_is_off { DOUBLE } else { DOUBLE + 1 };
        for array in 0..arrays {
            if let Some(group) = self.world.group(array).filter(|group| is_meant(group)) {
                found.entry(group.id()).or_default().push(array);
            }
        }
        found
    }

    fn check(&self) {
        if self.state.borrow().was_forced {
            return self.check_forced();
        }
        for arrays in self.arrays_by_group(|group| group.role() == Role::Primary).values() {
            assert!(arrays.len() == 1, "arrays {arrays:?} are primary at once, without force");
        }
        if self.state.borrow().double_is_off {
            return; // an earlier force may have left a second token, which the next copy removes
        }
        for arrays in self.arrays_by_group(Group::has_token).values() {
            assert!(
                arrays.len() == 1,
                "arrays {arrays:?} have the right to be primary at once, without force"
            );
        }
    }

    /// Force makes a second primary, and a second token. If the partners are connected, only another force makes two
    /// primaries again.
    fn check_forced(&self) {
        let mut state = self.state.borrow_mut();
        let are_two = self.roles() == [true, true];
        assert!(
            !are_two || state.were_two || state.forcing > 0 || state.had_agreed || !self.is_addressed_well,
            "the second one became primary without force"
        );
        state.had_agreed &= state.promoting > 0;
        state.were_two = !self.is_replica(0) && !self.is_replica(1);
    }

    /// The steps of the manual: the double is switched off, addresses and identities are corrected, then the roles.
    async fn repair(self: &Rc<Self>) {
        let world = &self.world;
        {
            let mut state = self.state.borrow_mut();
            (state.is_cut, state.is_unreliable) = (false, false);
        }
        for array in PARTNERS {
            let mut here = world.arrays[array].borrow_mut();
            here.leads_to = 1 - array;
            here.partner.clone_from(&world.arrays[1 - array].borrow().identity);
        }
        for array in PARTNERS {
            let pair = world.pair(array);
            let rejoined = world.ask_group(array, |group| async move { group.rejoin(pair).await }).await;
            assert!(matches!(rejoined, Some(Ok(()))), "array {array} cannot rejoin: {rejoined:?}");
        }
        let primary = self.settle().await;
        {
            let mut state = self.state.borrow_mut();
            (state.was_forced, state.forcing, state.double_is_off) = (false, 0, true);
        }
        self.check();
        for (from, to) in [(primary, 1 - primary), (1 - primary, primary)] {
            assert!(self.replicate(from).await.is_some(), "array {from} cannot copy after the repair");
            world.write(from, 3).await;
            self.promote_for_good(to).await;
            assert_eq!(self.roles(), if to == 0 { [true, false] } else { [false, true] }, "sides change");
        }
    }

    async fn promote_for_good(self: &Rc<Self>, array: usize) {
        for _ in 0..60 {
            self.promote(array).await;
            if self.roles()[array] {
                return;
            }
        }
        let group = self.world.group(array).unwrap();
        panic!("array {array} cannot be promoted: {:?}, token {}", group.role(), group.token());
    }

    fn roles(&self) -> [bool; 2] {
        PARTNERS.map(|array| self.world.group(array).is_some_and(|group| group.role() == Role::Primary))
    }

    /// Waits for a single primary; returns it.
    async fn settle(self: &Rc<Self>) -> usize {
        let world = &self.world;
        for _ in 0..60 {
            match self.roles() {
                [true, true] => {
                    let array = world.range(0, 1) as usize;
                    world.ask_group(array, |group| async move { group.demote().await }).await;
                }
                [true, false] if self.is_replica(1) => return 0,
                [false, true] if self.is_replica(0) => return 1,
                [false, false] => {
                    let array = world.range(0, 1) as usize;
                    self.promote(array).await;
                    if self.roles() == [false, false] && world.chance(20) {
                        self.force(array).await;
                    }
                }
                [true, false] => drop(world.ask_group(1, |group| async move { group.demote().await }).await),
                [false, true] => drop(world.ask_group(0, |group| async move { group.demote().await }).await),
            }
        }
        panic!("the roles cannot be repaired");
    }

    fn is_replica(&self, array: usize) -> bool {
        self.world.group(array).is_none_or(|group| group.role() == Role::Replica)
    }
}
