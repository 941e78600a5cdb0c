//! A worker's access to the engines of the array.

use super::{FinishedOperation, Inbox, OperationRequest, Quota, lock};
use linerate_io::Nanos;
use std::{collections::VecDeque, sync::Arc};

/// Most engines of one array.
pub(super) const ENGINES_MAX: usize = u64::BITS as usize;

/// The engines by number. Cheap to clone.
#[derive(Clone)]
pub(crate) struct EngineHandles(Arc<[Arc<Inbox>]>);

/// Numbers of engines.
#[derive(Clone, Copy, Default)]
struct EngineSet(u64);

impl EngineSet {
    fn insert(&mut self, engine: u8) {
        self.0 |= 1 << engine;
    }

    fn has(self, engine: u8) -> bool {
        self.0 & 1 << engine != 0
    }
}

impl EngineHandles {
    pub(super) fn new(inboxes: impl Iterator<Item = Arc<Inbox>>) -> Self {
        Self(inboxes.collect())
    }

    /// Performs requests that need no waiting, as far as the threads of their engines sleep, and appends their answers to
    /// `finished`. It moves the others to `waiting`. Once the quota is used up, it leaves the rest for the next call.
    /// `now` is the worker's time.
    pub(crate) fn perform(
        &self,
        now: Nanos,
        quota: &mut Quota,
        requests: &mut VecDeque<OperationRequest>,
        waiting: &mut Vec<OperationRequest>,
        finished: &mut Vec<FinishedOperation>,
    ) {
        let (mut busy, mut with_news) = (EngineSet::default(), EngineSet::default());
        while !quota.is_used_up()
            && let Some(first) = requests.front()
        {
            let engine = first.volume.engine;
            let visited = if busy.has(engine) {
                None
            } else {
                let core = &self.0[usize::from(engine)].core;
                core.visit(|core| core.perform(now, quota, requests, waiting, finished))
            };
            match visited {
                Some(has_news) if has_news => with_news.insert(engine),
                Some(_) => {}
                None => {
                    busy.insert(engine);
                    waiting.extend(requests.pop_front());
                }
            }
        }
        for (engine, inbox) in (0..).zip(&*self.0) {
            if with_news.has(engine) {
                inbox.wake();
            }
        }
    }

    /// Takes requests out of the list; leaves those there that will not be answered.
    pub(crate) fn send(&self, requests: &mut Vec<OperationRequest>) {
        for (engine, inbox) in (0..).zip(&*self.0) {
            let is_mine = |request: &mut OperationRequest| request.volume.engine == engine;
            if !requests.iter_mut().any(is_mine) {
                continue;
            }
            {
                let mut queue = lock(&inbox.requests);
                if queue.closed {
                    continue;
                }
                queue.operations.extend(requests.extract_if(.., is_mine));
            }
            inbox.wake();
        }
    }
}
