//! A connection is lost in the middle of writes: everything is written, and the file is the same one where Samba keeps it.

use crate::fake::Fake;
use crate::load::{Load, Relay, SECOND, image, options};
use crate::peers::Samba;
use linerate_io::Driver;
use linerate_smb::wire::negotiate::Dialect;
use linerate_smb::{
    EncryptionChoice, SigningChoice, SmbCredentials, SmbFileState, SmbIoDone, SmbIoError, SmbMode, SmbOptions,
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn connections_cut_in_the_middle_of_writes_lose_nothing_and_samba_keeps_the_file() {
    let Some(samba) = Samba::start("") else { return };
    let relay = Relay::to(samba.port);
    let ways = [
        (SmbOptions { dialect: Some(Dialect::Smb210), ..options() }, "v1"),
        (SmbOptions { dialect: Some(Dialect::Smb302), signing: SigningChoice::On, ..options() }, "v2"),
        (SmbOptions { max_io_bytes: Some(16_384), ..options() }, "v2"),
        (SmbOptions { encryption: EncryptionChoice::On, ..options() }, "v2"),
    ];
    for (way, version) in ways {
        let _ = std::fs::remove_file(samba.path("a.img"));
        let mut load = Load::of_samba(relay.port, &way);
        assert_eq!(load.client.facts(load.file).unwrap().durable, Some(version), "{way:?}");
        load.run(true, |ended| {
            if ended % 150 == 50 {
                relay.cut_at_the_server();
            }
        });
        assert!(std::fs::read(samba.path("a.img")).unwrap() == image(), "{way:?}");
        load.run(false, |ended| {
            if ended == 300 {
                relay.cut_at_the_server();
            }
        });
        let kept = load.close().kept();
        assert!(kept.len() >= 2, "{way:?}: {kept:?}");
        assert!(kept.iter().all(|kept| *kept), "{way:?}: the file was opened again: {kept:?}");
    }
}

#[test]
fn a_server_that_keeps_no_file_gets_it_opened_again() {
    let Some(samba) = Samba::start("durable handles = no") else { return };
    let relay = Relay::to(samba.port);
    for way in [options(), SmbOptions { durable: false, ..options() }] {
        let mut load = Load::of_samba(relay.port, &way);
        assert_eq!(load.client.facts(load.file).unwrap().durable, None);
        load.run(true, |ended| {
            if ended == 200 {
                relay.cut();
            }
        });
        assert!(std::fs::read(samba.path("a.img")).unwrap() == image());
        assert_eq!(load.close().kept(), [false]);
    }
}

#[test]
fn a_server_that_was_killed_and_started_again_loses_nothing() {
    let Some(samba) = Samba::start("") else { return };
    let samba = std::cell::RefCell::new(samba);
    let port = samba.borrow().port;
    let mut load = Load::of_samba(port, &options());
    load.run(true, |ended| {
        if ended == 200 {
            let mut samba = samba.borrow_mut();
            samba.stop();
            samba.start_again();
        }
    });
    load.run(false, |_| ());
    assert!(std::fs::read(samba.borrow().path("a.img")).unwrap() == image());
    assert_eq!(load.close().kept().len(), 1);
}

#[test]
fn a_connection_that_is_not_restored_in_time_ends_the_file_with_its_reason() {
    let is_first = AtomicBool::new(true);
    let fake = Fake::start(move |peer| {
        if is_first.swap(false, Relaxed) {
            peer.log_on()?;
        }
        // After the first request, of the I/O or of the next attempt, the connection ends.
        peer.read().map(|_| ())
    });
    let way = SmbOptions { replacement_timeout_s: 0.6, login_timeout_s: 0.2, ..options() };
    let mode = SmbMode { write: true, create_bytes: None };
    let url = format!("smb://{}/share/file", fake.addr);
    let mut load = Load::open(&url, &way, SmbCredentials::of_user(None, None), mode);
    load.submit(0, 0, true);
    let started_at = load.driver.now();
    while load.seen.done.is_empty() {
        load.turn();
        assert!(load.driver.now() < started_at + 10 * SECOND, "{:?}", load.seen.events);
    }
    assert_eq!(load.seen.done, [SmbIoDone { slot: 0, result: Err(SmbIoError::Lost) }]);
    let SmbFileState::Failed(failure) = load.client.state(load.file) else { panic!("it has not failed") };
    let words = failure.to_string();
    assert!(words.contains("the server closed the connection") || words.contains("broke"), "{words}");
    assert!(words.contains("within 0.6 s (smb.replacement_timeout_s)"), "{words}");
    assert!(load.driver.now() >= started_at + 6 * SECOND / 10, "it gave up early");
}

#[test]
fn another_client_that_opens_the_file_does_not_wait_for_this_one() {
    let Some(samba) = Samba::start("") else { return };
    let mut first = Load::of_samba(samba.port, &options());
    let started_at = first.driver.now();
    let port = samba.port;
    let second = std::thread::spawn(move || Load::of_samba(port, &options()).close());
    while !second.is_finished() {
        first.turn();
        assert!(first.driver.now() < started_at + 4 * SECOND, "the oplock was not given up");
    }
    second.join().unwrap();
    assert_eq!(first.client.facts(first.file).unwrap().durable, None, "it is durable no more");
    first.run(true, |_| ());
    first.close();
}
