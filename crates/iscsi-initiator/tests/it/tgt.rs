//! With tgt (Debian package tgt): a private daemon on its own ports, killed by its process id.

use crate::peers::Tgt;
use linerate_io::EpollDriver;
use linerate_iscsi_initiator::{Blame, Credentials, Disk, LunAddress, SessionOptions, discover};
use std::process::Command;

fn options() -> SessionOptions {
    SessionOptions { login_timeout_s: 5.0, command_timeout_s: 5.0, ..SessionOptions::default() }
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ (at >> 9) as u8 ^ seed).collect()
}

#[test]
fn discovery_lists_target_and_lun() {
    let Some(tgt) = Tgt::start() else { return };
    let found = discover(&tgt.portal(), &options(), &Credentials::default()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].iqn, Tgt::IQN);
    let disk = found[0].luns.iter().find(|lun| lun.lun == 1).expect("LUN 1 is listed");
    assert_eq!((disk.capacity_bytes, disk.block_bytes), (Tgt::BYTES, 512));
    assert_eq!(disk.failure, None);
    // What sg_modes and sg_readcap show of it: a write-back cache, and eight logical blocks in a physical one.
    assert_eq!((disk.write_cache, disk.physical_block_bytes), (Some(true), Some(4096)));
    assert_eq!((disk.thin, disk.used_percent), (Some(false), None));
    let controller = found[0].luns.iter().find(|lun| lun.lun == 0).expect("tgt's controller is listed");
    assert_eq!(controller.blame, Some(Blame::User), "{:?}", controller.failure);
}

#[test]
fn what_is_written_is_read_back_under_every_way_of_moving_data() {
    let Some(tgt) = Tgt::start() else { return };
    let (address, _) = LunAddress::parse(&tgt.url()).unwrap();
    let ways = [
        options(),
        SessionOptions { immediate_data: false, ..options() },
        SessionOptions { immediate_data: false, initial_r2t: true, ..options() },
        SessionOptions {
            first_burst_bytes: 4096,
            max_burst_bytes: 16384,
            max_outstanding_r2t: 2,
            ..options()
        },
        SessionOptions { max_recv_data_segment_bytes: 512, ..options() },
        SessionOptions {
            header_digest: linerate_iscsi_initiator::DigestChoice::Crc32c,
            data_digest: linerate_iscsi_initiator::DigestChoice::Crc32c,
            ..options()
        },
        SessionOptions { connections: 4, ..options() },
    ];
    for (number, way) in ways.iter().enumerate() {
        let mut disk =
            Disk::open(EpollDriver::new().unwrap(), &address, way, &Credentials::default()).unwrap();
        assert_eq!(disk.facts().capacity_bytes(), Tgt::BYTES);
        // The smaller number of connections is used; tgt permits one.
        let facts = disk.session_facts().unwrap();
        assert_eq!(facts.connections.len(), usize::from(facts.params.max_connections.min(way.connections)));
        for len in [512, 4096, 65536, 1 << 20] {
            let sent = pattern(len, number as u8);
            disk.write(8192, &sent).unwrap();
            let mut back = vec![0; len];
            disk.read(8192, &mut back).unwrap();
            assert!(sent == back, "way {number}, {len} bytes");
        }
        disk.sync().unwrap();
        disk.close().unwrap();
    }
}

/// Runs one qemu-io command on the LUN; None, with a message, if qemu-io does not support iSCSI here.
fn qemu_io(tgt: &Tgt, command: &str) -> Option<String> {
    let output = Command::new("qemu-io").args(["-f", "raw", "-c", command, &tgt.url()]).output();
    let text = match output {
        Ok(output) => {
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        Err(error) => format!("Unknown protocol: {error}"),
    };
    if text.contains("Unknown protocol") {
        crate::peers::skip("qemu-io cannot speak iSCSI (packages qemu-utils, qemu-block-extra)");
        return None;
    }
    Some(text)
}

#[test]
fn qemu_reads_what_was_written_here_and_the_reverse() {
    let Some(tgt) = Tgt::start() else { return };
    let (address, _) = LunAddress::parse(&tgt.url()).unwrap();
    let mut disk =
        Disk::open(EpollDriver::new().unwrap(), &address, &options(), &Credentials::default()).unwrap();
    disk.write(8192, &vec![0xa7; 300 * 512]).unwrap();
    disk.sync().unwrap();
    let Some(right) = qemu_io(&tgt, "read -P 0xa7 8192 153600") else { return };
    assert!(right.contains("read 153600/153600") && !right.contains("failed"), "{right}");
    let wrong = qemu_io(&tgt, "read -P 0xa8 8192 153600").unwrap();
    assert!(wrong.contains("Pattern verification failed"), "the check can fail: {wrong}");
    let written = qemu_io(&tgt, "write -P 0x3c 1048576 262144").unwrap();
    assert!(written.contains("wrote 262144/262144"), "{written}");
    let mut back = vec![0; 262_144];
    disk.read(1 << 20, &mut back).unwrap();
    assert!(back.iter().all(|byte| *byte == 0x3c));
    assert_eq!(disk.session_facts().unwrap().logins, 1);
}
