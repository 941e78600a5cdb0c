//! The driver suite: helpers here, the tests by topic in the other files.

mod files;
mod sockets;
mod waiting;

pub(crate) use files::*;
use linerate_io::{Buffer, Completion, Driver, Handle, Outgoing, SocketOptions, Wait};
pub(crate) use sockets::*;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};
pub(crate) use waiting::*;

/// Time limit of everything in the suite.
pub(crate) const LIMIT_NS: u64 = 10_000_000_000;

/// A driver under test, and the completions that were not expected yet.
pub(crate) struct Bench<D: Driver> {
    pub(crate) driver: D,
    held: Vec<Completion<D::Socket>>,
}

/// Completions by kind, for [`Bench::expect`].
pub(crate) type Done<D> = Completion<<D as Driver>::Socket>;

impl<D: Driver<Socket = TcpStream>> Bench<D> {
    pub(crate) fn new(driver: D) -> Self {
        Self { driver, held: Vec::new() }
    }

    /// Polls until `pick` accepts a completion; others are kept for later.
    pub(crate) fn expect<T>(
        &mut self,
        what: &str,
        mut pick: impl FnMut(&Done<D>) -> Option<T>,
    ) -> (T, Done<D>) {
        let deadline = self.driver.now() + LIMIT_NS;
        loop {
            let found =
                self.held.iter().enumerate().find_map(|(at, done)| pick(done).map(|value| (at, value)));
            if let Some((at, value)) = found {
                return (value, self.held.remove(at));
            }
            assert!(self.driver.now() < deadline, "no {what} within 10 s; held: {:?}", self.held);
            self.driver.poll(Wait::Until(deadline), &mut self.held).unwrap();
        }
    }

    pub(crate) fn listen(&mut self, addr: SocketAddr) -> (Handle, SocketAddr) {
        let listener = self.driver.listen(addr, &SocketOptions::default()).unwrap();
        (listener, self.driver.local_addr(listener).unwrap())
    }

    pub(crate) fn accept(&mut self, listener: Handle) -> Handle {
        let is_it =
            |done: &Done<D>| matches!(done, Completion::Accepted { listener: l, .. } if *l == listener);
        let ((), done) = self.expect("accept", |done| is_it(done).then_some(()));
        let Completion::Accepted { result, .. } = done else { unreachable!() };
        self.driver.add_stream(result.unwrap().0, &SocketOptions::default()).unwrap()
    }

    /// A stream of the driver and a plain blocking socket at its other end.
    pub(crate) fn pair(&mut self) -> (Handle, TcpStream) {
        let (listener, addr) = self.listen(localhost());
        let peer = TcpStream::connect(addr).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let stream = self.accept(listener);
        self.driver.close(listener);
        (stream, peer)
    }

    pub(crate) fn recv(&mut self, stream: Handle, len: usize) {
        self.driver.recv(stream, &[], Buffer::new(len));
    }

    /// The result of the receive on `stream`, and the bytes in its buffer.
    pub(crate) fn received(&mut self, stream: Handle) -> (io::Result<usize>, Buffer) {
        let is_it = |done: &Done<D>| matches!(done, Completion::Received { stream: s, .. } if *s == stream);
        let ((), done) = self.expect("receive", |done| is_it(done).then_some(()));
        let Completion::Received { result, buffer, .. } = done else { unreachable!() };
        (result, buffer)
    }

    pub(crate) fn send(&mut self, stream: Handle, bytes: &[u8]) {
        let mut outgoing = Box::new(Outgoing::new());
        outgoing.push_bytes(bytes);
        self.driver.send(stream, outgoing);
    }

    pub(crate) fn sent(&mut self, stream: Handle) -> (io::Result<()>, Box<Outgoing>) {
        let is_it = |done: &Done<D>| matches!(done, Completion::Sent { stream: s, .. } if *s == stream);
        let ((), done) = self.expect("send", |done| is_it(done).then_some(()));
        let Completion::Sent { result, outgoing, .. } = done else { unreachable!() };
        (result, outgoing)
    }

    pub(crate) fn connected(&mut self, stream: Handle) -> io::Result<()> {
        let is_it = |done: &Done<D>| matches!(done, Completion::Connected { stream: s, .. } if *s == stream);
        let ((), done) = self.expect("connect", |done| is_it(done).then_some(()));
        let Completion::Connected { result, .. } = done else { unreachable!() };
        result
    }

    pub(crate) fn filed(&mut self, file: Handle, wanted: u64) -> io::Result<usize> {
        let is_it = |done: &Done<D>| matches!(done, Completion::File { file: f, tag, .. } if *f == file && *tag == wanted);
        let ((), done) = self.expect("file operation", |done| is_it(done).then_some(()));
        let Completion::File { result, .. } = done else { unreachable!() };
        result
    }

    /// Polls without waiting and checks that nothing has completed.
    pub(crate) fn expect_nothing(&mut self) {
        for _ in 0..16 {
            self.driver.poll(Wait::Never, &mut self.held).unwrap();
        }
        assert!(self.held.is_empty(), "{:?}", self.held);
    }
}

pub(crate) fn localhost() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}
