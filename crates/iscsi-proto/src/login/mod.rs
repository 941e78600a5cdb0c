//! The login phase (RFC 7143 section 6.3) of both sides.
//!
//! A login is a conversation of login requests and responses on one connection, each carrying text:
//!
//! - **security stage**: both say their names; the target may demand CHAP (method, then algorithm and challenge, then
//!   response), and with mutual CHAP the initiator demands a proof in turn;
//! - **operational stage**: keys are negotiated ([`crate::keys`]);
//! - **full feature phase**: what follows is SCSI.
//!
//! The initiator asks to move on with the T bit, the target agrees by setting it too. Which step may follow which is
//! written down as data in `table.rs`; [`TargetLogin`] and [`InitiatorLogin`] work out what a message *means* and the
//! tables say whether it may come *now*. `docs/rfc7143-states.md` is generated from the same tables.
//!
//! A login whose requests carry the handle of a session (TSIH) adds a connection to it: the same stages, but only what
//! belongs to the connection is negotiated.
//!
//! Both machines are driven by whole PDUs: [`TargetLogin::receive`] and [`InitiatorLogin::receive`] take a header and its
//! data segment and give the PDU to send. Random bytes come from the caller. Deadlines are the caller's too.

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

/// Most PDUs that one side may send in a login: a bound on how long a peer can keep it going.
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
    /// What was negotiated.
    pub params: SessionParams,
    /// It began the session; otherwise it added a connection to one.
    pub leading: bool,
    /// Sequence number of the session's first command; of one that was joined, the next that the target expects.
    pub cmd_sn: u32,
    /// Sequence number of the next status.
    pub stat_sn: u32,
    /// `MaxCmdSN` as the final response said it.
    pub max_cmd_sn: u32,
    /// The user that the initiator proved to be.
    pub user: Option<String>,
    /// `TargetPortalGroupTag`, if the target said one.
    pub portal_group_tag: Option<u16>,
}

impl Established {
    /// True in a discovery session.
    pub fn is_discovery(&self) -> bool {
        self.target_name.is_none()
    }
}
