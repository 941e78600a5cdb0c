//! Disks as they may be after a power cut, and what is lost on them.

use crate::{
    disk::{DiskEvent, Log},
    mounted::recovered,
    writer::Writer,
};
use fastrand::Rng;

/// A disk writes pages whole or not at all, in any order.
const PAGE_BYTES: usize = 4096;

/// Most cuts of a run; with more flushes, some gaps between two of them are left out.
const CUTS_MAX: usize = 50;

/// Whether the disk does what a flush asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushes {
    Obeyed,
    Ignored,
}

/// What the power cuts that were tried did.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) cuts: usize,
    /// What is wrong after a cut, with the number of events before it.
    pub(crate) lost: Vec<(usize, Vec<String>)>,
}

/// Cuts the power between flushes, before the first and after the last, in gaps and at events by chance.
pub(crate) fn losses(log: &Log, writer: &Writer, flushes: Flushes, seed: u64) -> Losses {
    let mut rng = Rng::with_seed(seed);
    let mut found = Losses::default();
    let scratch = tempfile::tempdir().unwrap();
    // What the disk holds for sure, and the first event that it may have lost.
    let (mut safe, mut unsafe_from) = (log.base.clone(), 0);
    let flushed_at =
        log.events.iter().enumerate().filter(|(_, (_, event))| matches!(event, DiskEvent::Flush));
    let gaps = log.flushes();
    let mut from = 0;
    for to in flushed_at.map(|(at, _)| at).chain([log.events.len()]) {
        let is_last = to == log.events.len();
        if is_last || rng.usize(0..=gaps) < CUTS_MAX {
            let cut = if is_last { to } else { rng.usize(from..=to) };
            // Answers that came before the next event count. The last cut is after all of them.
            let cut_ns = log.events.get(cut).map_or(u64::MAX, |(at_ns, _)| *at_ns);
            let image = image(&safe, &log.events[unsafe_from..cut], &mut rng);
            let volume = recovered(&image, "/volume", scratch.path()).unwrap_or_default();
            found.cuts += 1;
            let wrong = writer.wrong(&volume, cut_ns);
            if !wrong.is_empty() {
                found.lost.push((cut, wrong));
            }
        }
        if flushes == Flushes::Obeyed {
            for (_, event) in &log.events[unsafe_from..to] {
                apply(&mut safe, event, || true);
            }
            unsafe_from = to;
        }
        from = (to + 1).min(log.events.len());
    }
    found
}

/// The disk with any part of these writes: none, all, or each page by chance.
fn image(safe: &[u8], events: &[(u64, DiskEvent)], rng: &mut Rng) -> Vec<u8> {
    let mut image = safe.to_vec();
    let share = [0.0, 0.2, 0.5, 0.8, 1.0][rng.usize(0..5)];
    for (_, event) in events {
        apply(&mut image, event, || rng.f64() < share);
    }
    image
}

fn apply(content: &mut [u8], event: &DiskEvent, mut is_kept: impl FnMut() -> bool) {
    let DiskEvent::Write { offset, data } = event else { return };
    for (number, page) in data.chunks(PAGE_BYTES).enumerate() {
        if is_kept() {
            content[offset + number * PAGE_BYTES..][..page.len()].copy_from_slice(page);
        }
    }
}
