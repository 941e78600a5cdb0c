//! The fuzz targets' bodies over the corpus and over random bytes, on the stable toolchain: seconds instead of hours.
#![allow(clippy::unwrap_used, reason = "tests")]

use linerate_sim::{Rng, for_each_seed};
use std::path::Path;

#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, clippy::unwrap_used, reason = "a library of its own when it is fuzzed")]
mod bodies;

/// The corpus of one target, then random inputs: random bytes, and corpus entries with a few changed bytes.
fn smoke(name: &str, seeds: u64, body: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!corpus.is_empty(), "{} has no inputs", folder.display());
    for input in &corpus {
        body(input);
    }
    for_each_seed(seeds, |seed| {
        let mut rng = Rng::new(seed);
        let mut input = if rng.chance(30) {
            vec![0; rng.range(0, 300) as usize]
        } else {
            corpus[rng.range(0, corpus.len() as u64 - 1) as usize].clone()
        };
        if input.iter().all(|byte| *byte == 0) {
            rng.fill(&mut input);
        }
        for _ in 0..rng.range(0, 6) {
            let at = rng.range(0, input.len() as u64) as usize;
            match rng.range(0, 2) {
                0 if at < input.len() => input[at] = rng.next_u64() as u8,
                1 if at < input.len() => drop(input.remove(at)),
                _ => input.insert(at, rng.next_u64() as u8),
            }
        }
        body(&input);
    });
}

#[test]
fn fuzz_pdu_parse() {
    smoke("pdu_parse", 20_000, bodies::pdu_parse);
}

#[test]
fn fuzz_text_negotiation() {
    smoke("text_negotiation", 20_000, bodies::text_negotiation);
}

#[test]
fn fuzz_array_sessions() {
    smoke("array_sessions", 2_000, bodies::array_sessions);
}

#[test]
fn fuzz_session_events() {
    smoke("session_events", 20_000, bodies::session_events);
}

#[test]
fn fuzz_smb_answers() {
    smoke("smb_answers", 20_000, bodies::smb_answers);
}

#[test]
fn fuzz_smb_shares() {
    smoke("smb_shares", 20_000, bodies::smb_shares);
}

#[test]
fn fuzz_vhdx_image() {
    smoke("vhdx_image", 20_000, bodies::vhdx_image);
}
