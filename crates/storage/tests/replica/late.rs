//! Messages that arrive late or in the wrong order, one case each. Both arrays are sound, and no seed decides.

use crate::{
    link::Wire,
    store::{MemoryStore, PAGE_BYTES},
    world::{GROUP, World},
};
use bytes::Bytes;
use linerate_storage::{
    Disk, DiskError, Executor,
    replica::{Answer, Begun, Commit, CopyOptions, Group, Offer, ReplicaError, Replicator, Store},
};
use std::{cell::Cell, rc::Rc};

const SIZE_BYTES: u64 = 4 * PAGE_BYTES as u64;
const VOLUME: &str = "v0";

/// A primary (array 0) with one volume whose pages are all 1, and its partner (array 1).
struct Exchange {
    world: Rc<World>,
}

impl Exchange {
    async fn new(world: Rc<World>) -> Self {
        let store = world.store(0);
        store.create_volume(VOLUME, SIZE_BYTES).await.unwrap();
        let volume = store.volume(VOLUME).unwrap();
        volume.write(0, Bytes::from(vec![1; SIZE_BYTES as usize]), true).await.unwrap();
        world.replicator(0).primary(GROUP, &[VOLUME.to_owned()], &world.pair(0)).await.unwrap();
        Self { world }
    }

    fn primary(&self) -> Rc<Group<MemoryStore>> {
        self.world.group(0).unwrap()
    }

    fn partner(&self) -> Rc<Group<MemoryStore>> {
        self.world.group(1).unwrap()
    }

    async fn prepare(&self) -> Offer {
        self.primary().prepare(1.0, 2).await.unwrap()
    }

    async fn begin(&self, offer: &Offer) -> Begun {
        let partner: Rc<Replicator<MemoryStore>> = self.world.replicator(1);
        partner.begin(offer, &self.world.met(1, 0)).await.unwrap()
    }

    async fn copy(&self, begun: &Begun) -> Result<Commit, ReplicaError> {
        let World { runtime, rng, .. } = &*self.world;
        let is_broken = Rc::new(Cell::new(false));
        let wire =
            Wire::new(begun.fences.clone(), self.world.store(1), runtime.clone(), Rc::clone(rng), is_broken);
        self.primary().copy(&begun.answer, Rc::new(wire), CopyOptions::default()).await
    }

    /// The partner's owner changes the size of the volume: what arrived so far is void, and it is prepared anew.
    async fn void(&self) {
        self.world.store(1).resize(VOLUME, SIZE_BYTES / 2).await.unwrap();
    }

    /// The contents of the partner's newest point.
    fn point(&self) -> Vec<u8> {
        let store = self.world.store(1);
        let platters = store.platters.borrow();
        platters.volumes[VOLUME].snapshots.last().unwrap().1.clone()
    }
}

fn exchange<F: Future<Output = ()> + 'static>(work: impl FnOnce(Exchange) -> F + 'static) {
    let mut executor = Executor::new();
    let world = World::new(executor.runtime(), 1, 2);
    let done = executor.run_in_virtual_time(async move { work(Exchange::new(world).await).await });
    assert!(done.is_some(), "everything waits for nothing");
}

fn commit_of(answer: &Answer) -> Commit {
    Commit { group: answer.group.clone(), point: answer.point.clone(), incarnation: answer.incarnation }
}

#[test]
fn a_commit_of_an_earlier_preparation_makes_no_point() {
    exchange(|exchange| async move {
        let offer = exchange.prepare().await;
        let earlier = exchange.begin(&offer).await;
        let late = exchange.copy(&earlier).await.unwrap();
        exchange.void().await;
        let begun = exchange.begin(&offer).await;
        assert_ne!(begun.answer.incarnation, late.incarnation);
        let refused = exchange.partner().commit(&late).await;
        assert!(matches!(refused, Err(ReplicaError::Stale { .. })), "{refused:?}");
        assert_eq!(exchange.partner().points().len(), 0);
    });
}

#[test]
fn all_is_sent_again_to_volumes_that_were_prepared_anew() {
    exchange(|exchange| async move {
        let offer = exchange.prepare().await;
        let earlier = exchange.begin(&offer).await;
        exchange.copy(&earlier).await.unwrap();
        exchange.void().await;
        let begun = exchange.begin(&offer).await;
        let commit = exchange.copy(&begun).await.unwrap();
        exchange.partner().commit(&commit).await.unwrap();
        assert_eq!(exchange.point(), vec![1; SIZE_BYTES as usize]);
    });
}

#[test]
fn a_point_waits_for_writes_under_way_and_admits_none_after_it() {
    exchange(|exchange| async move {
        let offer = exchange.prepare().await;
        let begun = exchange.begin(&offer).await;
        let fence = &begun.fences[0];
        let under_way = fence.write(0, Bytes::from(vec![7; PAGE_BYTES]), false);
        exchange.partner().commit(&commit_of(&begun.answer)).await.unwrap();
        let mut expected = vec![0; SIZE_BYTES as usize];
        expected[..PAGE_BYTES].fill(7);
        assert_eq!(exchange.point(), expected);
        under_way.await.unwrap();
        let late = fence.write(0, Bytes::from(vec![8; PAGE_BYTES]), false).await;
        assert_eq!(late, Err(DiskError::Protected(VOLUME.into())));
    });
}

#[test]
fn a_point_holds_what_was_never_flushed_even_if_the_power_fails_at_once() {
    exchange(|exchange| async move {
        let offer = exchange.prepare().await;
        let begun = exchange.begin(&offer).await;
        begun.fences[0].write(0, Bytes::from(vec![7; SIZE_BYTES as usize]), false).await.unwrap();
        let partner = exchange.partner();
        let runtime = exchange.world.runtime.clone();
        runtime.spawn(async move {
            // The power cut comes first: the process never ends this step.
            let _ = partner.commit(&commit_of(&begun.answer)).await;
        });
        // The snapshot is there for an instant before it is complete.
        while exchange.world.store(1).snapshots(VOLUME).is_empty() {
            runtime.sleep(1).await;
        }
        exchange.world.restart(1).await;
        assert_eq!(exchange.point(), vec![7; SIZE_BYTES as usize]);
    });
}
