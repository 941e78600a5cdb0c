//! Slots that pause: the think time of a stream.

use linerate_io::Nanos;
use std::{cmp::Reverse, collections::BinaryHeap};

/// How long a slot pauses, and after how many of its I/Os.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTime {
    pub(super) pause_ns: Nanos,
    pub(super) after_ios: u32,
}

/// The slots of a worker that pause. Without a think time it takes no memory.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// I/Os of each slot since its last pause.
    ios: Box<[u32]>,
    /// When each pause ends, and of which slot.
    ends: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl Pauses {
    /// For so many slots, none of which pauses.
    pub(super) fn new(slots: usize) -> Self {
        Self { ios: vec![0; slots].into(), ends: BinaryHeap::with_capacity(slots) }
    }

    /// Counts an I/O that ended at `now`. Returns whether its slot pauses.
    pub(super) fn begins(&mut self, slot: u32, think: ThinkTime, now: Nanos) -> bool {
        let ios = &mut self.ios[slot as usize];
        *ios += 1;
        if *ios < think.after_ios {
            return false;
        }
        *ios = 0;
        self.ends.push(Reverse((now + think.pause_ns, slot)));
        true
    }

    /// A slot whose pause has ended at `now`.
    pub(super) fn ended(&mut self, now: Nanos) -> Option<u32> {
        let Reverse((end, slot)) = *self.ends.peek()?;
        (end <= now).then(|| {
            self.ends.pop();
            slot
        })
    }

    /// When the next pause ends.
    pub(super) fn next_end(&self) -> Option<Nanos> {
        self.ends.peek().map(|Reverse((end, _))| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::{Pauses, ThinkTime};

    #[test]
    fn a_slot_pauses_after_its_ios_and_no_other_does() {
        let mut pauses = Pauses::new(2);
        let think = ThinkTime { pause_ns: 100, after_ios: 2 };
        assert!(!pauses.begins(0, think, 10));
        assert!(!pauses.begins(1, think, 20));
        assert!(pauses.begins(0, think, 30));
        assert_eq!(pauses.next_end(), Some(130));
        assert_eq!(pauses.ended(129), None);
        assert_eq!(pauses.ended(130), Some(0));
        assert_eq!((pauses.ended(1000), pauses.next_end()), (None, None));
        assert!(!pauses.begins(0, think, 200), "it counts from its last pause");
    }
}
