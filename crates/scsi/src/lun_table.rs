//! An append-only table that readers use without a lock while it grows: an entry is filled once and never emptied.

use std::sync::OnceLock;

/// Entries of the first block. Each block has twice as many as the one before.
const FIRST: usize = 8;
/// Enough for every LUN.
const BLOCKS: usize = 12;

/// See the module text. A block takes memory once one of its entries is filled.
#[derive(Debug)]
pub(crate) struct LunTable<T> {
    blocks: [OnceLock<Box<[OnceLock<T>]>>; BLOCKS],
}

impl<T> Default for LunTable<T> {
    fn default() -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS] }
    }
}

impl<T> LunTable<T> {
    /// An entry; None if it is empty or beyond the end of the table.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (block, at) = split(index);
        self.blocks.get(block)?.get()?.get(at)?.get()
    }

    /// As [`LunTable::get`], and fills an empty entry first.
    pub(crate) fn get_or_fill(&self, index: usize, fill: impl FnOnce() -> T) -> Option<&T> {
        let (block, at) = split(index);
        let entries =
            self.blocks.get(block)?.get_or_init(|| (0..FIRST << block).map(|_| OnceLock::new()).collect());
        Some(entries.get(at)?.get_or_init(fill))
    }

    /// Every filled entry with its index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        (0..BLOCKS).flat_map(move |block| {
            let first = FIRST * ((1 << block) - 1);
            let entries = self.blocks[block].get().into_iter().flat_map(|entries| entries.iter());
            (first..).zip(entries).filter_map(|(index, entry)| Some((index, entry.get()?)))
        })
    }
}

/// The block of an entry, and its index within the block.
fn split(index: usize) -> (usize, usize) {
    let block = (index / FIRST + 1).ilog2() as usize;
    (block, index - FIRST * ((1 << block) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = FIRST * ((1 << BLOCKS) - 1);

    #[test]
    fn every_entry_is_its_own() {
        let table = LunTable::default();
        for index in [0, 7, 8, 23, 24, 55, 56, 16_383, COUNT - 1] {
            assert_eq!(table.get(index), None);
            assert_eq!(table.get_or_fill(index, || index), Some(&index));
            assert_eq!(table.get_or_fill(index, || 0), Some(&index), "filled once");
            assert_eq!(table.get(index), Some(&index));
        }
        assert_eq!(table.get_or_fill(COUNT, || 0), None);
        assert_eq!(table.get(usize::MAX / 2), None);
        assert!(table.iter().all(|(index, value)| index == *value));
        assert_eq!(table.iter().count(), 9);
        for index in 0..COUNT - 1 {
            let ((block, at), next) = (split(index), split(index + 1));
            assert!(next == (block, at + 1) || (next == (block + 1, 0) && at + 1 == FIRST << block));
        }
    }
}
