//! Waiting for many TAPs and a waker, with deadlines in nanoseconds.

use crate::{Waker, net::Tap};
use rustix::{
    event::{
        PollFd, PollFlags, Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
        poll,
    },
    io::Errno,
    thread::set_current_timer_slack,
};
use std::{io, num::NonZero, os::fd::OwnedFd, time::Duration};

/// The event data of the waker, instead of an index.
const WAKE: u64 = u64::MAX;
/// Events taken at once; more come with the next call.
const EVENTS: usize = 64;

/// Edge-triggered: after [`wait`](Self::wait) has named a TAP, it is readable until a read finds nothing.
pub struct Poller {
    epoll: OwnedFd,
    waker: Waker,
    events: Vec<Event>,
}

impl Poller {
    /// A poller that waits only for its waker so far. The calling thread must be the one that will wait: its timers
    /// become exact.
    pub fn new() -> io::Result<Self> {
        set_current_timer_slack(NonZero::new(1))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        epoll::add(&epoll, waker.fd(), EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self { epoll, waker, events: Vec::with_capacity(EVENTS) })
    }

    /// Interrupts [`wait`](Self::wait) from anywhere.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Watches a TAP; `wait` will report this index.
    pub fn add(&self, tap: &Tap, index: usize) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, tap, EventData::new_u64(index as u64), EventFlags::IN | EventFlags::ET)?)
    }

    /// Waits until a TAP is readable, the waker is used or the time is over (None: never), and reports the TAPs.
    /// Returns whether the waker was used.
    pub fn wait(&mut self, timeout: Option<Duration>, mut readable: impl FnMut(usize)) -> io::Result<bool> {
        // On old kernels epoll itself counts in milliseconds; a poll of its file does not.
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if let Some(timeout) = timeout.filter(|timeout| !timeout.is_zero()) {
            self.sleep(timeout)?;
        }
        let limit = timeout.map(|_| &now);
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), limit) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut woken = false;
        for event in &self.events {
            match event.data.u64() {
                WAKE => woken = self.waker.acknowledge(),
                index => readable(index as usize),
            }
        }
        Ok(woken)
    }

    /// Sleeps until something happens or the time is over.
    fn sleep(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sleeps in every case.
    pub fn rest(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::now_ns;

    #[test]
    fn a_short_wait_is_not_rounded_up_to_a_millisecond() {
        let mut poller = Poller::new().unwrap();
        let mut shortest = Duration::MAX;
        // On a busy machine most take longer; the shortest of many has the requested time.
        for _ in 0..200 {
            let began = now_ns();
            assert!(!poller.wait(Some(Duration::from_micros(100)), |_| {}).unwrap());
            shortest = shortest.min(Duration::from_nanos(now_ns() - began));
        }
        assert!(
            shortest >= Duration::from_micros(100) && shortest < Duration::from_micros(900),
            "{shortest:?}"
        );
    }

    #[test]
    fn the_waker_ends_a_wait() {
        let mut poller = Poller::new().unwrap();
        let waker = poller.waker();
        std::thread::spawn(move || waker.wake());
        assert!(poller.wait(Some(Duration::from_secs(20)), |_| {}).unwrap());
        assert!(!poller.wait(Some(Duration::ZERO), |_| {}).unwrap());
    }
}
