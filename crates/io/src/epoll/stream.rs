//! One TCP stream of the epoll driver: its readiness, and at most one receive and one send.

use super::Ready;
use crate::{
    Buffer, Completion, Handle, Outgoing, Seg,
    gather::{Regions, SendProgress, push_buffer},
    net::socket,
};
use libc::iovec;
use std::{io, net::TcpStream};

/// A send and how far it got.
#[derive(Debug)]
pub(super) struct SendOp {
    outgoing: Box<Outgoing>,
    progress: SendProgress,
}

impl SendOp {
    pub(super) fn new(outgoing: Box<Outgoing>) -> Self {
        Self { outgoing, progress: SendProgress::default() }
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) socket: TcpStream,
    connecting: bool,
    /// The socket may hold bytes: set by an edge, cleared by a receive that has drained it.
    readable: bool,
    /// The socket may accept bytes: set by an edge, cleared by a short send.
    writable: bool,
    /// The peer has closed its side (or the connection failed): no edge will follow, so receiving must be tried.
    hung_up: bool,
    /// A receive that waits for bytes; all its memory is in `recv_pieces`.
    recv: Option<Buffer>,
    recv_pieces: Vec<iovec>,
    send: Option<SendOp>,
}

impl Stream {
    pub(super) fn new(socket: TcpStream, connecting: bool) -> Self {
        Self {
            socket,
            connecting,
            readable: !connecting,
            writable: !connecting,
            hung_up: false,
            recv: None,
            recv_pieces: Vec::new(),
            send: None,
        }
    }

    /// Connected, and nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        !self.connecting && self.recv.is_none() && self.send.is_none()
    }

    /// Records a readiness event.
    pub(super) fn note_ready(&mut self, handle: Handle, events: u32, ready: &mut Ready) {
        let has = |flags: libc::c_int| events & flags as u32 != 0;
        if self.connecting {
            if !has(libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP) {
                return;
            }
            self.connecting = false;
            let result = socket::take_error(&self.socket);
            ready.push(Completion::Connected { stream: handle, result });
        }
        self.hung_up |= has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR);
        self.readable |= has(libc::EPOLLIN) || self.hung_up;
        self.writable |= has(libc::EPOLLOUT) || self.hung_up;
    }

    /// Whether a receive is waiting that may succeed now.
    pub(super) fn wants_recv(&self) -> bool {
        self.readable && self.recv.is_some()
    }

    /// Starts a receive. Errors return the buffer: there is nothing to fill, or a segment is outside its region.
    pub(super) fn start_recv(
        &mut self,
        mut buffer: Buffer,
        direct: &[Seg],
        regions: &Regions,
    ) -> Result<(), (io::Error, Buffer)> {
        debug_assert!(self.recv.is_none(), "one receive per stream at a time");
        self.recv_pieces.clear();
        if let Err(error) = regions.resolve_all(direct, &mut self.recv_pieces) {
            return Err((error, buffer));
        }
        push_buffer(&mut buffer, &mut self.recv_pieces);
        if self.recv_pieces.is_empty() {
            return Err((io::Error::new(io::ErrorKind::InvalidInput, "no room to receive into"), buffer));
        }
        self.recv = Some(buffer);
        Ok(())
    }

    /// From now on the waiting receive uses its buffer only. False: none waits.
    pub(super) fn retract(&mut self) -> bool {
        let Some(buffer) = &mut self.recv else { return false };
        self.recv_pieces.clear();
        push_buffer(buffer, &mut self.recv_pieces);
        debug_assert!(!self.recv_pieces.is_empty(), "the receive needs a buffer");
        true
    }

    pub(super) fn try_recv(&mut self, handle: Handle, ready: &mut Ready) {
        // No receive waits, or its bytes have not arrived yet.
        let Some(buffer) = self.recv.take_if(|_| self.readable) else { return };
        let room: usize = self.recv_pieces.iter().map(|piece| piece.iov_len).sum();
        let result = socket::receive(&self.socket, &mut self.recv_pieces);
        match &result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                self.recv = Some(buffer);
                return;
            }
            Ok(count) => self.readable = *count == room || self.hung_up,
            Err(_) => {}
        }
        ready.push(Completion::Received { stream: handle, result, buffer });
    }

    pub(super) fn start_send(&mut self, op: SendOp) {
        debug_assert!(self.send.is_none(), "one send per stream at a time");
        self.send = Some(op);
    }

    /// Sends as much as the socket accepts.
    pub(super) fn try_send(
        &mut self,
        handle: Handle,
        regions: &Regions,
        pieces: &mut Vec<iovec>,
        ready: &mut Ready,
    ) {
        // No send waits, or the socket has no space.
        let Some(op) = self.send.as_mut().filter(|_| self.writable) else { return };
        let result = loop {
            if let Err(error) = op.progress.pieces(&op.outgoing, regions, pieces) {
                break Err(error);
            }
            if pieces.is_empty() {
                break Ok(());
            }
            match socket::transmit(&self.socket, pieces) {
                Ok(sent) => {
                    if op.progress.advance(&op.outgoing, sent) {
                        break Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable = false;
                    return;
                }
                Err(error) => break Err(error),
            }
        };
        if let Some(op) = self.send.take() {
            ready.push(Completion::Sent { stream: handle, result, outgoing: op.outgoing });
        }
    }

    /// Ends the operations in flight, because the stream is being closed.
    pub(super) fn abort(mut self, handle: Handle, ready: &mut Ready) {
        let aborted = || io::Error::from(io::ErrorKind::ConnectionAborted);
        if self.connecting {
            ready.push(Completion::Connected { stream: handle, result: Err(aborted()) });
        }
        if let Some(buffer) = self.recv.take() {
            ready.push(Completion::Received { stream: handle, result: Err(aborted()), buffer });
        }
        if let Some(SendOp { outgoing, .. }) = self.send.take() {
            ready.push(Completion::Sent { stream: handle, result: Err(aborted()), outgoing });
        }
    }
}
