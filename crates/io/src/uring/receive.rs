//! Receives: the ring reports that bytes have arrived, and a separate call reads them.
//!
//! So no buffer is tied to a waiting stream: the bytes are read into the buffer that was used last, which is still in
//! the core's cache. With hundreds of streams that are served in turn, each with its own buffer, every receive would
//! use memory that is in no cache. For the same reason there are few receives per poll, before their bytes are handled.

use super::{Body, Object, UringDriver, op::OpKind};
use crate::{Buffer, Completion, Handle, Seg, gather::push_buffer, net::socket, slots::stale};
use io_uring::{opcode, types};
use std::{io, os::fd::AsRawFd};

/// Receives per poll; other ready streams wait for the next one. They take about 2 MiB if each has 32 reads of 4 KiB.
pub(super) const RECEIVES_PER_POLL: u32 = 16;

/// The buffers of all receives that wait.
#[derive(Default)]
pub(super) struct Idle(Vec<Buffer>);

impl Idle {
    fn put(&mut self, buffer: Buffer) {
        if !buffer.is_empty() {
            self.0.push(buffer);
        }
    }

    /// The buffer of `len` bytes that was returned last. Every receive takes as long a buffer as it has returned.
    fn take(&mut self, len: usize) -> Buffer {
        let found = self.0.iter().rposition(|buffer| buffer.len() == len);
        found.map_or_else(Buffer::default, |at| self.0.swap_remove(at))
    }
}

impl UringDriver {
    /// Starts a receive, which is done at once if the last one left bytes.
    pub(super) fn begin_recv(&mut self, stream: Handle, direct: &[Seg], buffer: Buffer) {
        let Some((_, drained)) = self.stream(stream) else {
            return self.ready.push(Completion::Received { stream, result: Err(stale()), buffer });
        };
        let index = self.ops.take(stream);
        let pieces = &mut self.ops.get(index).pieces;
        let error = match self.regions.resolve_all(direct, pieces) {
            Err(error) => Some(error),
            Ok(()) if buffer.is_empty() && pieces.iter().all(|piece| piece.iov_len == 0) => {
                Some(io::Error::new(io::ErrorKind::InvalidInput, "no room to receive into"))
            }
            Ok(()) => None,
        };
        if let Some(error) = error {
            self.ops.release(index);
            return self.ready.push(Completion::Received { stream, result: Err(error), buffer });
        }
        let buffer_bytes = buffer.len();
        self.idle.put(buffer);
        if drained {
            self.await_bytes(index, stream, buffer_bytes);
        } else {
            self.receive(index, stream, buffer_bytes);
        }
    }

    /// From now on the waiting receive uses its buffer only. False: none waits.
    pub(super) fn retract_recv(&mut self, stream: Handle) -> bool {
        let Some(index) = self.ops.receive_of(stream) else { return false };
        // The ring has no access to the pieces: a separate call fills them.
        self.ops.get(index).pieces.clear();
        true
    }

    /// The ring reports that bytes have arrived, or an error.
    pub(super) fn finish_await(
        &mut self,
        index: u32,
        stream: Handle,
        buffer_bytes: usize,
        result: io::Result<usize>,
    ) {
        match result {
            Ok(_) => self.receive(index, stream, buffer_bytes),
            Err(error) => {
                self.ops.release(index);
                let buffer = self.idle.take(buffer_bytes);
                self.ready.push(Completion::Received { stream, result: Err(error), buffer });
            }
        }
    }

    fn await_bytes(&mut self, index: u32, stream: Handle, buffer_bytes: usize) {
        let Some((socket, _)) = self.stream(stream) else {
            unreachable!("closing a stream cancels its receive")
        };
        let poll = opcode::PollAdd::new(types::Fd(socket.as_raw_fd()), libc::POLLIN as u32);
        self.start(index, OpKind::Recv { buffer_bytes }, poll.build());
    }

    /// Receives what has arrived; if that is nothing, waits.
    fn receive(&mut self, index: u32, stream: Handle, buffer_bytes: usize) {
        let Some(Object { body: Body::Stream { socket, drained }, .. }) = self.objects.get_mut(stream) else {
            unreachable!("a stream is kept until its last operation has ended")
        };
        let mut buffer = self.idle.take(buffer_bytes);
        let pieces = &mut self.ops.get(index).pieces;
        let direct = pieces.len();
        push_buffer(&mut buffer, pieces);
        let room: usize = pieces.iter().map(|piece| piece.iov_len).sum();
        let result = socket::receive(socket, pieces);
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            pieces.truncate(direct);
            *drained = true;
            self.idle.put(buffer);
            return self.await_bytes(index, stream, buffer_bytes);
        }
        *drained = result.as_ref().is_ok_and(|&count| count < room);
        self.received += 1;
        self.ops.release(index);
        self.ready.push(Completion::Received { stream, result, buffer });
    }
}
