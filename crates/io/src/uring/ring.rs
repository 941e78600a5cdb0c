//! The ring itself: opened with the best flags that the kernel supports, entered at most once per poll.

use crate::{Nanos, Wait};
use io_uring::{IoUring, opcode, squeue, types};
use std::{io, marker::PhantomData, os::fd::BorrowedFd};

/// Submission slots. A full queue is submitted to the kernel early, so this does not limit callers.
const SUBMISSIONS: u32 = 512;
/// Completion slots; the kernel keeps completions that do not fit (`IORING_FEAT_NODROP`).
const COMPLETIONS: u32 = 4096;
/// `IORING_ENTER_GETEVENTS`.
const GETEVENTS: u32 = 1;

/// `user_data` of timers that end a wait.
const ALARM: u64 = u64::MAX - 3;

/// Probed before first use: operations that this driver needs.
const NEEDED: [u8; 10] = [
    opcode::Send::CODE,
    opcode::SendMsg::CODE,
    opcode::Accept::CODE,
    opcode::PollAdd::CODE,
    opcode::Timeout::CODE,
    opcode::AsyncCancel::CODE,
    opcode::Readv::CODE,
    opcode::Writev::CODE,
    opcode::Fsync::CODE,
    opcode::Fallocate::CODE,
];

pub(super) struct Ring {
    uring: IoUring,
    /// Task work waits until the ring is entered, so completions do not appear without a call.
    deferred: bool,
    /// When the kernel ends a wait, latest first: one timer each.
    alarms: Vec<Nanos>,
    /// The kernel reads it when the last of them is submitted, so it must not move.
    alarm: Box<types::Timespec>,
    /// A ring with a single issuer belongs to the thread that opened it.
    bound_to_thread: PhantomData<*mut ()>,
}

impl Ring {
    /// Errors: the kernel has no `io_uring`, or forbids it here (sysctl, seccomp), or lacks a needed operation.
    pub(super) fn open() -> io::Result<Self> {
        let ring = Self::open_ring()?;
        let mut probe = io_uring::Probe::new();
        ring.uring.submitter().register_probe(&mut probe)?;
        let missing = NEEDED.iter().find(|&&code| !probe.is_supported(code));
        let params = ring.uring.params();
        if missing.is_some() || !params.is_feature_ext_arg() || !params.is_feature_nodrop() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel is too old (needs 5.11)"));
        }
        // Saves a descriptor lookup per call; kernels before 5.18 do not have it.
        let _ = ring.uring.submitter().register_ring_fd();
        Ok(ring)
    }

    fn open_ring() -> io::Result<Self> {
        let base = || {
            let mut builder = IoUring::builder();
            builder.setup_clamp().setup_cqsize(COMPLETIONS);
            builder
        };
        let mut best = base();
        best.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        let mut cooperative = base();
        cooperative.setup_coop_taskrun().setup_taskrun_flag();
        let ring = |uring, deferred| Self {
            uring,
            deferred,
            alarms: Vec::new(),
            alarm: Box::default(),
            bound_to_thread: PhantomData,
        };
        best.build(SUBMISSIONS)
            .map(|opened| ring(opened, true))
            .or_else(|_| cooperative.build(SUBMISSIONS).map(|opened| ring(opened, true)))
            .or_else(|_| base().build(SUBMISSIONS).map(|opened| ring(opened, false)))
    }

    /// Queues an operation; it reaches the kernel with the next [`Ring::enter`], or now if the queue is full.
    pub(super) fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the memory of an entry is in an operation or in an attached region, and both do not move until its
        // completion (see `Ops` and `UringDriver::drop`).
        while unsafe { self.uring.submission().push(entry) }.is_err() {
            self.uring.submit()?;
        }
        Ok(())
    }

    /// Submits the queue and reaps completions; waits for the first one by `wait`.
    pub(super) fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let (queued, flagged) = {
            let submission = self.uring.submission();
            (submission.len() as u32, submission.taskrun() || submission.cq_overflow())
        };
        let entered = match wait {
            Wait::Never if queued == 0 && !flagged && self.deferred => return Ok(()),
            // SAFETY: no argument is passed; the flag only requests task work.
            Wait::Never => unsafe {
                self.uring.submitter().enter::<libc::sigset_t>(queued, 0, GETEVENTS, None)
            },
            Wait::Until(until) => {
                self.set_alarm(until)?;
                self.uring.submitter().submit_and_wait(1)
            }
            Wait::Forever => self.uring.submitter().submit_and_wait(1),
        };
        let harmless = [libc::ETIME, libc::EINTR, libc::EBUSY, libc::EAGAIN];
        match entered {
            Err(error) if !error.raw_os_error().is_some_and(|code| harmless.contains(&code)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends a wait at `until`, or earlier if a timer is running already: an occasional early return costs less than to
    /// set and cancel a timer in every wait.
    fn set_alarm(&mut self, until: Nanos) -> io::Result<()> {
        if self.alarms.last().is_some_and(|&earliest| earliest <= until) {
            return Ok(());
        }
        self.alarms.push(until);
        *self.alarm = timespec(until);
        let timer = opcode::Timeout::new(&raw const *self.alarm).flags(types::TimeoutFlags::ABS);
        self.push(&timer.build().user_data(ALARM))
    }

    /// The next completion: the operation's number and its result.
    pub(super) fn completion(&mut self) -> Option<(u64, i32)> {
        loop {
            let entry = self.uring.completion().next()?;
            if entry.user_data() != ALARM {
                return Some((entry.user_data(), entry.result()));
            }
            // Timers end in the order of their times.
            self.alarms.pop();
        }
    }

    /// Requests a completion numbered `user_data` when `fd` becomes readable.
    pub(super) fn watch(&mut self, fd: BorrowedFd<'_>, user_data: u64) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let poll = opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), libc::POLLIN as u32);
        self.push(&poll.build().user_data(user_data))
    }
}

fn timespec(ns: Nanos) -> types::Timespec {
    types::Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32)
}
