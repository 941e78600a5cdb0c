//! The paths of a device: one or several, each over a session.
//!
//! Open this file first. A session returns its I/O when it is lost; the code here decides what happens to the I/O.
//!
//! - `state.rs`: the states of a path and their transitions; `path.rs`: a path, and the data of its state.
//! - `priority.rs`: which paths are usable; `balance/` chooses one of them for an I/O.
//! - `requeue.rs`: I/O that was lost with a session, and the rule that keeps writes in order.
//! - `events.rs`: events of sessions; `failover.rs`: loss of a path, and of the last one.
//! - `timers.rs`: work that is due at a tick.
//!
//! # Cost
//!
//! In normal operation an I/O costs one branch (`disturbed`) and the policy's choice; nothing allocates, locks or reads
//! a clock. Everything else happens when a path changes.

mod events;
mod failover;
mod path;
mod priority;
mod requeue;
mod state;
mod timers;

use crate::balance::{PathCounters, Policy, Selector};
use crate::device::Device;
use crate::event::{Event, EventKind, IoDone, IoError, IoSink};
use crate::facts::{DeviceId, DeviceState, SessionId};
use crate::options::nanos;
use crate::options::paths::{Failback, MultipathOptions, PathSpec};
use crate::options::session::SessionOptions;
use crate::request::{IoRequest, SubmitError};
use crate::session::ReturnedFrom;
use crate::sessions::Sessions;
use crate::task::{NewTask, Owner};
use linerate_io::Nanos;
use path::Path;
use priority::Priority;
use requeue::Requeue;

pub use path::PathFacts;

/// If a command was in flight at this many losses of a device's only session, it may be their cause.
const LOSSES_MAX: u8 = 8;

/// The context of paths while they handle an event.
pub(crate) struct PathContext<'a, S> {
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) now: Nanos,
    pub(crate) sink: &'a mut S,
}

/// The rules for the paths of a device. Times are on the driver's clock.
#[derive(Debug)]
struct Rules {
    policy: Policy,
    failback: Failback,
    /// The device was opened with a list of paths: I/O that one path cannot do is sent over another, and events name
    /// the paths. Without such a list the LUN is not probed for facts that only several paths need, and events name the
    /// session.
    fails_over: bool,
    /// Pause between two polls of the access states.
    checker_ns: Nanos,
    /// How long I/O waits without a usable path; None: for ever.
    no_path_ns: Option<Nanos>,
    /// After this time an old attempt counts as dead; see `requeue.rs`.
    old_attempt_ns: Nanos,
    /// When a device that cannot be opened has failed; None: when its session has failed.
    open_until: Option<Nanos>,
}

impl Rules {
    /// For a device with one session, the session decides how long to wait.
    fn one_session(options: &SessionOptions) -> Self {
        Self {
            policy: Policy::FailoverOnly,
            failback: Failback::Immediate,
            fails_over: false,
            checker_ns: Nanos::MAX,
            no_path_ns: None,
            // A login to the same portal group ends old attempts. If the target redirects the session to another group,
            // a newer write waits for this time.
            old_attempt_ns: nanos(options.replacement_timeout_s) + nanos(options.command_timeout_s),
            open_until: None,
        }
    }

    fn listed_paths(multipath: &MultipathOptions, options: &SessionOptions, now: Nanos) -> Self {
        Self {
            policy: multipath.policy,
            failback: multipath.failback,
            fails_over: true,
            checker_ns: nanos(multipath.checker_interval_s),
            no_path_ns: multipath.no_path_queue_s.map(nanos),
            old_attempt_ns: nanos(multipath.path_timeout_s) + nanos(options.command_timeout_s),
            open_until: Some(now + nanos(options.login_timeout_s)),
        }
    }

    /// The result of an I/O that waits when the last path has failed.
    fn gone_error(&self) -> IoError {
        if self.fails_over { IoError::NoPath } else { IoError::SessionLost }
    }
}

/// A device and its paths.
#[derive(Debug)]
pub(crate) struct Multipath {
    id: DeviceId,
    pub(crate) device: Device,
    paths: Vec<Path>,
    rules: Rules,
    selector: Selector,
    /// Paths that accept I/O now: index in the list, and session.
    usable: Vec<(u16, SessionId)>,
    /// An I/O needs a closer check: no path is usable, or some I/O is requeued.
    disturbed: bool,
    requeue: Requeue,
    next_order: u64,
    /// The time since which no path is usable, after the device was ready.
    no_path_since: Option<Nanos>,
}

impl Multipath {
    /// A device over the session of its address.
    pub(crate) fn over_session(
        id: DeviceId,
        device: Device,
        session: SessionId,
        options: &SessionOptions,
    ) -> Self {
        let name = device.address.portal.to_string();
        let path = Path::new(name, session, &PathSpec::named(""));
        let selector = Selector::new(&MultipathOptions::default().balance());
        Self::new(id, device, vec![path], Rules::one_session(options), selector)
    }

    /// A device over paths with these names, sessions and settings.
    pub(crate) fn over_paths<'a>(
        id: DeviceId,
        device: Device,
        paths: impl Iterator<Item = (String, SessionId, &'a PathSpec)>,
        multipath: &MultipathOptions,
        options: &SessionOptions,
        now: Nanos,
    ) -> Self {
        let paths = paths.map(|(name, session, spec)| Path::new(name, session, spec)).collect();
        let rules = Rules::listed_paths(multipath, options, now);
        Self::new(id, device, paths, rules, Selector::new(&multipath.balance()))
    }

    fn new(id: DeviceId, device: Device, paths: Vec<Path>, rules: Rules, selector: Selector) -> Self {
        Self {
            id,
            device,
            paths,
            rules,
            selector,
            usable: Vec::new(),
            disturbed: true,
            requeue: Requeue::default(),
            next_order: 1,
            no_path_since: None,
        }
    }

    /// Queues an I/O on a path, or behind others that must be sent first.
    #[inline]
    pub(crate) fn submit(&mut self, request: &IoRequest, sessions: &mut Sessions) -> Result<(), SubmitError> {
        let mut task = self.device.task(self.id.0, request, &sessions.regions)?;
        task.order = self.next_order;
        self.next_order += 1;
        if self.disturbed && (self.usable.is_empty() || !self.requeue.may_send(&task)) {
            self.submit_later(task, sessions);
            return Ok(());
        }
        let id = self.select(sessions, task.len_bytes);
        if sessions.enqueue(id, &task) { Ok(()) } else { Err(SubmitError::Full) }
    }

    #[cold]
    fn submit_later(&mut self, task: NewTask, sessions: &mut Sessions) {
        self.requeue.wait(task);
        if self.rules.no_path_ns.is_some() {
            // It may have waited long enough already.
            sessions.wake_at = 0;
        }
    }

    /// The session of the path for an I/O. There is a usable path.
    #[inline]
    fn select(&mut self, sessions: &Sessions, bytes: u32) -> SessionId {
        let usable = &self.usable;
        let load = |at: usize| sessions[usable[at].1].meter.load;
        usable[self.selector.select(usable.len(), bytes, load)].1
    }

    /// A session that represents the device: of a usable path if there is one.
    pub(crate) fn session(&self) -> SessionId {
        self.usable.first().map_or(self.paths[0].session, |(_, session)| *session)
    }

    /// The paths and their sessions, in the order of the list; empty if the device was opened without a list.
    pub(crate) fn listed<'a>(&'a self, sessions: &'a Sessions) -> impl Iterator<Item = PathFacts<'a>> {
        let listed = if self.rules.fails_over { &self.paths[..] } else { &[] };
        listed.iter().enumerate().map(|(place, path)| path.facts(self.uses(place), &sessions[path.session]))
    }

    /// Passes to `take` the counters of each listed path since the last call.
    pub(crate) fn take_counters(&self, sessions: &mut Sessions, mut take: impl FnMut(usize, PathCounters)) {
        let listed = if self.rules.fails_over { &self.paths[..] } else { &[] };
        for (place, path) in listed.iter().enumerate() {
            take(place, std::mem::take(&mut sessions[path.session].meter.counters));
        }
    }

    /// The sessions of the paths that depend on a local interface.
    pub(crate) fn sessions_on(&self, interface: &str) -> impl Iterator<Item = SessionId> {
        let on = move |path: &&Path| path.interface.as_deref() == Some(interface);
        self.paths.iter().filter(on).map(|path| path.session)
    }

    /// Uses better paths that wait for failback again.
    pub(crate) fn fail_back<S: IoSink>(&mut self, cx: &mut PathContext<'_, S>) {
        self.paths.iter_mut().for_each(|path| path.hold = None);
        self.settle(cx);
    }

    /// The path at `place` takes I/O now.
    fn uses(&self, place: usize) -> bool {
        self.usable.iter().any(|(at, _)| usize::from(*at) == place)
    }

    fn best(&self) -> Option<Priority> {
        priority::best(self.rules.policy, &self.paths.iter().map(Path::rating))
    }

    /// Finds the usable paths anew.
    fn refresh(&mut self) {
        let best = self.best();
        self.usable.clear();
        for (place, path) in self.paths.iter_mut().enumerate() {
            if best.is_some() && path.rating().priority(self.rules.policy, place) == best {
                path.hold = None;
                self.usable.push((place as u16, path.session));
            }
        }
        self.disturbed = self.usable.is_empty() || !self.requeue.is_empty();
    }

    /// Accepts an I/O that a session has returned.
    pub(crate) fn take_returned<S: IoSink>(
        &mut self,
        session: SessionId,
        mut task: NewTask,
        progress: ReturnedFrom,
        cx: &mut PathContext<'_, S>,
    ) {
        self.disturbed = true;
        let order = task.order;
        if progress == ReturnedFrom::Queue {
            self.requeue.wait(task);
        } else {
            let last_loss = task.losses >= LOSSES_MAX;
            task.losses = task.losses.saturating_add(1);
            let place = self.paths.iter().position(|path| path.session == session);
            let place = place.expect("I/O goes over sessions of the device's paths");
            self.requeue.lost_in_flight(place, task, cx.now + self.rules.old_attempt_ns);
            let error = match progress {
                ReturnedFrom::Abort if !self.rules.fails_over => Some(IoError::Timeout),
                _ if last_loss && !self.rules.fails_over => Some(IoError::SessionLost),
                _ => None,
            };
            if let Some(error) = error {
                self.fail_one(order, error, cx.sink);
            }
        }
        if matches!(self.device.state, DeviceState::Failed(_)) {
            self.fail_one(order, self.rules.gone_error(), cx.sink);
        }
    }

    fn fail_one(&mut self, order: u64, error: IoError, sink: &mut impl IoSink) {
        if let Some(task) = self.requeue.withdraw(order) {
            self.finish(&task, error, sink);
        }
    }

    /// Fails the I/Os that wait.
    pub(crate) fn fail_waiting(&mut self, error: IoError, sink: &mut impl IoSink) {
        for task in self.requeue.withdraw_all() {
            self.finish(&task, error, sink);
        }
    }

    fn finish(&self, task: &NewTask, error: IoError, sink: &mut impl IoSink) {
        let Owner::Io { slot, .. } = task.owner else { unreachable!("only I/Os wait") };
        sink.done(IoDone { device: self.id, slot, result: Err(error) });
    }

    /// Sends I/O that need not wait any more.
    fn send_waiting(&mut self, sessions: &mut Sessions) {
        let mut from = 0;
        while let Some(task) = self.requeue.next(from) {
            from = task.order + 1;
            let id = self.select(sessions, task.len_bytes);
            if !sessions.enqueue(id, &task) {
                self.requeue.wait(task);
                break;
            }
        }
        self.disturbed = !self.requeue.is_empty();
    }

    /// Reports an event of one path, if the caller named the paths.
    fn emit_path<S: IoSink>(&self, place: usize, kind: EventKind, cx: &mut PathContext<'_, S>) {
        if self.rules.fails_over {
            let session = Some(self.paths[place].session);
            cx.sink.event(Event { at: cx.now, session, device: Some(self.id), kind });
        }
    }

    /// Reports an event of the device, with its session if it has only one.
    fn emit_device<S: IoSink>(&self, kind: EventKind, cx: &mut PathContext<'_, S>) {
        let session = (!self.rules.fails_over).then(|| self.session());
        cx.sink.event(Event { at: cx.now, session, device: Some(self.id), kind });
    }
}
