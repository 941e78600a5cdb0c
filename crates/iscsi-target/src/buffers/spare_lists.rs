//! Empty lists that are kept for reuse.

use crate::engine::BufferPart;
use linerate_io::Outgoing;

/// Memory that an empty list may keep for reuse, so that a worker stays small after a burst.
const KEPT_BYTES_MAX: usize = 24 * 1024;
/// Memory of lists that a worker keeps for reuse.
const SPARE_LISTS: usize = 256;

/// Memory for lists, shared by the connections of a worker. The list that was used last is taken first: it is still in
/// the core's cache, which is too small for the lists of hundreds of connections.
#[derive(Debug, Default)]
pub(crate) struct SpareLists(Vec<Outgoing>);

impl SpareLists {
    /// An empty list with memory, if there is one.
    pub(crate) fn take(&mut self) -> Option<Outgoing> {
        self.0.pop()
    }

    /// Takes the memory of an empty list, unless it is so large that it should be freed.
    pub(crate) fn keep(&mut self, list: &mut Outgoing) {
        let memory = std::mem::take(list);
        if (1..=KEPT_BYTES_MAX).contains(&memory.capacity_bytes()) && self.0.len() < SPARE_LISTS {
            self.0.push(memory);
        }
    }
}

/// Memory for the lists of parts of I/O buffers that go to the engine and come back with its answers.
#[derive(Debug, Default)]
pub(crate) struct SpareParts(Vec<Vec<BufferPart>>);

impl SpareParts {
    /// An empty list, with memory if there is one.
    pub(crate) fn take(&mut self) -> Vec<BufferPart> {
        self.0.pop().unwrap_or_default()
    }

    /// Takes the memory of a list.
    pub(crate) fn keep(&mut self, mut list: Vec<BufferPart>) {
        list.clear();
        if list.capacity() * size_of::<BufferPart>() <= KEPT_BYTES_MAX && self.0.len() < SPARE_LISTS {
            self.0.push(list);
        }
    }
}
