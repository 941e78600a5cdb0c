//! Sends: short lists are sent at once, by a call each; the ring sends the rest, with the next poll.

use super::{Body, Object, UringDriver, length_u32, op::OpKind};
use crate::{Completion, Handle, Outgoing, gather::SendProgress, net::socket, slots::stale};
use io_uring::{opcode, types};
use std::os::fd::AsRawFd;

/// Lists up to this length are sent by a separate call: it is quicker than the same call through the ring, and the rest
/// of the turn runs while the peer works. At depth 1 this gains 5 % of the round trips. Long lists fill the socket, and
/// the ring resumes them.
const AT_ONCE_BYTES_MAX: usize = 16 << 10;

impl UringDriver {
    /// Sends a list. The ring gets the rest, and reports errors.
    pub(super) fn begin_send(&mut self, stream: Handle, outgoing: Box<Outgoing>) {
        let mut progress = SendProgress::default();
        let is_short = outgoing.len_bytes() <= AT_ONCE_BYTES_MAX;
        if is_short && self.send_at_once(stream, &outgoing, &mut progress) {
            self.ready.push(Completion::Sent { stream, result: Ok(()), outgoing });
        } else {
            self.start_send(stream, outgoing, progress);
        }
    }

    /// Sends what the socket accepts without waiting. False: a part is left, or the ring must report the error.
    fn send_at_once(&mut self, stream: Handle, outgoing: &Outgoing, progress: &mut SendProgress) -> bool {
        let Some(Object { body: Body::Stream { socket, .. }, closing: false, .. }) = self.objects.get(stream)
        else {
            return false;
        };
        let pieces = &mut self.pieces;
        progress.pieces(outgoing, &self.regions, pieces).is_ok()
            && !pieces.is_empty()
            && socket::transmit(socket, pieces).is_ok_and(|sent| progress.advance(outgoing, sent))
    }

    /// Queues the rest of a send, after `progress`, in the ring.
    pub(super) fn start_send(&mut self, stream: Handle, outgoing: Box<Outgoing>, progress: SendProgress) {
        let Some((socket, _)) = self.stream(stream) else {
            return self.ready.push(Completion::Sent { stream, result: Err(stale()), outgoing });
        };
        let fd = types::Fd(socket.as_raw_fd());
        let index = self.ops.take(stream);
        let op = self.ops.get(index);
        let filled = progress.pieces(&outgoing, &self.regions, &mut op.pieces);
        if filled.is_err() || op.pieces.is_empty() {
            self.ops.release(index);
            return self.ready.push(Completion::Sent { stream, result: filled, outgoing });
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        // A single piece needs no message, which the kernel would copy and check.
        let entry = if let [piece] = op.pieces.as_slice() {
            opcode::Send::new(fd, piece.iov_base.cast(), length_u32(piece)).flags(flags).build()
        } else {
            op.message.msg_iov = op.pieces.as_mut_ptr();
            op.message.msg_iovlen = op.pieces.len();
            opcode::SendMsg::new(fd, &raw const op.message).flags(flags as u32).build()
        };
        self.must_submit = true;
        self.start(index, OpKind::Send { outgoing, progress }, entry);
    }
}
