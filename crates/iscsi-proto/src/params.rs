//! The values that were negotiated during login.

/// Protects a segment on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestKind {
    /// No digest.
    #[default]
    None,
    /// CRC32C.
    Crc32c,
}

/// The negotiated result (RFC 7143 section 13), as both sides use it in full feature phase. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionParams {
    /// Largest data segment that we may receive (we declared it).
    pub max_recv_data_segment_length: u32,
    /// Largest data segment that the peer may receive (it declared it): the limit for our PDUs.
    pub peer_max_recv_data_segment_length: u32,
    /// Largest solicited Data-Out or Data-In sequence.
    pub max_burst_length: u32,
    /// Largest amount of unsolicited data per command, immediate data included.
    pub first_burst_length: u32,
    /// Data may ride in the command PDU.
    pub immediate_data: bool,
    /// Unsolicited Data-Out PDUs are forbidden.
    pub initial_r2t: bool,
    /// R2Ts outstanding per task.
    pub max_outstanding_r2t: u16,
    /// Header digest.
    pub header_digest: DigestKind,
    /// Data digest.
    pub data_digest: DigestKind,
    /// Seconds to wait before reconnecting.
    pub default_time2wait_s: u16,
    /// Seconds that tasks are kept after that.
    pub default_time2retain_s: u16,
    /// Connections per session.
    pub max_connections: u16,
    /// Error recovery level.
    pub error_recovery_level: u8,
}

impl Default for SessionParams {
    /// The values of keys that are not negotiated (RFC 7143 section 13); they are also valid during the login itself.
    fn default() -> Self {
        SessionParams {
            max_recv_data_segment_length: 8192,
            peer_max_recv_data_segment_length: 8192,
            max_burst_length: 262_144,
            first_burst_length: 65_536,
            immediate_data: true,
            initial_r2t: true,
            max_outstanding_r2t: 1,
            header_digest: DigestKind::None,
            data_digest: DigestKind::None,
            default_time2wait_s: 2,
            default_time2retain_s: 20,
            max_connections: 1,
            error_recovery_level: 0,
        }
    }
}
