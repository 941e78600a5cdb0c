//! Computes a stripe's missing blocks from the others.

use super::{
    add, add_product,
    field::{inverse, power_of_two, slow_product},
    generate,
};

/// Computes the blocks at the positions `missing`. They are in any order, and at most as many as there are parity
/// blocks. `stripe` has the data blocks, `data` of them, then P, then Q if there is one.
pub(crate) fn recover(stripe: &mut [&mut [u8]], data: usize, missing: &[usize]) {
    let mut lost = missing.iter().copied().filter(|&position| position < data);
    let (first, second) = (lost.next(), lost.next());
    match (first, second) {
        (None, _) => {}
        (Some(x), None) if !missing.contains(&data) => from_p(stripe, data, x),
        (Some(x), None) => from_q(stripe, data, x),
        (Some(x), Some(y)) => two(stripe, data, x.min(y), x.max(y)),
    }
    if missing.iter().any(|&position| position >= data) {
        make_parity(stripe, data);
    }
}

/// Whether the parity of a stripe matches its data.
pub(crate) fn agrees(stripe: &[&mut [u8]], data: usize) -> bool {
    let blocks: Vec<&[u8]> = stripe[..data].iter().map(|block| &**block).collect();
    let mut p = vec![0; stripe[data].len()];
    let mut q = stripe.get(data + 1).map(|q| vec![0; q.len()]);
    generate(&blocks, &mut p, q.as_deref_mut());
    *stripe[data] == *p && q.is_none_or(|q| *stripe[data + 1] == *q)
}

fn make_parity(stripe: &mut [&mut [u8]], data: usize) {
    let (data, parity) = stripe.split_at_mut(data);
    let data: Vec<&[u8]> = data.iter().map(|block| &**block).collect();
    let (p, q) = parity.split_at_mut(1);
    generate(&data, p[0], q.first_mut().map(|q| &mut **q));
}

/// The missing block is P + the other data.
fn from_p(stripe: &mut [&mut [u8]], data: usize, x: usize) {
    let mut sum = stripe[data].to_vec();
    for (_, block) in others(&stripe[..data], &[x]) {
        add(&mut sum, block);
    }
    stripe[x].copy_from_slice(&sum);
}

/// The missing block is (Q + the other data, weighted) divided by its own weight, 2^x.
fn from_q(stripe: &mut [&mut [u8]], data: usize, x: usize) {
    let mut sum = stripe[data + 1].to_vec();
    add_weighted(&mut sum, &stripe[..data], &[x]);
    stripe[x].fill(0);
    add_product(stripe[x], &sum, inverse(power_of_two(x)));
}

/// Let `a` = P + the other data and `b` = Q + the other data, weighted. The sum of the two missing blocks is `a`, and
/// their weighted sum is `b`. So the first is (b + 2^y a) / (2^x + 2^y), and the second is `a` + the first.
fn two(stripe: &mut [&mut [u8]], data: usize, x: usize, y: usize) {
    let (mut a, mut b) = (stripe[data].to_vec(), stripe[data + 1].to_vec());
    for (_, block) in others(&stripe[..data], &[x, y]) {
        add(&mut a, block);
    }
    add_weighted(&mut b, &stripe[..data], &[x, y]);
    let denominator = inverse(power_of_two(x) ^ power_of_two(y));
    stripe[x].fill(0);
    add_product(stripe[x], &b, denominator);
    add_product(stripe[x], &a, slow_product(power_of_two(y), denominator));
    add(&mut a, stripe[x]);
    stripe[y].copy_from_slice(&a);
}

fn others<'a>(data: &'a [&mut [u8]], but: &'a [usize]) -> impl Iterator<Item = (usize, &'a [u8])> {
    data.iter()
        .enumerate()
        .filter(|(position, _)| !but.contains(position))
        .map(|(position, block)| (position, &**block))
}

fn add_weighted(sum: &mut [u8], data: &[&mut [u8]], but: &[usize]) {
    for (position, block) in others(data, but) {
        add_product(sum, block, power_of_two(position));
    }
}
