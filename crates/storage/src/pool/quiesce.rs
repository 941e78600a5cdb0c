//! The order of writes to one volume and of operations that need the volume unchanged for a moment.

use futures::{channel::oneshot, future::poll_fn};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    task::{Poll, Waker},
};

/// Admits writes, and stops them for a moment when the volume must not change.
#[derive(Debug, Default)]
pub(crate) struct Quiesce {
    passing: Cell<usize>,
    is_closed: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

/// An admitted write that has not ended.
#[derive(Debug)]
pub(crate) struct WritePass(Rc<Quiesce>);

/// While this exists, no write is admitted, and none is in progress.
#[derive(Debug)]
pub(crate) struct Quiesced(Rc<Quiesce>);

impl Quiesce {
    /// Waits until operations are admitted.
    pub(crate) async fn enter(self: &Rc<Self>) -> WritePass {
        self.until(|| !self.is_closed.get()).await;
        self.passing.set(self.passing.get() + 1);
        WritePass(Rc::clone(self))
    }

    /// Whether an operation that ends at once is admitted now.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_closed.get()
    }

    /// Stops new writes and waits until the others have ended.
    pub(crate) async fn close(self: &Rc<Self>) -> Quiesced {
        self.until(|| !self.is_closed.get()).await;
        self.is_closed.set(true);
        let closed = Quiesced(Rc::clone(self));
        self.until(|| self.passing.get() == 0).await;
        closed
    }

    async fn until(&self, condition: impl Fn() -> bool) {
        poll_fn(|context| {
            if condition() {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn wake(&self) {
        let waiting = self.waiting.take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for WritePass {
    fn drop(&mut self) {
        self.0.passing.set(self.0.passing.get() - 1);
        if self.0.is_closed.get() && self.0.passing.get() == 0 {
            self.0.wake();
        }
    }
}

impl Drop for Quiesced {
    fn drop(&mut self) {
        self.0.is_closed.set(false);
        self.0.wake();
    }
}

/// Pages of a volume that are being moved. Writers to such a page wait.
#[derive(Debug, Default)]
pub(crate) struct PageLocks(RefCell<HashMap<u64, Vec<oneshot::Sender<()>>>>);

/// See [`PageLocks::lock`].
#[derive(Debug)]
pub(crate) struct PageLock {
    locks: Rc<PageLocks>,
    index: u64,
}

impl PageLocks {
    /// Returns at once if the page is not locked; otherwise the caller must check again afterwards.
    pub(crate) async fn wait(&self, index: u64) {
        let receiver = match self.0.borrow_mut().get_mut(&index) {
            None => return,
            Some(waiting) => {
                let (sender, receiver) = oneshot::channel();
                waiting.push(sender);
                receiver
            }
        };
        // The dropped sender is the signal.
        let _ = receiver.await;
    }

    pub(crate) fn is_locked(&self, index: u64) -> bool {
        self.0.borrow().contains_key(&index)
    }

    /// Locks a page that is not locked.
    pub(crate) fn lock(self: &Rc<Self>, index: u64) -> PageLock {
        self.0.borrow_mut().insert(index, Vec::new());
        PageLock { locks: Rc::clone(self), index }
    }
}

impl Drop for PageLock {
    fn drop(&mut self) {
        let waiting = self.locks.0.borrow_mut().remove(&self.index);
        drop(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_closed_gate_has_nobody_inside_and_lets_nobody_in() {
        let quiesce = Rc::new(Quiesce::default());
        let inside = quiesce.enter().now_or_never().unwrap();
        let mut closing = Box::pin(quiesce.close());
        assert!(closing.as_mut().now_or_never().is_none());
        let mut entering = Box::pin(quiesce.enter());
        assert!(entering.as_mut().now_or_never().is_none());
        drop(inside);
        let closed = closing.now_or_never().unwrap();
        assert!(entering.as_mut().now_or_never().is_none());
        drop(closed);
        assert!(entering.now_or_never().is_some());
    }

    #[test]
    fn giving_up_closing_opens_the_gate() {
        let quiesce = Rc::new(Quiesce::default());
        let inside = quiesce.enter().now_or_never().unwrap();
        let mut closing = Box::pin(quiesce.close());
        assert!(closing.as_mut().now_or_never().is_none());
        drop(closing);
        assert!(quiesce.enter().now_or_never().is_some());
        drop(inside);
    }
}
