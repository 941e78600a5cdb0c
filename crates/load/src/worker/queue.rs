//! Queues that several volumes share: each I/O goes to a random volume of its queue (diskspd's `-O`).

use super::volume::Volume;
use crate::{
    spec::RunSpec,
    stream::rng::{Rng, Use},
};

/// The shared queues of a worker. Without any it takes no memory.
#[derive(Debug)]
pub(super) struct SharedQueues {
    rng: Rng,
    /// The queue of each volume; empty without shared queues.
    of_volume: Box<[Option<u32>]>,
    queues: Vec<SharedQueue>,
}

/// The volumes of a queue.
#[derive(Debug)]
struct SharedQueue {
    name: String,
    /// With the sum of the weights up to each.
    volumes: Vec<(u64, u32)>,
}

impl SharedQueues {
    /// Those of a worker's volumes, whose free slots it deals.
    pub(super) fn new(spec: &RunSpec, volumes: &mut [Volume], worker: usize) -> Self {
        let mut queues: Vec<SharedQueue> = Vec::new();
        let mut of_volume = Vec::with_capacity(volumes.len());
        for (at, volume) in volumes.iter_mut().enumerate() {
            let of = &spec.volumes[volume.index as usize];
            let Some(shared) = &of.queue else {
                of_volume.push(None);
                continue;
            };
            // All slots of the queue may be at one volume, and the path of an I/O does not allocate.
            volume.free.reserve(of.outstanding as usize);
            let nth = queues.iter().position(|queue| queue.name == shared.name).unwrap_or_else(|| {
                queues.push(SharedQueue { name: shared.name.clone(), volumes: Vec::new() });
                queues.len() - 1
            });
            let sum = queues[nth].volumes.last().map_or(0, |last| last.0);
            queues[nth].volumes.push((sum + u64::from(shared.weight), at as u32));
            of_volume.push(Some(nth as u32));
        }
        if queues.is_empty() {
            of_volume.clear();
        }
        let rng = Rng::new(spec.seed, 0, worker as u32, Use::Queue);
        let mut this = Self { rng, of_volume: of_volume.into(), queues };
        for at in 0..this.of_volume.len() {
            for slot in std::mem::take(&mut volumes[at].free) {
                volumes[this.next(at as u32) as usize].free.push(slot);
            }
        }
        this
    }

    /// A volume has no more I/Os: its queue leaves it out. Returns whether it was in one.
    pub(super) fn retire(&mut self, volume: u32) -> bool {
        let Some(&Some(queue)) = self.of_volume.get(volume as usize) else { return false };
        let volumes = &mut self.queues[queue as usize].volumes;
        let Some(at) = volumes.iter().position(|one| one.1 == volume) else { return false };
        let weight = volumes[at].0 - at.checked_sub(1).map_or(0, |before| volumes[before].0);
        volumes.remove(at);
        volumes[at..].iter_mut().for_each(|one| one.0 -= weight);
        true
    }

    /// The volume of a slot's next I/O, after one of a volume.
    pub(super) fn next(&mut self, volume: u32) -> u32 {
        let Some(&Some(queue)) = self.of_volume.get(volume as usize) else { return volume };
        let volumes = &self.queues[queue as usize].volumes;
        let at = self.rng.below(volumes.last().map_or(1, |last| last.0));
        volumes.iter().find(|(sum, _)| at < *sum).map_or(volume, |found| found.1)
    }
}
