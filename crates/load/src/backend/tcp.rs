//! TCP counters of a backend's connections between two readings.

use crate::record::tally::TcpTally;
use linerate_io::TcpInfo;

/// The kernel's counters of each connection when they were last read, by the backend's index of the connection.
#[derive(Debug, Default)]
pub(super) struct TcpCounters {
    seen: Vec<TcpInfo>,
}

impl TcpCounters {
    /// The counters of a connection since the last call; zeros while there is none.
    pub(super) fn since_last(&mut self, index: usize, now: Option<TcpInfo>) -> TcpTally {
        let Some(now) = now else { return TcpTally::default() };
        if self.seen.len() <= index {
            self.seen.resize(index + 1, TcpInfo::default());
        }
        let before = &mut self.seen[index];
        // A session that was restored has a new connection, whose counters start again.
        if now.bytes_received < before.bytes_received || now.bytes_sent < before.bytes_sent {
            *before = TcpInfo::default();
        }
        let tally = TcpTally {
            retransmits: now.retransmits.saturating_sub(before.retransmits),
            data_segments_sent: now.data_segments_sent.saturating_sub(before.data_segments_sent),
            bytes_sent: now.bytes_sent - before.bytes_sent,
            bytes_received: now.bytes_received - before.bytes_received,
            busy_us: now.busy_us.saturating_sub(before.busy_us),
            rwnd_limited_us: now.rwnd_limited_us.saturating_sub(before.rwnd_limited_us),
            sndbuf_limited_us: now.sndbuf_limited_us.saturating_sub(before.sndbuf_limited_us),
            rtt_sum_us: u64::from(now.rtt_us),
            connections: 1,
        };
        *before = now;
        tally
    }
}
