//! Data of a hostile or faulty target: every case ends with a result or a message, never with a hang, a panic or
//! unlimited memory. If a second connection works, the I/O succeeds on it.

use crate::fake::{Fake, IQN, Peer, READ, WRITE, is, options, scsi};
use linerate_io::{EpollDriver, system};
use linerate_iscsi_initiator::{
    Blame, Credentials, DigestChoice, Disk, IoError, LunAddress, LunInfo, SenseCode, SessionOptions,
    ToolError, discover,
};
use linerate_iscsi_proto::pdu::*;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

fn open_with(fake: &Fake, options: &SessionOptions) -> Result<Disk<EpollDriver>, ToolError> {
    let (address, credentials) = LunAddress::parse(&fake.url()).unwrap();
    Disk::open(EpollDriver::new().unwrap(), &address, options, &credentials)
}

fn open(fake: &Fake) -> Disk<EpollDriver> {
    open_with(fake, &options()).unwrap()
}

/// Every read fails on the first connection and succeeds on the second.
fn read_survives(misbehave: impl Fn(&mut Peer, &ScsiCommand) -> io::Result<()> + Send + 'static) {
    let fake = Fake::start(move |peer, n| {
        peer.login()?;
        if n == 0 {
            let (request, _) = peer.serve_until(is(READ))?;
            misbehave(peer, &scsi(&request))?;
        }
        peer.serve()
    });
    fake.disk.lock().unwrap()[..4096].fill(0x5a);
    let mut back = vec![0; 4096];
    open(&fake).read(0, &mut back).unwrap();
    assert!(back.iter().all(|byte| *byte == 0x5a));
}

#[test]
fn garbage_instead_of_a_login_is_the_peers_fault() {
    let fake = Fake::start(|peer, _| peer.raw(&[0xa5; 4096]));
    let error = open_with(&fake, &options()).err().unwrap();
    assert_eq!(error.blame(), Blame::Peer);
    assert!(error.to_string().contains(&fake.addr.to_string()), "{error}");
}

#[test]
fn a_portal_that_closes_or_does_not_listen_is_named() {
    let fake = Fake::start(|_, _| Ok(()));
    let error = open_with(&fake, &options()).err().unwrap().to_string();
    assert!(error.contains("closed the connection") || error.contains("broke"), "{error}");
    let (address, credentials) =
        LunAddress::parse(&format!("iscsi://127.0.0.1:1/{}/0", crate::fake::IQN)).unwrap();
    let closed = Disk::open(EpollDriver::new().unwrap(), &address, &options(), &credentials);
    let error = closed.err().unwrap().to_string();
    assert!(error.contains("127.0.0.1:1") && error.contains("cannot connect"), "{error}");
}

#[test]
fn a_silent_portal_ends_at_the_login_timeout() {
    let fake = Fake::start(|peer, _| {
        peer.read()?;
        peer.read().map(|_| ())
    });
    let options = SessionOptions { login_timeout_s: 0.2, ..options() };
    let error = open_with(&fake, &options).err().unwrap().to_string();
    assert!(error.contains("login_timeout_s"), "{error}");
}

#[test]
fn a_port_of_another_protocol_is_named_at_once() {
    let scripts: [fn(&mut Peer, usize) -> io::Result<()>; 3] = [
        |peer, _| {
            peer.raw(b"SSH-2.0-Example\r\n")?;
            peer.read().and_then(|_| peer.read()).map(|_| ())
        },
        |peer, _| {
            peer.read()?;
            peer.raw(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html></html>")
        },
        |peer, _| peer.read().map(|_| ()),
    ];
    for (script, words) in
        scripts.into_iter().zip(["it sent text", "it sent text", "it closed the connection"])
    {
        let fake = Fake::start(script);
        let options = SessionOptions { login_timeout_s: 60.0, ..options() };
        let began_ns = system::now_ns();
        let error = discover(&fake.addr.to_string(), &options, &Credentials::default()).err().unwrap();
        assert!(system::now_ns() - began_ns < 30_000_000_000, "it did not wait for the timeout");
        assert_eq!(error.blame(), Blame::Peer);
        let message = error.to_string();
        for part in [&fake.addr.to_string(), words, "port of an iSCSI portal (usually port 3260)"] {
            assert!(message.contains(part), "{message}");
        }
    }
}

#[test]
fn a_refused_login_says_why_and_blames_the_user() {
    let fake = Fake::start(|peer, _| {
        let (Request::Login(login), _) = peer.read()? else { return Ok(()) };
        peer.login_reply(&login, LoginStatus::NOT_FOUND, "")
    });
    let error = open_with(&fake, &options()).err().unwrap();
    assert_eq!(error.blame(), Blame::User);
    assert!(error.to_string().contains("target not found"), "{error}");
}

#[test]
fn a_redirection_is_followed_and_a_loop_of_them_ends() {
    let good = Fake::start(|peer, _| {
        peer.login()?;
        peer.serve()
    });
    let to = good.addr;
    let moved = Fake::start(move |peer, _| {
        let (Request::Login(login), _) = peer.read()? else { return Ok(()) };
        peer.login_reply(&login, LoginStatus::MOVED_TEMPORARILY, &format!("TargetAddress={to},1\0"))
    });
    let disk = open(&moved);
    assert_eq!(disk.session_facts().unwrap().peer_addr, to);

    let endless = Fake::start(|peer, _| {
        let (Request::Login(login), _) = peer.read()? else { return Ok(()) };
        let here = peer.local_addr();
        peer.login_reply(&login, LoginStatus::MOVED_TEMPORARILY, &format!("TargetAddress={here},1\0"))
    });
    let error = open_with(&endless, &options()).err().unwrap().to_string();
    assert!(error.contains("redirects"), "{error}");
}

#[test]
fn data_with_a_wrong_number_is_not_believed() {
    read_survives(|peer, command| {
        let pdu = peer.last_data(command.itt, 3, 0, 4096, Residual::None);
        peer.send(&Response::DataIn(pdu), &[0xee; 4096])
    });
}

#[test]
fn data_beyond_the_request_is_not_believed() {
    read_survives(|peer, command| {
        let pdu = peer.last_data(command.itt, 0, 0, 8192, Residual::None);
        peer.send(&Response::DataIn(pdu), &[0xee; 8192])
    });
}

#[test]
fn data_for_an_unknown_command_is_not_believed() {
    read_survives(|peer, command| {
        let pdu = peer.last_data(command.itt ^ 0x5555, 0, 0, 4096, Residual::None);
        peer.send(&Response::DataIn(pdu), &[0xee; 4096])
    });
}

#[test]
fn a_segment_longer_than_declared_is_refused_before_it_comes() {
    read_survives(|peer, command| {
        let mut pdu = peer.last_data(command.itt, 0, 0, 0, Residual::None);
        pdu.data_len = (1 << 24) - 1;
        let mut bhs = [0; BHS_BYTES];
        pdu.emit(&mut bhs);
        peer.raw(&bhs)
    });
}

#[test]
fn a_status_number_out_of_turn_ends_the_connection() {
    read_survives(|peer, command| {
        peer.sn.stat_sn += 5;
        peer.good(command.itt)
    });
}

#[test]
fn a_connection_that_ends_inside_a_pdu_is_mended() {
    read_survives(|peer, command| {
        let pdu = peer.last_data(command.itt, 0, 0, 4096, Residual::None);
        let mut bhs = [0; BHS_BYTES];
        pdu.emit(&mut bhs);
        peer.raw(&bhs)?;
        peer.raw(&[0xee; 1000])?;
        Err(io::ErrorKind::BrokenPipe.into())
    });
}

#[test]
fn a_request_for_data_beyond_the_write_is_not_served() {
    let fake = Fake::start(|peer, n| {
        peer.login()?;
        if n == 0 {
            let (request, _) = peer.serve_until(is(WRITE))?;
            let sn = peer.sn;
            let (lun, itt, ttt) = (Lun(0), scsi(&request).itt, 9);
            let r2t = R2t { lun, itt, ttt, sn, r2t_sn: 0, buffer_offset: 4096, desired_len: 65536 };
            peer.send(&Response::R2t(r2t), &[])?;
        }
        peer.serve()
    });
    open(&fake).write(0, &[7; 4096]).unwrap();
    assert!(fake.disk.lock().unwrap()[..4096].iter().all(|byte| *byte == 7));
}

#[test]
fn more_requests_for_data_than_agreed_are_not_served() {
    let served = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&served);
    let fake = Fake::start(move |peer, n| {
        if n > 0 {
            peer.login()?;
            return peer.serve();
        }
        peer.login_with(|pair| match pair.split_once('=') {
            Some(("ImmediateData", _)) => "ImmediateData=No".into(),
            Some(("InitialR2T", _)) => "InitialR2T=Yes".into(),
            Some(("MaxOutstandingR2T", _)) => "MaxOutstandingR2T=1".into(),
            _ => pair.into(),
        })?;
        let (request, _) = peer.serve_until(is(WRITE))?;
        let (lun, itt, ttt, sn) = (Lun(0), scsi(&request).itt, 9, peer.sn);
        // In one piece, so that no data can be on its way before the second.
        let both: Vec<u8> = (0..2)
            .flat_map(|r2t_sn| {
                let mut bhs = [0; BHS_BYTES];
                R2t { lun, itt, ttt, sn, r2t_sn, buffer_offset: 2048 * r2t_sn, desired_len: 2048 }
                    .emit(&mut bhs);
                bhs
            })
            .collect();
        peer.raw(&both)?;
        seen.store(peer.read().is_ok(), Relaxed);
        Ok(())
    });
    open(&fake).write(0, &[7; 4096]).unwrap();
    assert!(!served.load(Relaxed), "nothing was sent to a target whose state is unknown");
    assert!(fake.disk.lock().unwrap()[..4096].iter().all(|byte| *byte == 7));
}

#[test]
fn sense_data_that_is_short_or_has_a_false_length() {
    for sense in [&[][..], &[0], &[0xff, 0xff], &[0, 18], &[0, 18, 0x70], &[0, 1, 0x70, 0, 5]] {
        let fake = Fake::start(move |peer, _| {
            peer.login()?;
            let (request, _) = peer.serve_until(is(READ))?;
            peer.check(scsi(&request).itt, sense)?;
            peer.serve()
        });
        let error = open(&fake).read(0, &mut [0; 512]).unwrap_err();
        let expected = IoError::CheckCondition(SenseCode::default());
        assert!(matches!(error, ToolError::Io { error, .. } if error == expected), "{sense:?}: {error}");
    }
}

#[test]
fn a_read_that_ends_short_is_an_error() {
    let fake = Fake::start(|peer, _| {
        peer.login()?;
        let (request, _) = peer.serve_until(is(READ))?;
        peer.data_in(&scsi(&request), &[0; 1024])?;
        peer.serve()
    });
    let error = open(&fake).read(0, &mut [0; 4096]).unwrap_err();
    assert!(matches!(error, ToolError::Io { error: IoError::Short { missing_bytes: 3072 }, .. }), "{error}");
}

#[test]
fn a_rejected_command_fails_alone() {
    let fake = Fake::start(|peer, _| {
        peer.login()?;
        let (request, _) = peer.serve_until(is(READ))?;
        let mut header = [0; BHS_BYTES];
        request.emit(&mut header);
        let sn = peer.status();
        let reject = Reject { reason: RejectReason::InvalidPduField, sn, data_sn: 0, data_len: 48 };
        peer.send(&Response::Reject(reject), &header)?;
        peer.serve()
    });
    let mut disk = open(&fake);
    let error = disk.read(0, &mut [0; 512]).unwrap_err();
    assert!(matches!(error, ToolError::Io { error: IoError::Protocol(_), .. }), "{error}");
    disk.read(0, &mut [0; 512]).unwrap();
    assert_eq!(disk.session_facts().unwrap().logins, 1);
}

#[test]
fn pings_are_answered_with_their_lun_and_tag_and_a_storm_is_bounded() {
    let fake = Fake::start(|peer, n| {
        peer.login()?;
        let (request, _) = peer.serve_until(is(READ))?;
        let (lun, itt, sn) = (Lun(7 << 48), RESERVED_TAG, peer.sn);
        let storm = if n == 0 { 20_000 } else { 1 };
        for ttt in 0..storm {
            peer.send(&Response::NopIn(NopIn { lun, itt, ttt, sn, data_len: 0 }), &[])?;
        }
        let (pong, _) = peer.serve_until(|request| matches!(request, Request::NopOut(_)))?;
        let Request::NopOut(pong) = pong else { return Ok(()) };
        assert_eq!((pong.lun, pong.ttt, pong.itt), (lun, 0, RESERVED_TAG));
        peer.command(&scsi(&request), &[])?;
        peer.serve()
    });
    open(&fake).read(0, &mut [0; 512]).unwrap();
}

#[test]
fn a_wrong_header_digest_or_data_digest_ends_the_connection() {
    for spoil_data in [false, true] {
        let fake = Fake::start(move |peer, n| {
            peer.login()?;
            peer.use_digests();
            if n == 0 {
                let (request, _) = peer.serve_until(is(READ))?;
                let pdu = peer.last_data(scsi(&request).itt, 0, 0, 512, Residual::None);
                let (mut bhs, mut wire) = ([0; BHS_BYTES], Vec::new());
                pdu.emit(&mut bhs);
                peer.framer.write(&bhs, &[0xee; 512], &mut wire);
                let spoilt = if spoil_data { wire.len() - 1 } else { BHS_BYTES };
                wire[spoilt] ^= 1;
                peer.raw(&wire)?;
            }
            peer.serve()
        });
        let both = SessionOptions {
            header_digest: DigestChoice::Crc32c,
            data_digest: DigestChoice::Crc32c,
            ..options()
        };
        let mut disk = open_with(&fake, &both).unwrap();
        let mut back = [1; 512];
        disk.read(0, &mut back).unwrap();
        assert_eq!(back, [0; 512]);
        assert_eq!(disk.session_facts().unwrap().logins, 2, "spoil_data {spoil_data}");
    }
}

#[test]
fn a_list_of_targets_comes_in_many_pieces() {
    let names: Vec<String> = (0..200).map(|n| format!("iqn.2026-11.lab.linerate:t{n}")).collect();
    let pair = |name: &String| format!("TargetName={name}\0TargetAddress=127.0.0.1:1,1\0");
    let text = names.iter().map(pair).collect::<Vec<_>>().concat();
    let fake = Fake::start(move |peer, _| {
        peer.login()?;
        for (n, piece) in text.as_bytes().chunks(700).enumerate() {
            let (Request::Text(request), asked) = peer.read()? else { return Ok(()) };
            assert_eq!(asked.is_empty(), n > 0, "only the first request has text");
            let last = (n + 1) * 700 >= text.len();
            let sn = peer.status();
            let reply = TextResponse {
                final_pdu: last,
                cont: !last,
                lun: Lun(0),
                itt: request.itt,
                ttt: if last { RESERVED_TAG } else { 5 },
                sn,
                data_len: piece.len() as u32,
            };
            peer.send(&Response::Text(reply), piece)?;
        }
        peer.serve()
    });
    let found = discover(&fake.addr.to_string(), &options(), &Credentials::default()).unwrap();
    let listed: Vec<&str> = found.iter().map(|target| target.iqn.as_str()).collect();
    assert_eq!(listed, names);
    for target in found {
        let failure = target.failure.unwrap_or_default();
        assert!(failure.contains("cannot connect"), "{failure:?}");
    }
}

/// What the fake says about its write cache, its thin space and its blocks.
#[derive(Clone, Copy)]
struct Pages {
    caching: &'static [u8],
    space: &'static [u8],
    limits: &'static [u8],
    capacity_bytes: usize,
}

/// A portal that names one target, which is at another address.
fn portal_of(disk: &Fake) -> Fake {
    let list = format!("TargetName={IQN}\0TargetAddress={},1\0", disk.addr);
    Fake::start(move |peer, _| {
        peer.login()?;
        let (Request::Text(request), _) = peer.read()? else { return Ok(()) };
        let reply = TextResponse {
            final_pdu: true,
            cont: false,
            lun: Lun(0),
            itt: request.itt,
            ttt: RESERVED_TAG,
            sn: peer.status(),
            data_len: list.len() as u32,
        };
        peer.send(&Response::Text(reply), list.as_bytes())?;
        peer.serve()
    })
}

fn look_at(pages: Pages) -> LunInfo {
    let disk = Fake::start(move |peer, _| {
        peer.login()?;
        loop {
            let (request, data) = peer.serve_until(|request| matches!(request, Request::ScsiCommand(_)))?;
            let command = &scsi(&request);
            let mut capacity = [0xff; 32];
            capacity[8..12].copy_from_slice(&512_u32.to_be_bytes());
            match command.cdb[0] {
                0x1a => peer.data_in(command, pages.caching)?,
                0x4d => peer.data_in(command, pages.space)?,
                0x12 if command.cdb[2] == 0xb0 => peer.data_in(command, pages.limits)?,
                0x9e => peer.data_in(command, &capacity[..pages.capacity_bytes])?,
                0xa0 => peer.data_in(command, &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])?,
                _ => peer.command(command, &data)?,
            }
        }
    });
    let found = discover(&portal_of(&disk).addr.to_string(), &options(), &Credentials::default()).unwrap();
    assert_eq!(found[0].failure, None);
    found[0].luns[0].clone()
}

#[test]
fn pages_that_are_cut_or_false_tell_nothing_and_the_lun_is_still_listed() {
    let caching: &[u8] = &[23, 0, 0, 0, 0x08, 18, 0x04];
    let space: &[u8] =
        &[12, 0, 0, 24, 0, 1, 3, 8, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 3, 8, 0, 0, 0, 3, 2, 0, 0, 0];
    let limits: &[u8] = &[0, 0xb0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128];
    let good = look_at(Pages { caching, space, limits, capacity_bytes: 32 });
    assert_eq!(
        (good.write_cache, good.used_percent, good.optimal_io_bytes),
        (Some(true), Some(75), Some(65_536))
    );
    assert_eq!(
        (good.lowest_aligned_block, good.thin, good.capacity_bytes),
        (Some(0x3fff), Some(true), u64::MAX)
    );
    for cut in 0..4 {
        let pages = Pages {
            caching: &caching[..caching.len() - 1 - cut],
            space: &space[..space.len() - 4 * (cut + 1)],
            limits: &limits[..limits.len() - 4 * (cut + 1)],
            capacity_bytes: 12 + cut,
        };
        let lun = look_at(pages);
        assert_eq!(lun.failure, None);
        assert_eq!((lun.write_cache, lun.used_percent, lun.optimal_io_bytes), (None, None, None), "{cut}");
        assert_eq!(
            (lun.physical_block_bytes, lun.lowest_aligned_block, lun.thin),
            (None, None, None),
            "{cut}"
        );
    }
    let false_ones =
        Pages { caching: &[0xff; 252], space: &[0xff; 252], limits: &[0xff; 64], capacity_bytes: 32 };
    let lun = look_at(false_ones);
    assert_eq!(
        (lun.failure, lun.write_cache, lun.used_percent, lun.optimal_io_bytes),
        (None, None, None, None)
    );
}
