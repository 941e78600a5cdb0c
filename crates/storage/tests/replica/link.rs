//! A link with delays that breaks; messages in transit may arrive long after that.

use crate::store::MemoryStore;
use bytes::Bytes;
use futures::{FutureExt, channel::oneshot, future::LocalBoxFuture};
use linerate_sim::Rng;
use linerate_storage::{
    Disk, DiskError, Runtime,
    replica::{Fence, Link, LinkError, Sending},
};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

/// The connection to the fences of one begin.
pub(crate) struct Wire {
    fences: Vec<Rc<Fence>>,
    /// The process behind the fences.
    partner: MemoryStore,
    runtime: Runtime,
    rng: Rc<RefCell<Rng>>,
    is_broken: Rc<Cell<bool>>,
}

/// A broken wire is noticed within this time.
const NOTICE_NS: u64 = 5_000;
/// Usual time of a message in transit.
const DELAY_NS: u64 = 5_000;
/// Longest time of a message that was in transit when its wire broke.
const LATE_NS: u64 = 2_000_000;

impl Wire {
    /// Breaks when `is_broken` is set.
    pub(crate) fn new(
        fences: Vec<Rc<Fence>>,
        partner: MemoryStore,
        runtime: Runtime,
        rng: Rc<RefCell<Rng>>,
        is_broken: Rc<Cell<bool>>,
    ) -> Self {
        Self { fences, partner, runtime, rng, is_broken }
    }

    fn carry(
        &self,
        act: impl FnOnce(Vec<Rc<Fence>>) -> LocalBoxFuture<'static, Result<(), DiskError>> + 'static,
    ) -> Sending {
        let (runtime, is_broken) = (self.runtime.clone(), Rc::clone(&self.is_broken));
        let (delay, late, arrives) = {
            let mut rng = self.rng.borrow_mut();
            (rng.range(0, DELAY_NS), rng.range(0, LATE_NS), rng.chance(50))
        };
        let (fences, partner) = (self.fences.clone(), self.partner.clone());
        let (sender, mut receiver) = oneshot::channel();
        let (there, way) = (runtime.clone(), Rc::clone(&is_broken));
        runtime.clone().spawn(async move {
            there.sleep(delay).await;
            if way.get() {
                there.sleep(late).await;
                if !arrives {
                    return;
                }
            }
            let _ = sender.send(act(fences).await);
        });
        async move {
            loop {
                if is_broken.get() || !partner.is_alive() {
                    return Err(LinkError::Broken("the wire broke".into()));
                }
                match receiver.try_recv() {
                    Ok(Some(result)) => return result.map_err(|error| LinkError::Refused(error.to_string())),
                    Ok(None) => runtime.sleep(NOTICE_NS).await,
                    Err(_) => return Err(LinkError::Broken("no answer".into())),
                }
            }
        }
        .boxed_local()
    }
}

impl Link for Wire {
    fn write(&self, volume: usize, offset_bytes: u64, data: Bytes) -> Sending {
        self.carry(move |fences| fences[volume].write(offset_bytes, data, false))
    }

    fn discard(&self, volume: usize, offset_bytes: u64, len_bytes: u64) -> Sending {
        self.carry(move |fences| fences[volume].discard(offset_bytes, len_bytes))
    }

    fn flush(&self) -> Sending {
        self.carry(|fences| {
            async move {
                for gate in fences {
                    gate.flush().await?;
                }
                Ok(())
            }
            .boxed_local()
        })
    }

    fn close(&self) {
        self.is_broken.set(true);
    }
}

/// A link that only has a delay.
pub(crate) struct Cable {
    fences: Vec<Rc<Fence>>,
    runtime: Runtime,
    rng: Rc<RefCell<Rng>>,
}

impl Cable {
    pub(crate) fn new(fences: Vec<Rc<Fence>>, runtime: Runtime, rng: Rc<RefCell<Rng>>) -> Self {
        Self { fences, runtime, rng }
    }

    fn carry(&self, result: LocalBoxFuture<'static, Result<(), DiskError>>) -> Sending {
        let delay = self.runtime.sleep(self.rng.borrow_mut().range(0, DELAY_NS));
        async move {
            delay.await;
            result.await.map_err(|error| LinkError::Refused(error.to_string()))
        }
        .boxed_local()
    }
}

impl Link for Cable {
    fn write(&self, volume: usize, offset_bytes: u64, data: Bytes) -> Sending {
        self.carry(self.fences[volume].write(offset_bytes, data, false))
    }

    fn discard(&self, volume: usize, offset_bytes: u64, len_bytes: u64) -> Sending {
        self.carry(self.fences[volume].discard(offset_bytes, len_bytes))
    }

    fn flush(&self) -> Sending {
        let flushes: Vec<_> = self.fences.iter().map(|gate| gate.flush()).collect();
        self.carry(async move { futures::future::try_join_all(flushes).await.map(drop) }.boxed_local())
    }

    fn close(&self) {}
}
