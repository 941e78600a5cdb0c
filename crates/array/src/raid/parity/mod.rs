//! Parity of a stripe: P is the sum of its data blocks, Q their sum weighted with powers of two, in GF(2^8).
//!
//! The field has the polynomial 0x11d, like everybody's RAID 6. Blocks are worked on in lanes of machine words that the
//! compiler turns into vector instructions: doubling eight bytes at a time takes a shift, a mask and a multiplication by
//! 0x1d of the top bits. Anything else than doubling goes through a table of 256 bytes per constant, and happens only when
//! old parity is changed or a disk is missing.

mod field;
mod recover;

use field::{Multiplier, power_of_two};
pub(crate) use recover::{agrees, recover};

/// Words worked on at once, per pass over the disks: 128 bytes of each.
const LANES: usize = 16;
const LANES_BYTES: usize = LANES * 8;

/// Makes P, and Q if there is one, of data blocks that are all of one length, a multiple of 128 bytes.
pub fn generate(data: &[&[u8]], p: &mut [u8], q: Option<&mut [u8]>) {
    let Some(q) = q else { return sum(data, p) };
    for (at, (p, q)) in p.chunks_exact_mut(LANES_BYTES).zip(q.chunks_exact_mut(LANES_BYTES)).enumerate() {
        let at = at * LANES_BYTES;
        let (mut sum, mut weighted) = ([0; LANES], [0; LANES]);
        // Horner's rule, from the last block to the first: double, then add.
        for block in data.iter().rev() {
            let words = load(&block[at..at + LANES_BYTES]);
            for lane in 0..LANES {
                sum[lane] ^= words[lane];
                weighted[lane] = double(weighted[lane]) ^ words[lane];
            }
        }
        store(&sum, p);
        store(&weighted, q);
    }
}

fn sum(data: &[&[u8]], p: &mut [u8]) {
    for (at, p) in p.chunks_exact_mut(LANES_BYTES).enumerate() {
        let at = at * LANES_BYTES;
        let mut sum = [0; LANES];
        for block in data {
            let words = load(&block[at..at + LANES_BYTES]);
            for lane in 0..LANES {
                sum[lane] ^= words[lane];
            }
        }
        store(&sum, p);
    }
}

/// Changes `parity` (P for `which` 0, Q for 1) as data block `index` changes from `old` to `new`.
pub fn update(parity: &mut [u8], which: usize, index: usize, old: &[u8], new: &[u8]) {
    if which == 0 {
        add(parity, old);
        add(parity, new);
        return;
    }
    let weight = Multiplier::new(power_of_two(index));
    for ((parity, old), new) in parity.iter_mut().zip(old).zip(new) {
        *parity ^= weight.times(*old ^ *new);
    }
}

/// Adds `other` to `into`, byte by byte: addition in the field is exclusive or.
fn add(into: &mut [u8], other: &[u8]) {
    for (into, other) in into.iter_mut().zip(other) {
        *into ^= *other;
    }
}

/// Doubles each of the eight bytes of a word.
fn double(word: u64) -> u64 {
    let top = (word >> 7) & 0x0101_0101_0101_0101;
    ((word & 0x7f7f_7f7f_7f7f_7f7f) << 1) ^ (top * 0x1d)
}

fn load(bytes: &[u8]) -> [u64; LANES] {
    let mut words = [0; LANES];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut eight = [0; 8];
        eight.copy_from_slice(bytes);
        *word = u64::from_ne_bytes(eight);
    }
    words
}

fn store(words: &[u64; LANES], bytes: &mut [u8]) {
    for (word, bytes) in words.iter().zip(bytes.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use field::slow_product;
    use proptest::prelude::*;

    fn blocks(disks: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<u8>>> {
        (disks, 1_usize..4).prop_flat_map(|(disks, lanes)| {
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), lanes * LANES_BYTES), disks)
        })
    }

    fn slices(data: &[Vec<u8>]) -> Vec<&[u8]> {
        data.iter().map(Vec::as_slice).collect()
    }

    proptest! {
        #[test]
        fn parity_is_what_the_definition_says(data in blocks(1..31)) {
            let len = data[0].len();
            let (mut p, mut q, mut alone) = (vec![1; len], vec![2; len], vec![3; len]);
            generate(&slices(&data), &mut p, Some(&mut q));
            generate(&slices(&data), &mut alone, None);
            prop_assert_eq!(&p, &alone);
            for at in 0..len {
                let weighted = |(index, block): (usize, &Vec<u8>)| slow_product(power_of_two(index), block[at]);
                prop_assert_eq!(p[at], data.iter().fold(0, |sum, block| sum ^ block[at]));
                prop_assert_eq!(q[at], data.iter().enumerate().map(weighted).fold(0, |sum, part| sum ^ part));
            }
        }

        #[test]
        fn changed_parity_is_parity_of_the_change(data in blocks(2..9), new in any::<u8>(), index in 0_usize..9) {
            let (index, len) = (index % data.len(), data[0].len());
            let (mut p, mut q) = (vec![0; len], vec![0; len]);
            generate(&slices(&data), &mut p, Some(&mut q));
            let mut changed = data.clone();
            changed[index].fill(new);
            update(&mut p, 0, index, &data[index], &changed[index]);
            update(&mut q, 1, index, &data[index], &changed[index]);
            let (mut new_p, mut new_q) = (vec![0; len], vec![0; len]);
            generate(&slices(&changed), &mut new_p, Some(&mut new_q));
            prop_assert_eq!((p, q), (new_p, new_q));
        }

        #[test]
        fn any_two_blocks_come_back(data in blocks(1..9), first in 0_usize..11, second in 0_usize..11, has_q: bool) {
            let len = data[0].len();
            let mut stripe = data.clone();
            let (mut p, mut q) = (vec![0; len], vec![0; len]);
            generate(&slices(&data), &mut p, Some(&mut q));
            stripe.push(p);
            if has_q {
                stripe.push(q);
            }
            let whole = stripe.clone();
            let mut missing = vec![first % stripe.len()];
            if has_q && second % stripe.len() != missing[0] {
                missing.push(second % stripe.len());
            }
            for &position in &missing {
                stripe[position].fill(0xa5);
            }
            let mut borrowed: Vec<&mut [u8]> = stripe.iter_mut().map(Vec::as_mut_slice).collect();
            recover(&mut borrowed, data.len(), &missing);
            prop_assert_eq!(stripe, whole);
        }
    }
}
