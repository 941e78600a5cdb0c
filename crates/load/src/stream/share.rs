//! Selects the stream of a volume for a free slot, and limits how far volumes may be ahead of each other.
//!
//! There are three modes. *Uncontrolled*: the streams take turns; shares are not kept. *Controlled*: as if one
//! generator put I/Os in the requested proportions into a short queue per volume and waited whenever one queue is full.
//! So proportions are kept per stream and volume, and the slowest volume limits all others. *Total*: a slot takes the
//! stream that is furthest behind over all volumes; a volume waits only when all of its streams are ahead.
//!
//! Workers share progress through relaxed counters that each of them publishes once per turn: there is no lock, and
//! nothing is shared per I/O.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// I/Os a volume (controlled) or stream (total) may run ahead. vdbench queues 2000 per storage device; a shorter queue
/// keeps the proportions in short runs too.
const WINDOW: f64 = 256.0;

/// Streams of one volume in smooth weighted turns: after any n selections each stream has had its share of n, to within
/// one.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    weights: Box<[f64]>,
    credits: Box<[f64]>,
}

impl Turns {
    /// With these weights (any positive scale).
    pub(crate) fn new(weights: Vec<f64>) -> Self {
        Self { credits: vec![0.0; weights.len()].into(), weights: weights.into() }
    }

    /// The next stream.
    pub(crate) fn pick(&mut self) -> Option<usize> {
        let mut total = 0.0;
        let mut best: Option<usize> = None;
        for (at, &weight) in self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            total += weight;
            self.credits[at] += weight;
            if best.is_none_or(|best| self.credits[at] > self.credits[best]) {
                best = Some(at);
            }
        }
        self.credits[best?] -= total;
        best
    }

    /// Adds a stream that was removed, with the turns of one among equals.
    pub(crate) fn enter(&mut self, at: usize) {
        (self.weights[at], self.credits[at]) = (1.0, 0.0);
    }

    /// Removes a stream.
    pub(crate) fn remove(&mut self, at: usize) {
        self.weights[at] = 0.0;
    }
}

/// Progress of parties (volumes or streams) that must keep proportions. Shared by all workers.
#[derive(Debug)]
pub(crate) struct Pace {
    parties: Box<[Party]>,
    workers: usize,
}

#[derive(Debug)]
struct Party {
    weight: f64,
    /// I/Os started, by worker.
    started: Box<[AtomicU64]>,
}

impl Pace {
    /// Parties with these weights.
    pub(crate) fn new(weights: &[f64], workers: usize) -> Self {
        let party = |&weight| Party { weight, started: (0..workers).map(|_| AtomicU64::new(0)).collect() };
        Self { parties: weights.iter().map(party).collect(), workers }
    }

    /// Publishes a worker's count for a party.
    pub(crate) fn publish(&self, party: usize, worker: usize, started: u64) {
        self.parties[party].started[worker].store(started, Relaxed);
    }

    /// Removes a party: it does not delay others any more.
    pub(crate) fn retire(&self, party: usize, worker: usize) {
        self.publish(party, worker, u64::MAX / (4 * self.workers as u64));
    }

    /// I/Os of a party per unit of weight.
    pub(crate) fn progress(&self, party: usize) -> f64 {
        let party = &self.parties[party];
        party.started.iter().map(|count| count.load(Relaxed)).sum::<u64>() as f64 / party.weight
    }

    /// How far any party may go now, in I/Os per unit of weight: the slowest one's progress and its window.
    pub(crate) fn limit(&self) -> f64 {
        (0..self.parties.len())
            .filter(|&party| self.parties[party].weight > 0.0)
            .map(|party| self.progress(party) + WINDOW / self.parties[party].weight)
            .fold(f64::INFINITY, f64::min)
    }
}

/// Share of every stream in percent: streams without one divide the rest evenly. `None` for streams with their own
/// rate.
pub(crate) fn resolve_shares(streams: &[(Option<f64>, bool)]) -> Vec<Option<f64>> {
    let given: f64 = streams.iter().filter_map(|stream| stream.0).sum();
    let open = streams.iter().filter(|(share, has_rate)| share.is_none() && !has_rate).count();
    let rest = (100.0 - given).max(0.0) / open.max(1) as f64;
    streams
        .iter()
        .map(|&(share, has_rate)| if has_rate { None } else { Some(share.unwrap_or(rest)) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Pace, Turns, WINDOW, resolve_shares};

    #[test]
    fn turns_keep_proportions_at_every_moment() {
        let weights = [67.0, 33.0, 0.0, 12.5];
        let mut turns = Turns::new(weights.to_vec());
        let mut counts = [0.0; 4];
        for n in 1..=5000 {
            counts[turns.pick().unwrap()] += 1.0;
            for (count, weight) in counts.iter().zip(weights) {
                let due = f64::from(n) * weight / 112.5;
                assert!((count - due).abs() <= 2.0, "after {n}: {count} instead of {due}");
            }
        }
        (0..4).for_each(|at| turns.remove(at));
        assert_eq!(turns.pick(), None);
    }

    #[test]
    fn the_slowest_party_sets_the_limit_until_it_retires() {
        let pace = Pace::new(&[10.0, 30.0, 0.0], 2);
        pace.publish(0, 0, 100);
        pace.publish(1, 0, 200);
        pace.publish(1, 1, 400);
        let is =
            |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
        is(pace.progress(1), 20.0);
        is(pace.limit(), (20.0 + WINDOW / 30.0).min(10.0 + WINDOW / 10.0));
        pace.retire(1, 0);
        is(pace.limit(), 10.0 + WINDOW / 10.0);
    }

    #[test]
    fn streams_without_a_share_divide_the_rest() {
        let shares = resolve_shares(&[(Some(40.0), false), (None, false), (None, true), (None, false)]);
        assert_eq!(shares, [Some(40.0), Some(30.0), None, Some(30.0)]);
    }
}
