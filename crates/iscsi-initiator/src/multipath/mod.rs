//! Several paths to one LUN.
//!
//! Open this file first. A device that was opened with paths owns a [`Multipath`]; each of its paths has a session of
//! its own, whose I/O it is handed back when the session is lost.
//!
//! - `state.rs`: the states of a path and their transitions.
//! - `rank.rs`: which paths are usable; `policy/`: which of those an I/O takes.
//! - `displaced.rs`: I/O that lost its path, and the rule that keeps writes in order across paths.
//! - `access.rs`: the array's word on its ports (ALUA).
//! - `meter.rs`: what a path carries, for policies and counters.
//! - `open.rs`: opening, and what else a caller may ask for.
//! - `news.rs`: what sessions report, and what follows from it; `tick.rs`: what time brings.
//!
//! # Cost
//!
//! While nothing is wrong, an I/O costs one branch (`disturbed`) and the policy's choice; nothing allocates, locks or
//! reads a clock. Everything else happens when a path changes.

pub(crate) mod access;
mod displaced;
mod news;
mod open;
mod rank;
mod state;
mod tick;

use crate::balance::{Policy, Selector};
use crate::event::Failure;
use crate::facts::PathState;
use crate::facts::SessionId;
use crate::interview::Interview;
use crate::session::{Session, nanos};
use crate::task::NewTask;
use displaced::Displaced;
use linerate_io::Nanos;
use rank::{Rank, Standing};
use std::net::SocketAddr;

use crate::options::paths::{Failback, MultipathOptions, PathSpec};
use state::PathInput;

/// A path as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacts<'a> {
    /// Its name; a path's sessions are told apart by `#1`, `#2`.
    pub name: &'a str,
    /// Its session; [`crate::Initiator::session_facts`] and [`crate::Initiator::tcp_info`] tell more.
    pub session: SessionId,
    /// Where it stands.
    pub state: PathState,
    /// I/O goes over it at present, as far as the policy lets it.
    pub in_use: bool,
    /// The portal that it connects to, once it has connected.
    pub peer_addr: Option<SocketAddr>,
    /// The target's tag of the group that its portal belongs to, if the target said one.
    pub portal_group: Option<u16>,
}

/// One path.
#[derive(Debug)]
struct Path {
    name: String,
    session: SessionId,
    interface: Option<String>,
    weight: u32,
    standby: bool,
    state: PathState,
    /// It has been announced as failed, and not as restored since.
    lost: bool,
    /// Its first attempt has ended, one way or the other.
    tried: bool,
    /// The LUN has answered everything since the login, and is the device's disk.
    checked: bool,
    /// It is back and waits for failback, until this time if there is one.
    held: bool,
    held_until: Option<Nanos>,
    /// Why it failed last.
    failure: Option<Failure>,
    interview: Option<Interview>,
    /// The array's group of ports that it belongs to, if the LUN has access states.
    group: Option<u16>,
    /// It has been asked for the access states.
    polling: bool,
    poll_at: Nanos,
    /// The next attempt, if there is need, is one to end the old session over another path.
    may_detour: bool,
    /// The attempt under way is such a one.
    detoured: bool,
    /// I/Os that were in flight when it failed, not announced yet.
    displaced: u32,
    /// When it failed; until the first of its I/Os is done elsewhere.
    failing_over: Option<Nanos>,
}

impl Path {
    fn new(name: String, session: SessionId, spec: &PathSpec) -> Self {
        Self {
            name,
            session,
            interface: spec.interface.clone(),
            weight: spec.weight,
            standby: spec.standby,
            state: PathState::Connecting,
            lost: false,
            tried: false,
            checked: false,
            held: false,
            held_until: None,
            failure: None,
            interview: None,
            group: None,
            polling: false,
            poll_at: 0,
            may_detour: false,
            detoured: false,
            displaced: 0,
            failing_over: None,
        }
    }

    /// Moves along the table; false if the input means nothing in this state.
    fn step(&mut self, input: PathInput) -> bool {
        let Some(next) = self.state.after(input) else { return false };
        tracing::debug!(path = self.name, from = ?self.state, ?input, to = ?next);
        self.state = next;
        true
    }

    fn standing(&self) -> Standing {
        Standing { state: self.state, standby: self.standby, weight: self.weight, held: self.held }
    }

    fn release(&mut self) {
        self.held = false;
        self.held_until = None;
    }
}

/// The options' times on the driver's clock.
#[derive(Debug)]
struct Times {
    checker_ns: Nanos,
    /// None: for ever.
    no_path_ns: Option<Nanos>,
    /// After so long an old try counts as dead; see `displaced.rs`.
    old_try_ns: Nanos,
    /// When a device that nobody answers for is given up.
    open_until: Nanos,
}

/// The paths of a device.
#[derive(Debug)]
pub(crate) struct Multipath {
    paths: Vec<Path>,
    policy: Policy,
    failback: Failback,
    selector: Selector,
    /// Paths that I/O takes now: place in the list and session.
    usable: Vec<(u16, SessionId)>,
    /// I/O cannot simply go its way: no path is usable, or some I/O is displaced or waits.
    disturbed: bool,
    displaced: Displaced,
    next_order: u64,
    /// Since when no path is usable, once the device was ready.
    no_path_since: Option<Nanos>,
    times: Times,
}

impl Multipath {
    fn new(options: &MultipathOptions, command_timeout_s: f64, open_until: Nanos) -> Self {
        Self {
            paths: Vec::new(),
            policy: options.policy,
            failback: options.failback,
            selector: Selector::new(&options.balance()),
            usable: Vec::new(),
            disturbed: true,
            displaced: Displaced::default(),
            next_order: 1,
            no_path_since: None,
            times: Times {
                checker_ns: nanos(options.checker_interval_s),
                no_path_ns: options.no_path_queue_s.map(nanos),
                old_try_ns: nanos(options.path_timeout_s) + nanos(command_timeout_s),
                open_until,
            },
        }
    }

    /// Numbers an I/O and chooses its path; none if it needs a closer look.
    #[inline]
    pub(crate) fn choose(&mut self, sessions: &[Session], task: &mut NewTask) -> Option<SessionId> {
        task.order = self.next_order;
        self.next_order += 1;
        if self.disturbed {
            return None;
        }
        Some(self.select(sessions, task.len_bytes))
    }

    /// The session of the path that an I/O takes. There is a usable path.
    #[inline]
    fn select(&mut self, sessions: &[Session], bytes: u32) -> SessionId {
        let usable = &self.usable;
        let load = |at: usize| sessions[usable[at].1.index()].meter.load;
        usable[self.selector.select(usable.len(), bytes, load)].1
    }

    /// The session that stands for the device: of a usable path if there is one.
    pub(crate) fn session(&self) -> SessionId {
        self.usable.first().map_or(self.paths[0].session, |(_, session)| *session)
    }

    /// The path at `place` takes I/O now.
    fn uses(&self, place: usize) -> bool {
        self.usable.iter().any(|(at, _)| usize::from(*at) == place)
    }

    fn best(&self) -> Option<Rank> {
        rank::best(self.policy, &self.paths.iter().map(Path::standing))
    }

    /// Finds the usable paths anew.
    fn refresh(&mut self) {
        let best = self.best();
        self.usable.clear();
        for (place, path) in self.paths.iter_mut().enumerate() {
            if best.is_some() && path.standing().rank(self.policy, place) == best {
                path.release();
                self.usable.push((place as u16, path.session));
            }
        }
        self.disturbed = self.usable.is_empty() || !self.displaced.is_empty();
    }

    /// I/O that waits for a path is failed now: the time for it is over.
    fn is_hopeless(&self, now: Nanos) -> bool {
        let limit = self.no_path_since.zip(self.times.no_path_ns);
        limit.is_some_and(|(since, wait)| now >= since.saturating_add(wait))
    }

    /// Another path over whose portal a login can end the session that the path at `place` has lost.
    fn fencing_path(&self, place: usize, sessions: &[Session]) -> Option<SessionId> {
        let group = |path: &Path| sessions[path.session.index()].facts.as_ref()?.portal_group;
        let wanted = group(&self.paths[place])?;
        let fits = |path: &&Path| path.state.is_connected() && group(path) == Some(wanted);
        self.paths.iter().find(fits).map(|path| path.session)
    }
}
