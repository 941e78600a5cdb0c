//! I/O that lost its path: what is sent again, when, and what must wait for it.
//!
//! # The rule
//!
//! A path that fails leaves commands behind of which nobody knows whether the target ran them, runs them now or will
//! run them when the network hands over what it still holds. They are sent again over another path, and the older try
//! may be alive meanwhile. Reads and writes of blocks can be done twice without harm as long as no try of a write comes
//! to rest on top of a newer write:
//!
//! 1. *Every I/O of a device has a number, in the order of submission.* Displaced I/Os are sent again in that order, each
//!    once for every failure of a path that had it in flight.
//! 2. *Nothing overtakes a retry.* A newer I/O whose blocks overlap those of a displaced write waits until the retry has
//!    ended.
//! 3. *Nothing newer is written under an old try.* A newer write whose blocks overlap those of a displaced write waits
//!    also after the retry has ended, until the old try is known to be dead at the target. (A newer read need not: the
//!    old try could only write again what the retry has written.)
//! 4. *An old try is dead* when its session is: another login under its ISID with TSIH 0 has been answered (session
//!    reinstatement, RFC 7143 6.3.5: the target ends the old session and its tasks first). Such a login works over any
//!    portal of the same portal group, so it is made over a living path at once, and again over the path's own portal when
//!    that answers. If neither is to be had, an old try counts as dead after a stated time: `path_timeout_s`, in which
//!    TCP gives up what it could not deliver (`TCP_USER_TIMEOUT`), plus `command_timeout_s`, in which the target has run
//!    what it did get or never will.
//! 5. *What waits keeps its order.* An I/O whose blocks overlap those of an older one that waits, where one of the two
//!    writes, waits too.
//!
//! An I/O that was queued on the failed path but not sent, or that the target has refused or aborted, has no older try
//! and only needs another path. A flush waits for nothing and nothing waits for it: it concerns writes that have ended,
//! and its old try harms nobody. Commands of which two tries do more than one, such as COMPARE AND WRITE, are not sent by
//! this initiator.

use crate::task::{Footprint, NewTask};
use linerate_io::Nanos;
use std::collections::BTreeMap;

/// One try that was in flight on a path that failed.
#[derive(Debug)]
struct Try {
    order: u64,
    footprint: Footprint,
    path: usize,
    /// The I/O has ended since.
    retry_ended: bool,
    /// The target will not run this try any more.
    dead: bool,
    /// When it counts as dead.
    dead_at: Nanos,
}

impl Try {
    /// An I/O of this number and footprint must wait for it.
    fn holds(&self, order: u64, footprint: &Footprint) -> bool {
        self.order < order
            && self.footprint.changes
            && self.footprint.conflicts(footprint)
            && (!self.retry_ended || (!self.dead && footprint.changes))
    }

    fn is_over(&self) -> bool {
        self.retry_ended && (self.dead || !self.footprint.changes)
    }
}

/// The displaced and the waiting I/Os of one device.
#[derive(Debug, Default)]
pub(crate) struct Displaced {
    tries: Vec<Try>,
    /// By number: I/Os that cannot be sent now.
    waiting: BTreeMap<u64, NewTask>,
}

/// The blocks whose order matters: none for an I/O that moves no data.
fn blocks_of(task: &NewTask) -> Footprint {
    if task.len_bytes > 0 { task.footprint } else { Footprint::default() }
}

impl Displaced {
    /// I/O may go its way unexamined.
    pub(crate) fn is_empty(&self) -> bool {
        self.tries.is_empty() && self.waiting.is_empty()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// An I/O that was in flight on `path` when that failed.
    pub(crate) fn displace(&mut self, path: usize, mut task: NewTask, dead_at: Nanos) {
        let (order, footprint) = (task.order, blocks_of(&task));
        let dead = !footprint.changes;
        self.tries.push(Try { order, footprint, path, retry_ended: false, dead, dead_at });
        task.displaced = true;
        self.waiting.insert(order, task);
    }

    /// An I/O that waits for a path, or for others.
    pub(crate) fn wait(&mut self, task: NewTask) {
        self.waiting.insert(task.order, task);
    }

    /// Whether an I/O may be sent now.
    pub(crate) fn lets_go(&self, task: &NewTask) -> bool {
        let footprint = blocks_of(task);
        let behind = |(_, older): (&u64, &NewTask)| blocks_of(older).conflicts(&footprint);
        !self.tries.iter().any(|old| old.holds(task.order, &footprint))
            && !self.waiting.range(..task.order).any(behind)
    }

    /// The oldest waiting I/O from number `from` on that may be sent now.
    pub(crate) fn next(&mut self, from: u64) -> Option<NewTask> {
        let (&order, _) = self.waiting.range(from..).find(|(_, task)| self.lets_go(task))?;
        self.waiting.remove(&order)
    }

    /// An I/O that had been displaced has ended. Gives the paths whose failure it had survived.
    pub(crate) fn ended(&mut self, order: u64) -> Vec<usize> {
        let mut paths = Vec::new();
        for old in self.tries.iter_mut().filter(|old| old.order == order) {
            old.retry_ended = true;
            paths.push(old.path);
        }
        self.tries.retain(|old| !old.is_over());
        paths
    }

    /// The target has ended the session that `path` had.
    pub(crate) fn fenced(&mut self, path: usize) {
        self.tries.iter_mut().filter(|old| old.path == path).for_each(|old| old.dead = true);
        self.tries.retain(|old| !old.is_over());
    }

    /// Old tries that have outlived their time are dead. Gives when the next one will be.
    pub(crate) fn expire(&mut self, now: Nanos) -> Option<Nanos> {
        self.tries.iter_mut().filter(|old| old.dead_at <= now).for_each(|old| old.dead = true);
        self.tries.retain(|old| !old.is_over());
        self.tries.iter().filter(|old| !old.dead).map(|old| old.dead_at).min()
    }

    /// Tries of this path may be alive at the target.
    pub(crate) fn needs_fence(&self, path: usize) -> bool {
        self.tries.iter().any(|old| old.path == path && !old.dead)
    }

    /// Takes out everything that waits, oldest first; nobody will send it.
    pub(crate) fn give_up(&mut self) -> Vec<NewTask> {
        let given_up: Vec<NewTask> = std::mem::take(&mut self.waiting).into_values().collect();
        for task in &given_up {
            self.ended(task.order);
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Owner;

    const LATE: Nanos = 1_000;

    fn io(order: u64, start: u64, end: u64, changes: bool) -> NewTask {
        let owner = Owner::Io { device: 0, slot: order as u32 };
        NewTask {
            order,
            footprint: Footprint { start, end, changes },
            len_bytes: 1,
            ..NewTask::control(owner)
        }
    }

    fn drain(displaced: &mut Displaced) -> Vec<u64> {
        std::iter::from_fn(|| displaced.next(0)).map(|task| task.order).collect()
    }

    #[test]
    fn the_oldest_goes_first_and_each_once() {
        let mut displaced = Displaced::default();
        for order in [7, 3, 5] {
            displaced.displace(0, io(order, order * 8, order * 8 + 8, true), LATE);
        }
        displaced.wait(io(4, 100, 108, false));
        assert_eq!(drain(&mut displaced), [3, 4, 5, 7]);
        assert_eq!(drain(&mut displaced), [0_u64; 0]);
    }

    #[test]
    fn a_newer_write_waits_for_the_retry_and_then_for_the_fence() {
        let mut displaced = Displaced::default();
        displaced.displace(1, io(3, 0, 8, true), LATE);
        let (write, read) = (io(9, 4, 12, true), io(9, 4, 12, false));
        let free = |displaced: &Displaced, task: &NewTask| displaced.lets_go(task);
        assert_eq!(drain(&mut displaced), [3], "the retry itself waits for nothing");
        assert!(!free(&displaced, &write) && !free(&displaced, &read), "it has not ended");
        assert!(free(&displaced, &io(2, 0, 8, true)), "an older I/O waits for nothing newer");
        assert!(free(&displaced, &io(9, 8, 16, true)), "other blocks");
        assert_eq!(displaced.ended(3), [1]);
        assert!(!free(&displaced, &write), "the old try may still come");
        assert!(free(&displaced, &read));
        assert!(displaced.needs_fence(1) && !displaced.needs_fence(0));
        displaced.fenced(0);
        assert!(!free(&displaced, &write), "another path's session is no matter");
        displaced.fenced(1);
        assert!(free(&displaced, &write) && displaced.is_empty());
    }

    #[test]
    fn a_fence_alone_does_not_let_anything_overtake_the_retry() {
        let mut displaced = Displaced::default();
        displaced.displace(0, io(1, 0, 8, true), LATE);
        displaced.fenced(0);
        drain(&mut displaced);
        assert!(!displaced.lets_go(&io(2, 0, 8, true)));
        displaced.ended(1);
        assert!(displaced.is_empty());
    }

    #[test]
    fn without_a_fence_the_stated_time_ends_it() {
        let mut displaced = Displaced::default();
        displaced.displace(0, io(1, 0, 8, true), LATE);
        drain(&mut displaced);
        displaced.ended(1);
        assert_eq!(displaced.expire(LATE - 1), Some(LATE));
        assert!(!displaced.lets_go(&io(2, 0, 8, true)));
        assert_eq!(displaced.expire(LATE), None);
        assert!(displaced.is_empty());
    }

    #[test]
    fn two_failures_of_one_write_leave_two_old_tries() {
        let mut displaced = Displaced::default();
        displaced.displace(0, io(1, 0, 8, true), LATE);
        let again = displaced.next(0).unwrap();
        assert!(again.displaced);
        displaced.displace(1, again, LATE);
        drain(&mut displaced);
        displaced.fenced(0);
        assert_eq!(displaced.ended(1), [0, 1]);
        assert!(!displaced.lets_go(&io(2, 0, 8, true)));
        displaced.fenced(1);
        assert!(displaced.is_empty());
    }

    #[test]
    fn what_waits_keeps_its_order_where_it_overlaps() {
        let mut displaced = Displaced::default();
        displaced.displace(0, io(1, 0, 8, true), LATE);
        displaced.next(0).unwrap();
        displaced.wait(io(2, 4, 20, true));
        assert!(!displaced.lets_go(&io(3, 16, 24, false)), "behind one that waits");
        assert!(displaced.lets_go(&io(3, 24, 32, true)));
        displaced.wait(io(3, 16, 24, false));
        displaced.ended(1);
        displaced.fenced(0);
        assert_eq!(drain(&mut displaced), [2, 3]);
    }

    #[test]
    fn displaced_reads_need_no_fence() {
        let mut displaced = Displaced::default();
        displaced.displace(0, io(1, 0, 8, false), LATE);
        drain(&mut displaced);
        assert!(!displaced.needs_fence(0) && displaced.lets_go(&io(2, 0, 8, true)));
        assert_eq!(displaced.ended(1), [0]);
        assert!(displaced.is_empty());
    }

    #[test]
    fn a_flush_waits_for_nothing_and_nothing_waits_for_it() {
        let flush = |order| NewTask { len_bytes: 0, footprint: Footprint::ALL, ..io(order, 0, 0, true) };
        let mut displaced = Displaced::default();
        displaced.displace(0, io(1, 0, 8, true), LATE);
        displaced.displace(0, flush(2), LATE);
        assert_eq!(drain(&mut displaced), [1, 2]);
        assert!(displaced.lets_go(&flush(3)) && displaced.lets_go(&io(4, 8, 16, true)));
        displaced.ended(2);
        assert!(displaced.needs_fence(0), "for the write");
    }
}
