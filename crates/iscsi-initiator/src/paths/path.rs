//! One path, and the data of its current state.

use super::priority::Rating;
use super::state::PathInput;
use crate::event::Failure;
use crate::facts::{PathState, SessionId};
use crate::options::paths::PathSpec;
use crate::probe::Probe;
use crate::session::Session;
use linerate_io::Nanos;
use linerate_scsi_proto::alua::AccessState;
use std::net::SocketAddr;

/// The facts about a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacts<'a> {
    /// Its name; several sessions of one path are numbered `#1`, `#2`.
    pub name: &'a str,
    /// Its session; see also [`crate::Initiator::session_facts`] and [`crate::Initiator::tcp_info`].
    pub session: SessionId,
    /// Its state.
    pub state: PathState,
    /// The policy may use it for I/O now.
    pub in_use: bool,
    /// The address of its portal, once it has connected.
    pub peer_addr: Option<SocketAddr>,
    /// The target's tag for the portal's group, if the target sent one.
    pub portal_group: Option<u16>,
}

/// The state of a path, with the data of that state.
#[derive(Debug)]
pub(super) enum Phase {
    Connecting,
    /// Logged in; the probe identifies the LUN.
    Checking(Box<Probe>),
    Connected(Connected),
    Failed(Reinstatement),
    Refused,
}

/// A path whose LUN has answered.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) access: AccessState,
    /// The LUN has answered all commands since the login, and is the device's disk.
    pub(super) verified: bool,
    /// The target port group of its port, if the LUN has access states.
    pub(super) group: Option<u16>,
    /// REPORT TARGET PORT GROUPS is in progress.
    pub(super) polling: bool,
    /// When the next one is due.
    pub(super) poll_at: Nanos,
}

/// Whether a login through another path's portal ends the lost session of this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reinstatement {
    /// The next login attempt may use another path's portal.
    Possible,
    /// The current attempt uses it.
    UnderWay,
    /// The next attempt uses the path's own portal: the attempts alternate, because one of the portals may answer.
    NotNow,
}

/// A better restored path waits for failback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Until the caller requests it.
    UntilAsked,
    Until(Nanos),
}

/// One path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) name: String,
    pub(super) session: SessionId,
    pub(super) interface: Option<String>,
    weight: u32,
    standby: bool,
    pub(super) phase: Phase,
    /// Why it failed last, until it is restored.
    pub(super) failure: Option<Failure>,
    pub(super) hold: Option<Hold>,
    /// The time of its failure with I/O in flight; until the first of these I/Os has completed on another path.
    pub(super) failover_since: Option<Nanos>,
}

impl Path {
    pub(super) fn new(name: String, session: SessionId, spec: &PathSpec) -> Self {
        Self {
            name,
            session,
            interface: spec.interface.clone(),
            weight: spec.weight,
            standby: spec.standby,
            phase: Phase::Connecting,
            failure: None,
            hold: None,
            failover_since: None,
        }
    }

    pub(super) fn state(&self) -> PathState {
        match &self.phase {
            Phase::Connecting => PathState::Connecting,
            Phase::Checking(_) => PathState::Checking,
            Phase::Connected(connected) => connected.access.into(),
            Phase::Failed(_) => PathState::Failed,
            Phase::Refused => PathState::Refused,
        }
    }

    /// Changes the state by the table; false if there is no such transition.
    pub(super) fn enter(&mut self, input: PathInput, phase: Phase) -> bool {
        let from = self.state();
        let Some(to) = from.after(input) else { return false };
        tracing::debug!(path = self.name, ?from, ?input, ?to);
        self.phase = phase;
        debug_assert_eq!(self.state(), to, "the phase of the state that the table names");
        true
    }

    pub(super) fn rating(&self) -> Rating {
        let held = self.hold.is_some();
        Rating { state: self.state(), standby: self.standby, weight: self.weight, held }
    }

    pub(super) fn facts<'a>(&'a self, in_use: bool, session: &'a Session) -> PathFacts<'a> {
        let facts = session.facts.as_ref();
        PathFacts {
            name: &self.name,
            session: self.session,
            state: self.state(),
            in_use,
            peer_addr: facts.map(|facts| facts.peer_addr),
            portal_group: facts.and_then(|facts| facts.portal_group),
        }
    }
}
