//! Counters of an array and of its sessions: each worker writes its own, readers add them.

use linerate_io::Nanos;
use linerate_iscsi_proto::login::ExistingSession;
use linerate_scsi::Nexus;
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident,)+) => {
        /// Totals since the array started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct ArrayStats {
            /// Connections that are open now.
            pub connections: u64,
            /// Sessions that are logged in now.
            pub sessions: u64,
            /// Bytes of memory volumes and disks that it still touches ahead of their first use; 0: none.
            pub untouched_bytes: u64,
            $($(#[$meta])* pub $name: u64,)+
        }

        /// One worker's counters, for other threads.
        #[derive(Debug, Default)]
        pub(crate) struct SharedCounters { $($name: AtomicU64,)+ }

        /// One worker's counters, for the worker itself.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: u64,)+ }

        impl SharedCounters {
            /// Publishes the worker's counters. It is the only writer, so plain stores are enough.
            pub(crate) fn publish(&self, counters: &Counters) {
                $(self.$name.store(counters.$name, Relaxed);)+
            }

            pub(crate) fn add_to(&self, stats: &mut ArrayStats) {
                $(stats.$name += self.$name.load(Relaxed);)+
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections_accepted,
    /// Connections that had not logged in, dropped because there were too many.
    connections_refused,
    /// Sessions that reached full feature phase, discovery included.
    logins,
    /// Logins refused or not finished in time.
    logins_failed,
    /// PDUs received.
    pdus_received,
    /// PDUs sent.
    pdus_sent,
    /// Bytes received, headers included.
    bytes_received,
    /// Bytes sent, headers included.
    bytes_sent,
    /// SCSI commands begun.
    commands,
    /// SCSI reads that succeeded.
    reads,
    /// SCSI writes that succeeded.
    writes,
    /// Payload bytes of those reads.
    read_bytes,
    /// Payload bytes of those writes.
    written_bytes,
    /// Commands that ended with CHECK CONDITION.
    check_conditions,
    /// Task management requests.
    task_managements,
    /// PDUs rejected.
    rejects,
    /// Connections closed because the peer broke the protocol.
    protocol_errors,
    /// Connections closed because a digest was wrong.
    digest_errors,
    /// Connections closed by a timeout.
    timeouts,
    /// Volume operations that the host failed.
    medium_errors,
    /// Sends that carried answers (PDUs per send show how many answers are sent together).
    sends,
    /// Receives.
    receives,
    /// Tasks that are in progress now.
    tasks,
    /// Bytes of I/O buffers that are in use now.
    pool_bytes,
    /// CPU time that workers spent in polls that found nothing.
    polled_ns,
}

/// An address on which an array listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PortalStats {
    /// Address and port.
    pub address: SocketAddr,
    /// Tag of its portal group.
    pub group: u16,
}

/// One connection of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ConnectionStats {
    /// Connection ID.
    pub cid: u16,
    /// Address and port of the initiator.
    pub peer: SocketAddr,
    /// Address and port that it is connected to.
    pub portal: SocketAddr,
    /// SCSI commands begun.
    pub commands: u64,
    /// Payload bytes of SCSI reads that succeeded.
    pub read_bytes: u64,
    /// Payload bytes of SCSI writes that succeeded.
    pub written_bytes: u64,
}

/// One session; its counters are at most a tick old.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SessionStats {
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// Name of the target; none for a discovery session.
    pub target: Option<String>,
    /// Initiator session ID, 12 hexadecimal digits.
    pub isid: String,
    /// Target session identifying handle.
    pub tsih: u16,
    /// Address and port of the initiator; with several connections, of the first.
    pub peer: SocketAddr,
    /// Address and port that it is connected to; with several connections, of the first.
    pub portal: SocketAddr,
    /// Its connections, the oldest first.
    pub connections: Vec<ConnectionStats>,
    /// Tag of the portal group.
    pub group: u16,
    /// Logical units that it can see.
    pub luns: usize,
    /// Logical units that it has sent commands to.
    pub luns_used: usize,
    /// SCSI commands begun.
    pub commands: u64,
    /// SCSI reads that succeeded.
    pub reads: u64,
    /// SCSI writes that succeeded.
    pub writes: u64,
    /// Payload bytes of those reads.
    pub read_bytes: u64,
    /// Payload bytes of those writes.
    pub written_bytes: u64,
    /// Commands in progress.
    pub outstanding: u64,
    /// Login, on the clock of the host (`CLOCK_MONOTONIC`).
    pub since_monotonic_ns: Nanos,
    /// When bytes of it were last received.
    pub heard_monotonic_ns: Nanos,
}

/// The counters of a session for its worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionCounters {
    pub(crate) commands: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// A session's connection for other threads. Its worker publishes once per tick, so commands need no atomics.
#[derive(Debug)]
pub(crate) struct LiveSession {
    peer: SocketAddr,
    portal: SocketAddr,
    commands: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    outstanding: AtomicU64,
    since: AtomicU64,
    heard: AtomicU64,
}

impl LiveSession {
    /// A connection between the initiator's end and ours.
    pub(crate) fn new((peer, portal): (SocketAddr, SocketAddr)) -> Self {
        Self {
            peer,
            portal,
            commands: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            outstanding: AtomicU64::new(0),
            since: AtomicU64::new(0),
            heard: AtomicU64::new(0),
        }
    }

    /// The initiator's end.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn begin(&self, now: Nanos) {
        self.since.store(now, Relaxed);
        self.heard.store(now, Relaxed);
    }

    pub(crate) fn publish(&self, counters: &SessionCounters, outstanding: usize, heard: Nanos) {
        self.commands.store(counters.commands, Relaxed);
        self.reads.store(counters.reads, Relaxed);
        self.writes.store(counters.writes, Relaxed);
        self.read_bytes.store(counters.read_bytes, Relaxed);
        self.written_bytes.store(counters.written_bytes, Relaxed);
        self.outstanding.store(outstanding as u64, Relaxed);
        self.heard.store(heard, Relaxed);
    }

    fn connection(&self, cid: u16) -> ConnectionStats {
        ConnectionStats {
            cid,
            peer: self.peer,
            portal: self.portal,
            commands: self.commands.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
        }
    }
}

impl SessionStats {
    /// A session with its connections, in the order of their IDs; None if it has no connection.
    pub(crate) fn of<'a>(
        session: &ExistingSession,
        nexus: Option<&Nexus>,
        members: impl Iterator<Item = &'a LiveSession> + Clone,
    ) -> Option<Self> {
        let first = members.clone().next()?;
        let sum = |counter: fn(&LiveSession) -> &AtomicU64| {
            members.clone().map(|live| counter(live).load(Relaxed)).sum()
        };
        let connections = session.cids.iter().zip(members.clone());
        Some(Self {
            initiator: session.initiator_name.clone(),
            target: session.target_name.clone(),
            isid: hexadecimal(session.isid),
            tsih: session.tsih,
            peer: first.peer,
            portal: first.portal,
            connections: connections.map(|(cid, live)| live.connection(*cid)).collect(),
            group: session.portal_group_tag,
            luns: nexus.map_or(0, |nexus| nexus.inventory().units().len()),
            luns_used: nexus.map_or(0, Nexus::units_used),
            commands: sum(|live| &live.commands),
            reads: sum(|live| &live.reads),
            writes: sum(|live| &live.writes),
            read_bytes: sum(|live| &live.read_bytes),
            written_bytes: sum(|live| &live.written_bytes),
            outstanding: sum(|live| &live.outstanding),
            since_monotonic_ns: first.since.load(Relaxed),
            heard_monotonic_ns: members.map(|live| live.heard.load(Relaxed)).max().unwrap_or(0),
        })
    }
}

fn hexadecimal(isid: [u8; 6]) -> String {
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&isid);
    format!("{:012x}", u64::from_be_bytes(bytes))
}
