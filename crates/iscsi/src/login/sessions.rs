//! What becomes of a login request in view of the sessions that exist (RFC 7143 sections 6.3.5 and 6.3.6).
//!
//! A session is named by the initiator (name and ISID) and the target with its portal group; TSIH is the target's handle.
//! The same name with TSIH 0 means that the initiator lost the old session: the new login replaces it (reinstatement).

use crate::pdu::LoginStatus;

/// What a login asks for, once its initiator has proved itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// The initiator's name, normalised.
    pub initiator_name: String,
    /// The target's name, normalised; `None` for a discovery session.
    pub target_name: Option<String>,
    /// Tag of the portal group that the login came through.
    pub portal_group_tag: u16,
    /// Initiator session ID.
    pub isid: [u8; 6],
    /// 0 for a new session, else the handle of an existing one.
    pub tsih: u16,
    /// Connection ID.
    pub cid: u16,
}

/// A session that exists, as [`decide`] needs to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingSession {
    /// The initiator's name, normalised.
    pub initiator_name: String,
    /// The target's name, normalised; `None` for a discovery session.
    pub target_name: Option<String>,
    /// Tag of the portal group that all its connections use.
    pub portal_group_tag: u16,
    /// Initiator session ID.
    pub isid: [u8; 6],
    /// Its handle.
    pub tsih: u16,
}

/// What to do with a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Start a session.
    New,
    /// End the session at this index (its tasks are aborted, its connection closed), then start a new one.
    Replace(usize),
    /// Refuse with this status.
    Refuse(LoginStatus),
}

/// Decides on a login. `sessions_max` is the most sessions that may exist; replacing one needs no room.
pub fn decide<'a>(
    existing: impl IntoIterator<Item = &'a ExistingSession>,
    request: &SessionRequest,
    sessions_max: usize,
) -> Decision {
    let mut count = 0;
    for (index, session) in existing.into_iter().enumerate() {
        count += 1;
        // The same ISID through another portal group is another nexus, and another session.
        let same_pair = session.initiator_name == request.initiator_name
            && session.target_name == request.target_name
            && session.portal_group_tag == request.portal_group_tag;
        // Discovery sessions of one initiator may share an ISID: each tool makes its own, and none holds tasks.
        let same_name = same_pair && session.isid == request.isid && request.target_name.is_some();
        if request.tsih == 0 && same_name {
            return Decision::Replace(index);
        }
        if request.tsih != 0 && session.tsih == request.tsih && same_pair {
            // One connection per session: a second one, or a first one come again, cannot join (RFC 7143 section 11.13.5).
            return Decision::Refuse(LoginStatus::CANNOT_INCLUDE);
        }
    }
    if request.tsih != 0 {
        return Decision::Refuse(LoginStatus::NO_SUCH_SESSION);
    }
    if count >= sessions_max { Decision::Refuse(LoginStatus::OUT_OF_RESOURCES) } else { Decision::New }
}
