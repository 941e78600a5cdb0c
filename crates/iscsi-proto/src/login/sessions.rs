//! Decides about a login request, depending on the existing sessions (RFC 7143 sections 6.3.5 and 6.3.6).
//!
//! A session is identified by the initiator (name and ISID) and the target with its portal group; TSIH is the target's
//! handle. A login with the same identity and TSIH 0 means that the initiator has lost the old session: the new login
//! replaces it (reinstatement). A login with the session's TSIH adds a connection, up to the negotiated number. If its
//! CID is in use, it is refused: it could only replace the old connection (connection reinstatement, section 6.3.4),
//! but at error recovery level 0 a lost connection ends its session.

use crate::pdu::LoginStatus;

/// The request of a login, once its initiator is authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// The initiator's name, normalised.
    pub initiator_name: String,
    /// The target's name, normalised; `None` for a discovery session.
    pub target_name: Option<String>,
    /// Tag of the portal group of the login.
    pub portal_group_tag: u16,
    /// Initiator session ID.
    pub isid: [u8; 6],
    /// 0 for a new session, else the handle of an existing one.
    pub tsih: u16,
    /// Connection ID.
    pub cid: u16,
    /// `MaxConnections`, as negotiated by this login, or by the session before.
    pub max_connections: u16,
}

/// An existing session, for [`decide`].
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
    /// `MaxConnections` as negotiated.
    pub max_connections: u16,
    /// Connection IDs in use.
    pub cids: Vec<u16>,
}

impl ExistingSession {
    /// The session that a login starts.
    pub fn begun_by(request: &SessionRequest, tsih: u16) -> Self {
        ExistingSession {
            initiator_name: request.initiator_name.clone(),
            target_name: request.target_name.clone(),
            portal_group_tag: request.portal_group_tag,
            isid: request.isid,
            tsih,
            max_connections: request.max_connections,
            cids: vec![request.cid],
        }
    }

    /// Whether the login is for this session: the same ISID through another portal group is another nexus, and another
    /// session.
    pub fn is_named_by(&self, request: &SessionRequest) -> bool {
        self.initiator_name == request.initiator_name
            && self.target_name == request.target_name
            && self.portal_group_tag == request.portal_group_tag
            && self.isid == request.isid
    }
}

/// The decision about a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Start a session.
    New,
    /// Add a connection to the session at this index.
    Join(usize),
    /// End the session at this index (its tasks are aborted, its connections closed), then start a new one.
    Replace(usize),
    /// Refuse with this status.
    Refuse(LoginStatus),
}

/// Decides about a login. `sessions_max` is the limit of sessions; a replacement does not count.
pub fn decide<'a>(
    existing: impl IntoIterator<Item = &'a ExistingSession>,
    request: &SessionRequest,
    sessions_max: usize,
) -> Decision {
    let mut count = 0;
    for (index, session) in existing.into_iter().enumerate() {
        count += 1;
        if !session.is_named_by(request) {
            continue;
        }
        // Discovery sessions of one initiator may share an ISID: each tool makes its own ISID, and none has tasks.
        if request.tsih == 0 && request.target_name.is_some() {
            return Decision::Replace(index);
        }
        if request.tsih != 0 && session.tsih == request.tsih {
            return join(session, request).map_or_else(Decision::Refuse, |()| Decision::Join(index));
        }
    }
    if request.tsih != 0 {
        return Decision::Refuse(LoginStatus::NO_SUCH_SESSION);
    }
    if count >= sessions_max { Decision::Refuse(LoginStatus::OUT_OF_RESOURCES) } else { Decision::New }
}

/// Whether another connection fits into a session.
fn join(session: &ExistingSession, request: &SessionRequest) -> Result<(), LoginStatus> {
    if session.cids.contains(&request.cid) {
        return Err(LoginStatus::CANNOT_INCLUDE);
    }
    if session.cids.len() >= usize::from(session.max_connections) {
        return Err(LoginStatus::TOO_MANY_CONNECTIONS);
    }
    Ok(())
}
