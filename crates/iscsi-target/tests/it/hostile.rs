//! Peers that break the rules: none of them may hang, crash or exhaust the array, or leave anything behind.

use crate::support::{Client, array, array_of, memory_and_file, read10, wait_for, write10};
use linerate_iscsi_proto::pdu::{BHS_BYTES, Response};
use linerate_iscsi_target::Array;
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

fn nothing_is_left(array: &Array) {
    wait_for(array, "nothing is left", |stats| {
        stats.connections == 0 && stats.sessions == 0 && stats.tasks == 0 && stats.pool_bytes == 0
    });
    // And the array still serves.
    let mut client = Client::login(array.portals()[0], 200, "");
    client.clear_attention();
    assert_eq!(client.read(0, 512).len(), 512);
}

/// A small generator, so that every run sends the same garbage.
fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn garbage_before_login_closes_the_connection() {
    let array = array("");
    for seed in 0..50 {
        let mut socket = TcpStream::connect(array.portals()[0]).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = socket.write_all(&noise(4096, seed));
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let _ = socket.read_to_end(&mut Vec::new());
    }
    nothing_is_left(&array);
}

#[test]
fn garbage_in_full_feature_phase_is_rejected_or_closes() {
    let array = array("");
    for seed in 0..50 {
        let mut client = Client::login(array.portals()[0], seed as u8, "");
        let mut bytes = noise(BHS_BYTES * 20, seed);
        // No additional header segments and short data, so that several PDUs are parsed.
        for bhs in bytes.chunks_exact_mut(BHS_BYTES) {
            bhs[4..8].copy_from_slice(&[0, 0, 0, 0]);
        }
        let _ = client.socket.write_all(&bytes);
        let _ = client.socket.shutdown(std::net::Shutdown::Write);
        let _ = client.socket.read_to_end(&mut Vec::new());
    }
    nothing_is_left(&array);
}

#[test]
fn a_login_that_announces_too_much_is_not_waited_for() {
    let array = array("");
    let mut client = Client::connect(array.portals()[0]);
    let mut bhs = [0; BHS_BYTES];
    (bhs[0], bhs[1]) = (0x43, 0x87);
    bhs[5..8].copy_from_slice(&[0xff, 0xff, 0xff]);
    client.send_raw(&bhs);
    assert!(client.receive().is_none(), "closed without taking 16 MiB");
    nothing_is_left(&array);
}

#[test]
fn logins_cut_at_every_byte_leave_nothing() {
    let array = array("");
    let mut whole = Vec::new();
    let text = b"InitiatorName=iqn.2026-11.lab.linerate:host\0SessionType=Discovery\0";
    let mut bhs = [0; BHS_BYTES];
    (bhs[0], bhs[1], bhs[7], bhs[8]) = (0x43, 0x87, text.len() as u8, 0x80);
    whole.extend_from_slice(&bhs);
    whole.extend_from_slice(text);
    for len in 0..whole.len() {
        let mut socket = TcpStream::connect(array.portals()[0]).unwrap();
        socket.write_all(&whole[..len]).unwrap();
    }
    nothing_is_left(&array);
}

#[test]
fn a_login_that_never_ends_is_dropped() {
    let array = array(r#""limits": {"login_timeout_s": 0.3},"#);
    let mut silent = Client::connect(array.portals()[0]);
    let mut slow = Client::connect(array.portals()[0]);
    slow.send_raw(&[0x43]);
    assert!(silent.receive().is_none() && slow.receive().is_none());
    assert_eq!(wait_for(&array, "both are gone", |stats| stats.connections == 0).timeouts, 2);
}

#[test]
fn floods_of_connections_meet_the_limit() {
    let array = array(r#""limits": {"half_open_per_peer": 10, "sessions": 5},"#);
    let flood: Vec<_> = (0..50).map(|_| Client::connect(array.portals()[0])).collect();
    wait_for(&array, "forty are dropped", |stats| stats.connections_refused == 40);
    assert_eq!(array.stats().connections, 10);
    drop(flood);
    wait_for(&array, "all are gone", |stats| stats.connections == 0);
    let mut sessions: Vec<_> = (0..5).map(|isid| Client::login(array.portals()[0], isid, "")).collect();
    let mut sixth = Client::connect(array.portals()[0]);
    let text = format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={}\0", crate::support::IQN);
    let pdu = sixth.log_in(99, &text);
    let Response::Login(response) = pdu.response else { panic!("{pdu:?}") };
    assert_eq!((response.status.class, response.status.detail), (3, 2), "out of resources");
    sessions[0].clear_attention();
}

#[test]
fn writes_cut_short_many_times_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for volume in memory_and_file(dir.path()) {
        let array = array_of(&volume, "");
        for round in 0..200 {
            let mut client =
                Client::login(array.portals()[0], round as u8, "InitialR2T=Yes\0ImmediateData=No\0");
            client.clear_attention();
            for _ in 0..4 {
                let write = client.command(write10(0, 65_024), false, true, 65_024);
                client.send(|bhs| write.emit(bhs), &[]);
                let pdu = client.receive().unwrap();
                let Response::R2t(r2t) = pdu.response else { panic!("{pdu:?}") };
                let piece = client.data_out(write.itt, r2t.ttt, 0, 0, 8192, false);
                client.send(|bhs| piece.emit(bhs), &[0xAA; 8192]);
            }
            // Cut in the middle of a data segment.
            let mut bhs = [0; BHS_BYTES];
            let write = client.command(write10(0, 4096), false, true, 4096);
            write.emit(&mut bhs);
            client.send_raw(&bhs[..20 + round % 28]);
        }
        nothing_is_left(&array);
    }
}

#[test]
fn a_wrong_data_out_fails_the_task_and_nothing_else() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, "InitialR2T=Yes\0ImmediateData=No\0");
    client.clear_attention();
    for wrong in 0..4 {
        let write = client.command(write10(0, 8192), false, true, 8192);
        client.send(|bhs| write.emit(bhs), &[]);
        let pdu = client.receive().unwrap();
        let Response::R2t(r2t) = pdu.response else { panic!("{pdu:?}") };
        let mut piece = client.data_out(write.itt, r2t.ttt, 0, 0, 4096, false);
        match wrong {
            0 => piece.data_sn = 7,
            1 => piece.buffer_offset = 512,
            2 => piece.final_pdu = true,
            _ => (piece.data_len, piece.buffer_offset) = (8192, 4096),
        }
        let data = vec![0xBB; piece.data_len as usize];
        client.send(|bhs| piece.emit(bhs), &data);
        assert_eq!(client.status(), 2, "CHECK CONDITION for case {wrong}");
        assert_eq!(client.read(0, 4096), vec![0; 4096], "nothing was written in case {wrong}");
    }
    assert_eq!(array.stats().tasks, 0);
}

#[test]
fn a_peer_that_never_reads_costs_bounded_memory() {
    let array = array(r#""limits": {"commands_per_session": 128},"#);
    let mut client = Client::login(array.portals()[0], 1, "");
    client.clear_attention();
    client.socket.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    // Far more commands than the window holds, and none of their data is read.
    for _ in 0..20_000 {
        let read = client.command(read10(0, 65_024), true, false, 65_024);
        let mut bhs = [0; BHS_BYTES];
        read.emit(&mut bhs);
        if client.socket.write_all(&bhs).is_err() {
            break;
        }
    }
    let mut other = Client::login(array.portals()[0], 2, "");
    other.clear_attention();
    assert_eq!(other.read(0, 4096).len(), 4096, "others are served meanwhile");
    drop(client);
    wait_for(&array, "one is left", |stats| stats.connections == 1);
}

#[test]
fn a_command_outside_the_window_is_ignored() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, "");
    client.clear_attention();
    let mut beyond = client.command(read10(0, 512), true, false, 512);
    client.cmd_sn = beyond.cmd_sn;
    beyond.cmd_sn = beyond.cmd_sn.wrapping_add(500);
    client.send(|bhs| beyond.emit(bhs), &[]);
    let mut before = beyond;
    before.cmd_sn = client.cmd_sn.wrapping_sub(1);
    client.send(|bhs| before.emit(bhs), &[]);
    // The next answer belongs to the next command: the two commands got no answer.
    assert_eq!(client.read(0, 512), vec![0; 512]);
}
