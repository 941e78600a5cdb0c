//! Sessions over real sockets: data in both directions, numbers, sharing, time.

use crate::support::{Client, IQN, array, array_of, memory_and_file, read10, wait_for, write10};
use linerate_iscsi_proto::pdu::{
    BHS_BYTES, LogoutReason, LogoutRequest, LogoutResult, Lun, RESERVED_TAG, Response, TaskFunction,
    TaskManagement, TaskResult,
};
use std::io::{Read, Write};

/// Keys that make a small write need immediate, unsolicited and solicited data.
const PIECEMEAL: &str = "InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=1024\0MaxBurstLength=2048\0\
    MaxRecvDataSegmentLength=4096\0";

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 512) as u8 ^ at as u8 ^ seed).collect()
}

#[test]
fn what_is_written_is_read_back_from_every_kind_of_volume() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume").display().to_string();
    let file = format!(r#""kind": "file", "path": "{path}", "write_cache": true"#);
    for (driver, volume) in
        [("epoll", r#""kind": "memory""#), ("epoll", &file), ("auto", &file), ("auto", r#""kind": "memory""#)]
    {
        let array = array_of(volume, &format!(r#""driver": "{driver}","#));
        let mut client = Client::login(array.portals()[0], 1, "");
        client.clear_attention();
        for (lba, len) in [(0, 512), (7, 4096), (1000, 100 * 512), (131_071, 512)] {
            let bytes = pattern(len, lba as u8);
            client.write(lba, &bytes);
            assert!(client.read(lba, len) == bytes, "{driver} {volume}: {len} bytes at block {lba}");
        }
        wait_for(&array, "tasks end", |stats| stats.tasks == 0 && stats.pool_bytes == 0);
    }
}

#[test]
fn every_way_of_sending_data_ends_in_the_same_bytes() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, PIECEMEAL);
    client.clear_attention();
    let bytes = pattern(8192, 3);
    let mut command = client.command(write10(16, 8192), false, true, 8192);
    (command.data_len, command.final_pdu) = (512, false);
    client.send(|bhs| command.emit(bhs), &bytes[..512]);
    let unsolicited = client.data_out(command.itt, RESERVED_TAG, 0, 512, 512, true);
    client.send(|bhs| unsolicited.emit(bhs), &bytes[512..1024]);
    let mut at = 1024;
    loop {
        let pdu = client.receive().unwrap();
        match pdu.response {
            Response::R2t(r2t) => {
                assert_eq!((r2t.buffer_offset, r2t.itt), (at, command.itt));
                // In pieces that fit no boundary.
                let mut data_sn = 0;
                let end = at + r2t.desired_len;
                while at < end {
                    let len = 700.min(end - at);
                    let piece = client.data_out(command.itt, r2t.ttt, data_sn, at, len, at + len == end);
                    client.send(|bhs| piece.emit(bhs), &bytes[at as usize..(at + len) as usize]);
                    (at, data_sn) = (at + len, data_sn + 1);
                }
            }
            Response::Scsi(response) => {
                assert_eq!(response.status, 0, "{pdu:?}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(at, 8192);
    assert!(client.read(16, 8192) == bytes);
}

#[test]
fn digests_protect_both_directions() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, "HeaderDigest=None\0DataDigest=CRC32C\0");
    let _ = client.ping(&[]);
    // A ping whose data digest is missing: four zero bytes are certainly wrong for this text.
    let request = linerate_iscsi_proto::pdu::NopOut {
        immediate: true,
        lun: Lun(0),
        itt: 77,
        ttt: RESERVED_TAG,
        cmd_sn: client.cmd_sn,
        exp_stat_sn: client.exp_stat_sn,
        data_len: 4,
    };
    client.send(|bhs| request.emit(bhs), b"ping");
    client.send_raw(&[0; 4]);
    let pdu = client.receive_with_digest();
    assert!(matches!(pdu, Some(Response::Reject(_))), "{pdu:?}");
    let stats = wait_for(&array, "the connection closes", |stats| stats.connections == 0);
    assert_eq!(stats.digest_errors, 1);
}

#[test]
fn a_session_that_logs_in_again_replaces_the_old_one_on_any_worker() {
    let array = array(r#""workers": 2,"#);
    let mut old = Client::login(array.portals()[0], 9, "");
    for _ in 0..6 {
        let mut new = Client::login(array.portals()[0], 9, "");
        assert!(old.receive().is_none(), "the old connection is closed");
        new.clear_attention();
        old = new;
    }
    wait_for(&array, "one session is left", |stats| stats.sessions == 1 && stats.connections == 1);
    let _other = Client::login(array.portals()[0], 10, "");
    assert_eq!(array.stats().sessions, 2);
}

/// Operations of the old session in progress, on any worker, must not overwrite data of the new one (RFC 7143 section
/// 6.3.5): initiators rely on this at a failover.
#[test]
fn a_replaced_session_writes_nothing_once_the_new_login_is_answered() {
    const LEN: usize = 64 * 1024;
    let dir = tempfile::tempdir().unwrap();
    for volume in memory_and_file(dir.path()) {
        let array = array_of(&volume, r#""workers": 2,"#);
        for round in 0..40 {
            let mut old =
                Client::login(array.portals()[0], 9, "ImmediateData=Yes\0MaxRecvDataSegmentLength=65536\0");
            old.clear_attention();
            // As many writes as the window permits, sent by another thread while the session is replaced.
            let flood = std::thread::spawn(move || {
                use std::io::Write;
                let payload = vec![0xAA; LEN];
                for _ in 0..100 {
                    let mut command = old.command(write10(0, LEN), false, true, LEN as u32);
                    command.data_len = LEN as u32;
                    let mut bhs = [0; 48];
                    command.emit(&mut bhs);
                    let sent = old.socket.write_all(&bhs).and_then(|()| old.socket.write_all(&payload));
                    if sent.is_err() {
                        break;
                    }
                }
            });
            std::thread::sleep(std::time::Duration::from_micros(300 * (round % 10)));
            let mut new = Client::login(array.portals()[0], 9, "");
            new.clear_attention();
            new.write(0, &[round as u8; 512]);
            flood.join().unwrap();
            assert!(
                new.read(0, 512) == [round as u8; 512],
                "round {round}: an old write has landed ({volume})"
            );
        }
    }
}

#[test]
fn connections_spread_over_the_workers() {
    let array = array(r#""workers": 3,"#);
    let clients: Vec<_> = (0..9).map(|isid| Client::login(array.portals()[0], isid, "")).collect();
    let stats = array.stats();
    assert_eq!((stats.connections, stats.sessions), (9, 9));
    drop(clients);
    wait_for(&array, "all are gone", |stats| stats.connections == 0 && stats.sessions == 0);
}

#[test]
fn pings_are_echoed_and_logout_closes() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, "");
    assert_eq!(client.ping(b"hello, target").data, b"hello, target");
    let request = LogoutRequest {
        immediate: true,
        reason: LogoutReason::CloseSession,
        itt: 5,
        cid: 0,
        cmd_sn: client.cmd_sn,
        exp_stat_sn: client.exp_stat_sn,
    };
    client.send(|bhs| request.emit(bhs), &[]);
    let pdu = client.receive().unwrap();
    assert!(matches!(pdu.response, Response::Logout(response) if response.result == LogoutResult::Closed));
    assert!(client.receive().is_none());
    wait_for(&array, "the session ends", |stats| stats.sessions == 0);
}

#[test]
fn a_silent_initiator_is_pinged_and_then_dropped() {
    let array = array(r#""limits": {"nop_interval_s": 0.1, "nop_timeout_s": 0.2},"#);
    let mut client = Client::login(array.portals()[0], 1, "");
    let pdu = client.receive().unwrap();
    let Response::NopIn(ping) = pdu.response else { panic!("{pdu:?}") };
    assert!(ping.itt == RESERVED_TAG && ping.ttt != RESERVED_TAG);
    assert!(client.receive().is_none(), "an unanswered ping ends the session");
    assert_eq!(wait_for(&array, "it is gone", |stats| stats.connections == 0).timeouts, 1);
}

/// A header that is sent without its data, or without `TCP_NODELAY`, waits 40 ms for a delayed acknowledgement.
#[test]
fn a_small_answer_leaves_at_once_and_in_one_piece() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, "");
    client.clear_attention();
    let before = array.stats().sends;
    let mut took = Vec::new();
    for lba in 0..100 {
        let began = std::time::Instant::now();
        client.write(lba, &[lba as u8; 512]);
        assert_eq!(client.read(lba, 512), [lba as u8; 512]);
        took.push(began.elapsed());
    }
    took.sort();
    // The median: a busy machine delays some of them.
    assert!(took[50].as_millis() < 30, "{took:?}");
    let stats = wait_for(&array, "counters are published", |stats| stats.sends - before >= 200);
    assert_eq!(stats.sends - before, 200, "one send per answer");
}

/// Each send is a system call, and wakes the initiator.
#[test]
fn reads_of_a_raid_volume_that_arrive_together_are_answered_together() {
    const BATCHES: u64 = 100;
    const DEPTH: usize = 16;
    let array = array_of(
        r#""kind": "pool", "pool": "p""#,
        r#""storage": {"disks": [{"name": "d", "count": 4, "size_bytes": 67108864}], "raid_sets": [{"name": "r",
            "level": "raid10", "disks": ["d0", "d1", "d2", "d3"], "initialise": "assume_clean"}],
            "pools": [{"name": "p", "raid_sets": ["r"]}]},"#,
    );
    let mut client = Client::login(array.portals()[0], 1, "");
    client.clear_attention();
    let bytes = pattern(DEPTH * 512, 1);
    client.write(0, &bytes);
    let before = array.stats().sends;
    for _ in 0..BATCHES {
        let mut commands = Vec::new();
        for lba in 0..DEPTH as u32 {
            let mut bhs = [0; BHS_BYTES];
            client.command(read10(lba, 512), true, false, 512).emit(&mut bhs);
            commands.extend_from_slice(&bhs);
        }
        client.socket.write_all(&commands).unwrap();
        let mut answers = vec![0; DEPTH * (BHS_BYTES + 512)];
        client.socket.read_exact(&mut answers).unwrap();
        let data = answers.chunks_exact(BHS_BYTES + 512).map(|answer| &answer[BHS_BYTES..]);
        assert!(data.eq(bytes.chunks_exact(512)), "the blocks, in the order of the commands");
    }
    let sends = array.stats().sends - before;
    // The commands of some batches may arrive in two parts.
    assert!(sends < BATCHES * 3 / 2, "{sends} sends for {BATCHES} batches");
}

#[test]
fn a_session_that_is_silent_for_too_long_is_closed() {
    let array = array(r#""limits": {"idle_timeout_s": 1.0},"#);
    let mut silent = Client::login(array.portals()[0], 1, "");
    let mut busy = Client::login(array.portals()[0], 2, "");
    busy.clear_attention();
    for _ in 0..15 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(busy.ping(b"here").data, b"here", "who speaks is not silent");
    }
    assert!(silent.receive().is_none());
    let stats = wait_for(&array, "one is left", |stats| stats.connections == 1);
    assert_eq!((stats.timeouts, stats.sessions), (1, 1));
}

#[test]
fn an_aborted_write_gets_no_answer_and_leaves_nothing() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, "InitialR2T=Yes\0ImmediateData=No\0");
    client.clear_attention();
    for function in [TaskFunction::AbortTask, TaskFunction::AbortTaskSet, TaskFunction::LogicalUnitReset] {
        let write = client.command(write10(0, 8192), false, true, 8192);
        client.send(|bhs| write.emit(bhs), &[]);
        let pdu = client.receive().unwrap();
        let Response::R2t(r2t) = pdu.response else { panic!("{pdu:?}") };
        let request = TaskManagement {
            immediate: true,
            function,
            lun: Lun(0),
            itt: client.itt(),
            referenced_itt: write.itt,
            cmd_sn: client.cmd_sn,
            exp_stat_sn: client.exp_stat_sn,
            ref_cmd_sn: write.cmd_sn,
            exp_data_sn: 0,
        };
        client.send(|bhs| request.emit(bhs), &[]);
        let pdu = client.receive().unwrap();
        let Response::TaskManagement(response) = pdu.response else { panic!("{pdu:?}") };
        assert_eq!(response.result, TaskResult::Complete, "{function:?}");
        // Data in transit is dropped, and the session continues.
        let late = client.data_out(write.itt, r2t.ttt, 0, 0, 8192, true);
        client.send(|bhs| late.emit(bhs), &[0xEE; 8192]);
        client.clear_attention();
        assert_eq!(client.read(0, 8192), vec![0; 8192], "{function:?}");
        assert_eq!(array.stats().tasks, 0);
    }
}

#[test]
fn discovery_lists_the_target_behind_every_portal() {
    let array = array("");
    let mut client = Client::connect(array.portals()[0]);
    let text =
        "InitiatorName=iqn.2026-11.lab.linerate:host\0SessionType=Discovery\0MaxRecvDataSegmentLength=512\0";
    let pdu = client.log_in(1, text);
    let Response::Login(response) = pdu.response else { panic!("{pdu:?}") };
    assert_eq!(response.status.class, 0);
    let expected = format!("TargetName={IQN}\0TargetAddress={},1\0", array.portals()[0]);
    assert_eq!(client.send_targets("All"), expected);
}

#[test]
fn stopping_asks_for_logouts_and_ends_in_time() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, "");
    let began = std::time::Instant::now();
    let stopper = std::thread::spawn(move || array.stop());
    let pdu = client.receive().unwrap();
    assert!(matches!(pdu.response, Response::Async(_)), "{pdu:?}");
    assert!(client.receive().is_none());
    stopper.join().unwrap();
    assert!(began.elapsed().as_secs() < 10);
}
