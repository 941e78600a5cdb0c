//! Settings of a session, with defaults for a fast initiator.
//!
//! All are optional in JSON. The values are what this side *offers*; the session uses the outcome of the negotiation,
//! which is read back from [`crate::SessionFacts`].

use super::address::PortalAddress;
use super::error::OptionsError;
use crate::balance::Policy;
use linerate_iscsi_proto::keys::{DigestOffer, Offer};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;

/// Whether a CRC32C digest protects headers or data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DigestChoice {
    /// Offer no digest.
    #[default]
    None,
    /// Require CRC32C; a target that refuses fails the login.
    Crc32c,
    /// Prefer CRC32C, accept none.
    Offer,
}

/// How the commands of a session are spread over its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionPolicy {
    /// Each connection in turn.
    #[default]
    RoundRobin,
    /// The connection with the fewest commands in flight.
    LeastQueueDepth,
}

impl From<ConnectionPolicy> for Policy {
    fn from(policy: ConnectionPolicy) -> Self {
        match policy {
            ConnectionPolicy::RoundRobin => Policy::RoundRobin,
            ConnectionPolicy::LeastQueueDepth => Policy::LeastQueueDepth,
        }
    }
}

/// Most connections of a session.
pub(crate) const CONNECTIONS_MAX: u16 = 64;

/// Settings of one session. Lengths in bytes, times in seconds.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionOptions {
    /// `HeaderDigest` (RFC 7143 13.1).
    pub header_digest: DigestChoice,
    /// `DataDigest` (RFC 7143 13.1).
    pub data_digest: DigestChoice,
    /// `ImmediateData`: the command PDU may contain write data (13.11).
    pub immediate_data: bool,
    /// `InitialR2T`: the target must request the first burst (13.10).
    pub initial_r2t: bool,
    /// `FirstBurstLength` (13.14).
    pub first_burst_bytes: u32,
    /// `MaxBurstLength` (13.13).
    pub max_burst_bytes: u32,
    /// `MaxRecvDataSegmentLength` that this side declares (13.12).
    pub max_recv_data_segment_bytes: u32,
    /// `MaxOutstandingR2T` (13.17).
    pub max_outstanding_r2t: u16,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `SO_SNDBUF`; none leaves the kernel's autotuning on.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF`; none leaves the kernel's autotuning on.
    pub recv_buffer_bytes: Option<u32>,
    /// `TCP_CONGESTION` by name, such as "cubic"; none is the host's default.
    pub congestion_control: Option<String>,
    /// Local address of connections; None: the routes decide.
    pub source_address: Option<IpAddr>,
    /// Limit of TCP connect and login together.
    pub login_timeout_s: f64,
    /// Limit of one command, from its first send.
    pub command_timeout_s: f64,
    /// How long commands wait for a lost session to be restored before they fail.
    pub replacement_timeout_s: f64,
    /// Idle time after which the target is pinged; 0 = never.
    pub ping_interval_s: f64,
    /// Time that a ping may take before the connection counts as lost.
    pub ping_timeout_s: f64,
    /// `MaxConnections` in our offer (13.2), and the number of connections that the session opens if the target agrees.
    pub connections: u16,
    /// Portals for the further connections, in turn. They must be in the portal group of the first connection. None:
    /// the portal of the first connection.
    pub connection_portals: Vec<PortalAddress>,
    /// Which connection a command takes.
    pub connection_policy: ConnectionPolicy,
    /// Our iSCSI name; none = a name made from the product's default.
    pub initiator_name: Option<String>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            header_digest: DigestChoice::None,
            data_digest: DigestChoice::None,
            immediate_data: true,
            initial_r2t: false,
            first_burst_bytes: 256 * 1024,
            max_burst_bytes: 1024 * 1024,
            max_recv_data_segment_bytes: 256 * 1024,
            max_outstanding_r2t: 4,
            nodelay: true,
            send_buffer_bytes: None,
            recv_buffer_bytes: None,
            congestion_control: None,
            source_address: None,
            login_timeout_s: 15.0,
            command_timeout_s: 30.0,
            replacement_timeout_s: 120.0,
            ping_interval_s: 5.0,
            ping_timeout_s: 5.0,
            connections: 1,
            connection_portals: Vec::new(),
            connection_policy: ConnectionPolicy::default(),
            initiator_name: None,
        }
    }
}

impl SessionOptions {
    /// As the negotiation needs it.
    pub(crate) fn offer(&self) -> Offer {
        let digest = |choice| match choice {
            DigestChoice::None => DigestOffer::Refuse,
            DigestChoice::Crc32c => DigestOffer::Require,
            DigestChoice::Offer => DigestOffer::Prefer,
        };
        Offer {
            header_digest: digest(self.header_digest),
            data_digest: digest(self.data_digest),
            max_recv_data_segment_length: self.max_recv_data_segment_bytes,
            max_burst_length: self.max_burst_bytes,
            first_burst_length: self.first_burst_bytes,
            immediate_data: self.immediate_data,
            initial_r2t: self.initial_r2t,
            max_outstanding_r2t: self.max_outstanding_r2t,
            default_time2wait_s: 0,
            default_time2retain_s: 0,
            max_connections: self.connections,
        }
    }

    /// The name used when the options have none.
    pub const DEFAULT_INITIATOR_NAME: &str = "iqn.2026-11.lab.linerate:initiator";

    /// Refuses values that no negotiation can repair.
    pub fn check(&self) -> Result<(), OptionsError> {
        /// RFC 7143 13.12 to 13.14: the range of every length key.
        const LENGTH_RANGE_BYTES: std::ops::RangeInclusive<u32> = 512..=(1 << 24) - 1;
        for (key, value) in [
            ("first_burst_bytes", self.first_burst_bytes),
            ("max_burst_bytes", self.max_burst_bytes),
            ("max_recv_data_segment_bytes", self.max_recv_data_segment_bytes),
        ] {
            if !LENGTH_RANGE_BYTES.contains(&value) {
                return Err(OptionsError::Length { key, value });
            }
        }
        if self.first_burst_bytes > self.max_burst_bytes {
            return Err(OptionsError::BurstOrder {
                first: self.first_burst_bytes,
                max: self.max_burst_bytes,
            });
        }
        if self.max_outstanding_r2t == 0 {
            return Err(OptionsError::ZeroR2t);
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return Err(OptionsError::Connections(self.connections));
        }
        for (key, seconds, least) in [
            ("login_timeout_s", self.login_timeout_s, 0.001),
            ("command_timeout_s", self.command_timeout_s, 0.001),
            ("replacement_timeout_s", self.replacement_timeout_s, 0.0),
            ("ping_interval_s", self.ping_interval_s, 0.0),
            ("ping_timeout_s", self.ping_timeout_s, 0.001),
        ] {
            // A million seconds keeps every deadline far from the end of a 64-bit nanosecond clock.
            if !(least..=1e6).contains(&seconds) {
                return Err(OptionsError::Time { key, seconds });
            }
        }
        Ok(())
    }
}
