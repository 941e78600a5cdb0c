//! Waking a waiting driver from another thread.

use rustix::event::{EventfdFlags, eventfd};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Interrupts the `poll` of its driver. Several wakes before one poll count as one, and cost no further system call.
#[derive(Clone, Debug)]
pub struct Waker(Arc<WakeCell>);

#[derive(Debug)]
struct WakeCell {
    event: OwnedFd,
    pending: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(WakeCell { event, pending: AtomicBool::new(false) })))
    }

    /// Wakes the driver.
    pub fn wake(&self) {
        if !self.0.pending.swap(true, Ordering::AcqRel) {
            // The counter cannot overflow: it is written at most once per acknowledgement.
            let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
        }
    }

    /// The driver has seen the wake: later ones count again. Returns whether there was one.
    pub(crate) fn acknowledge(&self) -> bool {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.0.event, &mut count);
        self.0.pending.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
