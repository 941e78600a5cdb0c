//! Paths that exist but must not be used, or not now: access states of the array (ALUA), another disk, a target that
//! logs out, an interface without a link.

use crate::fake::{Fake, is};
use crate::rig::relay::Mode;
use crate::rig::{IQN, Rig, SECOND, array, array_with, is_failure, multipath, two};
use linerate_io::Driver;
use linerate_iscsi_initiator::{
    DeviceState, EventKind, IoOp, MultipathOptions, PathCounters, PathSpec, PathState, Policy, ReadInto,
    Remedy, SessionOptions,
};
use linerate_iscsi_proto::pdu::{AsyncEvent, AsyncMessage, Lun, Request, Response};

#[test]
fn access_states_are_followed_while_io_goes_on() {
    let options = multipath(Policy::RoundRobin);
    let mut rig = Rig::two_groups(&options, "active_non_optimized", &SessionOptions::default());
    assert_eq!(*rig.initiator.state(rig.device), DeviceState::Ready);
    assert_eq!(rig.states(), [PathState::ActiveOptimized, PathState::ActiveNonOptimized]);
    assert_eq!(rig.in_use(), [0]);
    let mut written = 0;
    for (first, second, used) in [
        ("active_non_optimized", "active_optimized", vec![1]),
        ("active_optimized", "active_optimized", vec![0, 1]),
        ("standby", "active_non_optimized", vec![1]),
        ("active_non_optimized", "unavailable", vec![0]),
        ("transitioning", "active_optimized", vec![1]),
        ("active_optimized", "active_optimized", vec![0, 1]),
    ] {
        rig.change(&[(1, first), (2, second)]);
        let limit = rig.driver.now() + 5 * SECOND;
        while rig.in_use() != used {
            assert!(rig.driver.now() < limit, "{first} {second}: {:?} {:?}", rig.states(), rig.in_use());
            for slot in 0..8 {
                rig.write(slot, u64::from(slot), 1);
            }
            written += 8;
            rig.run("writes", |rig| rig.heard.done.len() == written);
        }
    }
    rig.succeeded();
    assert!(!rig.has(is_failure(0)) && !rig.has(is_failure(1)), "a state is no failure");
}

#[test]
fn a_path_that_was_never_active_is_checked_before_it_is_used() {
    let options = multipath(Policy::RoundRobin);
    let mut rig = Rig::two_groups(&options, "standby", &SessionOptions::default());
    assert_eq!(rig.states(), [PathState::ActiveOptimized, PathState::Standby]);
    // Nothing is sent over the path on standby, so only its checker can notice.
    rig.change(&[(1, "unavailable"), (2, "active_optimized")]);
    for slot in 0..8 {
        rig.write(slot, u64::from(slot), 3);
    }
    rig.run("writes", |rig| rig.heard.done.len() == 8);
    rig.succeeded();
    assert_eq!(rig.in_use(), [1]);
    assert_eq!(rig.value(5), 3);
}

#[test]
fn a_device_whose_only_path_is_in_standby_says_so() {
    let array = array_with("one", &serde_json::json!({ "address": "127.0.0.1:0", "group": 2 }), "standby");
    let (portal, session) =
        (array.portals()[1], SessionOptions { login_timeout_s: 0.5, ..Default::default() });
    let specs = [PathSpec::named("only")];
    let rig = Rig::at_with(&multipath(Policy::FailoverOnly), &specs, IQN, portal, &session);
    let DeviceState::Failed(failure) = rig.initiator.state(rig.device) else { panic!("it opened") };
    assert!(failure.message.contains("its only path is not active (ALUA): only (standby)"), "{failure}");
    assert_eq!(failure.remedy, Some(Remedy::AccessState));
}

#[test]
fn io_waits_while_every_port_is_changing() {
    let options = multipath(Policy::RoundRobin);
    let mut rig = Rig::two_groups(&options, "active_optimized", &SessionOptions::default());
    rig.change(&[(1, "transitioning"), (2, "transitioning")]);
    for slot in 0..8 {
        rig.write(slot, 0, slot as u8);
    }
    rig.run("no path", |rig| rig.has(|kind| *kind == EventKind::NoPath));
    rig.rest(SECOND / 5);
    assert_eq!(rig.heard.done.len(), 0);
    rig.change(&[(1, "standby"), (2, "active_optimized")]);
    rig.run("writes", |rig| rig.heard.done.len() == 8);
    rig.succeeded();
}

#[test]
fn a_path_to_another_disk_is_refused_by_name() {
    let (one, other) = (array("one"), array("other"));
    let mut specs = two();
    specs[0].portal = Some(one.portals()[0].into());
    specs[1].portal = Some(other.portals()[0].into());
    let mut rig =
        Rig::over(&multipath(Policy::RoundRobin), &specs, Vec::new(), one, &SessionOptions::default());
    assert_eq!(*rig.initiator.state(rig.device), DeviceState::Ready);
    let refused = rig.states().iter().position(|state| *state == PathState::Refused).unwrap();
    let named = |kind: &EventKind| {
        let EventKind::PathFailed { path, reason, .. } = kind else { return false };
        *path == refused && reason.contains("another disk") && reason.contains(["left", "right"][refused])
    };
    assert!(rig.has(named), "{:?}", rig.heard.events);
    for slot in 0..8 {
        rig.write(slot, u64::from(slot), 1);
    }
    rig.run("writes", |rig| rig.heard.done.len() == 8);
    rig.succeeded();
    assert_eq!(rig.counters()[refused], PathCounters::default());
}

#[test]
fn a_path_that_is_asked_to_log_out_gets_no_more_io() {
    const READ: u8 = 0x88;
    let leaving = Fake::start(|peer, n| {
        peer.login()?;
        if n > 0 {
            return peer.serve();
        }
        peer.serve_until(is(READ))?;
        let sn = peer.status();
        let (event, lun, vendor_code) = (AsyncEvent::LogoutRequest, Lun(0), 0);
        let (parameter1, parameter2, parameter3, data_len) = (0, 0, 3, 0);
        let ask = AsyncMessage { event, vendor_code, lun, sn, parameter1, parameter2, parameter3, data_len };
        peer.send(&Response::Async(ask), &[])?;
        // The read is never answered; the logout is.
        let (logout, _) = peer.serve_until(|request| matches!(request, Request::Logout(_)))?;
        peer.answer(&logout, &[])
    });
    let staying = Fake::start(|peer, _| {
        peer.login()?;
        peer.serve()
    });
    let mut specs = two();
    specs[0].portal = Some(leaving.addr.into());
    specs[1].portal = Some(staying.addr.into());
    let mut rig = Rig::at(&multipath(Policy::FailoverOnly), &specs, crate::fake::IQN, leaving.addr);
    assert_eq!(rig.in_use(), [0]);
    rig.submit(0, IoOp::Read(ReadInto::Nothing), 0);
    rig.run("the target's wish", |rig| rig.in_use() == [1]);
    assert_eq!(rig.heard.done.len(), 0);
    rig.submit(1, IoOp::Read(ReadInto::Nothing), 1);
    let took = rig.run("a read elsewhere", |rig| rig.heard.done.len() == 1);
    assert!(took < SECOND && rig.heard.done[0].slot == 1, "{took} ns");
    rig.run("the read that was in flight", |rig| rig.heard.done.len() == 2);
    rig.succeeded();
}

#[test]
fn the_link_of_an_interface_takes_its_paths_with_it() {
    // The timeout is so long that only the link change can be the cause.
    let options = MultipathOptions { path_timeout_s: 30.0, ..multipath(Policy::RoundRobin) };
    let mut specs = two();
    specs[0].interface = Some("san0".into());
    let mut rig = Rig::open(&options, specs);
    rig.relays[0].set(Mode::Silent);
    for slot in 0..8 {
        rig.write(slot, u64::from(slot), 1);
    }
    rig.initiator.flush(&mut rig.driver);
    let now = rig.driver.now();
    for interface in ["san1", "san0"] {
        rig.initiator.link_changed(&mut rig.driver, interface, false, now, &mut rig.heard);
    }
    let took = rig.run("writes", |rig| rig.heard.done.len() == 8);
    assert!(took < SECOND, "{took} ns");
    rig.succeeded();
    let failed = |kind: &EventKind| {
        let EventKind::PathFailed { path, reason, requeued } = kind else { return false };
        (*path, *requeued) == (0, 4) && reason.contains("san0")
    };
    assert!(rig.has(failed), "{:?}", rig.heard.events);
    rig.relays[0].set(Mode::Pass);
    let now = rig.driver.now();
    rig.initiator.link_changed(&mut rig.driver, "san0", true, now, &mut rig.heard);
    rig.run("the path's return", |rig| rig.in_use() == [0, 1]);
}
