//! A volume that only its partner writes, and only while one transfer lasts.

use crate::{
    disk::{Around, Disk, DiskError},
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

/// Passes everything on until it is closed for good. Each transfer has gates of its own: what an older one still has on its
/// way meets a closed gate, and cannot land in what came after it.
pub struct Gate {
    inner: Rc<dyn Disk>,
    runtime: Runtime,
    passage: Rc<Passage>,
}

#[derive(Debug, Default)]
struct Passage {
    is_closed: Cell<bool>,
    inside: Cell<usize>,
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

impl Gate {
    /// An open gate.
    pub(super) fn new(inner: Rc<dyn Disk>, runtime: Runtime) -> Self {
        Self { inner, runtime, passage: Rc::default() }
    }

    /// Lets nothing in any more, and waits until whatever is inside has come out.
    pub(super) async fn close(&self) {
        self.passage.is_closed.set(true);
        while self.passage.inside.get() > 0 {
            let (sender, left) = oneshot::channel();
            self.passage.waiting.borrow_mut().push(sender);
            // An error says the same: nobody is left inside who could tell.
            let _ = left.await;
        }
    }
}

impl Around for Gate {
    fn inner(&self) -> &dyn Disk {
        &*self.inner
    }

    /// Runs an operation as a task of its own: it counts as inside until it is over, also when nobody waits for it.
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
            // Whoever asked may have gone.
            let _ = sender.send(result);
        });
        Box::pin(async move { receiver.await.unwrap_or(Err(DiskError::Failed(name))) })
    }
}

impl Passage {
    fn leave(&self) {
        self.inside.set(self.inside.get() - 1);
        if self.inside.get() == 0 {
            for sender in self.waiting.take() {
                let _ = sender.send(());
            }
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("volume", &self.name())
            .field("passage", &self.passage)
            .finish_non_exhaustive()
    }
}
