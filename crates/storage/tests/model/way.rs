//! A connection between two arrays that takes time and breaks; messages in transit may arrive nevertheless.

use bytes::Bytes;
use fastrand::Rng;
use futures::{channel::oneshot, future::LocalBoxFuture};
use linerate_io::Nanos;
use linerate_storage::{
    Disk, DiskError, Runtime,
    replica::{Fence, Link, LinkError, Sending},
};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

const DELAY_NS: Nanos = 500_000;
/// How soon a break is noticed.
const NOTICE_NS: Nanos = 200_000;

/// The connection to the fences of one begin.
pub(crate) struct Way {
    gates: Vec<Rc<Fence>>,
    runtime: Runtime,
    rng: RefCell<Rng>,
    is_broken: Rc<Cell<bool>>,
}

impl Way {
    /// Breaks when `is_broken` is set.
    pub(crate) fn new(gates: Vec<Rc<Fence>>, runtime: Runtime, rng: Rng, is_broken: Rc<Cell<bool>>) -> Self {
        Self { gates, runtime, rng: RefCell::new(rng), is_broken }
    }

    fn carry(
        &self,
        act: impl FnOnce(Vec<Rc<Fence>>) -> LocalBoxFuture<'static, Result<(), DiskError>> + 'static,
    ) -> Sending {
        let (runtime, is_broken, gates) =
            (self.runtime.clone(), Rc::clone(&self.is_broken), self.gates.clone());
        let delay = self.rng.borrow_mut().u64(0..DELAY_NS);
        let (sender, mut receiver) = oneshot::channel();
        let there = runtime.clone();
        runtime.spawn(async move {
            there.sleep(delay).await;
            // The caller may have stopped waiting.
            let _ = sender.send(act(gates).await);
        });
        Box::pin(async move {
            loop {
                if is_broken.get() {
                    return Err(LinkError::Broken("the way broke".into()));
                }
                match receiver.try_recv() {
                    Ok(Some(result)) => return result.map_err(|error| LinkError::Refused(error.to_string())),
                    Ok(None) => runtime.sleep(NOTICE_NS).await,
                    Err(_) => return Err(LinkError::Broken("no answer".into())),
                }
            }
        })
    }
}

impl Link for Way {
    fn write(&self, volume: usize, offset_bytes: u64, data: Bytes) -> Sending {
        self.carry(move |gates| gates[volume].write(offset_bytes, data, false))
    }

    fn discard(&self, volume: usize, offset_bytes: u64, len_bytes: u64) -> Sending {
        self.carry(move |gates| gates[volume].discard(offset_bytes, len_bytes))
    }

    fn flush(&self) -> Sending {
        self.carry(|gates| {
            Box::pin(async move {
                let flushing: Vec<_> = gates.iter().map(|gate| gate.flush()).collect();
                futures::future::try_join_all(flushing).await.map(drop)
            })
        })
    }

    fn close(&self) {
        self.is_broken.set(true);
    }
}
