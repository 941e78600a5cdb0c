//! Requests about one file that leave as one compound, and answers to them: in one compound, apart, refused, in another
//! order.

use crate::fake::{FILE_BYTES, Fake, Peer};
use crate::peers::Samba;
use linerate_io::EpollDriver;
use linerate_smb::wire::WireError;
use linerate_smb::wire::files::{close_or_flush, empty};
use linerate_smb::wire::header::{MessageHeader, RELATED_FILE, SmbCommand, compound, first_of_compound};
use linerate_smb::wire::negotiate::Dialect;
use linerate_smb::wire::status::Status;
use linerate_smb::{
    EncryptionChoice, SigningChoice, SmbAddress, SmbCredentials, SmbDisk, SmbMode, SmbOptions, SmbToolError,
};
use proptest::prelude::*;
use std::io;
use std::sync::{Arc, Mutex};

const CREATE: u16 = SmbCommand::Create as u16;
const CLOSE: u16 = SmbCommand::Close as u16;
const FLUSH: u16 = SmbCommand::Flush as u16;
const QUERY_INFO: u16 = SmbCommand::QueryInfo as u16;
const SET_INFO: u16 = SmbCommand::SetInfo as u16;

type Compounds = Arc<Mutex<Vec<Vec<u16>>>>;

fn options() -> SmbOptions {
    SmbOptions { login_timeout_s: 5.0, command_timeout_s: 5.0, ..SmbOptions::default() }
}

/// Opens a file, and extends it to a length that the server's file does not have.
fn open_longer(fake: &Fake, options: &SmbOptions) -> Result<SmbDisk<EpollDriver>, SmbToolError> {
    let mode = SmbMode { write: true, create_bytes: Some(2 * FILE_BYTES as u64) };
    let credentials = SmbCredentials::of_user(None, None);
    SmbDisk::open(EpollDriver::new().unwrap(), &fake.address(), options, credentials, mode)
}

/// A server, and the compounds of requests that it gets. `serve` gets the number of each connection.
fn start(
    joins_answers: bool,
    serve: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + 'static,
) -> (Fake, Compounds) {
    let seen = Compounds::default();
    let (own, connections) = (Arc::clone(&seen), Mutex::new(0));
    let fake = Fake::start(move |peer| {
        let number = std::mem::replace(&mut *connections.lock().unwrap(), 1);
        peer.joins_answers = joins_answers;
        let result = serve(peer, number);
        own.lock().unwrap().append(&mut peer.compounds);
        result
    });
    (fake, seen)
}

/// What came in compounds, once the server has seen the end of the connection.
fn of(seen: &Compounds, count: usize) -> Vec<Vec<u16>> {
    for _ in 0..10_000 {
        if seen.lock().unwrap().len() >= count {
            break;
        }
        std::thread::yield_now();
    }
    seen.lock().unwrap().clone()
}

#[test]
fn size_and_close_save_a_round_trip_each_with_answers_apart_or_together() {
    for joins_answers in [false, true] {
        let (fake, seen) = start(joins_answers, |peer, _| {
            peer.log_on()?;
            peer.serve()
        });
        let mut disk = open_longer(&fake, &options()).unwrap();
        assert_eq!(disk.facts().size_bytes, FILE_BYTES as u64);
        disk.write(4096, &[7; 4096]).unwrap();
        disk.close().unwrap();
        assert_eq!(of(&seen, 2), [[SET_INFO, QUERY_INFO], [FLUSH, CLOSE]]);
        assert!(fake.disk.lock().unwrap()[4096..8192] == [7; 4096]);
    }
}

#[test]
fn what_was_flushed_or_only_read_needs_no_flush_at_its_end() {
    let (fake, seen) = start(false, |peer, _| {
        peer.log_on()?;
        peer.serve()
    });
    let mut disk = fake.open(&options()).unwrap();
    disk.write(0, &[7; 4096]).unwrap();
    disk.flush().unwrap();
    disk.read(0, &mut [0; 4096]).unwrap();
    disk.close().unwrap();
    assert_eq!(of(&seen, 0), Vec::<Vec<u16>>::new());
}

#[test]
fn a_flush_that_the_server_refuses_is_the_error_of_closing() {
    for joins_answers in [false, true] {
        let (fake, _) = start(joins_answers, |peer, _| {
            peer.log_on()?;
            loop {
                let asked = peer.read()?;
                match asked.command() {
                    FLUSH | CLOSE => peer.refuse(&asked, Status::DISK_FULL)?,
                    _ => {
                        let bytes = peer.answer(&asked)?;
                        peer.raw(&bytes)?;
                    }
                }
            }
        });
        let mut disk = fake.open(&options()).unwrap();
        disk.write(0, &[7; 4096]).unwrap();
        let error = disk.close().err().unwrap().to_string();
        assert!(error.contains("no space left"), "{error}");
    }
}

/// Writes once; the first connection is lost in the meantime. `reclaim` answers the CREATE of the second one.
fn lose_one(
    joins_answers: bool,
    reclaim: impl Fn(&mut Peer) -> io::Result<()> + Send + 'static,
) -> (Result<(), SmbToolError>, Fake, Compounds) {
    let (fake, seen) = start(joins_answers, move |peer, number| {
        (peer.dialect, peer.durable) = (0x300, true);
        for _ in 0..4 {
            let asked = peer.read()?;
            peer.step(&asked)?;
        }
        if number > 0 {
            reclaim(peer)?;
            return peer.serve();
        }
        let create = peer.read()?;
        peer.step(&create)?;
        peer.read().map(|_| ())
    });
    let way = SmbOptions { dialect: Some(Dialect::Smb300), ..options() };
    let result = fake.open(&way).and_then(|mut disk| {
        disk.write(0, &[9; 4096])?;
        disk.flush()?;
        disk.close().map(|_| ())
    });
    (result, fake, seen)
}

#[test]
fn a_file_is_claimed_back_with_its_size_in_one_round_trip() {
    for joins_answers in [false, true] {
        let (result, fake, seen) = lose_one(joins_answers, |peer| {
            let create = peer.read()?;
            peer.step(&create)
        });
        result.unwrap();
        assert!(fake.disk.lock().unwrap()[..4096] == [9; 4096]);
        assert_eq!(of(&seen, 1), [[CREATE, QUERY_INFO]]);
    }
}

#[test]
fn a_refused_claim_fails_both_requests_and_the_file_is_opened_again() {
    for joins_answers in [false, true] {
        let (result, fake, _) = lose_one(joins_answers, |peer| {
            for expected in [CREATE, QUERY_INFO] {
                let asked = peer.read()?;
                assert_eq!(asked.command(), expected);
                peer.refuse(&asked, Status::OBJECT_NAME_NOT_FOUND)?;
            }
            let create = peer.read()?;
            peer.step(&create)
        });
        result.unwrap();
        assert!(fake.disk.lock().unwrap()[..4096] == [9; 4096]);
    }
}

#[test]
fn with_one_credit_requests_leave_one_by_one() {
    let (fake, seen) = start(false, |peer, _| {
        peer.credits = 1;
        peer.log_on()?;
        peer.serve()
    });
    let mut disk = open_longer(&fake, &options()).unwrap();
    disk.write(0, &[7; 4096]).unwrap();
    disk.flush().unwrap();
    disk.close().unwrap();
    assert_eq!(of(&seen, 0), Vec::<Vec<u16>>::new());
}

/// The error of opening with a server that answers the change and the question of the size by a script.
fn opening_fails(script: impl Fn(&mut Peer) -> io::Result<()> + Send + 'static) -> String {
    let (fake, _) = start(false, move |peer, _| {
        peer.log_on()?;
        script(peer)?;
        peer.serve()
    });
    open_longer(&fake, &options()).err().unwrap().to_string()
}

#[test]
fn a_refused_size_and_answers_in_another_order_or_out_of_bounds_end_the_opening() {
    let error = opening_fails(|peer| {
        let set = peer.read()?;
        peer.refuse(&set, Status::DISK_FULL)?;
        let query = peer.read()?;
        peer.refuse(&query, Status::DISK_FULL)
    });
    assert!(error.contains("no space left"), "{error}");
    let error = opening_fails(|peer| {
        let (set, query) = (peer.read()?, peer.read()?);
        let bytes = [peer.answer(&query)?, peer.answer(&set)?].concat();
        peer.raw(&bytes)
    });
    assert!(error.contains("before that of an earlier request"), "{error}");
    for next in [8u32, 63, 65, 72, 1 << 20, u32::MAX] {
        let error = opening_fails(move |peer| {
            let (set, _) = (peer.read()?, peer.read()?);
            let mut bytes = peer.answer(&set)?;
            bytes[4 + 20..4 + 24].copy_from_slice(&next.to_le_bytes());
            peer.raw(&bytes)
        });
        assert!(error.contains("broke the protocol"), "{next}: {error}");
    }
}

#[test]
fn samba_answers_compounds_in_every_dialect_plain_signed_and_encrypted() {
    let Some(samba) = Samba::start("") else { return };
    let address = SmbAddress::parse(&samba.url("share", "c.img")).unwrap();
    let ways = Dialect::ALL.into_iter().flat_map(|dialect| {
        let way = SmbOptions { dialect: Some(dialect), ..options() };
        let signed = SmbOptions { signing: SigningChoice::On, ..way.clone() };
        let sealed = SmbOptions { encryption: EncryptionChoice::On, ..way.clone() };
        [way, signed, sealed]
    });
    for way in ways.filter(|way| way.check().is_ok()) {
        let _ = std::fs::remove_file(samba.path("c.img"));
        let mode = SmbMode { write: true, create_bytes: Some(1 << 20) };
        let credentials = SmbCredentials::of_user(Some(Samba::USER), Some(Samba::PASSWORD));
        let disk = SmbDisk::open(EpollDriver::new().unwrap(), &address, &way, credentials, mode);
        let mut disk = disk.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!(disk.facts().size_bytes, 1 << 20, "{way:?}");
        disk.write(1000, &[5; 3000]).unwrap();
        disk.close().unwrap_or_else(|error| panic!("{way:?}: {error}"));
        let on_disk = std::fs::read(samba.path("c.img")).unwrap();
        assert!(on_disk.len() == 1 << 20 && on_disk[1000..4000] == [5; 3000], "{way:?}");
    }
}

#[test]
fn a_byte_of_a_signed_compound_that_was_changed_on_its_way_is_noticed() {
    let Some(samba) = Samba::start("") else { return };
    for part in [0, 1] {
        let _ = std::fs::remove_file(samba.path("c.img"));
        let port = crate::load::relay_answers(samba.port, move |_, answer| {
            let first = first_of_compound(answer).unwrap();
            if first < answer.len() {
                // The structure of the first answer has two bytes; the last byte of the second one is of the file's size.
                answer[if part == 0 { 64 + 1 } else { first + 64 + 8 + 15 }] ^= 1;
            }
        });
        let address = SmbAddress::parse(&format!("smb://127.0.0.1:{port}/share/c.img")).unwrap();
        let way = SmbOptions { signing: SigningChoice::On, ..options() };
        let mode = SmbMode { write: true, create_bytes: Some(1 << 20) };
        let credentials = SmbCredentials::of_user(Some(Samba::USER), Some(Samba::PASSWORD));
        let opened = SmbDisk::open(EpollDriver::new().unwrap(), &address, &way, credentials, mode);
        let error = opened.err().expect("it is noticed").to_string();
        assert!(error.contains("changed on its way"), "{part}: {error}");
    }
}

#[test]
fn a_compound_is_the_messages_that_it_was_made_of() {
    let header = |command| MessageHeader::request(command, 1, 1, 1);
    let mut both = empty(&header(SmbCommand::Echo));
    let second = close_or_flush(&header(SmbCommand::Close), RELATED_FILE);
    compound(&mut both, &second);
    let first = first_of_compound(&both).unwrap();
    assert_eq!((first, both.len()), (72, 72 + second.len()));
    assert_eq!(first_of_compound(&both[first..]), Ok(second.len()));
    assert!(both[first..] == second);
    for wrong in [8u32, 64 + 4, 72 + 32, 1 << 20] {
        both[20..24].copy_from_slice(&wrong.to_le_bytes());
        assert_eq!(first_of_compound(&both), Err(WireError::Range), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_compound_makes_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), next in 0u32..320) {
        if let Some(place) = bytes.get_mut(20..24) {
            place.copy_from_slice(&next.to_le_bytes());
        }
        if let Ok(len) = first_of_compound(&bytes) {
            prop_assert!((64..=bytes.len()).contains(&len));
        }
    }
}
