//! Counters of an array: each worker writes its own, readers add them up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident,)+) => {
        /// Totals since the array started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct ArrayStats {
            /// Connections that are open now.
            pub connections: u64,
            /// Sessions that are logged in now.
            pub sessions: u64,
            $($(#[$meta])* pub $name: u64,)+
        }

        /// One worker's counters, as other threads see them.
        #[derive(Debug, Default)]
        pub(crate) struct SharedCounters { $($name: AtomicU64,)+ }

        /// One worker's counters, as it counts.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: u64,)+ }

        impl SharedCounters {
            /// Publishes the worker's counters. It is the only writer, so plain stores do.
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
    /// Connections refused because of a limit.
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
    /// Sends that carried answers (PDUs sent per send tell how well answers gather).
    sends,
    /// Receives.
    receives,
    /// Tasks that are in progress now.
    tasks,
    /// Bytes of I/O buffers that are in use now.
    pool_bytes,
}
