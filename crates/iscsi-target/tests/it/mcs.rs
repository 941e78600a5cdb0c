//! Several connections in one session (MC/S) over real sockets: joining, order, resets, leaving, peers with faults.

use crate::support::{Client, array, array_of, read10, wait_for, write10};
use linerate_iscsi_proto::pdu::{
    LogoutReason, LogoutRequest, LogoutResult, Lun, NopOut, RESERVED_TAG, Response, ScsiCommand,
    TaskFunction, TaskManagement, TaskResult,
};
use linerate_iscsi_target::Array;
use std::time::Duration;

const SEVERAL: &str = "MaxConnections=4\0";
const WORKERS: &str = r#""workers": 3,"#;

/// A session of `count` connections without a pending unit attention, spread over portals and workers.
fn session(array: &Array, count: u16, keys: &str) -> Vec<Client> {
    let addr = array.portals()[0];
    let mut first = Client::login(addr, 1, &format!("{SEVERAL}{keys}"));
    first.clear_attention();
    let mut clients = vec![first];
    for cid in 1..count {
        let (client, response) = clients[0].add(addr, 1, cid, "");
        assert_eq!((response.status.class, response.tsih), (0, clients[0].tsih), "{response:?}");
        assert_eq!(response.sn.exp_cmd_sn, clients[0].cmd_sn, "the session's window");
        clients.push(client);
    }
    clients
}

/// A command with a number that the test chooses.
fn numbered(
    client: &mut Client,
    cmd_sn: u32,
    cdb: [u8; 16],
    read: bool,
    write: bool,
    len: u32,
) -> ScsiCommand {
    client.cmd_sn = cmd_sn;
    client.command(cdb, read, write, len)
}

fn send_read(client: &mut Client, cmd_sn: u32, lba: u32) -> u32 {
    let command = numbered(client, cmd_sn, read10(lba, 512), true, false, 512);
    client.send(|bhs| command.emit(bhs), &[]);
    command.itt
}

/// A write of one block with immediate data.
fn send_write(client: &mut Client, cmd_sn: u32, lba: u32, fill: u8) {
    let mut command = numbered(client, cmd_sn, write10(lba, 512), false, true, 512);
    command.data_len = 512;
    client.send(|bhs| command.emit(bhs), &[fill; 512]);
}

/// The data of the next answer, which belongs to this tag.
fn data_of(client: &mut Client, itt: u32) -> Vec<u8> {
    let pdu = client.receive().expect("data");
    let Response::DataIn(data_in) = pdu.response else { panic!("{pdu:?}") };
    assert_eq!(data_in.itt, itt);
    client.exp_stat_sn = data_in.sn.stat_sn.wrapping_add(1);
    pdu.data
}

/// Nothing arrives for a while.
fn is_silent(client: &mut Client) -> bool {
    client.socket.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
    let nothing = client.socket.peek(&mut [0]).is_err();
    client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    nothing
}

fn nothing_is_left(array: &Array) {
    wait_for(array, "nothing is left", |stats| {
        stats.connections == 0 && stats.sessions == 0 && stats.tasks == 0 && stats.pool_bytes == 0
    });
}

#[test]
fn connections_join_on_any_worker_and_carry_one_sequence_of_commands() {
    for driver in ["epoll", "auto"] {
        let array = array(&format!(r#"{WORKERS} "driver": "{driver}","#));
        let mut clients = session(&array, 4, "");
        assert_eq!((array.stats().sessions, array.stats().connections), (1, 4));
        let start = clients[0].cmd_sn;
        for turn in 0..400 {
            let client = &mut clients[turn as usize % 4];
            if turn % 2 == 0 {
                send_write(client, start.wrapping_add(turn), turn / 2, turn as u8);
                assert_eq!(client.status(), 0);
            } else {
                let itt = send_read(client, start.wrapping_add(turn), turn / 2);
                assert_eq!(data_of(client, itt), [turn as u8 - 1; 512], "{driver}");
            }
        }
        let report = array.report();
        let connections = &report.by_session[0].connections;
        assert_eq!(connections.iter().map(|one| one.cid).collect::<Vec<_>>(), [0, 1, 2, 3]);
        drop(clients);
        nothing_is_left(&array);
    }
}

#[test]
fn a_command_that_comes_early_waits_for_those_before_it() {
    let array = array(WORKERS);
    let mut clients = session(&array, 3, "");
    let [a, b, c] = &mut clients[..] else { panic!() };
    let start = a.cmd_sn;
    // A read and writes of one block; only their numbers determine the order.
    let last = send_read(b, start + 2, 5);
    assert!(matches!(b.ping(b"now").response, Response::NopIn(_)), "what is immediate does not wait");
    send_write(a, start + 1, 5, 2);
    assert!(is_silent(a) && is_silent(b), "command {start} is missing");
    send_write(c, start, 5, 1);
    assert_eq!(c.status(), 0);
    assert_eq!(a.status(), 0);
    assert_eq!(data_of(b, last), [2; 512]);
}

#[test]
fn numbers_come_once_and_what_is_outside_the_window_is_dropped() {
    let array = array(r#""limits": {"commands_per_session": 4},"#);
    let mut clients = session(&array, 2, "");
    let [a, b] = &mut clients[..] else { panic!() };
    let start = a.cmd_sn;
    let kept = send_read(a, start + 1, 0);
    // Only an answer shows which of two connections was read first.
    assert!(matches!(a.ping(b"here").response, Response::NopIn(_)));
    let _twice = send_read(b, start + 1, 0);
    let _beyond = send_read(b, start + 4, 0);
    let due = send_read(b, start, 0);
    assert_eq!(data_of(b, due).len(), 512);
    assert_eq!(data_of(a, kept).len(), 512);
    let next = send_read(b, start + 2, 0);
    assert_eq!(data_of(b, next).len(), 512);
    assert!(is_silent(a) && is_silent(b));
}

#[test]
fn a_gap_that_never_fills_ends_the_session() {
    let array = array(r#""limits": {"stall_timeout_s": 0.3, "nop_interval_s": 0},"#);
    let mut clients = session(&array, 2, "");
    let start = clients[0].cmd_sn;
    let _ = send_read(&mut clients[0], start + 1, 0);
    send_write(&mut clients[1], start + 2, 0, 9);
    for client in &mut clients {
        assert!(client.receive().is_none(), "closed without an answer");
    }
    nothing_is_left(&array);
    assert_eq!(array.stats().timeouts, 1);
    let mut new = Client::login(array.portals()[0], 1, "");
    new.clear_attention();
    assert_eq!(new.read(0, 512), [0; 512], "the write has never run");
}

/// Early writes keep their data in the network: the memory of the target does not grow with the sent data.
#[test]
fn early_data_is_not_taken_in() {
    let array = array("");
    let mut clients = session(&array, 2, "MaxRecvDataSegmentLength=262144\0");
    let [a, b] = &mut clients[..] else { panic!() };
    let start = a.cmd_sn;
    let received = array.stats().bytes_received;
    a.socket.set_nonblocking(true).unwrap();
    let mut command = numbered(a, start + 1, write10(0, 262_144), false, true, 262_144);
    command.data_len = 262_144;
    let mut bhs = [0; 48];
    command.emit(&mut bhs);
    let mut sent = 0;
    // As much as the network accepts.
    let bytes = [&bhs[..], &vec![7; 262_144]].concat().repeat(32);
    for _ in 0..50 {
        match std::io::Write::write(&mut a.socket, &bytes[sent..]) {
            Ok(count) => sent += count,
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    let held = array.stats().bytes_received - received;
    assert!(held <= 128 * 1024, "{held} bytes were taken in of {sent}");
    a.socket.set_nonblocking(false).unwrap();
    let itt = send_read(b, start, 0);
    assert_eq!(data_of(b, itt).len(), 512, "the other connection goes on");
}

#[test]
fn a_reset_over_one_connection_ends_the_tasks_of_all() {
    const SOLICITED: &str = "InitialR2T=Yes\0ImmediateData=No\0";
    for function in [TaskFunction::LogicalUnitReset, TaskFunction::AbortTaskSet, TaskFunction::ClearTaskSet] {
        let array = array(WORKERS);
        let mut clients = session(&array, 3, SOLICITED);
        let start = clients[0].cmd_sn;
        for (nth, client) in (0..).zip(&mut clients) {
            let write = numbered(client, start + nth, write10(0, 8192), false, true, 8192);
            client.send(|bhs| write.emit(bhs), &[]);
            let pdu = client.receive().unwrap();
            assert!(matches!(pdu.response, Response::R2t(_)), "{pdu:?}");
        }
        assert_eq!(array.stats().tasks, 3);
        let [a, rest @ ..] = &mut clients[..] else { panic!() };
        a.cmd_sn = start + 3;
        assert_eq!(a.manage(function, u32::MAX), TaskResult::Complete, "{function:?}");
        wait_for(&array, "all tasks have ended", |stats| stats.tasks == 0);
        for client in rest {
            assert!(is_silent(client), "an aborted task is not answered: {function:?}");
        }
        // Every place in the window is free again.
        let pdu = a.ping(b"");
        let Response::NopIn(nop) = pdu.response else { panic!("{pdu:?}") };
        assert_eq!(nop.sn.max_cmd_sn.wrapping_sub(nop.sn.exp_cmd_sn), 127);
    }
}

/// RFC 7143 section 4.2.2.3: earlier answers on another connection are acknowledged before the function is answered.
#[test]
fn a_reset_is_answered_when_earlier_answers_have_arrived() {
    let array = array("");
    let mut clients = session(&array, 2, "");
    let [a, b] = &mut clients[..] else { panic!() };
    let start = a.cmd_sn;
    let itt = send_read(b, start, 0);
    let unread = b.exp_stat_sn;
    a.cmd_sn = start + 1;
    let reset = a.management(TaskFunction::LogicalUnitReset, u32::MAX);
    std::thread::sleep(Duration::from_millis(50));
    a.send(|bhs| reset.emit(bhs), &[]);
    assert!(is_silent(a), "the answer on the other connection has not been acknowledged");
    assert_eq!(data_of(b, itt).len(), 512);
    assert_eq!(b.exp_stat_sn, unread + 1);
    let pdu = b.receive().unwrap();
    let Response::NopIn(ping) = pdu.response else { panic!("{pdu:?}") };
    let pong = NopOut {
        immediate: true,
        lun: Lun(0),
        itt: RESERVED_TAG,
        ttt: ping.ttt,
        cmd_sn: start + 1,
        exp_stat_sn: b.exp_stat_sn,
        data_len: 0,
    };
    b.send(|bhs| pong.emit(bhs), &[]);
    let pdu = a.receive().unwrap();
    assert!(
        matches!(pdu.response, Response::TaskManagement(done) if done.result == TaskResult::Complete),
        "{pdu:?}"
    );
}

#[test]
fn an_abort_finds_its_task_wherever_it_is() {
    let array = array("");
    let mut clients = session(&array, 2, "InitialR2T=Yes\0ImmediateData=No\0");
    let [a, b] = &mut clients[..] else { panic!() };
    let start = a.cmd_sn;
    let abort = |client: &mut Client, itt, ref_cmd_sn, cmd_sn| {
        client.cmd_sn = cmd_sn;
        let request = TaskManagement { ref_cmd_sn, ..client.management(TaskFunction::AbortTask, itt) };
        client.send(|bhs| request.emit(bhs), &[]);
        match client.receive().unwrap().response {
            Response::TaskManagement(response) => response.result,
            other => panic!("{other:?}"),
        }
    };
    // A task that runs on the other connection.
    let write = numbered(b, start, write10(0, 8192), false, true, 8192);
    b.send(|bhs| write.emit(bhs), &[]);
    assert!(matches!(b.receive().unwrap().response, Response::R2t(_)));
    assert_eq!(abort(a, write.itt, start, start + 1), TaskResult::Complete);
    // A command that waits for its turn.
    let early = send_read(a, start + 2, 0);
    assert_eq!(abort(a, early, start + 2, start + 3), TaskResult::Complete);
    // A command in transit: when it arrives, it does not run.
    assert_eq!(abort(a, 4711, start + 1, start + 3), TaskResult::Complete);
    let _ = send_read(b, start + 1, 0);
    // A task that never existed.
    assert_eq!(abort(a, 4712, start, start + 3), TaskResult::NoSuchTask);
    let itt = send_read(b, start + 3, 0);
    assert_eq!(data_of(b, itt).len(), 512, "the numbers have passed");
    assert!(is_silent(a));
}

fn logout(client: &mut Client, reason: LogoutReason, cid: u16) -> LogoutResult {
    let request = LogoutRequest {
        immediate: true,
        reason,
        itt: client.itt(),
        cid,
        cmd_sn: client.cmd_sn,
        exp_stat_sn: client.exp_stat_sn,
    };
    client.send(|bhs| request.emit(bhs), &[]);
    match client.receive().expect("a logout response").response {
        Response::Logout(response) => response.result,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_connection_is_logged_out_and_the_session_goes_on() {
    let array = array(WORKERS);
    let mut clients = session(&array, 3, "InitialR2T=Yes\0ImmediateData=No\0");
    let start = clients[0].cmd_sn;
    // The leaving connection has a write in progress, whose place in the window must not be lost.
    let write = numbered(&mut clients[0], start, write10(0, 8192), false, true, 8192);
    clients[0].send(|bhs| write.emit(bhs), &[]);
    assert!(matches!(clients[0].receive().unwrap().response, Response::R2t(_)));
    assert_eq!(logout(&mut clients[0], LogoutReason::CloseConnection, 0), LogoutResult::Closed);
    assert!(clients[0].receive().is_none());
    // And one connection is logged out over another.
    clients[1].cmd_sn = start + 1;
    assert_eq!(logout(&mut clients[1], LogoutReason::CloseConnection, 2), LogoutResult::Closed);
    assert!(clients[2].receive().is_none());
    assert_eq!(logout(&mut clients[1], LogoutReason::CloseConnection, 2), LogoutResult::NoSuchCid);
    wait_for(&array, "one is left", |stats| stats.connections == 1 && stats.tasks == 0);
    let itt = send_read(&mut clients[1], start + 1, 0);
    assert_eq!(data_of(&mut clients[1], itt), [0; 512], "the aborted write has written nothing");
    let pdu = clients[1].ping(b"");
    let Response::NopIn(nop) = pdu.response else { panic!("{pdu:?}") };
    assert_eq!(nop.sn.max_cmd_sn.wrapping_sub(nop.sn.exp_cmd_sn), 127, "no place is lost");
    // The place of a connection that left is free; the last one ends the session.
    let (again, response) = clients[1].add(array.portals()[0], 1, 2, "");
    assert_eq!(response.status.class, 0);
    drop(again);
    nothing_is_left(&array);
}

#[test]
fn a_session_ends_with_any_connection_that_is_lost_and_with_its_logout() {
    let array = array(WORKERS);
    let mut clients = session(&array, 3, "");
    drop(clients.remove(1));
    for client in &mut clients {
        assert!(client.receive().is_none(), "error recovery level 0 keeps nothing of it");
    }
    nothing_is_left(&array);
    let mut clients = session(&array, 3, "");
    assert_eq!(logout(&mut clients[2], LogoutReason::CloseSession, 0), LogoutResult::Closed);
    for client in &mut clients {
        assert!(client.receive().is_none());
    }
    nothing_is_left(&array);
}

#[test]
fn a_new_login_of_the_session_ends_all_its_connections() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume").display().to_string();
    let array = array_of(&format!(r#""kind": "file", "path": "{path}""#), WORKERS);
    for _ in 0..10 {
        let mut old = session(&array, 3, "MaxRecvDataSegmentLength=65536\0");
        let start = old[0].cmd_sn;
        for (nth, client) in (0..).zip(&mut old) {
            send_write(client, start + nth, 0, 0xAA);
        }
        let mut new = Client::login(array.portals()[0], 1, "");
        new.clear_attention();
        new.write(0, &[1; 512]);
        assert_eq!(new.read(0, 512), [1; 512], "nothing of the old session lands on top");
        for client in &mut old {
            while client.receive().is_some() {}
        }
    }
    nothing_is_left(&array);
}

#[test]
fn bad_joins_are_refused_and_harm_nobody() {
    let array = array(WORKERS);
    let addr = array.portals()[0];
    let mut several = session(&array, 4, "");
    let status = |client: &Client, isid, cid, keys| {
        let (_, response) = client.add(addr, isid, cid, keys);
        (response.status.class, response.status.detail)
    };
    assert_eq!(status(&several[0], 1, 9, ""), (2, 6), "too many connections");
    assert_eq!(status(&several[0], 1, 2, ""), (2, 8), "the ID is in use");
    assert_eq!(status(&several[0], 2, 9, ""), (2, 10), "another initiator port's session");
    let single = Client::login(addr, 7, "");
    assert_eq!(status(&single, 7, 1, ""), (2, 6), "one connection was agreed on");
    let mut stranger = Client::connect(addr);
    stranger.tsih = 0xBEEF;
    assert_eq!(status(&stranger, 1, 9, ""), (2, 10), "no such session");
    assert_eq!(logout(&mut several[3], LogoutReason::CloseConnection, 3), LogoutResult::Closed);
    assert!(several[3].receive().is_none());
    assert_eq!(status(&several[0], 1, 9, "MaxBurstLength=65536\0"), (2, 0), "a key of the session");
    let pdu = {
        let mut nameless = Client::connect(addr);
        nameless.tsih = several[0].tsih;
        nameless.log_in(1, "HeaderDigest=None\0")
    };
    let Response::Login(response) = pdu.response else { panic!("{pdu:?}") };
    assert_eq!((response.status.class, response.status.detail), (2, 7), "a parameter is missing");
    let cmd_sn = several[0].cmd_sn;
    let itt = send_read(&mut several[0], cmd_sn, 0);
    assert_eq!(data_of(&mut several[0], itt).len(), 512, "the session has not noticed");
}

#[test]
fn an_array_may_allow_one_connection_only() {
    let array = array(r#""limits": {"connections_per_session": 1},"#);
    let first = Client::login(array.portals()[0], 1, SEVERAL);
    let (_, response) = first.add(array.portals()[0], 1, 1, "");
    assert_eq!((response.status.class, response.status.detail), (2, 6));
}
