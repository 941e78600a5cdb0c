//! Asymmetric access: the behaviour of a unit on the ports of each group, and the report of a change.

use crate::support::{Lab, Session, be32, caw, cdb_10, cdb_12, cdb_16};
use linerate_scsi::{AccessState, Input, Plan, Status, TaskStep};

use AccessState::{ActiveNonOptimized, ActiveOptimized, Standby, Transitioning, Unavailable};

const CHANGED: u16 = 0x2A06;

/// A session through each port, without pending unit attentions.
fn two_ports(lab: &Lab) -> (Session, Session) {
    let (a, b) = (lab.login_fresh("a", 1), lab.login_fresh("a", 2));
    for session in [&a, &b] {
        session.expect_attention(0x2900);
    }
    (a, b)
}

/// State and status code of each group.
fn groups(session: &Session) -> Vec<(u16, u8, u8)> {
    let list = session.read(&[0xA3, 0x0A, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 256).good();
    assert_eq!(be32(&list, 0) as usize, list.len() - 4);
    let group = |row: &[u8]| (u16::from_be_bytes([row[2], row[3]]), row[0] & 0x0F, row[5]);
    list[4..].chunks(12).map(group).collect()
}

#[test]
fn a_state_holds_for_the_ports_of_its_group_and_for_its_unit_only() {
    let lab = Lab::new();
    let (a, b) = two_ports(&lab);
    assert!(lab.unit(0).set_access(&[(2, Standby)]));
    a.expect_attention(CHANGED);
    assert_eq!(b.ready().check(), (6, CHANGED));
    a.write_10(3, &[7; 512]).good();
    assert_eq!(b.read_10(3, 1).check(), (2, 0x040B));
    assert_eq!(b.write_10(3, &[8; 512]).check(), (2, 0x040B));
    assert_eq!(a.read_10(3, 1).good(), [7; 512], "nothing was written through standby");
    b.on(1).expect_attention(0x2900);
    b.on(1).read_10(3, 1).good();
    assert_eq!(groups(&a), [(1, 0, 0), (2, 2, 2)]);
    assert_eq!(groups(&b.on(1)), [(1, 0, 0), (2, 0, 0)]);
}

#[test]
fn each_state_lets_pass_what_it_must_and_refuses_the_medium() {
    let always: [&[u8]; 4] = [
        &[0x12, 0, 0, 0, 96, 0],
        &[0x03, 0, 0, 0, 18, 0],
        &[0xA0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        &[0xA3, 0x0A, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    ];
    let in_standby: [&[u8]; 7] = [
        &[0x1A, 0, 0x3F, 0, 255, 0],
        &[0x5A, 0, 0x3F, 0, 0, 0, 0, 0, 255, 0],
        &[0x4D, 0, 0x40, 0, 0, 0, 0, 0, 255, 0],
        &[0x5E, 0, 0, 0, 0, 0, 0, 0, 255, 0],
        &[0x1D, 4, 0, 0, 0, 0],
        &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &cdb_16(0x9E, 0x10, 0, 32),
    ];
    let medium: [&[u8]; 16] = [
        &[0; 6],
        &[0x08, 0, 0, 0, 1, 0],
        &cdb_10(0x28, 0, 0, 1),
        &cdb_12(0xA8, 0, 0, 1),
        &cdb_16(0x88, 0, 0, 1),
        &cdb_10(0x2A, 0, 0, 1),
        &cdb_10(0x2F, 0, 0, 1),
        &cdb_10(0x34, 0, 0, 1),
        &cdb_10(0x35, 0, 0, 1),
        &cdb_10(0x41, 0, 0, 1),
        &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0],
        &caw(0, 1),
        &cdb_16(0x9E, 0x12, 0, 32),
        &[0x16, 0, 0, 0, 0, 0],
        &[0x1B, 0, 0, 0, 1, 0],
        &[0xA3, 0x0C, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    ];
    for (state, code) in [(Standby, 0x040B), (Unavailable, 0x040C), (Transitioning, 0x040A)] {
        let lab = Lab::new();
        let (_, session) = two_ports(&lab);
        lab.unit(0).set_access(&[(2, state)]);
        assert_eq!(session.ready().check(), (6, CHANGED));
        for cdb in always {
            session.read(cdb, 255).good();
        }
        for cdb in in_standby {
            let outcome = session.read(cdb, 255);
            if state == Standby {
                assert_eq!(outcome.status, Status::Good, "{cdb:02x?}");
            } else {
                assert_eq!(outcome.check(), (2, code), "{cdb:02x?} in {state:?}");
            }
        }
        for cdb in medium {
            assert_eq!(session.read(cdb, 255).check(), (2, code), "{cdb:02x?} in {state:?}");
        }
        let sense = session.read(&[0x03, 0, 0, 0, 18, 0], 18).good();
        assert_eq!((sense[2], u16::from_be_bytes([sense[12], sense[13]])), (2, code));
        assert_eq!(
            session.read(&[0x48, 1, 0, 0, 0, 0, 0, 0, 0, 0], 0).check(),
            (5, 0x2000),
            "no such command"
        );
    }
}

#[test]
fn a_change_is_told_to_every_nexus_once_and_no_change_to_none() {
    let lab = Lab::new();
    let (a, b) = two_ports(&lab);
    assert!(!lab.unit(0).set_access(&[(1, ActiveOptimized), (2, ActiveOptimized), (9, Standby)]));
    a.ready().good();
    assert!(lab.unit(0).set_access(&[(1, ActiveNonOptimized), (2, Transitioning)]));
    assert!(lab.unit(0).set_access(&[(2, ActiveOptimized)]));
    for session in [&a, &b] {
        session.expect_attention(CHANGED);
        session.read_10(0, 1).good();
    }
    assert_eq!(groups(&a), [(1, 1, 2), (2, 0, 2)]);
    let late = lab.login_fresh("late", 1);
    late.expect_attention(0x2900);
}

#[test]
fn a_command_that_has_begun_is_finished() {
    let lab = Lab::new();
    let (a, b) = two_ports(&lab);
    let Plan::Write(extent) = b.begin(&cdb_10(0x2A, 0, 0, 1), 0, 512) else { panic!("a plain write") };
    let Plan::Task(mut task) = b.begin(&cdb_10(0x41, 0, 8, 8), 0, 512) else { panic!("WRITE SAME") };
    let mut input = b.advance(&mut task, Input::Start, &[5; 512]).unwrap();
    lab.unit(0).set_access(&[(2, Unavailable)]);
    b.nexus.end_write(b.field(), &extent);
    let reply = loop {
        input = match b.advance(&mut task, input, &[]) {
            Ok(input) => input,
            Err(reply) => break reply,
        };
    };
    assert_eq!(reply.status, Status::Good);
    assert!(matches!(task.next(Input::Resume), TaskStep::Done(_)), "it is over");
    a.expect_attention(CHANGED);
    assert_eq!(a.read_10(15, 1).good(), [5; 512]);
}

#[test]
fn reservations_are_asked_after_the_state_and_survive_it() {
    let lab = Lab::new();
    let (a, b) = two_ports(&lab);
    a.read(&[0x16, 0, 0, 0, 0, 0], 0).good();
    lab.unit(0).set_access(&[(2, Standby)]);
    a.expect_attention(CHANGED);
    assert_eq!(b.ready().check(), (6, CHANGED));
    assert_eq!(b.ready().check(), (2, 0x040B));
    lab.unit(0).set_access(&[(2, ActiveOptimized)]);
    assert_eq!(b.ready().check(), (6, CHANGED));
    b.ready().conflict();
}
