//! A relay between client and server that cuts connections, or holds bytes back, at chosen bytes.

#![allow(clippy::disallowed_methods, reason = "a thread of the test that waits")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What the relay does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Closes both sides.
    Cut,
    /// Passes nothing on for this time.
    Pause(Duration),
}

/// When it does it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// In the direction to the client, or to the server.
    pub(crate) to_client: bool,
    /// Behind this many bytes of that direction.
    pub(crate) after_bytes: usize,
    pub(crate) act: Act,
}

/// Relays connections to a port of the loopback until it is dropped.
pub(crate) struct Relay {
    pub(crate) port: u16,
    is_ended: Arc<AtomicBool>,
}

impl Relay {
    /// The first connections have one fault each, the next ones none.
    pub(crate) fn start(server_port: u16, faults: Vec<Fault>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_ended = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&is_ended);
        std::thread::spawn(move || {
            let mut faults = faults.into_iter();
            while let Ok((client, _)) = listener.accept() {
                if has_ended.load(Relaxed) {
                    return;
                }
                relay(client, server_port, faults.next());
            }
        });
        Self { port, is_ended }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_ended.store(true, Relaxed);
        // The thread waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn relay(client: TcpStream, server_port: u16, fault: Option<Fault>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
    std::thread::spawn(move || pass(from_client, to_server, fault.filter(|fault| !fault.to_client)));
    std::thread::spawn(move || pass(server, client, fault.filter(|fault| fault.to_client)));
}

/// Passes bytes on until a side ends, and then ends both.
fn pass(mut from: TcpStream, mut to: TcpStream, fault: Option<Fault>) {
    let mut left = fault.map_or(usize::MAX, |fault| fault.after_bytes);
    let mut bytes = vec![0; 65536];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        let before = len.min(left);
        let is_due = before < len;
        left -= before;
        if to.write_all(&bytes[..before]).is_err() {
            break;
        }
        match fault.filter(|_| is_due).map(|fault| fault.act) {
            None => continue,
            Some(Act::Cut) => break,
            Some(Act::Pause(time)) => std::thread::sleep(time),
        }
        left = usize::MAX;
        if to.write_all(&bytes[before..len]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
