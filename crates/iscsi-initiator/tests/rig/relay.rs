//! A TCP relay between an initiator and a portal: a cable that can be pulled.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What the relay does with received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Forwards them.
    Pass,
    /// Keeps them, in both directions, until it may forward again: a network that is silent and late.
    Silent,
    /// Closes every connection, also new ones.
    Close,
}

struct Shared {
    mode: Mutex<Mode>,
    changed: Condvar,
    portal: SocketAddr,
}

/// See the file's text. Threads end with their connections.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    pub(crate) addr: SocketAddr,
}

impl Relay {
    pub(crate) fn to(portal: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { mode: Mutex::new(Mode::Pass), changed: Condvar::new(), portal });
        let all = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&all);
                thread::spawn(move || shared.connect(client));
            }
        });
        Self { shared, addr }
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
        self.shared.changed.notify_all();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.set(Mode::Close);
    }
}

impl Shared {
    /// Waits until bytes may be forwarded; false if all connections must be closed.
    fn may_pass(&self) -> bool {
        let mode = self.mode.lock().unwrap();
        let mode = self.changed.wait_while(mode, |mode| *mode == Mode::Silent).unwrap();
        *mode == Mode::Pass
    }

    fn connect(self: Arc<Self>, client: TcpStream) {
        if !self.may_pass() {
            return;
        }
        let Ok(server) = TcpStream::connect(self.portal) else { return };
        let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let other = Arc::clone(&self);
        thread::spawn(move || other.pump(forth, back));
        self.pump(client, server);
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        from.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let _ = to.set_nodelay(true);
        let mut buffer = vec![0; 1 << 16];
        while self.may_pass() {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => {
                    if !self.may_pass() || to.write_all(&buffer[..len]).is_err() {
                        break;
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}
