//! Properties of places: inside, on the grid, without gaps and repeats, with the requested frequencies.

use super::Address;
use crate::{
    spec::StreamSpec,
    stream::rng::{Rng, Use},
};
use std::collections::BTreeSet;

const MIB: u64 = 1 << 20;

fn stream(json: &str) -> StreamSpec {
    let text = format!(r#"{{"name": "s", "volumes": ["v"], {json}}}"#);
    serde_json::from_str(&text).unwrap()
}

fn address(json: &str, volume_bytes: u64) -> Address {
    Address::new(&stream(json), volume_bytes, 512).unwrap()
}

fn draws(json: &str, volume_bytes: u64, size: u32, count: usize) -> Vec<(u64, u32)> {
    let (mut address, mut rng) = (address(json, volume_bytes), Rng::new(1, 2, 3, Use::Shots));
    (0..count).map_while(|_| address.draw(size, true, &mut rng)).collect()
}

const SIZES_4K: &str = r#""sizes": {"kind": "mix", "parts": [[4096, 100]]}"#;

fn with_4k(rest: &str) -> String {
    format!("{SIZES_4K}, {rest}")
}

#[test]
fn random_places_lie_on_the_grid_and_reach_both_ends() {
    let seen: BTreeSet<u64> = draws(&with_4k(r#""random_percent": 100"#), 64 * 4096 + 512, 4096, 5000)
        .into_iter()
        .map(|s| s.0)
        .collect();
    assert_eq!(seen, (0..64).map(|block| block * 4096).collect());
}

#[test]
fn alignment_replaces_the_size_as_the_grid() {
    let places = draws(&with_4k(r#""align_bytes": 512"#), MIB, 4096, 5000);
    assert!(places.iter().all(|&(offset, _)| offset % 512 == 0 && offset + 4096 <= MIB));
    assert!(places.iter().any(|&(offset, _)| offset % 4096 != 0));
    let places = draws(&with_4k(r#""align_bytes": 65536"#), MIB, 4096, 500);
    assert!(places.iter().all(|&(offset, _)| offset % 65536 == 0));
}

#[test]
fn sequential_covers_everything_once_per_round() {
    let places = draws(&with_4k(r#""random_percent": 0"#), MIB, 4096, 512);
    let expected: Vec<u64> = (0..512).map(|k| k % 256 * 4096).collect();
    assert_eq!(places.iter().map(|s| s.0).collect::<Vec<_>>(), expected);
}

#[test]
fn stop_at_end_covers_every_block_exactly_once() {
    for (volume, cursors) in [(MIB, 1), (MIB + 512 * 3, 1), (MIB + 512 * 5, 3)] {
        let json = with_4k(&format!(r#""stop_at_end": true, "cursors": {cursors}"#));
        let mut blocks: Vec<u64> = draws(&json, volume, 4096, 10_000)
            .iter()
            .flat_map(|&(offset, len)| (offset / 512)..(offset + u64::from(len)) / 512)
            .collect();
        blocks.sort_unstable();
        assert_eq!(blocks, (0..volume / 512).collect::<Vec<_>>(), "{volume} bytes, {cursors} cursors");
    }
}

#[test]
fn a_range_past_the_end_wraps_to_the_start() {
    let json = with_4k(r#""random_percent": 0, "range": {"unit": "percent", "start": 75, "end": 125}"#);
    let places: Vec<u64> = draws(&json, MIB, 4096, 128).iter().map(|s| s.0).collect();
    let expected: Vec<u64> = (192..256).chain(0..64).map(|block| block * 4096).collect();
    assert_eq!(places, expected);
    let json = with_4k(r#""range": {"unit": "percent", "start": 70, "end": 130}"#);
    for (offset, len) in draws(&json, MIB + 512, 4096, 20_000) {
        assert_eq!(offset % 4096, 0);
        assert!(offset + u64::from(len) <= MIB + 512);
        assert!(offset >= MIB * 7 / 10 - 4096 || offset + 4096 <= MIB * 3 / 10 + 4096, "{offset} is outside");
    }
}

#[test]
fn a_byte_range_is_kept() {
    let json = with_4k(r#""range": {"unit": "bytes", "start": 65536, "end": 131072}"#);
    let seen: BTreeSet<u64> = draws(&json, MIB, 4096, 2000).into_iter().map(|s| s.0).collect();
    assert_eq!(seen, (16..32).map(|block| block * 4096).collect());
}

#[test]
fn partly_random_jumps_that_often_and_else_goes_on() {
    let places = draws(&with_4k(r#""random_percent": 20"#), 1024 * MIB, 4096, 100_000);
    let on = places.windows(2).filter(|pair| pair[1].0 == pair[0].0 + 4096).count();
    let percent = on as f64 / places.len() as f64 * 100.0;
    assert!((percent - 80.0).abs() < 1.0, "{percent} % went on");
}

#[test]
fn so_many_ios_follow_each_other_from_each_random_place() {
    let places = draws(&with_4k(r#""ios_per_place": 8"#), 1024 * MIB, 4096, 80_000);
    let follows = |nth: usize| places[nth].0 == places[nth - 1].0 + 4096;
    assert!((1..80_000).filter(|nth| nth % 8 != 0).filter(|&nth| !follows(nth)).count() < 20);
    assert!((8..80_000).step_by(8).filter(|&nth| follows(nth)).count() < 20);
    // Near the end of a small volume the rest of the I/Os get random places too.
    let small = draws(&with_4k(r#""ios_per_place": 8"#), 64 * 4096, 4096, 5000);
    assert!(small.iter().all(|&(offset, len)| offset + u64::from(len) <= 64 * 4096));
}

#[test]
fn the_first_transfer_is_left_alone() {
    for json in [r#""skip_first_block": true"#, r#""skip_first_block": true, "random_percent": 0"#] {
        let places = draws(&with_4k(json), MIB, 4096, 3000);
        assert_eq!(places.iter().map(|s| s.0).min(), Some(4096), "{json}");
    }
    let wrapped = r#""skip_first_block": true, "range": {"unit": "percent", "start": 50, "end": 150}"#;
    assert!(draws(&with_4k(wrapped), MIB, 4096, 3000).iter().all(|s| s.0 >= 4096));
}

#[test]
fn hits_go_to_the_hit_area_and_misses_do_not() {
    let json = with_4k(r#""hit_area": {"bytes": 65536, "read_percent": 40, "write_percent": 10}"#);
    for (is_read, percent) in [(true, 40.0), (false, 10.0)] {
        let (mut address, mut rng) = (address(&json, 64 * MIB), Rng::new(1, 2, 3, Use::Shots));
        let hits = (0..50_000).filter(|_| address.draw(4096, is_read, &mut rng).unwrap().0 < 65536).count();
        assert!((hits as f64 / 500.0 - percent).abs() < 1.0, "{hits} hits of 50000, {percent} % asked");
    }
}

#[test]
fn a_hot_band_is_hotter_at_its_start() {
    let json = with_4k(r#""hotband": {"unit": "percent", "start": 50, "end": 100}"#);
    let places = draws(&json, 64 * MIB, 4096, 50_000);
    assert!(places.iter().all(|s| s.0 >= 32 * MIB));
    let quarters: Vec<usize> =
        (0..4).map(|q| places.iter().filter(|s| (s.0 - 32 * MIB) / (8 * MIB) == q).count()).collect();
    assert!(quarters.windows(2).all(|pair| pair[0] > pair[1]), "{quarters:?}");
}

#[test]
fn a_stride_skips_forward() {
    let json = with_4k(r#""stride": {"min_bytes": 8192, "max_bytes": 16384}"#);
    let places = draws(&json, 16 * MIB, 4096, 900);
    for pair in places.windows(2) {
        assert!((12_288..=20_480).contains(&(pair[1].0 - pair[0].0)) && pair[1].0 % 4096 == 0);
    }
    assert!(draws(&json, MIB, 4096, 20_000).iter().all(|s| s.0 + 4096 <= MIB));
}

#[test]
fn a_stride_begins_at_the_start_again_and_again() {
    let json = with_4k(r#""stride": {"min_bytes": 12288, "max_bytes": 12288}"#);
    let places: Vec<u64> = draws(&json, 20 * 4096, 4096, 12).iter().map(|s| s.0 / 4096).collect();
    assert_eq!(places, [0, 4, 8, 12, 16, 0, 4, 8, 12, 16, 0, 4]);
}

#[test]
fn passes_of_a_stride_begin_one_io_further_each() {
    let json = with_4k(r#""stride": {"min_bytes": 12288, "max_bytes": 12288, "passes": 2}"#);
    let places: Vec<u64> = draws(&json, 10 * 4096, 4096, 14).iter().map(|s| s.0 / 4096).collect();
    assert_eq!(places, [0, 4, 8, 1, 5, 9, 0, 4, 8, 1, 5, 9, 0, 4]);
    let json = json.replace("\"passes\": 2", "\"passes\": 4");
    let places: Vec<u64> = draws(&json, 8 * 4096, 4096, 10).iter().map(|s| s.0 / 4096).collect();
    assert_eq!(places, [0, 4, 1, 5, 2, 6, 3, 7, 0, 4]);
}

#[test]
fn a_distribution_gives_each_part_its_share() {
    let json = with_4k(
        r#""align_bytes": 4096,
        "distribution": {"unit": "percent", "parts": [[90, 10], [0, 10], [5, 20], [5, 60]]}"#,
    );
    let places = draws(&json, 100 * 4096 + 512, 4096, 100_000);
    let share = |from: u64, to: u64| {
        let inside = |place: &&(u64, u32)| (from * 4096..to * 4096).contains(&place.0);
        places.iter().filter(inside).count() as f64 / 1000.0
    };
    for (from, to, percent) in [(0, 10, 90.0), (10, 20, 0.0), (20, 40, 5.0), (40, 100, 5.0)] {
        assert!((share(from, to) - percent).abs() < 0.3, "{from}..{to}: {} %", share(from, to));
    }
    let seen: BTreeSet<u64> = places.iter().map(|place| place.0 / 4096).collect();
    assert_eq!(seen, (0..10).chain(20..100).collect());
}

#[test]
fn a_partly_random_stream_goes_on_behind_its_part() {
    let json = with_4k(r#""random_percent": 50, "distribution": {"unit": "bytes", "parts": [[100, 4096]]}"#);
    let places = draws(&json, MIB, 4096, 10_000);
    assert!(places.iter().filter(|place| place.0 == 0).count() > 4500);
    assert!(places.windows(2).all(|pair| pair[1].0 == 0 || pair[1].0 == pair[0].0 + 4096));
    let outside = with_4k(r#""distribution": {"unit": "bytes", "parts": [[0, 1048576], [100, 0]]}"#);
    assert!(Address::new(&stream(&outside), MIB, 512).is_err());
}

#[test]
fn several_cursors_take_turns_in_their_own_parts() {
    let places = draws(&with_4k(r#""random_percent": 0, "cursors": 4"#), MIB, 4096, 8);
    let quarter = MIB / 4;
    let expected: Vec<u64> = (0..8).map(|k| k % 4 * quarter + k / 4 * 4096).collect();
    assert_eq!(places.iter().map(|s| s.0).collect::<Vec<_>>(), expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    for (json, volume) in [
        (with_4k(r#""random_percent": 0"#), 2048),
        (with_4k(r#""range": {"unit": "percent", "start": 10, "end": 10}"#), MIB),
        (with_4k(r#""range": {"unit": "bytes", "start": 2097152, "end": 3145728}"#), MIB),
        (with_4k(r#""hit_area": {"bytes": 1048576, "read_percent": 1, "write_percent": 0}"#), MIB),
        (with_4k(r#""cursors": 300"#), MIB),
        (with_4k(r#""skip_first_block": true"#), 4096),
    ] {
        assert!(Address::new(&stream(&json), volume, 512).is_err(), "{json} on {volume} bytes");
    }
}
