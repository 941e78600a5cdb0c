//! A disk that fails when an operation takes too long, around any other disk.
//!
//! After the timeout the disk is fenced: all its operations fail, at once and for good. The inner disk may still complete
//! a write; the answer is dropped, and no newer data is written to that disk. The RAID set treats the disk as failed, and
//! its superblocks say so before anything else is acknowledged. Only a rebuild makes the disk a member again.

use super::{Disk, DiskError, DiskWrapper};
use crate::runtime::Runtime;
use futures::future::{LocalBoxFuture, ready};
use linerate_io::Nanos;
use slab::Slab;
use std::{
    cell::{Cell, RefCell},
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// How many checks of the watch an operation may outlast. A check that is late, because the process was stopped, counts
/// once: answers that arrived meanwhile are processed before the next check.
const LOOKS: u64 = 8;

/// A disk around another, with a time limit for its answers.
pub struct TimeoutDisk {
    inner: Rc<dyn Disk>,
    watch: Rc<Watch>,
}

/// State that the disk, its operations and their watch share.
struct Watch {
    runtime: Runtime,
    name: String,
    look_every_ns: Nanos,
    is_fenced: Cell<bool>,
    /// Whether the watch task runs: only while operations are in progress.
    is_watched: Cell<bool>,
    looks: Cell<u64>,
    under_way: RefCell<Slab<Begun>>,
}

/// An operation in progress.
struct Begun {
    /// The number of the checks before it.
    looks: u64,
    /// The task to wake when the disk is fenced.
    waker: Option<Waker>,
}

impl TimeoutDisk {
    /// Fences `inner` when an operation takes longer than `timeout_ns`, or at most an eighth longer.
    pub fn new(runtime: &Runtime, inner: Rc<dyn Disk>, timeout_ns: Nanos) -> Self {
        let watch = Watch {
            runtime: runtime.clone(),
            name: inner.name().to_owned(),
            look_every_ns: (timeout_ns / LOOKS).max(1),
            is_fenced: Cell::new(false),
            is_watched: Cell::new(false),
            looks: Cell::new(0),
            under_way: RefCell::default(),
        };
        Self { inner, watch: Rc::new(watch) }
    }

    /// Whether an operation has timed out.
    pub fn is_fenced(&self) -> bool {
        self.watch.is_fenced.get()
    }
}

impl DiskWrapper for TimeoutDisk {
    fn inner(&self) -> &dyn Disk {
        &*self.inner
    }

    fn pass<T: 'static>(
        &self,
        begin: impl FnOnce(&dyn Disk) -> LocalBoxFuture<'static, Result<T, DiskError>>,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        if let Err(error) = self.watch.check() {
            return Box::pin(ready(Err(error)));
        }
        let operation = begin(&*self.inner);
        Box::pin(Watched { operation, place: Watch::begin(&self.watch) })
    }

    fn unchanged(&self) -> Option<&dyn Disk> {
        (!self.is_fenced()).then_some(&*self.inner)
    }
}

impl Watch {
    fn check(&self) -> Result<(), DiskError> {
        if self.is_fenced.get() { Err(DiskError::Failed(self.name.clone())) } else { Ok(()) }
    }

    fn begin(watch: &Rc<Self>) -> Place {
        let begun = Begun { looks: watch.looks.get(), waker: None };
        let place = watch.under_way.borrow_mut().insert(begun);
        if !watch.is_watched.replace(true) {
            watch.runtime.spawn(Rc::clone(watch).look());
        }
        Place { watch: Rc::clone(watch), place }
    }

    async fn look(self: Rc<Self>) {
        loop {
            self.runtime.sleep(self.look_every_ns).await;
            self.looks.set(self.looks.get() + 1);
            let oldest = self.under_way.borrow().iter().map(|(_, begun)| begun.looks).min();
            match oldest {
                Some(begun) if self.looks.get() - begun > LOOKS => return self.fence(),
                Some(_) => {}
                None => break,
            }
        }
        self.is_watched.set(false);
    }

    fn fence(&self) {
        let timeout_s = (self.look_every_ns * LOOKS) as f64 / 1e9;
        tracing::error!(disk = self.name, timeout_s, "a disk does not answer and is out of use from now on");
        self.is_fenced.set(true);
        let mut under_way = self.under_way.borrow_mut();
        let wakers: Vec<Waker> = under_way.iter_mut().filter_map(|(_, begun)| begun.waker.take()).collect();
        drop(under_way);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// An operation with a waiting caller.
struct Watched<T> {
    operation: LocalBoxFuture<'static, Result<T, DiskError>>,
    place: Place,
}

impl<T> Future for Watched<T> {
    type Output = Result<T, DiskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.place.watch.check() {
            return Poll::Ready(Err(error));
        }
        let polled = self.operation.as_mut().poll(context);
        if polled.is_pending() {
            self.place.wake_by(context.waker());
        }
        polled
    }
}

/// Its entry in the list of operations in progress, until it ends or is dropped.
struct Place {
    watch: Rc<Watch>,
    place: usize,
}

impl Place {
    fn wake_by(&self, waker: &Waker) {
        let mut under_way = self.watch.under_way.borrow_mut();
        if let Some(begun) = under_way.get_mut(self.place)
            && !begun.waker.as_ref().is_some_and(|own| own.will_wake(waker))
        {
            begun.waker = Some(waker.clone());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.watch.under_way.borrow_mut().remove(self.place);
    }
}

impl fmt::Debug for TimeoutDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, is_fenced) = (&self.watch.name, self.is_fenced());
        f.debug_struct("TimeoutDisk")
            .field("name", name)
            .field("is_fenced", &is_fenced)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Executor,
        disk::{FaultyDisk, MemoryDisk},
    };
    use bytes::{Bytes, BytesMut};

    const TIMEOUT_NS: Nanos = 8000;

    fn disks() -> (Executor, FaultyDisk, TimeoutDisk) {
        let executor = Executor::new();
        let inner = Rc::new(MemoryDisk::new("d0", 1 << 20, 512).unwrap());
        let faulty = FaultyDisk::new(&executor.runtime(), inner, 1);
        let disk = TimeoutDisk::new(&executor.runtime(), Rc::new(faulty.clone()), TIMEOUT_NS);
        (executor, faulty, disk)
    }

    fn block(byte: u8) -> Bytes {
        Bytes::from(vec![byte; 512])
    }

    fn failed<T>() -> Result<T, DiskError> {
        Err(DiskError::Failed("d0".into()))
    }

    #[test]
    fn a_disk_that_hangs_fails_in_time_with_all_that_is_under_way() {
        let (mut executor, faulty, disk) = disks();
        assert_eq!(executor.run_in_virtual_time(disk.write(0, block(1), true)), Some(Ok(())));
        faulty.hang();
        let begun = executor.runtime().now();
        let (first, second) = (disk.write(0, block(2), true), disk.read(0, BytesMut::zeroed(512)));
        assert_eq!(executor.run_in_virtual_time(first), Some(failed()));
        let took = executor.runtime().now() - begun;
        assert!((TIMEOUT_NS..=TIMEOUT_NS / 8 * 9).contains(&took), "{took}");
        assert_eq!(executor.run_in_virtual_time(second), Some(failed()));
        assert_eq!(executor.runtime().now() - begun, took);
        assert!(disk.is_fenced());
    }

    #[test]
    fn a_late_answer_changes_nothing() {
        let (mut executor, faulty, disk) = disks();
        faulty.hang();
        assert_eq!(executor.run_in_virtual_time(disk.write(0, block(2), true)), Some(failed()));
        faulty.answer();
        assert_eq!(executor.run_in_virtual_time(disk.flush()), Some(failed()));
        executor.run(executor.runtime().now() + TIMEOUT_NS);
        let bytes = executor.run_in_virtual_time(faulty.read(0, BytesMut::zeroed(512))).unwrap().unwrap();
        assert_eq!(bytes[0], 2, "the write that was given up has landed");
    }

    #[test]
    fn a_slow_disk_is_no_dead_disk() {
        let (mut executor, faulty, disk) = disks();
        faulty.set_delay(TIMEOUT_NS - 1, TIMEOUT_NS - 1);
        for _ in 0..20 {
            assert_eq!(executor.run_in_virtual_time(disk.write(0, block(3), false)), Some(Ok(())));
        }
    }

    #[test]
    fn a_process_that_stood_still_blames_no_disk() {
        let (mut executor, faulty, disk) = disks();
        faulty.set_delay(TIMEOUT_NS / 2, TIMEOUT_NS / 2);
        let write = disk.write(0, block(4), false);
        executor.run(100 * TIMEOUT_NS);
        assert_eq!(executor.run_in_virtual_time(write), Some(Ok(())));
    }

    #[test]
    fn nobody_looks_after_an_idle_disk() {
        let (mut executor, _, disk) = disks();
        assert_eq!(executor.run_in_virtual_time(disk.flush()), Some(Ok(())));
        executor.run(2 * TIMEOUT_NS);
        assert_eq!(executor.next_timer(), None);
    }
}
