//! A list that many read without a lock while it grows: places are filled once and never emptied.

use std::sync::OnceLock;

/// Places of the first block. Each block has twice as many as the one before.
const FIRST: usize = 8;
/// Enough for every LUN.
const BLOCKS: usize = 12;

/// See the module text. A block costs memory once one of its places is filled.
#[derive(Debug)]
pub(crate) struct Places<T> {
    blocks: [OnceLock<Box<[OnceLock<T>]>>; BLOCKS],
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS] }
    }
}

impl<T> Places<T> {
    /// What a place is filled with. None beyond the last place, too.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (block, at) = split(index);
        self.blocks.get(block)?.get()?.get(at)?.get()
    }

    /// As [`Places::get`], and fills an empty place first.
    pub(crate) fn get_or_fill(&self, index: usize, fill: impl FnOnce() -> T) -> Option<&T> {
        let (block, at) = split(index);
        let places =
            self.blocks.get(block)?.get_or_init(|| (0..FIRST << block).map(|_| OnceLock::new()).collect());
        Some(places.get(at)?.get_or_init(fill))
    }

    /// Everything that is there, by its place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        (0..BLOCKS).flat_map(move |block| {
            let first = FIRST * ((1 << block) - 1);
            let places = self.blocks[block].get().into_iter().flat_map(|places| places.iter());
            (first..).zip(places).filter_map(|(index, place)| Some((index, place.get()?)))
        })
    }
}

/// The block of a place, and the place in it.
fn split(index: usize) -> (usize, usize) {
    let block = (index / FIRST + 1).ilog2() as usize;
    (block, index - FIRST * ((1 << block) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = FIRST * ((1 << BLOCKS) - 1);

    #[test]
    fn every_place_is_its_own() {
        let places = Places::default();
        for index in [0, 7, 8, 23, 24, 55, 56, 16_383, COUNT - 1] {
            assert_eq!(places.get(index), None);
            assert_eq!(places.get_or_fill(index, || index), Some(&index));
            assert_eq!(places.get_or_fill(index, || 0), Some(&index), "filled once");
            assert_eq!(places.get(index), Some(&index));
        }
        assert_eq!(places.get_or_fill(COUNT, || 0), None);
        assert_eq!(places.get(usize::MAX / 2), None);
        assert!(places.iter().all(|(index, value)| index == *value));
        assert_eq!(places.iter().count(), 9);
        for index in 0..COUNT - 1 {
            let ((block, at), next) = (split(index), split(index + 1));
            assert!(next == (block, at + 1) || (next == (block + 1, 0) && at + 1 == FIRST << block));
        }
    }
}
