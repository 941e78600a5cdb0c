//! The state that a session keeps between its login attempts.

use super::config::Config;
use super::loss::LossReason;
use crate::options::address::PortalAddress;
use crate::options::nanos;
use linerate_io::Nanos;
use std::net::{IpAddr, SocketAddr};

/// The state that a session keeps about its connections.
#[derive(Debug)]
pub(super) struct Recovery {
    /// Deadline for connect and login.
    pub(super) login_deadline: Nanos,
    /// The time since which there is no session, after a first one.
    pub(super) lost_since: Option<Nanos>,
    /// When the next attempt is due.
    pub(super) retry_at: Nanos,
    /// The target permits no attempt before this time.
    pub(super) not_before: Nanos,
    pub(super) attempt: u32,
    /// Seconds that the target requests before a new login.
    pub(super) wait_s: u16,
    /// The caller wants the session closed.
    pub(super) closing: bool,
    /// When a target's request for logout runs out.
    pub(super) drain_deadline: Nanos,
    /// The current or last address of the leading connection.
    pub(super) peer: Option<SocketAddr>,
    /// Redirections of this attempt.
    pub(super) redirects: u8,
    /// Where the target has moved for good.
    pub(super) moved: Option<PortalAddress>,
    /// The target takes CHAP's number of SHA-256 for another algorithm: it is offered MD5 alone.
    pub(super) md5_only: bool,
    pub(super) logins: u32,
    /// Commands in flight that were returned since the last login.
    pub(super) lost_commands: u32,
    /// The current attempt uses another path's portal, to end the old session there.
    pub(super) via: Option<Via>,
    /// The next attempt uses it.
    pub(super) next_via: Option<Via>,
    /// Why the connection will be ended at the next tick.
    pub(super) failing: Option<LossReason>,
}

/// Another path's portal and local address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Via {
    pub(crate) portal: PortalAddress,
    pub(crate) source: Option<IpAddr>,
}

impl Recovery {
    pub(super) fn new(config: &Config, now: Nanos) -> Self {
        Self {
            login_deadline: now + nanos(config.options.login_timeout_s),
            lost_since: None,
            retry_at: 0,
            not_before: 0,
            attempt: 0,
            wait_s: 0,
            closing: false,
            drain_deadline: Nanos::MAX,
            peer: None,
            redirects: 0,
            moved: None,
            md5_only: false,
            logins: 0,
            lost_commands: 0,
            via: None,
            next_via: None,
            failing: None,
        }
    }
}

/// The further connections that a session wants.
#[derive(Debug, Default)]
pub(super) struct FurtherConnections {
    /// The target's handle of the session.
    pub(super) tsih: u16,
    /// They are not opened yet.
    pub(super) due: bool,
    /// Why there are fewer than wanted.
    pub(super) missing: Option<String>,
}
