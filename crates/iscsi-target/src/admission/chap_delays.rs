//! CHAP responses after wrong ones: the next response of the same peer is delayed, and the delays grow.
//!
//! Right and wrong responses are delayed alike. Otherwise a peer with many connections could recognise a right guess by
//! a fast answer, and a wrong guess by a missing one. Responses are counted in **buckets**; one bucket does not wait
//! for another:
//!
//! - All responses of a peer share one bucket, under all names: many connections are no faster than one.
//! - An initiator that has proved itself to a target from this peer before has its own bucket for that target. Neither a
//!   neighbour behind the same address nor a mistake in another login of the same host delays it.
//!
//! Wrong responses under one initiator name also lengthen the waits of all buckets that have failed. A bucket that has
//! not failed never waits, so guessing delays no other address.

use super::{Peer, Ticket};
use linerate_io::Nanos;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque, hash_map::Entry};

/// The first wait.
const FIRST_NS: Nanos = 500_000_000;
/// The longest one: less than initiators wait for an answer.
const LONGEST_NS: Nanos = 4_000_000_000;
/// A bucket or name without a failure for this time is reset.
const FORGET_NS: Nanos = 300_000_000_000;
/// Limit of the buckets, and of the names; above it, those with the oldest last failure are removed.
const KEPT: usize = 4096;
/// Limit of the separate buckets for initiators of one peer.
const PROVED_PER_PEER: usize = 16;

/// The initiator of a login, and its target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChapIdentity {
    pub(crate) peer: Peer,
    pub(crate) initiator: String,
    pub(crate) target: String,
}

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Bucket {
    Peer(Peer),
    Proved(ChapIdentity),
}

/// A connection with a CHAP response.
#[derive(Clone, Debug)]
pub(crate) struct ChapAttempt {
    identity: ChapIdentity,
    bucket: Bucket,
    ticket: Ticket,
}

/// Whether a response may be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChapCheck {
    Now,
    /// Ask again at this time, or when told.
    Later(Nanos),
}

/// The failures of a bucket or a name.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last: Nanos,
    closed_until: Nanos,
    /// Connections with a waiting response, the oldest first.
    waiting: BTreeSet<Ticket>,
}

impl Failures {
    fn is_over(&self, now: Nanos) -> bool {
        self.waiting.is_empty() && now.saturating_sub(self.last) > FORGET_NS
    }

    fn add(&mut self, now: Nanos) {
        if self.is_over(now) {
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.last = now;
    }
}

/// See the module text.
#[derive(Debug, Default)]
pub(crate) struct ChapDelays {
    buckets: HashMap<Bucket, Failures>,
    names: HashMap<String, Failures>,
    proved: HashSet<ChapIdentity>,
    /// In the order of their first success.
    proved_order: VecDeque<ChapIdentity>,
}

impl ChapDelays {
    /// A connection begins CHAP.
    pub(crate) fn attempt(&self, identity: ChapIdentity, ticket: Ticket) -> ChapAttempt {
        let bucket = if self.proved.contains(&identity) {
            Bucket::Proved(identity.clone())
        } else {
            Bucket::Peer(identity.peer)
        };
        ChapAttempt { identity, bucket, ticket }
    }

    /// Requests the turn of a response that has arrived.
    pub(crate) fn ask(&mut self, attempt: &ChapAttempt, now: Nanos) -> ChapCheck {
        // No failure so far: no delay.
        let Some(failures) = self.buckets.get_mut(&attempt.bucket) else { return ChapCheck::Now };
        let is_first = failures.waiting.first().is_none_or(|first| attempt.ticket <= *first);
        if now >= failures.closed_until && is_first {
            failures.waiting.remove(&attempt.ticket);
            return ChapCheck::Now;
        }
        failures.waiting.insert(attempt.ticket);
        ChapCheck::Later(failures.closed_until.max(now))
    }

    /// A connection with a waiting response has closed. Returns the connection that may be next.
    pub(crate) fn leave(&mut self, attempt: &ChapAttempt) -> Option<Ticket> {
        let failures = self.buckets.get_mut(&attempt.bucket)?;
        failures.waiting.remove(&attempt.ticket);
        failures.waiting.first().copied()
    }

    /// The response was wrong. Returns when to answer.
    pub(crate) fn failed(&mut self, attempt: &ChapAttempt, now: Nanos) -> Nanos {
        let name = kept(&mut self.names, attempt.identity.initiator.clone(), now);
        name.add(now);
        let by_name = name.count;
        let failures = kept(&mut self.buckets, attempt.bucket.clone(), now);
        failures.add(now);
        let doublings = failures.count.max(by_name).saturating_sub(1).min(16);
        failures.closed_until = now + (FIRST_NS << doublings).min(LONGEST_NS);
        failures.closed_until
    }

    /// The response was right. Returns the connection that is next.
    pub(crate) fn succeeded(&mut self, attempt: &ChapAttempt) -> Option<Ticket> {
        let next = self.buckets.get(&attempt.bucket).and_then(|failures| failures.waiting.first().copied());
        if matches!(attempt.bucket, Bucket::Proved(_)) {
            if next.is_none() {
                self.buckets.remove(&attempt.bucket);
            }
        } else {
            self.remember(&attempt.identity);
        }
        next
    }

    fn remember(&mut self, identity: &ChapIdentity) {
        let of_peer = self.proved.iter().filter(|other| other.peer == identity.peer).count();
        if of_peer >= PROVED_PER_PEER || !self.proved.insert(identity.clone()) {
            return;
        }
        self.proved_order.push_back(identity.clone());
        if self.proved_order.len() > KEPT
            && let Some(first) = self.proved_order.pop_front()
        {
            self.proved.remove(&first);
        }
    }
}

/// The failures of a bucket or name, which are recorded from now on.
fn kept<K: Clone + Eq + std::hash::Hash>(
    all: &mut HashMap<K, Failures>,
    key: K,
    now: Nanos,
) -> &mut Failures {
    if all.len() >= KEPT && !all.contains_key(&key) {
        all.retain(|_, failures| !failures.is_over(now));
        let idle = all.iter().filter(|(_, failures)| failures.waiting.is_empty());
        let oldest = idle.min_by_key(|(_, failures)| failures.last).map(|(key, _)| key.clone());
        if all.len() >= KEPT
            && let Some(oldest) = oldest
        {
            all.remove(&oldest);
        }
    }
    match all.entry(key) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(Failures::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::{ChapCheck, ChapDelays, ChapIdentity, KEPT, LONGEST_NS, PROVED_PER_PEER, Peer};
    use linerate_io::Nanos;

    const S: Nanos = 1_000_000_000;

    fn identity(last: u8, initiator: &str) -> ChapIdentity {
        let peer = Peer::of([192, 0, 2, last].into());
        ChapIdentity { peer, initiator: initiator.into(), target: "t".into() }
    }

    /// How many wrong responses are checked in a time, when many connections send them without a pause.
    fn judged(chap_delays: &mut ChapDelays, identity: impl Fn(u64) -> ChapIdentity, until: Nanos) -> u32 {
        let mut count = 0;
        for (ticket, now) in (0..until).step_by(1_000_000).enumerate() {
            let attempt = chap_delays.attempt(identity(ticket as u64), ticket as u64);
            if chap_delays.ask(&attempt, now) == ChapCheck::Now {
                chap_delays.failed(&attempt, now);
                count += 1;
            } else {
                // The initiator gives up, and returns with another connection.
                chap_delays.leave(&attempt);
            }
        }
        count
    }

    fn turn(chap_delays: &mut ChapDelays, identity: ChapIdentity, ticket: u64, now: Nanos) -> ChapCheck {
        let attempt = chap_delays.attempt(identity, ticket);
        chap_delays.ask(&attempt, now)
    }

    fn proved(chap_delays: &mut ChapDelays, identity: ChapIdentity) {
        let attempt = chap_delays.attempt(identity, 0);
        chap_delays.succeeded(&attempt);
    }

    #[test]
    fn many_connections_and_names_guess_no_faster_than_one() {
        assert_eq!(judged(&mut ChapDelays::default(), |_| identity(1, "a"), 10 * S), 5);
        let names = |ticket: u64| identity(1, &format!("a{ticket}"));
        assert_eq!(judged(&mut ChapDelays::default(), names, 10 * S), 5);
    }

    #[test]
    fn guessing_delays_no_other_address() {
        let mut chap_delays = ChapDelays::default();
        judged(&mut chap_delays, |ticket| identity((ticket % 200) as u8 + 50, "victim"), 10 * S);
        let honest = chap_delays.attempt(identity(1, "victim"), 1);
        assert_eq!(chap_delays.ask(&honest, 10 * S), ChapCheck::Now);
        let told = chap_delays.failed(&honest, 10 * S);
        assert_eq!(
            told,
            10 * S + LONGEST_NS,
            "one that fails, too, waits as long as those who guess the name"
        );
    }

    #[test]
    fn an_initiator_that_proved_itself_has_its_own_bucket() {
        let mut chap_delays = ChapDelays::default();
        proved(&mut chap_delays, identity(1, "honest"));
        judged(&mut chap_delays, |_| identity(1, "guessing"), 10 * S);
        assert_eq!(turn(&mut chap_delays, identity(1, "honest"), 7, 10 * S), ChapCheck::Now);
        assert_ne!(turn(&mut chap_delays, identity(1, "stranger"), 8, 10 * S), ChapCheck::Now);
        assert!(
            judged(&mut chap_delays, |_| identity(1, "honest"), 10 * S) <= 5,
            "and guesses there no faster"
        );
    }

    #[test]
    fn responses_that_wait_are_judged_in_order_and_right_ones_at_once() {
        let mut chap_delays = ChapDelays::default();
        let attempts = [0, 3, 4, 5].map(|ticket| chap_delays.attempt(identity(1, "a"), ticket));
        let told = chap_delays.failed(&attempts[0], 0);
        for attempt in &attempts[1..] {
            assert_eq!(chap_delays.ask(attempt, 0), ChapCheck::Later(told));
        }
        assert_eq!(chap_delays.ask(&attempts[2], told), ChapCheck::Later(told), "3 was here before");
        assert_eq!(chap_delays.ask(&attempts[1], told), ChapCheck::Now);
        assert_eq!(chap_delays.leave(&attempts[1]), Some(4));
        assert_eq!(chap_delays.ask(&attempts[2], told), ChapCheck::Now);
        assert_eq!(chap_delays.succeeded(&attempts[2]), Some(5));
        assert_eq!(
            chap_delays.ask(&attempts[3], told),
            ChapCheck::Now,
            "though it has its own bucket by now"
        );
        assert_eq!(
            turn(&mut chap_delays, identity(1, "b"), 9, told),
            ChapCheck::Now,
            "nothing waits any more"
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut chap_delays = ChapDelays::default();
        for number in 0..3 * KEPT as u32 {
            let [_, a, b, c] = number.to_be_bytes();
            let identity =
                ChapIdentity { peer: Peer::of([10, a, b, c].into()), ..identity(1, &format!("n{number}")) };
            let attempt = chap_delays.attempt(identity.clone(), 0);
            chap_delays.failed(&attempt, u64::from(number));
            proved(&mut chap_delays, identity);
        }
        assert!(
            chap_delays.buckets.len() <= KEPT
                && chap_delays.names.len() <= KEPT
                && chap_delays.proved.len() <= KEPT
        );
        let mut chap_delays = ChapDelays::default();
        (0..100).for_each(|number| proved(&mut chap_delays, identity(1, &format!("n{number}"))));
        assert_eq!(chap_delays.proved.len(), PROVED_PER_PEER);
    }
}
