//! The list of a server's shares: its encoding, in pieces and changed, and Samba's answer.

use crate::peers::Samba;
use linerate_io::EpollDriver;
use linerate_smb::wire::rpc::{ANSWER_BYTES_MAX, RpcAnswer, RpcError, bound, request};
use linerate_smb::wire::shares::{SHARE_ENUM, ShareListError, share_enum, shares};
use linerate_smb::wire::unicode::utf16;
use linerate_smb::{
    Blame, EncryptionChoice, ListedShare, ShareKind, SigningChoice, SmbAddress, SmbCredentials, SmbOptions,
    SmbRefusal, SmbToolError, list_shares,
};
use proptest::prelude::*;

const CALL: u32 = 7;
const LAST: u8 = 2;

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn text(out: &mut Vec<u8>, text: &str) {
    let bytes = utf16(&format!("{text}\0"));
    let units = (bytes.len() / 2) as u32;
    out.extend(words(&[units, 0, units]));
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// The result of `NetrShareEnum` as a server encodes it: shares with name, type and comment.
fn result(found: &[(String, u32, String)], code: u32) -> Vec<u8> {
    let count = found.len() as u32;
    let mut out = words(&[1, 1, 0x2_0000, count, 0x2_0004, count]);
    for (_, kind, _) in found {
        out.extend(words(&[0x2_0008, *kind, 0x2_000C]));
    }
    for (name, _, comment) in found {
        text(&mut out, name);
        text(&mut out, comment);
    }
    out.extend(words(&[count, 0, code]));
    out
}

fn fragment(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![5, 0, kind, flags, 0x10, 0, 0, 0];
    out.extend((16 + body.len() as u16).to_le_bytes());
    out.extend([0, 0]);
    out.extend(CALL.to_le_bytes());
    out.extend(body);
    out
}

/// An answer in fragments of at most `most` bytes of data.
fn fragments(data: &[u8], most: usize) -> Vec<u8> {
    let count = data.chunks(most).count();
    let one = |(at, chunk): (usize, &[u8])| {
        let flags = if at + 1 == count { LAST } else { 0 };
        fragment(2, flags, &[&[0; 8][..], chunk].concat())
    };
    data.chunks(most).enumerate().flat_map(one).collect()
}

fn collect(bytes: &[u8], piece: usize) -> Result<RpcAnswer, RpcError> {
    let mut answer = RpcAnswer::default();
    let mut is_whole = false;
    for chunk in bytes.chunks(piece) {
        assert!(!is_whole, "the answer was whole before its last byte");
        is_whole = answer.add(chunk, CALL)?;
    }
    if is_whole { Ok(answer) } else { Err(RpcError::Malformed) }
}

proptest! {
    #[test]
    fn a_list_is_the_same_however_it_is_cut(
        found in prop::collection::vec(("[a-z$ ]{0,40}", 0u32..4, "[A-Za-z ]{0,60}"), 0..40),
        most in 1usize..900,
        piece in 1usize..5000,
    ) {
        let answer = collect(&fragments(&result(&found, 0), most), piece).unwrap();
        let listed = shares(answer.data()).unwrap();
        prop_assert_eq!(listed.len(), found.len());
        for (share, (name, _, comment)) in listed.iter().zip(&found) {
            prop_assert_eq!((&share.name, &share.comment), (name, comment));
        }
    }

    #[test]
    fn a_changed_or_shortened_list_is_read_or_refused(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        end in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let found = [("disks".to_owned(), 0, "of the lab".to_owned()), ("IPC$".to_owned(), 0x8000_0003, String::new())];
        let mut data = result(&found, 0);
        let place = at.index(data.len());
        data[place] = byte;
        let _ = shares(&data);
        prop_assert!(shares(&data[..end.index(data.len())]).is_err());
        let mut whole = fragments(&data, 50);
        let place = at.index(whole.len());
        whole[place] = byte;
        let _ = collect(&whole, 64).map(|answer| shares(answer.data()).map(|_| ()));
        let _ = (shares(&bytes), bound(&bytes, CALL), collect(&bytes, 16).map(|_| ()));
    }
}

#[test]
fn kinds_flags_and_errors_are_told_apart() {
    let found = [(0x8000_0003, "IPC$"), (0, "a\u{7}b"), (0x4000_0001, "laser"), (9, "x")];
    let found = found.map(|(kind, name)| (name.to_owned(), kind, String::new()));
    let listed = shares(&result(&found, 0)).unwrap();
    let facts: Vec<_> =
        listed.iter().map(|one| (one.kind.name(), one.is_special, one.is_temporary)).collect();
    let expected =
        [("pipe", true, false), ("disk", false, false), ("printer", false, true), ("other", false, false)];
    assert_eq!(facts, expected);
    assert_eq!(listed[1].name, "a\u{FFFD}b");
    assert_eq!(shares(&result(&[], 5)), Err(ShareListError::AccessDenied));
    assert_eq!(shares(&result(&[], 234)), Err(ShareListError::Failed(234)));
    let claims_many = words(&[1, 1, 0x2_0000, u32::MAX, 0x2_0004, u32::MAX, 0, 0]);
    assert_eq!(shares(&claims_many), Err(ShareListError::Malformed));
    let fault = fragment(3, LAST, &[&[0; 8][..], &5u32.to_le_bytes()].concat());
    assert_eq!(collect(&fault, 100).err(), Some(RpcError::Fault(5)));
    assert_eq!(bound(&fragment(13, 3, &[0; 4]), CALL), Err(RpcError::NoInterface));
    let mut answer = RpcAnswer::default();
    let endless = fragment(2, 0, &[0; 16_000]);
    let error = (0..ANSWER_BYTES_MAX).find_map(|_| answer.add(&endless, CALL).err());
    assert_eq!(error, Some(RpcError::TooLong));
    assert_eq!(request(1, SHARE_ENUM, &share_enum("nas")).len() % 4, 0);
}

fn list(
    samba: &Samba,
    options: &SmbOptions,
    user: &str,
    password: &str,
) -> Result<Vec<ListedShare>, SmbToolError> {
    let address = SmbAddress::of_server(&format!("smb://127.0.0.1:{}", samba.port)).unwrap();
    let credentials = SmbCredentials::of_user(Some(user), Some(password));
    list_shares(EpollDriver::new().unwrap(), &address, options, credentials)
}

/// More shares than one fragment of an answer holds.
fn many_shares() -> String {
    let one = |number: u32| format!("[many{number}]\ncomment = number {number} of the test\npath = /tmp\n");
    (0..150).map(one).collect()
}

#[test]
fn sambas_shares_are_listed_with_every_protection() {
    let Some(samba) = Samba::start(&many_shares()) else { return };
    let ways = [
        SmbOptions::default(),
        SmbOptions { signing: SigningChoice::On, ..SmbOptions::default() },
        SmbOptions { encryption: EncryptionChoice::On, ..SmbOptions::default() },
        SmbOptions { dialect: Some(linerate_smb::wire::negotiate::Dialect::Smb210), ..SmbOptions::default() },
    ];
    for way in ways {
        let found = list(&samba, &way, Samba::USER, Samba::PASSWORD).unwrap();
        assert_eq!(found.len(), 154, "{way:?}");
        let named = |name: &str| found.iter().find(|share| share.name == name).unwrap();
        assert_eq!((named("share").kind, named("share").is_special), (ShareKind::Disk, false));
        assert_eq!((named("IPC$").kind, named("IPC$").is_special), (ShareKind::Pipe, true));
        assert_eq!(named("many149").comment, "number 149 of the test");
    }
}

#[test]
fn a_user_who_may_not_list_the_shares_is_told_so() {
    let Some(samba) = Samba::start("") else { return };
    let error = list(&samba, &SmbOptions::default(), Samba::USER, "wrong").unwrap_err();
    assert!(error.blame() == Blame::User && error.to_string().contains("wrong user name"), "{error}");
    assert!(
        matches!(error, SmbToolError::Failed(failure) if failure.refusal == Some(SmbRefusal::WrongLogon))
    );
    drop(samba);
    let Some(samba) = Samba::start("[IPC$]\nhosts deny = 127.0.0.1") else { return };
    let error = list(&samba, &SmbOptions::default(), Samba::USER, Samba::PASSWORD).unwrap_err();
    assert_eq!(error.blame(), Blame::User, "{error}");
    assert!(error.to_string().contains("may not use share IPC$"), "{error}");
}

#[test]
fn the_helpers_of_a_server_end_with_it() {
    let Some(samba) = Samba::start("") else { return };
    list(&samba, &SmbOptions::default(), Samba::USER, Samba::PASSWORD).unwrap();
    let folder = samba.folder();
    assert!(!crate::peers::helpers_of(&folder).is_empty(), "a list of shares is the work of a helper");
    drop(samba);
    assert_eq!(crate::peers::helpers_of(&folder), Vec::<String>::new());
}
