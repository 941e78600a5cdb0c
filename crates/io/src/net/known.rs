//! The address of a host that is connected to again and again.

use super::reach;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::mpsc::{self, Receiver, TryRecvError},
    thread,
};

type Resolve = fn(&str, u16) -> io::Result<SocketAddr>;

/// A host, a port, and the address that its name had when it was last asked. The first question blocks; later ones are
/// asked by a thread, so that a name server that does not answer holds up no other connection of the caller.
#[derive(Debug)]
pub struct KnownHost {
    host: String,
    port: u16,
    address: SocketAddr,
    resolve: Resolve,
    /// A thread asks. It ends without an answer if the name has no address.
    asked: Option<Receiver<SocketAddr>>,
}

impl KnownHost {
    /// Finds the address by [`resolve`](super::resolve), which may block. Errors: those of the resolver.
    pub fn find(host: &str, port: u16) -> io::Result<Self> {
        Self::find_by(reach::resolve, host, port)
    }

    fn find_by(resolve: Resolve, host: &str, port: u16) -> io::Result<Self> {
        let address = resolve(host, port)?;
        Ok(Self { host: host.to_owned(), port, address, resolve, asked: None })
    }

    /// Whether it is this host and port, by name.
    pub fn is(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    /// The last answer.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for the next connection: the last answer. Has the name asked again for the connection after that.
    /// Never blocks.
    pub fn next_address(&mut self) -> SocketAddr {
        match self.asked.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return self.address,
            Some(Ok(address)) => self.address = address,
            Some(Err(TryRecvError::Disconnected)) | None => {}
        }
        self.asked = self.ask();
        self.address
    }

    /// None: it is an address itself, or there is no thread to be had.
    fn ask(&self) -> Option<Receiver<SocketAddr>> {
        if self.host.parse::<IpAddr>().is_ok() {
            return None;
        }
        let (answer, asked) = mpsc::channel();
        let (resolve, host, port) = (self.resolve, self.host.clone(), self.port);
        let ask = move || {
            if let Ok(address) = resolve(&host, port) {
                // The host may be gone.
                let _ = answer.send(address);
            }
        };
        thread::Builder::new().name("linerate-name".into()).spawn(ask).ok()?;
        Some(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            Mutex,
            atomic::{AtomicU16, Ordering},
        },
        time::{Duration, Instant},
    };

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    /// The next address, once the thread has ended.
    fn after_the_answer(host: &mut KnownHost) -> SocketAddr {
        let asked = host.asked.take().expect("a thread asks");
        let (again, known) = mpsc::channel();
        if let Ok(address) = asked.recv_timeout(Duration::from_secs(10)) {
            again.send(address).expect("it is received below");
        }
        drop(again);
        host.asked = Some(known);
        host.next_address()
    }

    #[test]
    fn an_address_is_never_asked_again() {
        let mut host = KnownHost::find_by(|_, port| Ok(at(port)), "192.0.2.1", 3260).expect("an address");
        assert_eq!(host.next_address(), at(3260));
        assert!(host.asked.is_none() && host.is("192.0.2.1", 3260) && !host.is("192.0.2.1", 860));
    }

    #[test]
    fn a_name_that_moves_is_followed_one_connection_later() {
        static MOVED: AtomicU16 = AtomicU16::new(0);
        let moving: Resolve = |_, port| Ok(at(port + MOVED.fetch_add(1, Ordering::Relaxed)));
        let mut host = KnownHost::find_by(moving, "nas.example", 3260).expect("an address");
        assert_eq!(host.next_address(), at(3260));
        assert_eq!(after_the_answer(&mut host), at(3261));
    }

    #[test]
    fn a_name_server_that_does_not_answer_holds_nothing_up() {
        static SILENT: Mutex<()> = Mutex::new(());
        let slow: Resolve = |_, port| {
            let _answer = SILENT.lock().expect("no panic");
            Ok(at(port))
        };
        let mut host = KnownHost::find_by(slow, "nas.example", 3260).expect("an address");
        let silent = SILENT.lock().expect("no panic");
        let began = Instant::now();
        for _ in 0..3 {
            assert_eq!(host.next_address(), at(3260));
        }
        assert!(began.elapsed() < Duration::from_secs(5) && host.asked.is_some());
        drop(silent);
        assert_eq!(after_the_answer(&mut host), at(3260));
    }

    #[test]
    fn a_name_that_is_gone_keeps_its_last_address() {
        static KNOWN: Mutex<bool> = Mutex::new(true);
        let gone: Resolve = |_, port| {
            let is_known = std::mem::take(&mut *KNOWN.lock().expect("no panic"));
            if is_known { Ok(at(port)) } else { Err(io::Error::other("no such name")) }
        };
        let mut host = KnownHost::find_by(gone, "nas.example", 3260).expect("an address");
        assert_eq!(host.next_address(), at(3260));
        assert_eq!(after_the_answer(&mut host), at(3260));
        assert!(KnownHost::find_by(gone, "nas.example", 3260).is_err());
    }
}
