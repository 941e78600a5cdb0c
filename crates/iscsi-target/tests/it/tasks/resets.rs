//! Task management over real sockets: resets of the target, and their effect on tasks.

use crate::support::{Client, array, array_of, memory_and_file, wait_for, write10};
use linerate_iscsi_proto::pdu::{
    Lun, RESERVED_TAG, RejectReason, Response, Snack, SnackKind, TaskFunction, TaskResult,
};

const SOLICITED: &str = "InitialR2T=Yes\0ImmediateData=No\0";
const RESERVE_6: [u8; 16] = [0x16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn plain(client: &mut Client, cdb: [u8; 16]) -> u8 {
    let command = client.command(cdb, false, false, 0);
    client.send(|bhs| command.emit(bhs), &[]);
    client.status()
}

/// Starts a write of 8 KiB that waits for its data.
fn open_write(client: &mut Client) -> linerate_iscsi_proto::pdu::R2t {
    let write = client.command(write10(0, 8192), false, true, 8192);
    client.send(|bhs| write.emit(bhs), &[]);
    let pdu = client.receive().unwrap();
    let Response::R2t(r2t) = pdu.response else { panic!("{pdu:?}") };
    r2t
}

#[test]
fn a_warm_reset_ends_tasks_and_reservations_and_tells_the_others() {
    let array = array("");
    let mut holder = Client::login(array.portals()[0], 1, SOLICITED);
    let mut other = Client::login(array.portals()[0], 2, "");
    holder.clear_attention();
    other.clear_attention();
    assert_eq!(plain(&mut holder, RESERVE_6), 0);
    assert_eq!(plain(&mut other, [0; 16]), 0x18, "reserved by the other one");
    let r2t = open_write(&mut holder);
    assert_eq!(other.manage(TaskFunction::TargetWarmReset, u32::MAX), TaskResult::Complete);
    assert_eq!(plain(&mut other, [0; 16]), 2, "the unit tells that it was reset");
    assert_eq!(plain(&mut other, RESERVE_6), 0, "the reservation is gone");
    // The aborted write receives its data and gets no answer; the next answer belongs to the next command.
    holder.answer_r2t(&r2t, &[0xEE; 8192], 8192);
    assert_eq!(plain(&mut holder, [0; 16]), 2, "a unit attention");
    wait_for(&array, "nothing is left of the task", |stats| stats.tasks == 0);
    assert_eq!(array.stats().sessions, 2, "a warm reset closes no session");
}

#[test]
fn a_cold_reset_answers_and_closes_every_session_of_the_target() {
    let array = array(r#""workers": 2,"#);
    let mut clients: Vec<_> = (0..4).map(|isid| Client::login(array.portals()[0], isid, SOLICITED)).collect();
    for client in &mut clients {
        client.clear_attention();
    }
    let _ = open_write(&mut clients[3]);
    assert_eq!(clients[0].manage(TaskFunction::TargetColdReset, u32::MAX), TaskResult::Complete);
    for client in &mut clients {
        assert!(client.receive().is_none(), "closed without a word");
    }
    let stats = wait_for(&array, "all are gone", |stats| stats.connections == 0);
    assert_eq!((stats.sessions, stats.tasks), (0, 0));
    Client::login(array.portals()[0], 0, "").clear_attention();
}

/// Aborts of writes whose volume operation may be in progress, done, or not begun: each write is either answered or
/// aborted.
#[test]
fn an_abort_that_races_with_its_completion_leaves_one_truth() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume").display().to_string();
    let file = format!(r#""kind": "file", "path": "{path}""#);
    for driver in ["epoll", "auto"] {
        let array = array_of(&file, &format!(r#""driver": "{driver}","#));
        let mut client = Client::login(array.portals()[0], 1, "");
        client.clear_attention();
        let (mut aborted, mut too_late) = (0, 0);
        for round in 0..300 {
            let mut write = client.command(write10(round % 64, 4096), false, true, 4096);
            write.data_len = 4096;
            client.send(|bhs| write.emit(bhs), &[round as u8; 4096]);
            if round % 3 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(u64::from(round)));
            }
            let answered = abort_and_count(&mut client, write.itt);
            match answered {
                (TaskResult::Complete, false) => aborted += 1,
                (TaskResult::NoSuchTask, true) => too_late += 1,
                other => panic!("round {round}: {other:?}"),
            }
        }
        assert_eq!(aborted + too_late, 300);
        assert_eq!(client.ping(b"still here").data, b"still here");
        wait_for(&array, "all is given back", |stats| stats.tasks == 0 && stats.pool_bytes == 0);
    }
}

/// Aborts the task; returns the result, and whether the task was answered before.
fn abort_and_count(client: &mut Client, itt: u32) -> (TaskResult, bool) {
    let request = client.management(TaskFunction::AbortTask, itt);
    client.send(|bhs| request.emit(bhs), &[]);
    let mut answered = false;
    loop {
        match client.receive().unwrap().response {
            Response::Scsi(response) => {
                assert_eq!((response.itt, response.status, answered), (itt, 0, false));
                answered = true;
            }
            Response::TaskManagement(response) => return (response.result, answered),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_connection_lost_while_data_is_due_leaves_no_task() {
    let dir = tempfile::tempdir().unwrap();
    for volume in memory_and_file(dir.path()) {
        let array = array_of(&volume, "");
        for cut in 0..40 {
            let mut client = Client::login(array.portals()[0], 1, SOLICITED);
            client.clear_attention();
            let r2t = open_write(&mut client);
            let mut bytes = Vec::new();
            let mut bhs = [0; 48];
            client.data_out(r2t.itt, r2t.ttt, 0, 0, 8192, true).emit(&mut bhs);
            client.framer.write(&bhs, &[0xEE; 8192], &mut bytes);
            client.send_raw(&bytes[..cut * 200]);
        }
        wait_for(&array, "no task is left", |stats| {
            stats.tasks == 0 && stats.pool_bytes == 0 && stats.connections == 0
        });
        // And no blocks stay closed: a read-modify-write succeeds.
        let mut client = Client::login(array.portals()[0], 2, "");
        client.clear_attention();
        let mut same = [0; 16];
        (same[0], same[8]) = (0x41, 16);
        let mut command = client.command(same, false, true, 512);
        command.data_len = 512;
        client.send(|bhs| command.emit(bhs), &[7; 512]);
        assert_eq!(client.status(), 0);
        assert_eq!(client.read(0, 8192), [7; 8192]);
    }
}

/// Expected length and the CDB's length disagree in every way: the smaller one is moved, and the residual is the
/// difference (RFC 7143 section 11.4.5).
#[test]
fn expected_lengths_that_disagree_with_the_cdb_get_residuals() {
    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, SOLICITED);
    client.clear_attention();
    client.write_as_asked(0, &[0x11; 4096], 4096);
    for (asked, expected) in [(4096, 1024), (1024, 4096), (4096, 0), (4096, 4096)] {
        let read = client.command(crate::support::read10(0, asked), true, false, expected);
        client.send(|bhs| read.emit(bhs), &[]);
        let moved = (asked as u32).min(expected);
        let pdu = client.receive().unwrap();
        let residual = match pdu.response {
            Response::DataIn(data) => data.status.unwrap().residual,
            Response::Scsi(response) => response.residual,
            other => panic!("{other:?}"),
        };
        assert_eq!(pdu.data, vec![0x11; moved as usize], "{asked} asked, {expected} expected");
        assert_eq!(residual, residual_of(asked as u32, expected), "{asked} asked, {expected} expected");
    }
    for (asked, expected) in [(4096_usize, 1024_u32), (1024, 4096)] {
        let write = client.command(write10(64, asked), false, true, expected);
        client.send(|bhs| write.emit(bhs), &[]);
        loop {
            match client.receive().unwrap().response {
                Response::R2t(r2t) => client.answer_r2t(&r2t, &[0x22; 4096], 4096),
                Response::Scsi(response) => {
                    assert_eq!(
                        (response.status, response.residual),
                        (0, residual_of(asked as u32, expected))
                    );
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        let mut wanted = vec![0x22; 1024];
        wanted.resize(4096, 0);
        assert_eq!(client.read(64, 4096), wanted, "only what both agree upon is written");
    }
}

fn residual_of(asked: u32, expected: u32) -> linerate_iscsi_proto::pdu::Residual {
    linerate_iscsi_proto::pdu::Residual::of(expected, u64::from(asked))
}

#[test]
fn what_belongs_to_higher_levels_is_refused_and_the_session_goes_on() {
    const QUERY_TASK: u8 = 9; // RFC 7144 section 4.1

    let array = array("");
    let mut client = Client::login(array.portals()[0], 1, "iSCSIProtocolLevel=2\0");
    client.clear_attention();
    let snack = Snack {
        kind: SnackKind::Status,
        lun: Lun(0),
        itt: RESERVED_TAG,
        ttt: RESERVED_TAG,
        exp_stat_sn: client.exp_stat_sn,
        begin_run: 0,
        run_len: 0,
    };
    client.send(|bhs| snack.emit(bhs), &[]);
    let pdu = client.receive().unwrap();
    let Response::Reject(reject) = pdu.response else { panic!("{pdu:?}") };
    assert_eq!(reject.reason, RejectReason::Snack);
    assert_eq!(client.manage(TaskFunction::TaskReassign, u32::MAX), TaskResult::ReassignNotSupported);
    assert_eq!(client.manage(TaskFunction::Other(QUERY_TASK), u32::MAX), TaskResult::NotSupported);
    assert_eq!(plain(&mut client, [0; 16]), 0);
}
