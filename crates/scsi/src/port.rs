//! The two ends of an `I_T` nexus.

/// An initiator port: iSCSI name and ISID (RFC 7143 4.2.7.1). Names are compared without changes: normalise them first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InitiatorPort {
    /// iSCSI name of the initiator.
    pub name: String,
    /// Initiator session ID.
    pub isid: [u8; 6],
}

/// Both ends of a nexus: the unit of registration for persistent reservations. It survives logout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortPair {
    pub(crate) initiator: InitiatorPort,
    pub(crate) relative_port: u16,
}
