//! Operations in flight: all memory that the kernel may read or write until their completion, at fixed addresses.

use crate::{Handle, Outgoing, file::commit::Commit, gather::SendProgress};
use libc::iovec;

/// The kind of an operation, with the data it needs besides its memory.
#[derive(Debug)]
pub(super) enum OpKind {
    Accept,
    Connect,
    /// Waits for bytes; besides the pieces, their destination is chosen when they have arrived.
    Recv {
        buffer_bytes: usize,
    },
    Send {
        outgoing: Box<Outgoing>,
        progress: SendProgress,
    },
    Read {
        tag: u64,
        offset: u64,
        moved: usize,
    },
    Write {
        tag: u64,
        offset: u64,
        moved: usize,
        commit: Commit,
    },
    Sync {
        tag: u64,
    },
    /// Of a file, for the writes that share it.
    Flush,
    Fallocate {
        tag: u64,
    },
}

impl OpKind {
    /// How a write becomes durable; a read does not.
    pub(super) fn commit(&self) -> Commit {
        if let Self::Write { commit, .. } = self { *commit } else { Commit::None }
    }
}

/// One operation. Boxed and reused: the kernel holds the addresses of `message` and of the pieces.
pub(super) struct Op {
    pub(super) handle: Handle,
    /// `None` while the slot is free.
    pub(super) kind: Option<OpKind>,
    pub(super) pieces: Vec<iovec>,
    pub(super) message: libc::msghdr,
}

/// The operations of one ring, by the number that the kernel returns as `user_data`.
#[derive(Default)]
pub(super) struct Ops {
    // Boxed, so that a growing table does not move operations.
    #[expect(clippy::vec_box, reason = "the kernel holds addresses into the boxes")]
    slots: Vec<Box<Op>>,
    free: Vec<u32>,
    in_flight: usize,
}

impl Ops {
    /// Takes a free operation with an empty list of pieces.
    pub(super) fn take(&mut self, handle: Handle) -> u32 {
        self.in_flight += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            // SAFETY: an all-zero msghdr is a valid empty one.
            let message = unsafe { std::mem::zeroed() };
            self.slots.push(Box::new(Op { handle, kind: None, pieces: Vec::new(), message }));
            self.slots.len() as u32 - 1
        });
        let op = &mut self.slots[index as usize];
        op.handle = handle;
        op.pieces.clear();
        index
    }

    pub(super) fn get(&mut self, index: u32) -> &mut Op {
        &mut self.slots[index as usize]
    }

    /// Ends an operation: its slot is free again.
    pub(super) fn release(&mut self, index: u32) {
        self.slots[index as usize].kind = None;
        self.free.push(index);
        self.in_flight -= 1;
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The receive of a stream that waits for bytes.
    pub(super) fn receive_of(&self, stream: Handle) -> Option<u32> {
        let is_it = |op: &Op| op.handle == stream && matches!(op.kind, Some(OpKind::Recv { .. }));
        self.slots.iter().position(|op| is_it(op)).map(|index| index as u32)
    }

    /// Operations of one object that can be cancelled; file operations run to their end.
    pub(super) fn cancellable(&self, handle: Handle) -> impl Iterator<Item = u32> {
        let is_it = move |op: &Op| {
            use OpKind::{Accept, Connect, Recv, Send};
            op.handle == handle && matches!(op.kind, Some(Accept | Connect | Recv { .. } | Send { .. }))
        };
        (0_u32..).zip(&self.slots).filter(move |(_, op)| is_it(op)).map(|(index, _)| index)
    }
}
