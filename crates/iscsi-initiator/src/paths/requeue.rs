//! I/O that was lost with a session: what is sent again, when, and which I/O must wait for it.
//!
//! # The rule
//!
//! A lost session leaves commands behind. The target may have run them, may run them now, or may run them later, when
//! the network delivers delayed packets. They are sent again, over another path or over the same one after a new login,
//! while the older attempt may still be active. Reads and writes of blocks can be done twice without harm as long as no
//! attempt of a write overwrites a newer write:
//!
//! 1. *Every I/O of a device has a number, in the order of submission.* Lost I/Os are sent again in that order, each once
//!    for every loss of a session that had it in flight.
//! 2. *Nothing overtakes a retry.* A newer I/O whose blocks overlap those of a lost I/O, where one of the two writes,
//!    waits until the retry has ended. A flush counts as a read of every block.
//! 3. *No newer write while an old attempt is active.* A newer write whose blocks overlap those of a lost write also
//!    waits after the retry has ended, until the old attempt is dead at the target. (A newer read need not wait: the
//!    old attempt could only write again what the retry has written.)
//! 4. *An old attempt is dead* when its session is: another login under its ISID with TSIH 0 has been answered (session
//!    reinstatement, RFC 7143 6.3.5: the target ends the old session and its tasks first). Such a login works over any
//!    portal of the same portal group. A device with several paths makes it over a living path at once, and again over
//!    the path's own portal when that answers. Without such a login, an old attempt counts as dead after a stated time:
//!    `path_timeout_s`, in which TCP gives up what it could not deliver (`TCP_USER_TIMEOUT`), plus `command_timeout_s`,
//!    in which the target has run what it received or never will. For a device without a list of paths,
//!    `replacement_timeout_s` takes the place of `path_timeout_s`.
//! 5. *Waiting I/Os keep their order.* An I/O waits too if its blocks overlap those of an older waiting I/O and one of the
//!    two writes.
//! 6. *An I/O is not sent again after its failure was reported to the caller.*
//! 7. *The LUN must be the old one.* After every login the disk is probed, and the path carries no I/O before the
//!    answer: another disk, or one that shrank, gets none.
//!
//! An I/O has no older attempt if it was queued on the lost session but not sent, or if the target has refused or
//! aborted it. It only needs a path. This initiator does not send commands whose repetition has other effects, such as
//! COMPARE AND WRITE.

use crate::task::{Footprint, NewTask};
use linerate_io::Nanos;
use std::collections::BTreeMap;

/// One attempt that was in flight on a session that was lost.
#[derive(Debug)]
struct Attempt {
    order: u64,
    footprint: Footprint,
    path: usize,
    /// The I/O has ended since.
    retry_ended: bool,
    /// The target will not run this attempt any more.
    dead: bool,
    /// When it counts as dead.
    dead_at: Nanos,
}

impl Attempt {
    /// Whether an I/O of this number and footprint must wait for it.
    fn holds(&self, order: u64, footprint: &Footprint) -> bool {
        self.order < order
            && self.footprint.conflicts(footprint)
            && (!self.retry_ended || (!self.dead && footprint.changes))
    }

    fn is_over(&self) -> bool {
        self.retry_ended && (self.dead || !self.footprint.changes)
    }
}

/// The lost and the waiting I/Os of one device.
#[derive(Debug, Default)]
pub(crate) struct Requeue {
    attempts: Vec<Attempt>,
    /// By number: I/Os that cannot be sent now.
    waiting: BTreeMap<u64, NewTask>,
}

/// The blocks for which the order matters. A flush moves no data and counts as a read of every block.
fn blocks_of(task: &NewTask) -> Footprint {
    Footprint { changes: task.footprint.changes && task.len_bytes > 0, ..task.footprint }
}

impl Requeue {
    /// I/O may be sent without checking the rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.attempts.is_empty() && self.waiting.is_empty()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// An I/O that was in flight on `path` when its session was lost.
    pub(crate) fn lost_in_flight(&mut self, path: usize, mut task: NewTask, dead_at: Nanos) {
        let (order, footprint) = (task.order, blocks_of(&task));
        let dead = !footprint.changes;
        self.attempts.push(Attempt { order, footprint, path, retry_ended: false, dead, dead_at });
        task.requeued = true;
        self.waiting.insert(order, task);
    }

    /// An I/O that waits for a path, or for other I/O.
    pub(crate) fn wait(&mut self, task: NewTask) {
        self.waiting.insert(task.order, task);
    }

    /// Whether an I/O may be sent now.
    pub(crate) fn may_send(&self, task: &NewTask) -> bool {
        let footprint = blocks_of(task);
        let behind = |(_, older): (&u64, &NewTask)| blocks_of(older).conflicts(&footprint);
        !self.attempts.iter().any(|attempt| attempt.holds(task.order, &footprint))
            && !self.waiting.range(..task.order).any(behind)
    }

    /// The oldest waiting I/O from number `from` on that may be sent now.
    pub(crate) fn next(&mut self, from: u64) -> Option<NewTask> {
        let (&order, _) = self.waiting.range(from..).find(|(_, task)| self.may_send(task))?;
        self.waiting.remove(&order)
    }

    /// An I/O that was lost in flight has ended. Returns the paths that had lost it.
    pub(crate) fn retry_ended(&mut self, order: u64) -> Vec<usize> {
        let mut paths = Vec::new();
        for old in self.attempts.iter_mut().filter(|old| old.order == order) {
            old.retry_ended = true;
            paths.push(old.path);
        }
        self.attempts.retain(|old| !old.is_over());
        paths
    }

    /// The target has ended the session that `path` had.
    pub(crate) fn reinstated(&mut self, path: usize) {
        self.attempts.iter_mut().filter(|old| old.path == path).for_each(|old| old.dead = true);
        self.attempts.retain(|old| !old.is_over());
    }

    /// Old attempts whose time is over are dead. Returns the time of the next one.
    pub(crate) fn expire(&mut self, now: Nanos) -> Option<Nanos> {
        self.attempts.iter_mut().filter(|old| old.dead_at <= now).for_each(|old| old.dead = true);
        self.attempts.retain(|old| !old.is_over());
        self.attempts.iter().filter(|old| !old.dead).map(|old| old.dead_at).min()
    }

    /// The target may still run attempts of this path.
    pub(crate) fn may_run_on(&self, path: usize) -> bool {
        self.attempts.iter().any(|old| old.path == path && !old.dead)
    }

    /// Removes a waiting I/O: it will not be sent.
    pub(crate) fn withdraw(&mut self, order: u64) -> Option<NewTask> {
        let task = self.waiting.remove(&order)?;
        self.retry_ended(order);
        Some(task)
    }

    /// Removes every waiting I/O, oldest first.
    pub(crate) fn withdraw_all(&mut self) -> Vec<NewTask> {
        let withdrawn: Vec<NewTask> = std::mem::take(&mut self.waiting).into_values().collect();
        for task in &withdrawn {
            self.retry_ended(task.order);
        }
        withdrawn
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

    fn drain(requeue: &mut Requeue) -> Vec<u64> {
        std::iter::from_fn(|| requeue.next(0)).map(|task| task.order).collect()
    }

    #[test]
    fn the_oldest_goes_first_and_each_once() {
        let mut requeue = Requeue::default();
        for order in [7, 3, 5] {
            requeue.lost_in_flight(0, io(order, order * 8, order * 8 + 8, true), LATE);
        }
        requeue.wait(io(4, 100, 108, false));
        assert_eq!(drain(&mut requeue), [3, 4, 5, 7]);
        assert_eq!(drain(&mut requeue), [0_u64; 0]);
    }

    #[test]
    fn a_newer_write_waits_for_the_retry_and_then_for_the_reinstatement() {
        let mut requeue = Requeue::default();
        requeue.lost_in_flight(1, io(3, 0, 8, true), LATE);
        let (write, read) = (io(9, 4, 12, true), io(9, 4, 12, false));
        let free = |requeue: &Requeue, task: &NewTask| requeue.may_send(task);
        assert_eq!(drain(&mut requeue), [3], "the retry itself waits for nothing");
        assert!(!free(&requeue, &write) && !free(&requeue, &read), "it has not ended");
        assert!(free(&requeue, &io(2, 0, 8, true)), "an older I/O waits for nothing newer");
        assert!(free(&requeue, &io(9, 8, 16, true)), "other blocks");
        assert_eq!(requeue.retry_ended(3), [1]);
        assert!(!free(&requeue, &write), "the old attempt may still come");
        assert!(free(&requeue, &read));
        assert!(requeue.may_run_on(1) && !requeue.may_run_on(0));
        requeue.reinstated(0);
        assert!(!free(&requeue, &write), "another path's session does not matter");
        requeue.reinstated(1);
        assert!(free(&requeue, &write) && requeue.is_empty());
    }

    #[test]
    fn after_a_reinstatement_still_nothing_overtakes_the_retry() {
        let mut requeue = Requeue::default();
        requeue.lost_in_flight(0, io(1, 0, 8, true), LATE);
        requeue.reinstated(0);
        drain(&mut requeue);
        assert!(!requeue.may_send(&io(2, 0, 8, true)));
        requeue.retry_ended(1);
        assert!(requeue.is_empty());
    }

    #[test]
    fn without_a_reinstatement_the_stated_time_ends_it() {
        let mut requeue = Requeue::default();
        requeue.lost_in_flight(0, io(1, 0, 8, true), LATE);
        drain(&mut requeue);
        requeue.retry_ended(1);
        assert_eq!(requeue.expire(LATE - 1), Some(LATE));
        assert!(!requeue.may_send(&io(2, 0, 8, true)));
        assert_eq!(requeue.expire(LATE), None);
        assert!(requeue.is_empty());
    }

    #[test]
    fn two_losses_of_one_write_leave_two_old_attempts() {
        let mut requeue = Requeue::default();
        requeue.lost_in_flight(0, io(1, 0, 8, true), LATE);
        let again = requeue.next(0).unwrap();
        assert!(again.requeued);
        requeue.lost_in_flight(1, again, LATE);
        drain(&mut requeue);
        requeue.reinstated(0);
        assert_eq!(requeue.retry_ended(1), [0, 1]);
        assert!(!requeue.may_send(&io(2, 0, 8, true)));
        requeue.reinstated(1);
        assert!(requeue.is_empty());
    }

    #[test]
    fn waiting_ios_keep_their_order_where_they_overlap() {
        let mut requeue = Requeue::default();
        requeue.lost_in_flight(0, io(1, 0, 8, true), LATE);
        requeue.next(0).unwrap();
        requeue.wait(io(2, 4, 20, true));
        assert!(!requeue.may_send(&io(3, 16, 24, false)), "it is behind one that waits");
        assert!(requeue.may_send(&io(3, 24, 32, true)));
        requeue.wait(io(3, 16, 24, false));
        requeue.retry_ended(1);
        requeue.reinstated(0);
        assert_eq!(drain(&mut requeue), [2, 3]);
    }

    #[test]
    fn a_newer_write_waits_for_a_lost_read_but_not_for_its_session() {
        let mut requeue = Requeue::default();
        requeue.lost_in_flight(0, io(1, 0, 8, false), LATE);
        drain(&mut requeue);
        assert!(!requeue.may_run_on(0), "an old read does no harm");
        assert!(!requeue.may_send(&io(2, 0, 8, true)) && requeue.may_send(&io(2, 0, 8, false)));
        assert_eq!(requeue.retry_ended(1), [0]);
        assert!(requeue.is_empty());
    }

    #[test]
    fn a_flush_counts_as_a_read_of_every_block() {
        let flush = |order| NewTask { len_bytes: 0, footprint: Footprint::ALL, ..io(order, 0, 0, true) };
        let mut requeue = Requeue::default();
        requeue.lost_in_flight(0, io(1, 0, 8, true), LATE);
        requeue.lost_in_flight(0, flush(2), LATE);
        assert_eq!(drain(&mut requeue), [1], "the flush waits for the retry of the write");
        requeue.retry_ended(1);
        assert_eq!(drain(&mut requeue), [2], "and not for the end of its session");
        assert!(requeue.may_send(&flush(3)) && !requeue.may_send(&io(4, 8, 16, true)));
        requeue.retry_ended(2);
        assert!(
            requeue.may_send(&io(4, 8, 16, true)) && requeue.may_run_on(0),
            "the write's session remains"
        );
    }

    #[test]
    fn a_withdrawn_io_is_not_sent_and_its_old_attempt_counts() {
        let mut requeue = Requeue::default();
        requeue.lost_in_flight(0, io(1, 0, 8, true), LATE);
        assert_eq!(requeue.withdraw(1).map(|task| task.order), Some(1));
        assert!(requeue.withdraw(1).is_none() && drain(&mut requeue).is_empty());
        assert!(!requeue.may_send(&io(2, 0, 8, true)) && requeue.may_send(&io(2, 0, 8, false)));
        requeue.reinstated(0);
        assert!(requeue.is_empty());
    }
}
