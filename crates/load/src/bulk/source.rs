//! The sending side: connections that send without pause, or at a rate.

use super::{BulkError, BulkSourceSpec, BulkSourceStats};
use linerate_io::{Completion, Driver, Handle, Nanos, Outgoing, Region, Seg, TcpInfo, Wait};
use std::{
    io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Most bytes handed to the kernel at once.
const CHUNK_BYTES: u32 = 256 * 1024;
/// A paced connection sends this much time of its rate at once.
const PACE_NS: f64 = 5e6;
/// Most lost time that a paced connection catches up with.
const CATCH_UP_NS: u64 = 100_000_000;
/// Time between two readings of the kernel's counters.
const LOOK_NS: u64 = 50_000_000;

/// Counters that the source's thread updates and other threads read.
#[derive(Debug, Default)]
pub(super) struct SourceCounters(Mutex<BulkSourceStats>);

impl SourceCounters {
    pub(super) fn stats(&self) -> BulkSourceStats {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
struct BulkConnection {
    stream: Handle,
    /// None while it is being sent.
    outgoing: Option<Box<Outgoing>>,
    due: Nanos,
    seen: TcpInfo,
    lost: bool,
}

/// Connections of one source.
#[derive(Debug)]
pub(super) struct Source {
    connections: Vec<BulkConnection>,
    chunk: Seg,
    /// Between two chunks of one connection; 0 = none.
    pace_ns: u64,
    lost: Option<String>,
}

/// Opens every connection.
pub(super) fn connect<D: Driver>(driver: &mut D, spec: &BulkSourceSpec) -> Result<Source, BulkError> {
    let region = Region::anonymous(CHUNK_BYTES.into()).map_err(|error| BulkError::Host(error.to_string()))?;
    let region = driver.attach(region);
    let (bytes, pace_ns) = chunk(spec.rate_bits_per_s.map(|rate| rate / f64::from(spec.connections)));
    let mut connections = Vec::new();
    for _ in 0..spec.connections {
        let stream = driver
            .connect(spec.address, &spec.socket_options())
            .map_err(|error| BulkError::Socket { address: spec.address, error })?;
        let outgoing = Some(Box::new(Outgoing::new()));
        connections.push(BulkConnection { stream, outgoing, due: 0, seen: TcpInfo::default(), lost: false });
    }
    await_connections(driver, spec)?;
    let now = driver.now();
    for (nth, connection) in connections.iter_mut().enumerate() {
        // Spread over the first period, so that they do not send in step.
        connection.due = now + pace_ns * nth as u64 / u64::from(spec.connections);
    }
    Ok(Source { connections, chunk: Seg { region, offset: 0, len: bytes }, pace_ns, lost: None })
}

/// Bytes to send at once, and ns until the next ones, for one connection's rate.
fn chunk(rate_bits_per_s: Option<f64>) -> (u32, u64) {
    let Some(rate) = rate_bits_per_s else { return (CHUNK_BYTES, 0) };
    let bytes_per_ns = rate / 8e9;
    let bytes = (bytes_per_ns * PACE_NS).round().clamp(1.0, f64::from(CHUNK_BYTES));
    (bytes as u32, (bytes / bytes_per_ns).round() as u64)
}

fn await_connections<D: Driver>(driver: &mut D, spec: &BulkSourceSpec) -> Result<(), BulkError> {
    let failed = |error| BulkError::Connect { address: spec.address, error };
    let until = driver.now() + (spec.connect_timeout_s * 1e9) as u64;
    let mut waiting = spec.connections;
    let mut completions = Vec::new();
    while waiting > 0 {
        if driver.now() >= until {
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        driver.poll(Wait::Until(until), &mut completions).map_err(failed)?;
        for completion in completions.drain(..) {
            if let Completion::Connected { result, .. } = completion {
                result.map_err(failed)?;
                waiting -= 1;
            }
        }
    }
    Ok(())
}

impl Source {
    /// Sends until it is stopped.
    pub(super) fn send<D: Driver>(&mut self, driver: &mut D, counts: &SourceCounters, over: &AtomicBool) {
        let mut completions = Vec::new();
        let mut look = driver.now();
        while !over.load(Relaxed) {
            let now = driver.now();
            if now >= look {
                self.look(driver, counts);
                look = now + LOOK_NS;
            }
            let until = self.send_due(driver, now).min(look);
            if let Err(error) = driver.poll(Wait::Until(until), &mut completions) {
                self.lost = Some(format!("waiting for the network failed: {error}"));
                break;
            }
            for completion in completions.drain(..) {
                if let Completion::Sent { stream, result, outgoing } = completion {
                    self.sent(stream, result, outgoing);
                }
            }
        }
        self.look(driver, counts);
    }

    /// Submits the chunks that are due. Returns the time of the next one.
    fn send_due<D: Driver>(&mut self, driver: &mut D, now: Nanos) -> Nanos {
        let mut next = Nanos::MAX;
        for connection in self.connections.iter_mut().filter(|one| !one.lost) {
            if connection.due <= now {
                if let Some(mut outgoing) = connection.outgoing.take() {
                    outgoing.clear();
                    outgoing.push_seg(self.chunk);
                    driver.send(connection.stream, outgoing);
                    connection.due = connection.due.max(now.saturating_sub(CATCH_UP_NS)) + self.pace_ns;
                }
            } else {
                next = next.min(connection.due);
            }
        }
        next
    }

    fn sent(&mut self, stream: Handle, result: io::Result<()>, outgoing: Box<Outgoing>) {
        let Some(connection) = self.connections.iter_mut().find(|one| one.stream == stream) else {
            unreachable!("a lost connection stays in the list")
        };
        connection.outgoing = Some(outgoing);
        if let Err(error) = result {
            connection.lost = true;
            self.lost.get_or_insert_with(|| error.to_string());
        }
    }

    /// Reads the kernel's counters of the connections and publishes them. A lost connection keeps its last values.
    fn look<D: Driver>(&mut self, driver: &D, counts: &SourceCounters) {
        let count = self.connections.len() as f64;
        let mut sum = BulkSourceStats { lost: self.lost.clone(), ..BulkSourceStats::default() };
        for connection in &mut self.connections {
            if let Some(seen) = (!connection.lost).then(|| driver.tcp_info(connection.stream).ok()).flatten()
            {
                connection.seen = seen;
            }
            let seen = &connection.seen;
            sum.bytes_sent += seen.bytes_sent;
            sum.segments_sent += seen.data_segments_sent;
            sum.segments_retransmitted += seen.retransmits;
            sum.busy_us += seen.busy_us;
            sum.rwnd_limited_us += seen.rwnd_limited_us;
            sum.sndbuf_limited_us += seen.sndbuf_limited_us;
            sum.rtt_us += f64::from(seen.rtt_us) / count;
            sum.connections += u32::from(!connection.lost);
            sum.congestion_control.clone_from(&seen.congestion_control);
        }
        *counts.0.lock().unwrap_or_else(PoisonError::into_inner) = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, chunk};

    #[test]
    fn chunks_and_pauses_make_the_rate() {
        for rate in [1e3, 1e6, 3.3e8, 1e10] {
            let (bytes, pace_ns) = chunk(Some(rate));
            assert!((f64::from(bytes) * 8e9 / pace_ns as f64 / rate - 1.0).abs() < 1e-3, "{rate}");
            assert!(bytes <= CHUNK_BYTES);
        }
        assert_eq!(chunk(None), (CHUNK_BYTES, 0));
    }
}
