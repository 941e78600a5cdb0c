//! Answers of a hostile or faulty server: every case ends with a result or a message, never with a hang, a panic or
//! unlimited memory.

use crate::fake::{Fake, Peer};
use linerate_io::system::now_ns;
use linerate_smb::wire::body::{ErrorResponse, WriteResponse};
use linerate_smb::wire::header::SmbCommand;
use linerate_smb::wire::negotiate::Dialect;
use linerate_smb::wire::status::Status;
use linerate_smb::{Blame, SigningChoice, SmbIoError, SmbOptions, SmbToolError};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

fn options() -> SmbOptions {
    SmbOptions {
        login_timeout_s: 3.0,
        command_timeout_s: 0.3,
        replacement_timeout_s: 0.0,
        ..SmbOptions::default()
    }
}

/// The error of opening a file of a server.
fn refused(script: impl Fn(&mut Peer) -> io::Result<()> + Send + 'static) -> (Blame, String) {
    let error = Fake::start(script).open(&options()).err().unwrap();
    (error.blame(), error.to_string())
}

/// The error of one read of 4 KiB, which the server answers by a script.
fn read_fails(script: impl Fn(&mut Peer) -> io::Result<()> + Send + 'static) -> SmbToolError {
    let fake = Fake::start(move |peer| {
        peer.log_on()?;
        script(peer)?;
        // The client decides when the connection ends.
        peer.read().map(|_| ())
    });
    fake.open(&options()).unwrap().read(0, &mut [0; 4096]).unwrap_err()
}

#[test]
fn a_port_without_a_server_and_a_silent_server_are_named() {
    let fake = Fake::good();
    let mut address = fake.address();
    address.port = 1;
    let credentials = linerate_smb::SmbCredentials::of_user(None, None);
    let driver = linerate_io::EpollDriver::new().unwrap();
    let mode = linerate_smb::SmbMode::default();
    let error = linerate_smb::SmbDisk::open(driver, &address, &options(), credentials, mode).err().unwrap();
    assert_eq!(error.blame(), Blame::Peer);
    assert!(error.to_string().contains("127.0.0.1:1/share/file: cannot connect"), "{error}");
    let silent = Fake::start(|peer| {
        peer.read()?;
        peer.read().map(|_| ())
    });
    let short = SmbOptions { login_timeout_s: 0.2, ..options() };
    let error = silent.open(&short).err().unwrap().to_string();
    assert!(error.contains("login_timeout_s"), "{error}");
}

#[test]
fn what_is_no_smb_is_the_peers_fault() {
    for bytes in [&[0xA5; 4096][..], b"HTTP/1.1 400 Bad Request\r\n\r\n", &[0, 0, 0, 64], &[0; 200]] {
        let bytes = bytes.to_vec();
        let (blame, error) = refused(move |peer| {
            peer.read()?;
            peer.raw(&bytes)
        });
        assert_eq!(blame, Blame::Peer, "{error}");
    }
    let (_, error) = refused(|_| Ok(()));
    assert!(error.contains("closed the connection before it answered") || error.contains("broke"), "{error}");
}

#[test]
fn a_server_that_takes_no_connections_from_this_host_is_no_breach_of_the_protocol() {
    let (blame, error) = refused(|peer| {
        peer.read()?;
        // RFC 1002 4.3.4: Samba's answer to a host that it denies.
        peer.raw(&[0x83, 0, 0, 1, 0x82])
    });
    assert_eq!(blame, Blame::User, "{error}");
    assert!(error.contains("takes no connections from this host"), "{error}");
}

#[test]
fn a_logon_without_encryption_that_is_denied_names_encryption() {
    let (blame, error) = refused(|peer| {
        loop {
            let asked = peer.read()?;
            if asked.command() == 1 {
                return peer.refuse(&asked, Status::ACCESS_DENIED).and_then(|()| peer.read().map(|_| ()));
            }
            peer.step(&asked)?;
        }
    });
    assert_eq!(blame, Blame::User, "{error}");
    assert!(error.contains("smb.encryption"), "{error}");
}

#[test]
fn each_refusal_says_whose_fault_it_is_and_what_to_do() {
    let at = |step: u16, status: Status| {
        refused(move |peer| {
            loop {
                let asked = peer.read()?;
                let second = step != 1 || asked.header.session_id.get() != 0;
                if asked.command() == step && second {
                    return peer.refuse(&asked, status).and_then(|()| peer.read().map(|_| ()));
                }
                peer.step(&asked)?;
            }
        })
    };
    for (step, status, blame, words) in [
        (0, Status::NOT_SUPPORTED, Blame::Peer, "SMB 2.1 or later"),
        (1, Status::LOGON_FAILURE, Blame::User, "wrong user name or password"),
        (1, Status::ACCOUNT_LOCKED_OUT, Blame::User, "the account is locked"),
        (1, Status::INSUFFICIENT_RESOURCES, Blame::Peer, "lacks resources"),
        (3, Status::BAD_NETWORK_NAME, Blame::User, "no share share"),
        (3, Status::ACCESS_DENIED, Blame::User, "may not use share"),
        (5, Status::OBJECT_NAME_NOT_FOUND, Blame::User, "no file file"),
        (5, Status::OBJECT_PATH_NOT_FOUND, Blame::User, "no folder"),
        (5, Status::ACCESS_DENIED, Blame::User, "read-only"),
        (5, Status::SHARING_VIOLATION, Blame::User, "open for itself"),
        (5, Status::FILE_IS_A_DIRECTORY, Blame::User, "a folder"),
        (5, Status(0xC000_0999), Blame::Peer, "0xc0000999"),
    ] {
        let (found, error) = at(step, status);
        assert_eq!(found, blame, "{error}");
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("password") || step == 1, "{error}");
    }
}

#[test]
fn a_dialect_that_the_user_asked_for_is_the_users_to_correct() {
    let fake = Fake::start(|peer| {
        let asked = peer.read()?;
        peer.refuse(&asked, Status::NOT_SUPPORTED)
    });
    let asked = SmbOptions { dialect: Some(Dialect::Smb311), ..options() };
    let error = fake.open(&asked).err().unwrap();
    assert_eq!(error.blame(), Blame::User, "{error}");
    assert!(error.to_string().contains("does not support dialect 3.1.1"), "{error}");
}

#[test]
fn a_server_that_requires_signatures_and_an_option_against_them_do_not_agree() {
    let fake = Fake::start(|peer| {
        peer.security_mode = 3;
        peer.log_on()
    });
    let off = SmbOptions { signing: SigningChoice::Off, ..options() };
    let error = fake.open(&off).err().unwrap();
    assert_eq!(error.blame(), Blame::User);
    assert!(error.to_string().contains("smb.signing"), "{error}");
    // The fake logs everyone in as a guest.
    let error = fake.open(&options()).err().unwrap();
    assert!(error.to_string().contains("guest"), "{error}");
}

#[test]
fn a_server_without_the_service_of_shares_is_named() {
    let list = |status: Status| {
        let fake = Fake::start(move |peer| {
            for _ in 0..4 {
                let asked = peer.read()?;
                peer.step(&asked)?;
            }
            let create = peer.read()?;
            peer.refuse(&create, status)?;
            peer.read().map(|_| ())
        });
        let address = linerate_smb::SmbAddress::of_server(&format!("smb://{}", fake.addr)).unwrap();
        let credentials = linerate_smb::SmbCredentials::of_user(Some("user"), None);
        let driver = linerate_io::EpollDriver::new().unwrap();
        let error = linerate_smb::list_shares(driver, &address, &options(), credentials).unwrap_err();
        (error.blame(), error.to_string())
    };
    let (blame, error) = list(Status::OBJECT_NAME_NOT_FOUND);
    assert!(blame == Blame::Peer && error.contains("no service that lists its shares"), "{error}");
    let (blame, error) = list(Status::ACCESS_DENIED);
    assert!(blame == Blame::User && error.contains("user user may not list the shares"), "{error}");
}

#[test]
fn a_dialect_that_was_not_offered_is_refused() {
    let (blame, error) = refused(|peer| {
        peer.dialect = 0x2FF;
        peer.log_on()
    });
    assert!(blame == Blame::Peer && error.contains("0x02ff"), "{error}");
}

#[test]
fn an_answer_to_nothing_or_to_another_command_ends_the_connection() {
    let error = read_fails(|peer| {
        let mut asked = peer.read()?;
        asked.header.message_id.set(4711);
        let bytes = peer.data(&asked, 80, &[0; 4096]);
        peer.raw(&bytes)
    });
    assert!(error.to_string().contains("not in flight"), "{error}");
    let error = read_fails(|peer| {
        let mut asked = peer.read()?;
        asked.header.command.set(9);
        peer.send(&asked, Status::SUCCESS, &WriteResponse::default(), &[])
    });
    assert!(error.to_string().contains("another request"), "{error}");
}

#[test]
fn read_data_outside_its_message_or_longer_than_asked_for_is_refused() {
    let error = read_fails(|peer| {
        let asked = peer.read()?;
        let bytes = peer.data(&asked, 80, &[0; 4097]);
        peer.raw(&bytes)
    });
    assert!(error.to_string().contains("longer than asked for"), "{error}");
    let error = read_fails(|peer| {
        let asked = peer.read()?;
        let mut bytes = peer.data(&asked, 80, &[0; 4000]);
        bytes[4 + 68..4 + 72].copy_from_slice(&4096u32.to_le_bytes());
        peer.raw(&bytes)
    });
    assert!(error.to_string().contains("outside their message"), "{error}");
}

#[test]
fn fewer_bytes_than_asked_for_are_an_error_of_the_io() {
    let error = read_fails(|peer| {
        let asked = peer.read()?;
        let bytes = peer.data(&asked, 80, &[0; 100]);
        peer.raw(&bytes)
    });
    assert!(matches!(error, SmbToolError::Io(SmbIoError::Short { moved: 100 })), "{error}");
    let error = read_fails(|peer| {
        let asked = peer.read()?;
        peer.refuse(&asked, Status::END_OF_FILE)
    });
    assert!(matches!(error, SmbToolError::Io(SmbIoError::Short { moved: 0 })), "{error}");
}

#[test]
fn data_behind_padding_are_found() {
    let fake = Fake::start(|peer| {
        peer.log_on()?;
        let asked = peer.read()?;
        let bytes = peer.data(&asked, 96, &[0x5A; 4096]);
        peer.raw(&bytes)?;
        peer.serve()
    });
    let mut back = vec![0; 4096];
    fake.open(&options()).unwrap().read(0, &mut back).unwrap();
    assert!(back.iter().all(|byte| *byte == 0x5A));
}

#[test]
fn a_request_without_an_answer_is_cancelled_and_then_the_connection_is_given_up() {
    let cancels = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&cancels);
    let error = read_fails(move |peer| {
        let read = peer.read()?;
        peer.pend(&read, 42)?;
        let cancel = peer.read()?;
        if cancel.command() == 12 && cancel.header.async_id() == Some(42) {
            seen.fetch_add(1, Relaxed);
        }
        peer.refuse(&read, Status::CANCELLED)
    });
    assert!(matches!(error, SmbToolError::Io(SmbIoError::Timeout)), "{error}");
    assert_eq!(cancels.load(Relaxed), 1);
    let error = read_fails(|peer| {
        peer.read()?;
        peer.read().map(|_| ())
    });
    assert!(error.to_string().contains("nor its cancellation"), "{error}");
}

#[test]
fn a_session_that_the_server_ends_is_reported_with_its_reason() {
    for (status, words) in [
        (Status::NETWORK_NAME_DELETED, "closed the share"),
        (Status::USER_SESSION_DELETED, "ended the session"),
    ] {
        let error = read_fails(move |peer| {
            let asked = peer.read()?;
            peer.send(&asked, status, &ErrorResponse::default(), &[0])
        });
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_server_that_grants_no_credits_ends_with_a_message() {
    let fake = Fake::start(|peer| {
        peer.credits = 1;
        peer.log_on()?;
        peer.credits = 0;
        peer.serve()
    });
    let mut disk = fake.open(&options()).unwrap();
    let error = disk.read(0, &mut [0; 8192]).and_then(|()| disk.read(0, &mut [0; 8192])).unwrap_err();
    assert!(error.to_string().contains("credits"), "{error}");
}

#[test]
fn large_ios_wait_for_the_credits_that_they_need() {
    let fake = Fake::start(|peer| {
        peer.credits = 4;
        peer.log_on()?;
        peer.serve()
    });
    let mut disk = fake.open(&options()).unwrap();
    assert_eq!(disk.facts().max_io_bytes, 1 << 20);
    let sent: Vec<u8> = (0..1 << 20).map(|at: u32| (at >> 7) as u8).collect();
    disk.write(0, &sent).unwrap();
    assert!(*fake.disk.lock().unwrap() == sent);
}

#[test]
fn a_server_that_drops_each_connection_is_not_asked_without_pause() {
    const DROPS: usize = 4;
    let begun = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&begun);
    let fake = Fake::start(move |peer| {
        let number = {
            let mut begun = own.lock().unwrap();
            begun.push(now_ns());
            begun.len()
        };
        (peer.dialect, peer.durable) = (0x300, true);
        peer.log_on()?;
        loop {
            let asked = peer.read()?;
            if number <= DROPS && asked.command() == SmbCommand::Write as u16 {
                return Ok(());
            }
            let bytes = peer.answer(&asked)?;
            peer.raw(&bytes)?;
        }
    });
    let way = SmbOptions { replacement_timeout_s: 20.0, ..options() };
    fake.open(&way).unwrap().write(0, &[1; 4096]).unwrap();
    let begun = begun.lock().unwrap();
    assert_eq!(begun.len(), DROPS + 1);
    // The first attempt comes at once, the next ones 250 ms after the one before.
    let pauses = begun.windows(2).skip(1).map(|pair| pair[1] - pair[0]);
    assert!(pauses.min().unwrap() >= 240_000_000, "{begun:?}");
}
