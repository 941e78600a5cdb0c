//! Bulk TCP streams: other traffic on a network that storage uses too.
//!
//! A [`BulkSource`] opens connections to a [`BulkSink`] and sends as fast as possible, or at a rate. Both may be in
//! network namespaces, and in different processes. The sink counts the bytes that it receives; the source's kernel
//! counts retransmissions. Counters only grow: measurements are differences.
//!
//! Each is one thread with one driver (`mover`); the work of the thread (`sink`, `source`) is generic over the driver.

mod mover;
mod sink;
mod source;

use linerate_blame::Blame;
use linerate_io::{EpollDriver, SocketOptions};
use mover::Mover;
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use thiserror::Error;

/// Most connections of one source.
pub const CONNECTIONS_MAX: u32 = 1024;

/// The receiving end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkSinkSpec {
    /// Address and port; port 0 = any.
    pub address: SocketAddr,
    /// Path of the network namespace; none = this process's.
    #[serde(default)]
    pub netns: Option<String>,
}

/// The sending end.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkSourceSpec {
    /// The sink's.
    pub address: SocketAddr,
    /// Path of the network namespace; none = this process's.
    #[serde(default)]
    pub netns: Option<String>,
    /// Local address of the connections; none leaves it to the routes.
    #[serde(default)]
    pub source_address: Option<IpAddr>,
    /// Number of connections that share the traffic.
    #[serde(default = "one")]
    pub connections: u32,
    /// Rate of all connections together; None: unlimited.
    #[serde(default)]
    pub rate_bits_per_s: Option<f64>,
    /// TCP congestion control; none = the namespace's default.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// Most time to connect.
    #[serde(default = "five")]
    pub connect_timeout_s: f64,
}

/// Counters of a sink since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BulkSinkStats {
    /// Payload received.
    pub bytes_received: u64,
    /// Connections that are open.
    pub connections: u32,
}

/// Counters of a source since its start, over all of its connections. The kernel is asked every 50 ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BulkSourceStats {
    /// Payload sent, repeats included.
    pub bytes_sent: u64,
    /// Segments with payload sent, repeats included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_retransmitted: u64,
    /// Time with data to send, summed over connections.
    pub busy_us: u64,
    /// Time stalled by the sink's receive window.
    pub rwnd_limited_us: u64,
    /// Time stalled by the own send buffer.
    pub sndbuf_limited_us: u64,
    /// Round-trip time, mean of the connections' smoothed values.
    pub rtt_us: f64,
    /// The current algorithm, as the kernel reports it.
    pub congestion_control: String,
    /// Connections that are open.
    pub connections: u32,
    /// The error of the first lost connection.
    pub lost: Option<String>,
}

/// Receives and discards. Drop stops it.
#[derive(Debug)]
pub struct BulkSink {
    address: SocketAddr,
    counts: Arc<sink::SinkCounters>,
    _mover: Mover,
}

impl BulkSink {
    /// Listens. When it returns, sources can connect.
    pub fn start(spec: BulkSinkSpec) -> Result<Self, BulkError> {
        let counts = Arc::new(sink::SinkCounters::default());
        let shared = Arc::clone(&counts);
        let (mover, address) =
            Mover::start("bulk-sink", spec.netns, move |mut driver: EpollDriver, report| {
                let listened = sink::listen(&mut driver, spec.address);
                let over = report.answer(listened);
                if let Some(over) = over {
                    sink::receive(&mut driver, &shared, &over);
                }
            })?;
        Ok(Self { address, counts, _mover: mover })
    }

    /// Its address, as the kernel chose it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counters up to this moment.
    pub fn stats(&self) -> BulkSinkStats {
        self.counts.stats()
    }
}

/// Sends without end. Drop stops it.
#[derive(Debug)]
pub struct BulkSource {
    counts: Arc<source::SourceCounters>,
    _mover: Mover,
}

impl BulkSource {
    /// Connects. When it returns, all connections send.
    pub fn start(spec: BulkSourceSpec) -> Result<Self, BulkError> {
        spec.check()?;
        let counts = Arc::new(source::SourceCounters::default());
        let shared = Arc::clone(&counts);
        let netns = spec.netns.clone();
        let (mover, ()) =
            Mover::start(
                "bulk-source",
                netns,
                move |mut driver: EpollDriver, report| match source::connect(&mut driver, &spec) {
                    Ok(mut source) => {
                        if let Some(over) = report.answer(Ok(())) {
                            source.send(&mut driver, &shared, &over);
                        }
                    }
                    Err(error) => {
                        report.answer(Err(error));
                    }
                },
            )?;
        Ok(Self { counts, _mover: mover })
    }

    /// Counters as of at most 50 ms ago.
    pub fn stats(&self) -> BulkSourceStats {
        self.counts.stats()
    }
}

impl BulkSourceSpec {
    fn check(&self) -> Result<(), BulkError> {
        let refuse = |key, text: String| Err(BulkError::Spec { key, text });
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return refuse("connections", format!("must lie between 1 and {CONNECTIONS_MAX}"));
        }
        if self.rate_bits_per_s.is_some_and(|rate| !(1e3..=1e12).contains(&rate)) {
            return refuse("rate_bits_per_s", "must lie between 1e3 and 1e12".into());
        }
        if !(0.001..=3600.0).contains(&self.connect_timeout_s) {
            return refuse("connect_timeout_s", "must lie between 0.001 and 3600".into());
        }
        Ok(())
    }

    fn socket_options(&self) -> SocketOptions {
        SocketOptions {
            congestion_control: self.congestion_control.clone(),
            bind: self.source_address,
            ..SocketOptions::default()
        }
    }
}

fn one() -> u32 {
    1
}

fn five() -> f64 {
    5.0
}

/// A bulk stream could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BulkError {
    /// A value of the specification is wrong.
    #[error("{key}: {text}")]
    Spec {
        /// Which key.
        key: &'static str,
        /// The valid values.
        text: String,
    },
    /// The network namespace cannot be entered.
    #[error(transparent)]
    Netns(io::Error),
    /// The sink cannot listen on its address.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// A socket cannot be made with these options.
    #[error("cannot make a connection to {address}: {error}")]
    Socket {
        /// Where to.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The sink does not answer.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// Which.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The machine has no resources for a thread, a driver or memory.
    #[error("{0}")]
    Host(String),
}

impl BulkError {
    /// Whose fault it was.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Netns(error) if error.kind() == io::ErrorKind::PermissionDenied => Blame::Host,
            Self::Spec { .. } | Self::Netns(_) | Self::Listen { .. } | Self::Socket { .. } => Blame::User,
            Self::Connect { .. } => Blame::Peer,
            Self::Host(_) => Blame::Host,
        }
    }
}
