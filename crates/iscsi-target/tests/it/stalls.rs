//! Peers that stop in the middle of an operation: their memory is free again after a bounded time.

use crate::support::{Client, array, array_of, read10, wait_for, write10};
use linerate_iscsi_proto::pdu::{BHS_BYTES, Response};
use std::{
    io::Write,
    time::{Duration, Instant},
};

const SOLICITED: &str = "InitialR2T=Yes\0ImmediateData=No\0";
const SHORT: &str = r#""limits": {"stall_timeout_s": 0.4},"#;

fn file_in(dir: &tempfile::TempDir) -> String {
    format!(r#""kind": "file", "path": "{}""#, dir.path().join("volume").display())
}

/// Sends a write of 64 KiB and `len` bytes of its data; the header announces all of it.
fn begin_write(client: &mut Client, len: usize) {
    let write = client.command(write10(0, 65_536), false, true, 65_536);
    client.send(|bhs| write.emit(bhs), &[]);
    let pdu = client.receive().unwrap();
    let Response::R2t(r2t) = pdu.response else { panic!("{pdu:?}") };
    if len > 0 {
        let mut bhs = [0; BHS_BYTES];
        client.data_out(write.itt, r2t.ttt, 0, 0, 65_536, true).emit(&mut bhs);
        client.send_raw(&bhs);
        client.send_raw(&vec![0xEE; len]);
    }
}

/// COMPARE AND WRITE of block 0, which was zero, with zeros.
fn compare_and_write(client: &mut Client) -> u8 {
    let mut cdb = [0; 16];
    (cdb[0], cdb[13]) = (0x89, 1);
    let mut command = client.command(cdb, false, true, 1024);
    command.data_len = 1024;
    client.send(|bhs| command.emit(bhs), &[0; 1024]);
    client.status()
}

#[test]
fn a_write_whose_data_never_comes_delays_others_for_a_bounded_time() {
    let dir = tempfile::tempdir().unwrap();
    for volume in [r#""kind": "memory""#, &file_in(&dir)] {
        // No data at all, or an end in the middle of a data segment that is received directly into its destination.
        for sent in [0, 30_000] {
            let array = array_of(volume, SHORT);
            let mut stalled = Client::login(array.portals()[0], 1, SOLICITED);
            stalled.clear_attention();
            begin_write(&mut stalled, sent);
            let mut other = Client::login(array.portals()[0], 2, "");
            other.clear_attention();
            let began = Instant::now();
            let status = compare_and_write(&mut other);
            // On a memory volume the received bytes are written: then the comparison fails, as it should.
            assert!(status == 0 || (status == 2 && sent > 0), "{volume}: {status} after {sent} bytes");
            assert!(began.elapsed() < Duration::from_secs(5), "{volume}: {sent} bytes");
            assert!(stalled.receive().is_none(), "the stalled session is closed");
            let stats = wait_for(&array, "one is left", |stats| stats.connections == 1);
            assert_eq!((stats.timeouts, stats.tasks, stats.pool_bytes), (1, 0, 0), "{volume}");
        }
    }
}

#[test]
fn data_in_drops_does_not_prolong_the_time() {
    let array = array(SHORT);
    let mut stalled = Client::login(array.portals()[0], 1, SOLICITED);
    stalled.clear_attention();
    begin_write(&mut stalled, 1);
    let began = Instant::now();
    while stalled.socket.write_all(&[0]).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10), "a byte now and then keeps the write going");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(wait_for(&array, "it is gone", |stats| stats.connections == 0).timeouts, 1);
}

#[test]
fn a_peer_that_never_reads_gives_its_buffers_back() {
    let dir = tempfile::tempdir().unwrap();
    let limits = r#""limits": {"stall_timeout_s": 0.5, "memory_bytes": 67108864},"#;
    let array = array_of(&file_in(&dir), limits);
    let mut greedy = Client::login(array.portals()[0], 1, "");
    greedy.clear_attention();
    // More than all of the array's I/O buffers, requested at once, and no answer is read.
    let mut bytes = Vec::new();
    for _ in 0..70 {
        let mut bhs = [0; BHS_BYTES];
        greedy.command(read10(0, 1 << 20), true, false, 1 << 20).emit(&mut bhs);
        bytes.extend_from_slice(&bhs);
    }
    greedy.send_raw(&bytes);
    wait_for(&array, "its share is held", |stats| stats.pool_bytes >= 8 << 20);
    let mut other = Client::login(array.portals()[0], 2, "");
    other.clear_attention();
    assert_eq!(other.read(0, 1 << 20).len(), 1 << 20, "the other one is served meanwhile");
    assert!(array.stats().pool_bytes <= 16 << 20, "one connection never takes more than its part");
    let stats =
        wait_for(&array, "only the other is left", |stats| stats.connections == 1 && stats.pool_bytes == 0);
    assert_eq!(stats.timeouts, 1);
}

#[test]
fn large_reads_at_depth_take_turns_with_the_buffers() {
    let dir = tempfile::tempdir().unwrap();
    let array = array_of(&file_in(&dir), "");
    let mut clients: Vec<_> = (0..3).map(|isid| Client::login(array.portals()[0], isid, "")).collect();
    for client in &mut clients {
        client.clear_attention();
        for block in 0..100 {
            let read = client.command(read10(block, 1 << 20), true, false, 1 << 20);
            client.send(|bhs| read.emit(bhs), &[]);
        }
    }
    // 300 MiB are in progress with 64 MiB of buffers.
    for client in &mut clients {
        let mut received = 0;
        // The others wait, with their buffers, until their turn.
        while received < 100 << 20 {
            let pdu = client.receive().expect("data");
            assert!(matches!(pdu.response, Response::DataIn(_)), "{:?}", pdu.response);
            received += pdu.data.len();
        }
    }
    let stats = wait_for(&array, "all is given back", |stats| stats.tasks == 0 && stats.pool_bytes == 0);
    assert_eq!((stats.reads, stats.timeouts), (300, 0));
}

/// Commands that wait for buffers do not stop reading: the data of commands with buffers is still received.
#[test]
fn large_writes_at_depth_never_wait_for_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let limits = r#""limits": {"stall_timeout_s": 10, "memory_bytes": 67108864},"#;
    let array = array_of(&file_in(&dir), limits);
    let mut client = Client::login(array.portals()[0], 1, SOLICITED);
    client.clear_attention();
    for _ in 0..120 {
        let write = client.command(write10(0, 1 << 20), false, true, 1 << 20);
        client.send(|bhs| write.emit(bhs), &[]);
    }
    let read = client.command(read10(0, 1 << 20), true, false, 1 << 20);
    client.send(|bhs| read.emit(bhs), &[]);
    client.send_ping(b"heard");
    assert_eq!(serve_writes(&mut client, 121, &vec![0x5A; 1 << 20]), (121, 0), "none is refused");
    assert!(client.read(0, 4096) == [0x5A; 4096]);
    wait_for(&array, "all is given back", |stats| stats.tasks == 0 && stats.pool_bytes == 0);
}

/// If unsolicited data has no buffer, the command is refused, because otherwise all would wait for ever.
#[test]
fn unsolicited_data_without_a_place_is_refused_and_nothing_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let limits = r#""limits": {"stall_timeout_s": 10, "memory_bytes": 33554432},"#;
    let array = array_of(&file_in(&dir), limits);
    let mut client = Client::login(array.portals()[0], 1, "InitialR2T=No\0ImmediateData=Yes\0");
    client.clear_attention();
    let data = vec![0x5A; 1 << 20];
    let immediate = 8192;
    for _ in 0..60 {
        let mut write = client.command(write10(0, 1 << 20), false, true, 1 << 20);
        write.data_len = immediate;
        client.send(|bhs| write.emit(bhs), &data[..immediate as usize]);
    }
    let (good, full) = serve_writes(&mut client, 60, &data);
    assert!(good >= 4 && full > 0 && good + full == 60, "{good} done, {full} told TASK SET FULL");
    assert!(client.read(0, 4096) == data[..4096]);
    wait_for(&array, "all is given back", |stats| stats.tasks == 0 && stats.pool_bytes == 0);
}

/// Sends the requested data until `commands` are answered; returns how many were GOOD, and TASK SET FULL.
fn serve_writes(client: &mut Client, commands: u32, data: &[u8]) -> (u32, u32) {
    let (mut good, mut full) = (0, 0);
    while good + full < commands {
        let pdu = client.receive().expect("an answer");
        match pdu.response {
            Response::R2t(r2t) => client.answer_r2t(&r2t, data, 65_536),
            Response::Scsi(response) if response.status == 0 => good += 1,
            Response::Scsi(response) if response.status == 0x28 => full += 1,
            Response::DataIn(piece) => good += u32::from(piece.status.is_some()),
            // While commands wait, the connection is read.
            Response::NopIn(_) => assert_eq!((pdu.data.as_slice(), good), (b"heard".as_slice(), 0)),
            other => panic!("{other:?}"),
        }
    }
    (good, full)
}
