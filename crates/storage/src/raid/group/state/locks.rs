//! Locks by number, shared or exclusive, in the order of requests: between stripes, and between a group's writers and a
//! change of its members. A guard holds a lock. A waiter that was dropped is skipped.

use futures::channel::oneshot;
use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    future::Future,
    rc::Rc,
};

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Hold {
    Shared,
    Exclusive,
}

/// Locks that are held now.
#[derive(Default)]
pub(in super::super) struct Locks {
    locks: RefCell<HashMap<u64, Lock>>,
}

#[derive(Default)]
struct Lock {
    shared: usize,
    exclusive: bool,
    queue: VecDeque<(Hold, oneshot::Sender<Guard>)>,
}

/// Releases the lock when it is dropped.
pub(in super::super) struct Guard {
    locks: Rc<Locks>,
    key: u64,
    hold: Hold,
}

impl Locks {
    /// Takes lock `key`, or a place in its queue, at once; only the future waits.
    pub(in super::super) fn take(
        self: &Rc<Self>,
        key: u64,
        hold: Hold,
    ) -> impl Future<Output = Guard> + use<> {
        let mut locks = self.locks.borrow_mut();
        let lock = locks.entry(key).or_default();
        let taken = if lock.queue.is_empty() && lock.admits(hold) {
            lock.enter(hold);
            Ok(Guard { locks: Rc::clone(self), key, hold })
        } else {
            let (sender, receiver) = oneshot::channel();
            lock.queue.push_back((hold, sender));
            Err(receiver)
        };
        async move {
            match taken {
                Ok(guard) => guard,
                Err(receiver) => receiver.await.expect("a lock outlives its queue"),
            }
        }
    }

    /// Whether a lock could be taken now.
    pub(in super::super) fn is_free(&self, key: u64, hold: Hold) -> bool {
        self.locks.borrow().get(&key).is_none_or(|lock| lock.queue.is_empty() && lock.admits(hold))
    }

    fn release(self: &Rc<Self>, key: u64, hold: Hold) {
        let mut granted = Vec::new();
        {
            let mut locks = self.locks.borrow_mut();
            let Some(lock) = locks.get_mut(&key) else {
                unreachable!("a lock that is held is in the table");
            };
            match hold {
                Hold::Shared => lock.shared -= 1,
                Hold::Exclusive => lock.exclusive = false,
            }
            while let Some((hold, sender)) = lock.next() {
                lock.enter(hold);
                granted.push((hold, sender));
            }
            if lock.shared == 0 && !lock.exclusive && lock.queue.is_empty() {
                locks.remove(&key);
            }
        }
        for (hold, sender) in granted {
            // A dropped waiter returns its guard, which releases the lock again.
            drop(sender.send(Guard { locks: Rc::clone(self), key, hold }));
        }
    }
}

impl Lock {
    fn admits(&self, hold: Hold) -> bool {
        !self.exclusive && (hold == Hold::Shared || self.shared == 0)
    }

    fn enter(&mut self, hold: Hold) {
        match hold {
            Hold::Shared => self.shared += 1,
            Hold::Exclusive => self.exclusive = true,
        }
    }

    /// The first in the queue, if it can have the lock now.
    fn next(&mut self) -> Option<(Hold, oneshot::Sender<Guard>)> {
        let (hold, _) = self.queue.front()?;
        if self.admits(*hold) { self.queue.pop_front() } else { None }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.locks.release(self.key, self.hold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn writers_wait_for_readers_and_later_readers_for_writers() {
        let locks = Rc::new(Locks::default());
        let first = locks.take(7, Hold::Shared).now_or_never().unwrap();
        let second = locks.take(7, Hold::Shared).now_or_never().unwrap();
        let mut writer = Box::pin(locks.take(7, Hold::Exclusive));
        let mut late = Box::pin(locks.take(7, Hold::Shared));
        assert!(locks.take(8, Hold::Exclusive).now_or_never().is_some());
        drop(first);
        assert!((&mut writer).now_or_never().is_none());
        drop(second);
        let writing = (&mut writer).now_or_never().unwrap();
        assert!((&mut late).now_or_never().is_none());
        drop(writing);
        assert!((&mut late).now_or_never().is_some());
        assert!(locks.locks.borrow().is_empty());
    }

    #[test]
    fn a_waiter_that_goes_away_is_skipped() {
        let locks = Rc::new(Locks::default());
        let held = locks.take(0, Hold::Exclusive).now_or_never().unwrap();
        let gone = locks.take(0, Hold::Exclusive);
        let mut next = Box::pin(locks.take(0, Hold::Exclusive));
        drop(gone);
        drop(held);
        assert!((&mut next).now_or_never().is_some());
        assert!(locks.locks.borrow().is_empty());
    }
}
