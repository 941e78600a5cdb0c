//! Requests for a new superblock, and for the group to settle after a change; and the tasks that wait for them.

use futures::channel::oneshot;
use std::cell::{Cell, RefCell};

/// Writing of superblocks: one at a time; requests that arrive meanwhile share the next one.
#[derive(Default)]
pub(in super::super) struct Commits {
    /// The newest superblock that is on all members.
    pub(in super::super) generation: Cell<u64>,
    pub(in super::super) asked: Cell<u64>,
    pub(in super::super) done: Cell<u64>,
    pub(in super::super) is_busy: Cell<bool>,
    pub(in super::super) waiters: Waiters,
}

impl Commits {
    /// A superblock of this generation was found.
    pub(in super::super) fn after(generation: u64) -> Self {
        Self { generation: Cell::new(generation), ..Self::default() }
    }
}

/// Steps that restore a consistent state after a change of the members.
#[derive(Default)]
pub(in super::super) struct Settling {
    pub(in super::super) asked: Cell<u64>,
    pub(in super::super) done: Cell<u64>,
    /// The request that was made when a member last failed.
    pub(in super::super) failure: Cell<u64>,
    pub(in super::super) is_busy: Cell<bool>,
    pub(in super::super) waiters: Waiters,
    /// A slot that is reserved for a certain disk: spares cannot have it.
    pub(in super::super) kept: Cell<Option<usize>>,
}

/// Tasks that wait for an event; the event wakes all of them.
#[derive(Default)]
pub(in super::super) struct Waiters(RefCell<Vec<oneshot::Sender<()>>>);

impl Waiters {
    pub(in super::super) async fn wait(&self) {
        let (sender, receiver) = oneshot::channel();
        self.0.borrow_mut().push(sender);
        // If the sender was dropped, the group is gone.
        let _ = receiver.await;
    }

    pub(in super::super) fn wake(&self) {
        for sender in self.0.take() {
            let _ = sender.send(());
        }
    }
}
