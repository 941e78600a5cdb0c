//! Several initiators at one unit: reservations, unit attentions, mode pages, aborts.

use crate::support::{Lab, Session, be32, caw, cdb_10, cdb_16, config};
use linerate_scsi::{Input, Plan, TaskManagement, TaskManagementResponse, TaskStep, UnitConfig};

const RESERVE_6: [u8; 6] = [0x16, 0, 0, 0, 0, 0];
const RELEASE_6: [u8; 6] = [0x17, 0, 0, 0, 0, 0];

fn parameters(key: u64, action_key: u64) -> Vec<u8> {
    let mut list = [key.to_be_bytes(), action_key.to_be_bytes()].concat();
    list.resize(24, 0);
    list
}

fn reserve_out(session: &Session, action: u8, kind: u8, list: &[u8]) -> crate::support::Outcome {
    session.write(&[0x5F, action, kind, 0, 0, 0, 0, 0, list.len() as u8, 0], list)
}

fn register(session: &Session, key: u64) {
    reserve_out(session, 6, 0, &parameters(0, key)).good();
}

fn reserve_in(session: &Session, action: u8) -> Vec<u8> {
    session.read(&[0x5E, action, 0, 0, 0, 0, 0, 4, 0, 0], 1024).good()
}

#[test]
fn scsi2_reservation_keeps_others_out_until_released() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    a.read(&RESERVE_6, 0).good();
    a.read(&RESERVE_6, 0).good();
    a.read_10(0, 1).good();
    b.read(&RESERVE_6, 0).conflict();
    b.read_10(0, 1).conflict();
    b.write_10(0, &[0; 512]).conflict();
    b.ready().conflict();
    b.read(&[0x5E, 0, 0, 0, 0, 0, 0, 0, 8, 0], 8).conflict();
    b.read(&[0x12, 0, 0, 0, 36, 0], 36).good();
    b.on(1).read_10(0, 1).good();
    b.read(&RELEASE_6, 0).good();
    b.read_10(0, 1).conflict();
    a.read(&RELEASE_6, 0).good();
    b.read_10(0, 1).good();
}

/// Pitfall: the reservation outlived the session, or a reset.
#[test]
fn scsi2_reservation_ends_with_logout_drop_and_resets() {
    let lab = Lab::new();
    let b = lab.login("b");
    let a = lab.login("a");
    a.read(&RESERVE_6, 0).good();
    a.nexus.logout();
    b.read_10(0, 1).good();
    let a = lab.login("a");
    a.read(&RESERVE_6, 0).good();
    drop(a);
    b.read_10(0, 1).good();
    for function in [TaskManagement::LogicalUnitReset, TaskManagement::TargetReset] {
        let a = lab.login("a");
        a.read(&RESERVE_6, 0).good();
        assert_eq!(b.nexus.manage(b.field(), function), TaskManagementResponse::Complete);
        b.expect_attention(0x2903);
        b.read_10(0, 1).good();
        a.expect_attention(0x2903);
    }
}

/// Pitfall: the conflict check was forgotten for the less common commands.
#[test]
fn every_command_that_touches_the_medium_checks_reservations() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    register(&a, 1);
    reserve_out(&a, 1, 3, &parameters(1, 0)).good();
    let cdbs: [&[u8]; 24] = [
        &[0x08, 0, 0, 0, 1, 0],
        &[0x0A, 0, 0, 0, 1, 0],
        &cdb_10(0x28, 0, 0, 1),
        &cdb_10(0x2A, 0, 0, 1),
        &cdb_10(0x2E, 0, 0, 1),
        &cdb_10(0x2F, 0, 0, 1),
        &cdb_10(0x34, 0, 0, 1),
        &cdb_10(0x35, 0, 0, 1),
        &cdb_10(0x41, 0, 0, 1),
        &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0],
        &[0x15, 0x10, 0, 0, 12, 0],
        &[0x1A, 0, 0x3F, 0, 255, 0],
        &[0x1B, 0, 0, 0, 0, 0],
        &cdb_16(0x83, 0, 0, 0),
        &cdb_16(0x88, 0, 0, 1),
        &caw(0, 1),
        &cdb_16(0x8A, 0, 0, 1),
        &cdb_16(0x8B, 0, 0, 1),
        &cdb_16(0x8E, 0, 0, 1),
        &cdb_16(0x8F, 0, 0, 1),
        &cdb_16(0x91, 0, 0, 1),
        &cdb_16(0x93, 0, 0, 1),
        &cdb_16(0x9E, 0x12, 0, 24),
        &RESERVE_6,
    ];
    for cdb in cdbs {
        b.run(cdb, 512, &[0; 1024]).conflict();
    }
    let allowed: [&[u8]; 6] = [
        &[0; 6],
        &[0x12, 0, 0, 0, 36, 0],
        &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &cdb_16(0x9E, 0x10, 0, 32),
        &[0x1B, 0, 0, 0, 1, 0],
        &[0xA3, 0x0A, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0],
    ];
    for cdb in allowed {
        b.read(cdb, 512).good();
    }
}

#[test]
fn write_exclusive_lets_others_read() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    register(&a, 1);
    reserve_out(&a, 1, 1, &parameters(1, 0)).good();
    b.read_10(0, 1).good();
    b.read(&cdb_16(0x8F, 0, 0, 1), 0).good();
    b.write_10(0, &[0; 512]).conflict();
    assert!(
        matches!(a.begin(&cdb_10(0x2A, 0, 0, 1), 0, 512), Plan::Write(_)),
        "the holder stays on the hot path"
    );
}

#[test]
fn reserve_in_shows_keys_holder_and_full_status() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login_fresh("b", 2));
    b.expect_attention(0x2900);
    register(&a, 0xAAAA);
    register(&b, 0xBBBB);
    reserve_out(&a, 1, 5, &parameters(0xAAAA, 0)).good();
    let keys = reserve_in(&b, 0);
    assert_eq!((be32(&keys, 0), be32(&keys, 4)), (2, 16));
    let held = reserve_in(&b, 1);
    assert_eq!((&held[8..16], held[21]), (&0xAAAA_u64.to_be_bytes()[..], 5));
    let capabilities = reserve_in(&b, 2);
    assert_eq!(capabilities, [0, 8, 4, 0x80, 0xEA, 1, 0, 0]);
    let full = reserve_in(&b, 3);
    assert_eq!(be32(&full, 4) as usize, full.len() - 8);
    let first = &full[8..];
    assert_eq!((first[12], first[13], first[19]), (1, 5, 1), "holder, type, relative port");
    let second = &first[24 + be32(first, 20) as usize..];
    assert_eq!((&second[..8], second[12], second[19]), (&0xBBBB_u64.to_be_bytes()[..], 0, 2));
    assert_eq!(second[24], 0x45);
    assert!(second[28..].starts_with(b"iqn.2026-11.test:b,i,0x800000000001\0"));
}

/// Pitfall: PREEMPT raised no unit attention.
#[test]
fn preempt_tells_the_victim_and_abort_ends_its_tasks() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    register(&a, 1);
    register(&b, 2);
    reserve_out(&a, 1, 1, &parameters(1, 0)).good();
    let Plan::Task(mut task) = a.begin(&cdb_10(0x35, 0, 0, 0), 0, 0) else { panic!("a task") };
    let epoch = a.nexus.abort_epoch(a.field());
    reserve_out(&b, 5, 3, &parameters(2, 1)).good();
    assert!(matches!(task.next(Input::Start), TaskStep::Aborted));
    assert_ne!(a.nexus.abort_epoch(a.field()), epoch);
    a.expect_attention(0x2A05);
    a.read_10(0, 1).conflict();
    b.read_10(0, 1).good();
    assert_eq!(be32(&reserve_in(&b, 0), 4), 8, "one key is left");
}

#[test]
fn clear_and_release_tell_the_others() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    register(&a, 1);
    register(&b, 2);
    reserve_out(&a, 1, 6, &parameters(1, 0)).good();
    assert_eq!(reserve_out(&a, 2, 5, &parameters(1, 0)).check(), (5, 0x2604));
    reserve_out(&a, 2, 6, &parameters(1, 0)).good();
    b.expect_attention(0x2A04);
    reserve_out(&a, 3, 0, &parameters(1, 0)).good();
    b.expect_attention(0x2A03);
    assert_eq!(be32(&reserve_in(&b, 0), 4), 0);
    reserve_out(&b, 1, 1, &parameters(2, 0)).conflict();
}

#[test]
fn registrations_survive_logout_and_reset() {
    let lab = Lab::new();
    let a = lab.login("a");
    register(&a, 7);
    reserve_out(&a, 1, 3, &parameters(7, 0)).good();
    drop(a);
    let b = lab.login("b");
    b.read_10(0, 1).conflict();
    b.nexus.manage(b.field(), TaskManagement::LogicalUnitReset);
    b.expect_attention(0x2903);
    b.read_10(0, 1).conflict();
    lab.login("a").read_10(0, 1).good();
}

#[test]
fn reserve_out_refuses_what_it_does_not_do() {
    let lab = Lab::new();
    let a = lab.login("a");
    for flags in [0x01, 0x08] {
        let mut list = parameters(0, 1);
        list[20] = flags;
        assert_eq!(reserve_out(&a, 0, 0, &list).check(), (5, 0x2600), "APTPL, SPEC_I_PT");
    }
    assert_eq!(reserve_out(&a, 0, 0, &[0; 23]).check(), (5, 0x1A00));
    register(&a, 1);
    for bad in [0x00, 0x02, 0x04, 0x09, 0x13] {
        assert_eq!(reserve_out(&a, 1, bad, &parameters(1, 0)).check(), (5, 0x2400), "type {bad:#04x}");
    }
    reserve_out(&a, 0, 0, &parameters(2, 3)).conflict();
    a.read(&RESERVE_6, 0).conflict();
}

#[test]
fn all_target_ports_registers_every_port_of_this_initiator() {
    let lab = Lab::new();
    let (one, two) = (lab.login("a"), lab.login_fresh("a", 2));
    two.expect_attention(0x2900);
    let mut list = parameters(0, 5);
    list[20] = 0x04;
    reserve_out(&one, 0, 0, &list).good();
    reserve_out(&two, 1, 1, &parameters(5, 0)).good();
    one.write_10(0, &[0; 512]).conflict();
}

#[test]
fn register_and_move_by_transport_id() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    register(&a, 1);
    reserve_out(&a, 1, 1, &parameters(1, 0)).good();
    let mut id = b"iqn.2026-11.test:b,i,0x800000000001\0".to_vec();
    id.resize(id.len().next_multiple_of(4), 0);
    let mut list = parameters(1, 2);
    list[17] = 0x02;
    list[19] = 1;
    list[20..24].copy_from_slice(&(id.len() as u32 + 4).to_be_bytes());
    list.extend_from_slice(&[0x45, 0, 0, id.len() as u8]);
    list.extend_from_slice(&id);
    reserve_out(&a, 7, 1, &list).good();
    b.write_10(0, &[0; 512]).good();
    a.write_10(0, &[0; 512]).conflict();
    list[19] = 9;
    assert_eq!(reserve_out(&b, 7, 1, &list).check(), (5, 0x2600), "no such target port");
}

#[test]
fn mode_select_changes_what_may_change_and_tells_the_others() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    let control = a.read(&[0x1A, 8, 0x0A, 0, 255, 0], 255).good();
    let mut list = control.clone();
    list[0] = 0;
    list[2] = 0;
    list[4 + 2] |= 0x04;
    list[4 + 4] |= 0x08;
    a.write(&[0x15, 0x10, 0, 0, list.len() as u8, 0], &list).good();
    let refused = b.ready();
    assert_eq!(refused.sense[..4], [0x72, 6, 0x2A, 1], "descriptor format, mode parameters changed");
    let refused = b.write_10(0, &[0; 512]);
    assert_eq!(refused.sense[..4], [0x72, 7, 0x27, 2], "software write protect");
    a.read_10(0, 1).good();
    let changeable = a.read(&[0x1A, 8, 0x4A, 0, 255, 0], 255).good();
    assert_eq!((changeable[4 + 2], changeable[4 + 4]), (0x04, 0x08));
    list[4 + 2] &= !0x04;
    list[4 + 4] &= !0x08;
    a.write(&[0x15, 0x10, 0, 0, list.len() as u8, 0], &list).good();
    b.expect_attention(0x2A01);
    b.write_10(0, &[0; 512]).good();
}

#[test]
fn turning_the_cache_off_syncs_it_first() {
    let lab = Lab::new();
    let a = lab.login("a");
    let mut list = a.read(&[0x5A, 8, 0x08, 0, 0, 0, 0, 0, 255, 0], 255).good();
    assert_eq!(list[8 + 2] & 0x04, 0x04);
    list[..8].fill(0);
    list[8 + 2] = 0;
    a.write(&[0x55, 0x10, 0, 0, 0, 0, 0, 0, list.len() as u8, 0], &list).good();
    assert_eq!(lab.volumes[&0].borrow().syncs, 1);
    let Plan::Write(extent) = a.begin(&cdb_10(0x2A, 0, 0, 1), 0, 512) else { panic!("a plain write") };
    assert!(extent.durable);
    a.nexus.end_write(a.field(), &extent);
    assert_eq!(a.read(&[0x1A, 0, 0xC8, 0, 255, 0], 255).check(), (5, 0x3900), "saved values");
    assert_eq!(a.read(&[0x1A, 0, 0x05, 0, 255, 0], 255).check(), (5, 0x2400));
}

#[test]
fn a_unit_attention_is_reported_once_and_not_by_inquiry() {
    let lab = Lab::new();
    let session = lab.login_fresh("a", 1);
    session.read(&[0x12, 0, 0, 0, 36, 0], 36).good();
    session.read(&[0xA0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0], 16).good();
    assert_eq!(session.read_10(0, 1).check(), (6, 0x2900));
    session.read_10(0, 1).good();
    let other = lab.login_fresh("b", 1);
    let sense = other.read(&[0x03, 1, 0, 0, 252, 0], 252).good();
    assert_eq!(sense[..4], [0x72, 6, 0x29, 0]);
    other.ready().good();
}

#[test]
fn task_management_aborts_whom_it_should() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    let start = |session: &Session| match session.begin(&cdb_10(0x35, 0, 0, 0), 0, 0) {
        Plan::Task(task) => task,
        other => panic!("{other:?}"),
    };
    let aborted = |task: &mut linerate_scsi::Task| matches!(task.next(Input::Start), TaskStep::Aborted);
    let (mut mine, mut theirs) = (start(&a), start(&b));
    a.nexus.manage(a.field(), TaskManagement::AbortTaskSet);
    assert!(aborted(&mut mine) && !aborted(&mut theirs));
    let mut theirs = start(&b);
    a.nexus.manage(a.field(), TaskManagement::ClearTaskSet);
    assert!(aborted(&mut theirs));
    b.expect_attention(0x2F00);
    let (mut mine, mut theirs) = (start(&a), start(&b));
    a.nexus.manage(a.field(), TaskManagement::LogicalUnitReset);
    assert!(aborted(&mut mine) && aborted(&mut theirs));
    let missing = a.on(9).field();
    assert_eq!(a.nexus.manage(missing, TaskManagement::AbortTask), TaskManagementResponse::NoSuchLun);
    assert_eq!(a.nexus.manage(a.field(), TaskManagement::ClearAca), TaskManagementResponse::NotSupported);
}

/// Registers, and requests that the registration is kept over a power loss.
fn register_to_keep(session: &Session, key: u64) {
    let mut list = parameters(0, key);
    list[20] = 0x01;
    reserve_out(session, 6, 0, &list).good();
}

#[test]
fn reservations_that_are_kept_survive_a_power_loss() {
    let keeps = || UnitConfig { keeps_reservations: true, ..config(0) };
    let before = Lab::with([keeps()]);
    let (a, b) = (before.login("a"), before.login("b"));
    register_to_keep(&a, 0xA);
    register_to_keep(&b, 0xB);
    reserve_out(&a, 1, 5, &parameters(0xA, 0)).good();
    let kept = before.volumes[&0].borrow().kept.clone();

    let after = Lab::with([keeps()]);
    assert!(after.unit(0).restore_reservations(&kept));
    let stranger = after.login("c");
    stranger.write_10(0, &[0; 512]).conflict();
    assert_eq!(reserve_in(&stranger, 2)[2..4], [0x05, 0x81], "PTPL_C and ATP_C, PTPL_A");
    assert_eq!(reserve_in(&stranger, 3)[8..], reserve_in(&a, 3)[8..]);
    let b = after.login("b");
    b.write_10(0, &[0; 512]).good();

    register(&b, 0xB);
    assert!(after.volumes[&0].borrow().kept.is_empty(), "a registration without APTPL ends it");
    assert!(!after.unit(0).restore_reservations(&kept[..kept.len() - 1]), "cut short");
    stranger.write_10(0, &[0; 512]).good();
}

#[test]
fn units_come_and_go_while_initiators_look() {
    const REPORT_LUNS: [u8; 12] = [0xA0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    let lab = Lab::with([config(0), config(1)]);
    let a = lab.login("a");
    let later = a.on(1);
    let unit = lab.inventory.retire(1).unwrap();
    assert_eq!(later.read_10(0, 1).check(), (5, 0x2500));
    assert_eq!(a.ready().check(), (6, 0x3F0E), "REPORTED LUNS DATA HAS CHANGED");
    assert_eq!(be32(&a.read(&REPORT_LUNS, 256).good(), 0), 8);
    assert!(unit.is_idle());
    let newer = || linerate_scsi::LogicalUnit::new(config(1)).unwrap();
    assert!(lab.inventory.add(1, newer()).is_err(), "its LUN is not free yet");
    lab.inventory.forget(1);
    lab.inventory.add(1, newer()).unwrap();
    later.expect_attention(0x2900);
    later.read_10(0, 1).good();
    assert_eq!(a.ready().check(), (6, 0x3F0E));
    assert_eq!(be32(&a.read(&REPORT_LUNS, 256).good(), 0), 16);
    assert_eq!((lab.inventory.units().len(), a.nexus.units_used()), (2, 2));
}
