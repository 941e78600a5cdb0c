//! Parity of a stripe: P is the sum of its data blocks, Q their sum weighted with powers of two, in GF(2^8).
//!
//! The field has the polynomial 0x11d, as is usual for RAID 6. There are no lookup tables: doubling takes three vector
//! instructions for as many bytes as a register holds, and every other product is made of doublings (`lanes.rs`).

mod field;
mod lanes;
mod recover;

use field::power_of_two;
use lanes::{AddProduct, Generate};
use linerate_io::vector::on_widest_vectors;
pub(crate) use recover::{agrees, recover};

/// Computes P, and Q if there is one, of data blocks of the same length, a multiple of 128 bytes.
pub fn generate(data: &[&[u8]], p: &mut [u8], q: Option<&mut [u8]>) {
    on_widest_vectors(Generate { data, p, q });
}

/// Updates `parity` (P for `which` 0, Q for 1) when data block `index` changes by `difference`, the sum of its old and
/// new bytes. Both have the same length, a multiple of 128 bytes.
pub fn update(parity: &mut [u8], which: usize, index: usize, difference: &[u8]) {
    add_product(parity, difference, if which == 0 { 1 } else { power_of_two(index) });
}

/// Adds `from` to `into`, byte by byte: addition in the field is exclusive or.
pub fn add(into: &mut [u8], from: &[u8]) {
    add_product(into, from, 1);
}

/// Adds `from`, multiplied by `factor`, to `into`.
fn add_product(into: &mut [u8], from: &[u8], factor: u8) {
    on_widest_vectors(AddProduct { into, from, factor });
}

#[cfg(test)]
mod tests {
    use super::*;
    use field::slow_product;
    use lanes::STEP_BYTES;
    use proptest::prelude::*;

    fn blocks(disks: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<u8>>> {
        (disks, 1_usize..4).prop_flat_map(|(disks, steps)| {
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), steps * STEP_BYTES), disks)
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
            let mut difference = data[index].clone();
            add(&mut difference, &changed[index]);
            update(&mut p, 0, index, &difference);
            update(&mut q, 1, index, &difference);
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
