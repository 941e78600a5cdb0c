//! A volume that only the partner writes, and only during one transfer.

use crate::{
    disk::{Disk, DiskError, DiskWrapper},
    runtime::Runtime,
};
use futures::{
    channel::oneshot,
    future::{LocalBoxFuture, ready},
};
use std::{
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
};

/// Passes everything on until it is closed for good. Each transfer has its own fences: late operations of an older
/// transfer reach a closed fence, and cannot change later contents.
pub struct Fence {
    inner: Rc<dyn Disk>,
    runtime: Runtime,
    passage: Rc<WritePass>,
}

#[derive(Debug, Default)]
struct WritePass {
    is_closed: Cell<bool>,
    inside: Cell<usize>,
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

impl Fence {
    /// An open fence.
    pub(super) fn new(inner: Rc<dyn Disk>, runtime: Runtime) -> Self {
        Self { inner, runtime, passage: Rc::default() }
    }

    /// Admits no further operation, and waits until those in progress have ended.
    pub(super) async fn close(&self) {
        self.passage.is_closed.set(true);
        while self.passage.inside.get() > 0 {
            let (sender, left) = oneshot::channel();
            self.passage.waiting.borrow_mut().push(sender);
            // An error means the same: no operation is left.
            let _ = left.await;
        }
    }
}

impl DiskWrapper for Fence {
    fn inner(&self) -> &dyn Disk {
        &*self.inner
    }

    /// Runs an operation as a task of its own: it counts until it has ended, even if its caller is gone.
    fn pass<T: 'static>(
        &self,
        begin: impl FnOnce(&dyn Disk) -> LocalBoxFuture<'static, Result<T, DiskError>>,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        let name = self.inner.name().to_owned();
        if self.passage.is_closed.get() {
            return Box::pin(ready(Err(DiskError::Protected(name))));
        }
        let passage = Rc::clone(&self.passage);
        passage.inside.set(passage.inside.get() + 1);
        let operation = begin(&*self.inner);
        let (sender, receiver) = oneshot::channel();
        self.runtime.spawn(async move {
            let result = operation.await;
            passage.leave();
            // The caller may have stopped waiting.
            let _ = sender.send(result);
        });
        Box::pin(async move { receiver.await.unwrap_or(Err(DiskError::Failed(name))) })
    }
}

impl WritePass {
    fn leave(&self) {
        self.inside.set(self.inside.get() - 1);
        if self.inside.get() == 0 {
            for sender in self.waiting.take() {
                let _ = sender.send(());
            }
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence")
            .field("volume", &self.name())
            .field("passage", &self.passage)
            .finish_non_exhaustive()
    }
}
