//! The receiving side: accepts connections, counts bytes and discards them.

use super::{BulkError, BulkSinkStats};
use linerate_io::{Buffer, Completion, Driver, Handle, SocketOptions, Wait};
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// Memory of one receive.
const RECEIVE_BYTES: usize = 256 * 1024;

/// Counters that the sink's thread updates and other threads read.
#[derive(Debug, Default)]
pub(super) struct SinkCounters {
    bytes: AtomicU64,
    connections: AtomicU32,
}

impl SinkCounters {
    pub(super) fn stats(&self) -> BulkSinkStats {
        BulkSinkStats {
            bytes_received: self.bytes.load(Relaxed),
            connections: self.connections.load(Relaxed),
        }
    }
}

/// Listens on an address; returns the actual one.
pub(super) fn listen<D: Driver>(driver: &mut D, address: SocketAddr) -> Result<SocketAddr, BulkError> {
    let opened = driver.listen(address, &SocketOptions::default());
    opened
        .and_then(|listener| driver.local_addr(listener))
        .map_err(|error| BulkError::Listen { address, error })
}

/// Receives until it is stopped.
pub(super) fn receive<D: Driver>(driver: &mut D, counts: &SinkCounters, over: &AtomicBool) {
    let mut completions = Vec::new();
    // An error of the driver ends the sink: its sources see their connections close.
    while !over.load(Relaxed) && driver.poll(Wait::Forever, &mut completions).is_ok() {
        for completion in completions.drain(..) {
            match completion {
                Completion::Accepted { result: Ok((socket, _)), .. } => accept(driver, socket, counts),
                Completion::Received { stream, result, buffer } => {
                    received(driver, stream, result.unwrap_or(0), buffer, counts);
                }
                _ => {}
            }
        }
    }
}

fn accept<D: Driver>(driver: &mut D, socket: D::Socket, counts: &SinkCounters) {
    // The source notices a connection that ended in the backlog.
    if let Ok(stream) = driver.add_stream(socket, &SocketOptions::default()) {
        counts.connections.fetch_add(1, Relaxed);
        driver.recv(stream, &[], Buffer::new(RECEIVE_BYTES));
    }
}

fn received<D: Driver>(driver: &mut D, stream: Handle, bytes: usize, buffer: Buffer, counts: &SinkCounters) {
    if bytes == 0 {
        driver.close(stream);
        counts.connections.fetch_sub(1, Relaxed);
        return;
    }
    counts.bytes.fetch_add(bytes as u64, Relaxed);
    driver.recv(stream, &[], buffer);
}
