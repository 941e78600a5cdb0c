//! Several channels of one session, with Samba: what is written is read back, also if channels are lost.

use crate::load::{Load, Relay, SECOND, image, options, relay_answers};
use crate::peers::Samba;
use linerate_io::{Driver, EpollDriver};
use linerate_smb::wire::header::SmbCommand;
use linerate_smb::wire::negotiate::Dialect;
use linerate_smb::wire::status::Status;
use linerate_smb::{
    Blame, EncryptionChoice, SigningChoice, SmbAddress, SmbCredentials, SmbDisk, SmbEventKind, SmbMode,
    SmbOptions,
};

const CHANNELS: u16 = 4;

fn channels() -> SmbOptions {
    SmbOptions { channels: CHANNELS, ..options() }
}

fn ways() -> Vec<SmbOptions> {
    vec![
        channels(),
        SmbOptions { signing: SigningChoice::On, ..channels() },
        SmbOptions { encryption: EncryptionChoice::Aes128Gcm, ..channels() },
        SmbOptions { encryption: EncryptionChoice::Aes256Ccm, ..channels() },
        SmbOptions { dialect: Some(Dialect::Smb300), signing: SigningChoice::On, ..channels() },
        SmbOptions { dialect: Some(Dialect::Smb302), encryption: EncryptionChoice::On, ..channels() },
        SmbOptions { max_io_bytes: Some(16_384), ..channels() },
    ]
}

/// Channels that were lost and that came back, as the events say.
fn changes(load: &Load) -> (usize, usize) {
    let is_lost = |event: &&SmbEventKind| matches!(event, SmbEventKind::ChannelLost { .. });
    let is_back = |event: &&SmbEventKind| matches!(event, SmbEventKind::ChannelRestored { .. });
    let events = &load.seen.events;
    (events.iter().filter(is_lost).count(), events.iter().filter(is_back).count())
}

#[test]
fn a_channel_cut_in_the_middle_of_writes_leaves_the_others_and_loses_nothing() {
    let Some(samba) = Samba::start("") else { return };
    for way in ways() {
        let relay = Relay::to(samba.port);
        let _ = std::fs::remove_file(samba.path("a.img"));
        let mut load = Load::of_samba(relay.port, &way);
        assert_eq!(load.client.facts(load.file).unwrap().channels, CHANNELS, "{way:?}");
        assert_eq!(load.client.tcp_infos(&load.driver, load.file).count(), usize::from(CHANNELS));
        load.run(true, |ended| match ended {
            100 => relay.cut_one(2),
            // The first one, which opened the file.
            250 => relay.cut_one(0),
            400 => relay.cut_one(1),
            _ => {}
        });
        assert!(std::fs::read(samba.path("a.img")).unwrap() == image(), "{way:?}");
        load.run(false, |_| ());
        let until = load.driver.now() + 5 * SECOND;
        while changes(&load) != (3, 3) {
            load.turn();
            assert!(load.driver.now() < until, "{way:?}: {:?}", load.seen.events);
        }
        assert_eq!(load.client.facts(load.file).unwrap().channels, CHANNELS, "{way:?}");
        let kept = load.close().kept();
        assert!(kept.is_empty(), "{way:?}: the session was lost: {kept:?}");
    }
}

#[test]
fn a_session_that_loses_all_channels_is_restored_with_all_of_them() {
    let Some(samba) = Samba::start("") else { return };
    let relay = Relay::to(samba.port);
    let mut load = Load::of_samba(relay.port, &channels());
    load.run(true, |ended| {
        if ended == 200 || ended == 400 {
            relay.cut();
        }
    });
    assert!(std::fs::read(samba.path("a.img")).unwrap() == image());
    load.run(false, |_| ());
    assert_eq!(load.client.facts(load.file).unwrap().channels, CHANNELS);
    let kept = load.close().kept();
    // A server that has not seen the end of all channels yet does not give the file back: it is opened again then.
    assert_eq!(kept.len(), 2, "{kept:?}");
}

#[test]
fn a_server_without_several_channels_says_so_at_once() {
    let Some(samba) = Samba::start("server multi channel support = no") else { return };
    let address = SmbAddress::parse(&samba.url("share", "a.img")).unwrap();
    let credentials = SmbCredentials::of_user(Some(Samba::USER), Some(Samba::PASSWORD));
    let mode = SmbMode { write: true, create_bytes: Some(4096) };
    let opened = SmbDisk::open(EpollDriver::new().unwrap(), &address, &channels(), credentials, mode);
    let error = opened.err().expect("it is refused").to_string();
    assert!(error.contains("supports no several channels"), "{error}");
}

#[test]
fn a_refused_channel_is_reported_with_its_status_and_the_way_out() {
    let Some(samba) = Samba::start("") else { return };
    for way in [channels(), SmbOptions { signing: SigningChoice::On, ..channels() }] {
        // The last step of the second connection's logon is refused.
        let port = relay_answers(samba.port, |number, answer| {
            let is_logon = answer[12..14] == (SmbCommand::SessionSetup as u16).to_le_bytes();
            if number > 0 && is_logon && answer[8..12] == [0; 4] {
                answer[8..12].copy_from_slice(&Status::INSUFFICIENT_RESOURCES.0.to_le_bytes());
            }
        });
        let url = format!("smb://127.0.0.1:{port}/share/a.img");
        let credentials = SmbCredentials::of_user(Some(Samba::USER), Some(Samba::PASSWORD));
        let mode = SmbMode { write: true, create_bytes: Some(4096) };
        let address = SmbAddress::parse(&url).unwrap();
        let opened = SmbDisk::open(EpollDriver::new().unwrap(), &address, &way, credentials, mode);
        let error = opened.err().expect("it is refused");
        assert_eq!(error.blame(), Blame::Peer);
        let words = error.to_string();
        assert!(words.contains("refused a further channel") && words.contains("INSUFFICIENT"), "{words}");
        assert!(words.contains("smb.channels") && !words.contains("signature"), "{words}");
    }
}
