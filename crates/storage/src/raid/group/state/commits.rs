//! Requests for a new superblock, and for the group to settle after a change; and the tasks that wait for them.

use futures::channel::oneshot;
use std::cell::{Cell, RefCell};

/// Writing of superblocks: one at a time; requests that come meanwhile share the next one.
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

/// Getting the group in order after a change.
#[derive(Default)]
pub(in super::super) struct Settling {
    pub(in super::super) asked: Cell<u64>,
    pub(in super::super) done: Cell<u64>,
    /// What was asked for when a member failed last.
    pub(in super::super) failure: Cell<u64>,
    pub(in super::super) is_busy: Cell<bool>,
    pub(in super::super) waiters: Waiters,
    /// A place that is being given to a certain disk: not for spares.
    pub(in super::super) kept: Cell<Option<usize>>,
}

/// Waits for something that others announce to all.
#[derive(Default)]
pub(in super::super) struct Waiters(RefCell<Vec<oneshot::Sender<()>>>);

impl Waiters {
    pub(in super::super) async fn wait(&self) {
        let (sender, receiver) = oneshot::channel();
        self.0.borrow_mut().push(sender);
        // A sender that is gone went with the group.
        let _ = receiver.await;
    }

    pub(in super::super) fn wake(&self) {
        for sender in self.0.take() {
            let _ = sender.send(());
        }
    }
}
