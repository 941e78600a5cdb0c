//! The login phase (RFC 7143 section 6.3) of both sides.
//!
//! A login is an exchange of login requests and responses on one connection; each carries text:
//!
//! - **security stage**: both sides send their names. The target may require CHAP (method, then algorithm and
//!   challenge, then response). With mutual CHAP the initiator also requires authentication of the target;
//! - **operational stage**: keys are negotiated ([`crate::keys`]);
//! - **full feature phase**: SCSI follows.
//!
//! The initiator requests the next stage with the T bit, and the target agrees by setting it too. The order of steps is
//! data in `table.rs`: [`TargetLogin`] and [`InitiatorLogin`] find out the meaning of a message, and the tables tell
//! whether it is allowed in this state. `docs/rfc7143-states.md` is generated from the same tables.
//!
//! A login with the handle of a session (TSIH) in its requests adds a connection to it: the stages are the same, but
//! only the keys of the connection are negotiated.
//!
//! The input of both state machines are whole PDUs: [`TargetLogin::receive`] and [`InitiatorLogin::receive`] take a
//! header and its data segment and return the PDU to send. The caller provides random bytes and handles deadlines.

mod initiator;
mod sessions;
mod table;
mod target;
mod target_auth;

pub use initiator::{InitiatorConfig, InitiatorLogin, InitiatorStep, Join, LoginFailure};
pub use sessions::{Decision, ExistingSession, SessionRequest, decide};
pub use table::{
    INITIATOR_LOGIN, InitiatorEvent, InitiatorState, Row, TARGET_LOGIN, TargetEvent, TargetState, next_state,
};
pub use target::{
    Accepted, Joined, LoginRefusal, Lookup, TargetHost, TargetLogin, TargetLoginConfig, TargetReply,
    TargetStep,
};

use crate::params::SessionParams;

/// The only protocol version (RFC 7143 section 11.12.4).
pub const VERSION: u8 = 0x00;

/// Largest data segment during login, before anything is negotiated (RFC 7143 section 13.12).
pub const LOGIN_DATA_BYTES_MAX: u32 = 8192;

/// Most PDUs that one side may send in a login: it limits how long a peer can continue it.
const LOGIN_PDUS_MAX: u32 = 64;

/// A finished login, on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Established {
    /// The initiator's name, normalised.
    pub initiator_name: String,
    /// The target's name, normalised; `None` in a discovery session.
    pub target_name: Option<String>,
    /// Initiator session ID.
    pub isid: [u8; 6],
    /// Target session identifying handle.
    pub tsih: u16,
    /// Connection ID.
    pub cid: u16,
    /// The negotiated values.
    pub params: SessionParams,
    /// It began the session; otherwise it added a connection to one.
    pub leading: bool,
    /// Sequence number of the session's first command; for a joined session, the next one that the target expects.
    pub cmd_sn: u32,
    /// Sequence number of the next status.
    pub stat_sn: u32,
    /// `MaxCmdSN` of the final response.
    pub max_cmd_sn: u32,
    /// The user that the initiator proved to be.
    pub user: Option<String>,
    /// `TargetPortalGroupTag`, if the target sent one.
    pub portal_group_tag: Option<u16>,
}

impl Established {
    /// True in a discovery session.
    pub fn is_discovery(&self) -> bool {
        self.target_name.is_none()
    }
}
