//! With Samba's smbd (Debian package samba): a private daemon without root's rights, on a port of its own.

use crate::peers::Samba;
use linerate_io::EpollDriver;
use linerate_smb::wire::negotiate::Dialect;
use linerate_smb::{
    Blame, EncryptionChoice, SigningChoice, SmbAddress, SmbCredentials, SmbDisk, SmbMode, SmbOptions,
    SmbToolError,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const MIB: usize = 1 << 20;

fn options() -> SmbOptions {
    SmbOptions {
        login_timeout_s: 10.0,
        command_timeout_s: 10.0,
        replacement_timeout_s: 0.0,
        ..SmbOptions::default()
    }
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ (at >> 9) as u8 ^ seed).collect()
}

const NEW_FILE: SmbMode = SmbMode { write: true, create_bytes: Some(8 << 20) };
const OPEN: SmbMode = SmbMode { write: true, create_bytes: None };

fn open_as(
    url: &str,
    options: &SmbOptions,
    user: &str,
    password: &str,
    mode: SmbMode,
) -> Result<SmbDisk<EpollDriver>, SmbToolError> {
    let address = SmbAddress::parse(url).unwrap();
    let credentials = SmbCredentials::of_user(Some(user), Some(password));
    SmbDisk::open(EpollDriver::new().unwrap(), &address, options, credentials, mode)
}

fn open(url: &str, options: &SmbOptions, mode: SmbMode) -> Result<SmbDisk<EpollDriver>, SmbToolError> {
    open_as(url, options, Samba::USER, Samba::PASSWORD, mode)
}

/// Every dialect with every protection that it has.
fn ways() -> Vec<SmbOptions> {
    let dialects = Dialect::ALL.map(Some);
    let mut ways: Vec<SmbOptions> = [SigningChoice::Off, SigningChoice::On, SigningChoice::Auto]
        .into_iter()
        .flat_map(|signing| dialects.map(|dialect| SmbOptions { signing, dialect, ..options() }))
        .collect();
    let ciphers = [
        EncryptionChoice::On,
        EncryptionChoice::Aes128Ccm,
        EncryptionChoice::Aes128Gcm,
        EncryptionChoice::Aes256Ccm,
        EncryptionChoice::Aes256Gcm,
    ];
    for encryption in ciphers {
        ways.extend(dialects.map(|dialect| SmbOptions { encryption, dialect, ..options() }));
    }
    ways.retain(|way| way.check().is_ok());
    ways
}

#[test]
fn what_is_written_is_read_back_with_every_dialect_signature_and_cipher() {
    let Some(samba) = Samba::start("") else { return };
    let url = samba.url("share", "ways.img");
    for (number, way) in ways().iter().enumerate() {
        let mut disk = open(&url, way, NEW_FILE).unwrap_or_else(|error| panic!("{way:?}: {error}"));
        let facts = disk.facts();
        assert_eq!(facts.size_bytes, 8 << 20);
        assert_eq!(facts.max_io_bytes, 8 << 20);
        assert_eq!(facts.signing.is_some(), way.signing == SigningChoice::On, "{way:?}: {facts:?}");
        let seals = !matches!(way.encryption, EncryptionChoice::Auto | EncryptionChoice::Off);
        assert_eq!(facts.encryption.is_some(), seals, "{way:?}: {facts:?}");
        assert_eq!(Some(facts.dialect), way.dialect.map(Dialect::name));
        for len in [1, 512, 4096, 65536, 3 * MIB + 17] {
            let sent = pattern(len, number as u8);
            disk.write(8191, &sent).unwrap();
            let mut back = vec![0; len];
            disk.read(8191, &mut back).unwrap();
            assert!(sent == back, "{way:?}, {len} bytes");
        }
        disk.flush().unwrap();
        disk.close().unwrap();
        let on_disk = std::fs::read(samba.path("ways.img")).unwrap();
        assert!(on_disk[8191..8191 + 3 * MIB + 17] == pattern(3 * MIB + 17, number as u8), "{way:?}");
    }
}

#[test]
fn smbclient_reads_what_was_written_here_and_the_reverse() {
    let Some(samba) = Samba::start("") else { return };
    let protections = ["off", "sign", "encrypt"].map(|name| format!("--client-protection={name}"));
    let dialects = ["SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"].map(|name| format!("--max-protocol={name}"));
    for (number, way) in ways().iter().enumerate() {
        let sent = pattern(MIB + 3, number as u8);
        let new = SmbMode { write: true, create_bytes: Some(sent.len() as u64) };
        let dialect = dialects[number % 4].as_str();
        let protection = protections[number / 4 % 3].as_str();
        // Dialect 2.1 has no encryption.
        let options = if number % 4 == 0 { vec![dialect] } else { vec![dialect, protection] };
        let (ours, theirs) = (format!("ours-{number}.img"), format!("theirs-{number}.img"));
        let mut disk = open(&samba.url("share", &ours), way, new).unwrap();
        disk.write(0, &sent).unwrap();
        disk.close().unwrap();
        let copy = samba.path("copy.img");
        let Some(got) = samba.smbclient(&format!("get {ours} {}", copy.display()), &options) else { return };
        assert!(got.status.success(), "{options:?}: {got:?}");
        assert!(std::fs::read(&copy).unwrap() == sent, "{options:?}, {way:?}");
        std::fs::write(samba.path("theirs.raw"), &sent).unwrap();
        let put = format!("put {} {theirs}", samba.path("theirs.raw").display());
        let put = samba.smbclient(&put, &options).unwrap();
        assert!(put.status.success(), "{options:?}: {put:?}");
        let mut back = vec![0; sent.len()];
        open(&samba.url("share", &theirs), way, OPEN).unwrap().read(0, &mut back).unwrap();
        assert!(back == sent, "{options:?}, {way:?}");
    }
}

#[test]
fn a_share_or_a_server_that_requires_protection_gets_it() {
    let Some(samba) = Samba::start("server signing = mandatory") else { return };
    let disk = open(&samba.url("share", "a.img"), &options(), NEW_FILE).unwrap();
    assert!(disk.facts().signing.is_some());
    let off = SmbOptions { signing: SigningChoice::Off, ..options() };
    let error = open(&samba.url("share", "a.img"), &off, OPEN).err().unwrap();
    assert!(error.blame() == Blame::User && error.to_string().contains("smb.signing"), "{error}");
    let mut disk = open(&samba.url("sealed", "b.img"), &options(), NEW_FILE).unwrap();
    assert_eq!(disk.facts().encryption, Some("aes-128-gcm"));
    disk.write(0, &pattern(MIB, 3)).unwrap();
    assert!(std::fs::read(samba.path("b.img")).unwrap()[..MIB] == pattern(MIB, 3));
    let off = SmbOptions { encryption: EncryptionChoice::Off, ..options() };
    let old = SmbOptions { dialect: Some(Dialect::Smb210), ..options() };
    for without in [off, old] {
        let error = open(&samba.url("sealed", "b.img"), &without, OPEN).err().unwrap();
        assert_eq!(error.blame(), Blame::User, "{error}");
        assert!(error.to_string().contains("smb.encryption"), "{error}");
    }
    let Some(sealed) = Samba::start("server smb encrypt = required") else { return };
    let disk = open(&sealed.url("share", "a.img"), &options(), NEW_FILE).unwrap();
    assert!(disk.facts().encryption.is_some());
}

#[test]
fn refusals_are_explained() {
    let Some(samba) = Samba::start("") else { return };
    let (share, secret) = (samba.url("share", "a.img"), Samba::PASSWORD);
    open(&share, &options(), NEW_FILE).unwrap();
    let fails = |url: &str, user: &str, password: &str, mode: SmbMode| {
        let error = open_as(url, &options(), user, password, mode).err().unwrap();
        assert!(!error.to_string().contains(secret), "{error}");
        assert_eq!(error.blame(), Blame::User, "{error}");
        error.to_string()
    };
    for (error, words) in [
        (fails(&share, Samba::USER, "wrong", OPEN), "wrong user name or password"),
        (fails(&share, "missing", secret, OPEN), "wrong user name or password"),
        (fails(&samba.url("missing", "a.img"), Samba::USER, secret, OPEN), "no share missing"),
        (fails(&samba.url("share", "missing.img"), Samba::USER, secret, OPEN), "no file missing.img"),
        (fails(&samba.url("share", "no/a.img"), Samba::USER, secret, OPEN), "no folder for no/a.img"),
        (fails(&samba.url("readonly", "a.img"), Samba::USER, secret, OPEN), "read-only"),
        (fails(&samba.url("IPC$", "a.img"), Samba::USER, secret, OPEN), "no files"),
    ] {
        assert!(error.contains(words), "{error}");
    }
    let only_reading = SmbMode::default();
    let mut disk = open(&samba.url("readonly", "a.img"), &options(), only_reading).unwrap();
    disk.read(0, &mut [0; 512]).unwrap();
    samba.edit_user(&["-c", "[D]"]);
    let error = fails(&share, Samba::USER, secret, OPEN);
    assert!(error.contains("the account is disabled"), "{error}");
}

#[test]
fn a_locked_account_is_called_so() {
    let Some(samba) = Samba::start("") else { return };
    samba.lock_accounts_after(2);
    let url = samba.url("share", "a.img");
    for _ in 0..2 {
        open_as(&url, &options(), Samba::USER, "wrong", NEW_FILE).err().unwrap();
    }
    let error = open(&url, &options(), NEW_FILE).err().unwrap();
    assert_eq!(error.blame(), Blame::User, "{error}");
    assert!(error.to_string().contains("the account is locked"), "{error}");
}

#[test]
fn a_full_share_refuses_writes_and_keeps_what_it_has() {
    let Some(samba) = Samba::start_small(4) else { return };
    let mut disk = open(&samba.url("share", "a.img"), &options(), NEW_FILE).unwrap();
    disk.write(0, &pattern(MIB, 5)).unwrap();
    let error = disk.write(MIB as u64, &pattern(4 * MIB, 6)).unwrap_err();
    assert_eq!(error.blame(), Blame::Peer, "{error}");
    assert!(
        error.to_string().contains("the share full") || error.to_string().contains("no space"),
        "{error}"
    );
    let error = disk.write(6 << 20, &pattern(MIB, 7)).unwrap_err();
    assert!(error.to_string().contains("the share has no space left"), "{error}");
    let mut back = vec![0; MIB];
    disk.read(0, &mut back).unwrap();
    assert!(back == pattern(MIB, 5));
}

#[test]
fn a_share_that_is_closed_while_its_file_is_open_is_called_so() {
    let Some(samba) = Samba::start("") else { return };
    let url = samba.url("share", "a.img");
    let mut disk = open(&url, &options(), NEW_FILE).unwrap();
    disk.write(0, &pattern(MIB, 1)).unwrap();
    samba.close_share("share");
    let error = wait_for_error(&mut disk);
    assert_eq!(error.blame(), Blame::Peer, "{error}");
    assert!(error.to_string().contains("the server has closed the share"), "{error}");
    let mut back = vec![0; MIB];
    open(&url, &options(), OPEN).unwrap().read(0, &mut back).unwrap();
    assert!(back == pattern(MIB, 1));
}

/// The server's process for the connection gets the message about the share after a while.
fn wait_for_error(disk: &mut SmbDisk<EpollDriver>) -> SmbToolError {
    for _ in 0..20_000 {
        if let Err(error) = disk.read(0, &mut [0; 512]) {
            return error;
        }
    }
    panic!("the share is still open");
}

#[test]
fn a_file_that_has_become_shorter_is_an_error_of_the_io() {
    let Some(samba) = Samba::start("") else { return };
    let mut disk = open(&samba.url("share", "a.img"), &options(), NEW_FILE).unwrap();
    std::fs::OpenOptions::new().write(true).open(samba.path("a.img")).unwrap().set_len(1000).unwrap();
    let error = disk.read(512, &mut [0; 4096]).unwrap_err().to_string();
    assert!(error.contains("only 488 bytes moved"), "{error}");
    let error = disk.read(8192, &mut [0; 4096]).unwrap_err().to_string();
    assert!(error.contains("only 0 bytes moved"), "{error}");
}

#[test]
fn a_server_that_ends_is_reported_and_what_was_flushed_is_there_afterwards() {
    let Some(mut samba) = Samba::start("strict sync = yes") else { return };
    let url = samba.url("share", "a.img");
    let mut disk = open(&url, &options(), NEW_FILE).unwrap();
    disk.write(0, &pattern(MIB, 1)).unwrap();
    disk.flush().unwrap();
    samba.stop();
    let error = disk.write(0, &pattern(4096, 2)).unwrap_err();
    assert_eq!(error.blame(), Blame::Peer, "{error}");
    assert!(error.to_string().contains("closed the connection") || error.to_string().contains("broke"));
    samba.start_again();
    let mut back = vec![0; MIB];
    open(&url, &options(), OPEN).unwrap().read(0, &mut back).unwrap();
    assert!(back == pattern(MIB, 1));
}

/// A relay to the server that changes one byte of an answer, counted from the end of the stream's `nth` MiB.
fn tampering_relay(port: u16, at: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
        let (mut from, mut to, mut seen) = (server, client, 0);
        let mut bytes = vec![0; 65536];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            if (seen..seen + len).contains(&at) {
                bytes[at - seen] ^= 1;
            }
            seen += len;
            if to.write_all(&bytes[..len]).is_err() {
                return;
            }
        }
    });
    own
}

#[test]
fn a_byte_that_was_changed_on_its_way_is_noticed() {
    let Some(samba) = Samba::start("") else { return };
    drop(open(&samba.url("share", "a.img"), &options(), NEW_FILE).unwrap());
    let protections = [
        SmbOptions { signing: SigningChoice::On, ..options() },
        SmbOptions { signing: SigningChoice::On, dialect: Some(Dialect::Smb210), ..options() },
        SmbOptions { signing: SigningChoice::On, dialect: Some(Dialect::Smb302), ..options() },
        SmbOptions { encryption: EncryptionChoice::On, ..options() },
    ];
    for way in protections {
        // Well inside the data of the read.
        let port = tampering_relay(samba.port, 300_000);
        let mut disk = open(&format!("smb://127.0.0.1:{port}/share/a.img"), &way, OPEN).unwrap();
        let error = disk.read(0, &mut vec![0; MIB]).unwrap_err();
        assert_eq!(error.blame(), Blame::Peer);
        assert!(error.to_string().contains("changed on its way"), "{way:?}: {error}");
    }
    // The negotiation itself is protected: by the keys of 3.1.1, by its validation before. The byte names the server.
    for dialect in [None, Some(Dialect::Smb210), Some(Dialect::Smb300), Some(Dialect::Smb302)] {
        let port = tampering_relay(samba.port, 4 + 64 + 8);
        let way = SmbOptions { dialect, ..options() };
        let error = open(&format!("smb://127.0.0.1:{port}/share/a.img"), &way, OPEN).err().unwrap();
        assert_eq!(error.blame(), Blame::Peer, "{error}");
        let words = error.to_string();
        assert!(
            words.contains("negotiation") && words.contains("changed on its way"),
            "{dialect:?}: {words}"
        );
    }
}
