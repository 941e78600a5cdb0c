//! Sessions with both digests: data of every kind of transfer arrive whole and are checked on both sides.

use crate::support::{Client, array_of, wait_for, write10};
use linerate_iscsi_proto::pdu::{BHS_BYTES, Response};

const BOTH: &str = "HeaderDigest=CRC32C\0DataDigest=CRC32C\0MaxRecvDataSegmentLength=65536\0";

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 512) as u8 ^ (at % 251) as u8 ^ seed).collect()
}

const POOL: &str = r#""storage": {"disks": [{"name": "d", "count": 4, "size_bytes": 67108864}],
    "raid_sets": [{"name": "r", "level": "raid10", "disks": ["d0", "d1", "d2", "d3"],
    "initialise": "assume_clean"}], "pools": [{"name": "p", "raid_sets": ["r"]}]},"#;

/// Memory, file and thin volumes, on every driver.
fn every_volume(test: impl Fn(&linerate_iscsi_target::Array, &str)) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume").display().to_string();
    let file = format!(r#""kind": "file", "path": "{path}", "write_cache": true"#);
    for (volume, storage) in [(r#""kind": "memory""#, ""), (&file, ""), (r#""kind": "pool""#, POOL)] {
        for driver in ["epoll", "auto"] {
            let array = array_of(volume, &format!(r#""driver": "{driver}", {storage}"#));
            test(&array, &format!("{volume} {driver}"));
            wait_for(&array, "tasks end", |stats| stats.tasks == 0 && stats.pool_bytes == 0);
        }
    }
}

/// One small write with immediate data, one of a MiB in solicited pieces, both read back.
fn round_trip(client: &mut Client, what: &str) {
    let (small, large) = (pattern(4096, 1), pattern(1 << 20, 2));
    client.write(3, &small);
    client.write_as_asked(2048, &large, 65_536);
    assert!(client.read(3, small.len()) == small, "{what}");
    assert!(client.read(2048, large.len()) == large, "{what}");
}

#[test]
fn data_makes_the_round_trip_under_both_digests() {
    every_volume(|array, what| {
        for keys in [BOTH.to_owned(), format!("{BOTH}InitialR2T=No\0")] {
            let mut client = Client::login(array.portals()[0], 1, &keys);
            client.use_digests();
            client.clear_attention();
            round_trip(&mut client, what);
            assert_eq!(client.ping(b"odd").data, b"odd", "padding is part of the digest");
        }
        assert_eq!(array.stats().digest_errors, 0, "{what}");
    });
}

/// Without a data digest, payload is received directly into its destination, after the header digest.
#[test]
fn large_data_goes_straight_to_its_place_with_and_without_header_digest() {
    every_volume(|array, what| {
        for header_digest in ["None", "CRC32C"] {
            let keys = format!("HeaderDigest={header_digest}\0InitialR2T=Yes\0ImmediateData=Yes\0");
            let mut client = Client::login(array.portals()[0], 1, &keys);
            if header_digest == "CRC32C" {
                client.framer.header_digest = linerate_iscsi_proto::params::DigestKind::Crc32c;
            }
            client.clear_attention();
            round_trip(&mut client, what);
        }
    });
}

#[test]
fn data_with_a_wrong_digest_reaches_no_volume() {
    every_volume(|array, what| {
        let mut client = Client::login(array.portals()[0], 1, BOTH);
        client.use_digests();
        client.clear_attention();
        let mut command = client.command(write10(64, 4096), false, true, 4096);
        command.data_len = 4096;
        let mut bhs = [0; BHS_BYTES];
        command.emit(&mut bhs);
        let mut bytes = Vec::new();
        client.framer.write(&bhs, &[0xEE; 4096], &mut bytes);
        *bytes.last_mut().unwrap() ^= 1;
        client.send_raw(&bytes);
        let pdu = client.receive();
        assert!(pdu.is_none_or(|pdu| matches!(pdu.response, Response::Reject(_))), "{what}");
        wait_for(array, "the connection ends", |stats| stats.connections == 0);
        assert_eq!(array.stats().digest_errors, 1, "{what}");
        let mut after = Client::login(array.portals()[0], 2, "");
        after.clear_attention();
        assert!(after.read(64, 4096).iter().all(|byte| *byte != 0xEE), "{what}");
    });
}
