//! A bitmap of flags.

use std::ops::Range;

/// Flags by number, all clear at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bitmap {
    words: Vec<u64>,
    len: u64,
}

impl Bitmap {
    pub(super) fn new(len: u64) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize], len }
    }

    /// Flags as written by [`Self::words`]; missing ones are clear.
    pub(super) fn from_words(len: u64, words: &[u64]) -> Self {
        let mut bits = Self::new(len);
        for (into, word) in bits.words.iter_mut().zip(words) {
            *into = *word;
        }
        bits
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn get(&self, number: u64) -> bool {
        self.words[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, number: u64, up: bool) {
        let word = &mut self.words[(number / 64) as usize];
        *word = *word & !(1 << (number % 64)) | u64::from(up) << (number % 64);
    }

    pub(super) fn set_range(&mut self, range: Range<u64>, up: bool) {
        range.for_each(|number| self.set(number, up));
    }

    /// The first set flag at or after `from`.
    pub(super) fn next(&self, from: u64) -> Option<u64> {
        let mut at = from;
        while at < self.len {
            let word = self.words[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return (found < self.len).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    pub(super) fn any_in(&self, range: Range<u64>) -> bool {
        self.next(range.start).is_some_and(|found| found < range.end)
    }

    /// Clears the flags that are not set in `others`.
    pub(super) fn keep(&mut self, others: &Self) {
        for (word, other) in self.words.iter_mut().zip(&others.words) {
            *word &= other;
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_up_and_down_and_are_found() {
        let mut bits = Bitmap::new(200);
        bits.set_range(60..70, true);
        bits.set(199, true);
        bits.set(65, false);
        assert_eq!(
            (bits.next(0), bits.next(65), bits.next(70), bits.count()),
            (Some(60), Some(66), Some(199), 10)
        );
        assert!(bits.get(69) && !bits.get(65) && !bits.any_in(70..199) && bits.any_in(69..71));
        assert_eq!(Bitmap::from_words(200, bits.words()), bits);
    }
}
