//! A value that several threads use in turn although it was made for one.
//!
//! Its parts may be shared among each other by `Rc` and changed through `Cell`. That is sound as long as one thread at a
//! time is inside, and no part comes out. The types see to it: what goes in and what comes out is `Send`, the only
//! exception being a driver of this crate, which has no place for such a part. One way out is left that no type can
//! close: a value must not put parts of itself into thread-local storage.

use crate::{Driver, EpollDriver, UringDriver};
use std::{
    fmt, hint,
    sync::{
        LockResult, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// How often a guest looks whether another one has left: for a few microseconds, which most visits take.
const SPINS: u32 = 64;

/// A value with an owner, a thread that runs its work, and guests: threads that do a short piece of work themselves
/// while the owner sleeps. Empty at first.
pub struct Lent<T> {
    inside: Mutex<Option<Inside<T>>>,
    /// The owner waits for its turn: guests let it pass.
    is_wanted: AtomicBool,
}

struct Inside<T>(T);

// SAFETY: all parts of the value are inside the mutex, so one thread at a time uses them; see the module text.
unsafe impl<T> Send for Inside<T> {}

/// A driver of this crate.
pub trait KernelDriver: Driver + sealed::Sealed {}

impl KernelDriver for UringDriver {}
impl KernelDriver for EpollDriver {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::UringDriver {}
    impl Sealed for crate::EpollDriver {}
}

impl<T> Default for Lent<T> {
    fn default() -> Self {
        Self { inside: Mutex::default(), is_wanted: AtomicBool::new(false) }
    }
}

impl<T> Lent<T> {
    /// Puts a value in, which is made inside.
    pub fn fill(&self, make: impl FnOnce() -> T + Send) {
        let mut inside = self.lock().unwrap_or_else(PoisonError::into_inner);
        *inside = Some(Inside(make()));
    }

    /// Drops the value, if there is one.
    pub fn clear(&self) {
        let mut inside = self.lock().unwrap_or_else(PoisonError::into_inner);
        *inside = None;
    }

    /// The owner's turn, with its driver. Waits for a guest. None: there is no value, or a thread panicked inside.
    pub fn own<D: KernelDriver, R: Send>(
        &self,
        driver: &mut D,
        act: impl FnOnce(&mut T, &mut D) -> R + Send,
    ) -> Option<R> {
        let mut inside = self.lock().ok()?;
        inside.as_mut().map(|Inside(value)| act(value, driver))
    }

    /// A guest's turn. It waits a moment for another guest. None: another thread is inside for longer, or the owner waits
    /// for its turn, or there is no value.
    pub fn visit<R: Send>(&self, act: impl FnOnce(&mut T) -> R + Send) -> Option<R> {
        for _ in 0..SPINS {
            if self.is_wanted.load(Relaxed) {
                return None;
            }
            match self.inside.try_lock() {
                Ok(mut inside) => return inside.as_mut().map(|Inside(value)| act(value)),
                Err(TryLockError::Poisoned(_)) => return None,
                Err(TryLockError::WouldBlock) => hint::spin_loop(),
            }
        }
        None
    }

    fn lock(&self) -> LockResult<MutexGuard<'_, Option<Inside<T>>>> {
        self.is_wanted.store(true, Relaxed);
        let inside = self.inside.lock();
        self.is_wanted.store(false, Relaxed);
        inside
    }
}

impl<T> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EpollDriver;
    use std::{cell::Cell, rc::Rc, sync::Barrier, thread};

    /// A counter and a second way to it.
    type Counter = (Rc<Cell<u64>>, Rc<Cell<u64>>);

    fn counter() -> Counter {
        let counter = Rc::new(Cell::new(0));
        (Rc::clone(&counter), counter)
    }

    fn increment((one, other): &mut Counter) -> u64 {
        let kept = Rc::clone(one);
        one.set(other.get() + 1);
        kept.get()
    }

    #[test]
    fn one_thread_at_a_time_is_inside() {
        const TURNS: u64 = 20_000;
        let lent = Lent::<Counter>::default();
        lent.fill(counter);
        let visits = thread::scope(|scope| {
            let guest = || {
                let visits = (0..TURNS).filter(|_| lent.visit(increment).is_some());
                visits.count() as u64
            };
            let guests = [scope.spawn(guest), scope.spawn(guest)];
            let mut driver = EpollDriver::new().unwrap();
            for _ in 0..TURNS {
                assert!(lent.own(&mut driver, |counter, _| increment(counter)).is_some());
            }
            guests.map(|guest| guest.join().unwrap()).iter().sum::<u64>()
        });
        assert_eq!(lent.visit(|(counter, _)| counter.get()), Some(TURNS + visits));
    }

    #[test]
    fn guests_do_not_wait() {
        let lent = Lent::<Counter>::default();
        assert_eq!(lent.visit(increment), None, "there is no value");
        lent.fill(counter);
        let (entered, leaves) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                lent.visit(|_| {
                    entered.wait();
                    leaves.wait();
                })
            });
            entered.wait();
            assert_eq!(lent.visit(increment), None, "another thread is inside");
            leaves.wait();
        });
        assert_eq!(lent.visit(increment), Some(1));
        lent.clear();
        assert_eq!(lent.visit(increment), None, "the value is gone");
    }

    #[test]
    fn a_value_in_which_a_thread_panicked_is_not_used_again() {
        let lent = Lent::<Counter>::default();
        lent.fill(counter);
        let panicked = thread::scope(|scope| scope.spawn(|| lent.visit(|_| panic!("inside"))).join());
        assert!(panicked.is_err());
        assert_eq!(lent.visit(increment), None);
        assert_eq!(lent.own(&mut EpollDriver::new().unwrap(), |counter, _| increment(counter)), None);
    }
}
