//! Initiators that behave badly, as threads with sockets of their own.

use crate::{
    EVIL,
    support::raw::{
        ABORT_TASK, BHS, LOGICAL_UNIT_RESET, LOGIN, LOGOUT, R2T, Raw, TARGET_WARM_RESET, Who, cdb10,
    },
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// The kind of an attack on the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    /// Data is announced on one connection and aborted from another.
    Aborts,
    /// 16 sessions with 32 reads of 256 KiB each, which never receive.
    NonReaders,
    /// 16 sessions with 32 writes of 256 KiB each; their data is requested and never sent.
    NonSenders,
    /// The same with a part of the data unsolicited.
    NonSendersUnsolicited,
    /// 200 sessions with data digests and reads of 8 MiB, which never receive.
    UnreadDigests,
    /// COMPARE AND WRITE and other commands without the last byte of their data-out.
    UnfinishedLists,
    /// Commands that wait for a write which does not end.
    StuckQueue,
    /// Complete logins as fast as possible.
    Logins,
    /// Logins that take a second for each byte.
    SlowLogins,
    /// Pings with data, answers taken.
    Pings,
    /// Pings with data, answers not taken.
    DeafPings,
    /// Resets of the unit and of the target, with writes in progress.
    Resets,
    /// Sessions that log in, read once and log out, 1,000 per second if the host can.
    Churn,
}

type Attacker = JoinHandle<u64>;

fn login(addr: SocketAddr, isid: u16, keys: &str) -> io::Result<Raw> {
    let who = Who { initiator: "iqn.2026-11.lab.linerate:evil-host", target: EVIL, isid, keys };
    Raw::login(addr, &who)
}

fn ready(addr: SocketAddr, isid: u16, keys: &str) -> io::Result<Raw> {
    let mut raw = login(addr, isid, keys)?;
    raw.clear_attention(0)?;
    raw.clear_attention(1)?;
    Ok(raw)
}

/// Starts a thread that counts its actions until `stop`.
fn attacker(stop: &Arc<AtomicBool>, run: impl FnOnce(&AtomicBool) -> u64 + Send + 'static) -> Attacker {
    let stop = Arc::clone(stop);
    thread::spawn(move || run(&stop))
}

fn rest(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
}

impl Attack {
    pub(crate) fn start(self, addr: SocketAddr, stop: &Arc<AtomicBool>) -> Vec<Attacker> {
        let several = |count: u16, run: fn(SocketAddr, u16, &AtomicBool) -> u64| {
            (0..count).map(|index| attacker(stop, move |stop| run(addr, index, stop))).collect()
        };
        match self {
            Self::Aborts => several(4, aborts),
            Self::NonReaders => several(16, does_not_read),
            Self::NonSenders => several(16, |addr, isid, stop| does_not_send(addr, isid, stop, false)),
            Self::NonSendersUnsolicited => {
                several(16, |addr, isid, stop| does_not_send(addr, isid, stop, true))
            }
            Self::UnreadDigests => several(200, does_not_read_digests),
            Self::UnfinishedLists => several(16, unfinished_lists),
            Self::StuckQueue => several(8, stuck_queue),
            Self::Logins => several(4, logins),
            Self::SlowLogins => several(200, slow_login),
            Self::Pings => several(2, pings),
            Self::DeafPings => several(16, deaf_pings),
            Self::Resets => several(4, resets),
            Self::Churn => several(8, churn),
        }
    }

    /// Least number of actions for a valid attack.
    pub(crate) fn least_acts(self) -> u64 {
        match self {
            Self::NonReaders => 16 * 32,
            Self::NonSenders | Self::NonSendersUnsolicited => 16 * 8,
            Self::UnreadDigests | Self::SlowLogins => 200,
            Self::UnfinishedLists | Self::StuckQueue => 8,
            Self::Aborts | Self::Logins | Self::Pings | Self::DeafPings | Self::Resets | Self::Churn => 100,
        }
    }
}

/// Repeats a login after the array has dropped the session.
fn again<T>(stop: &AtomicBool, mut act: impl FnMut() -> io::Result<T>) -> u64 {
    let mut count = 0;
    while !stop.load(Relaxed) {
        match act() {
            Ok(_) => count += 1,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
    count
}

fn aborts(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    const KEYS: &str = "MaxConnections=4\0InitialR2T=Yes\0ImmediateData=No\0";
    const LEN: u32 = 65_536;
    let mut first = ready(addr, isid, KEYS).unwrap();
    let who = Who { initiator: "iqn.2026-11.lab.linerate:evil-host", target: EVIL, isid, keys: KEYS };
    let mut second = first.add(addr, &who, 1).unwrap();
    again(stop, || {
        second.cmd_sn = first.cmd_sn;
        let lun = (first.cmd_sn % 2) as u8;
        let bhs = second.command(lun, &cdb10(0x2a, 0, LEN), 0, LEN);
        first.cmd_sn = second.cmd_sn;
        second.send(bhs, &[])?;
        let r2t = loop {
            let pdu = second.receive()?;
            if pdu.opcode() == R2T {
                break pdu;
            }
        };
        let mut out = second.data_out(&r2t, 0, 0, true);
        out[5..8].copy_from_slice(&LEN.to_be_bytes()[1..]);
        second.socket.write_all(&out)?;
        second.socket.write_all(&[0xEE; 1000])?;
        let abort = first.manage(ABORT_TASK, lun, r2t.itt());
        first.send(abort, &[])?;
        first.receive()?;
        second.socket.write_all(&vec![0xEE; LEN as usize - 1000])
    })
}

fn does_not_read(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    let mut raw = ready(addr, isid, "").unwrap();
    let mut count = 0;
    for number in 0..32 {
        let read = raw.command(1, &cdb10(0x28, number, 262_144), 262_144, 0);
        count += u64::from(raw.send(read, &[]).is_ok());
    }
    rest(stop);
    count
}

fn does_not_send(addr: SocketAddr, isid: u16, stop: &AtomicBool, unasked: bool) -> u64 {
    let keys = if unasked {
        "InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=262144\0"
    } else {
        "InitialR2T=Yes\0ImmediateData=No\0"
    };
    let mut raw = ready(addr, isid, keys).unwrap();
    let mut count = 0;
    for number in 0..32 {
        let mut write = raw.command(1, &cdb10(0x2a, number, 262_144), 0, 262_144);
        let data = if unasked { 4096 } else { 0 };
        if unasked {
            write[1] &= !0x80;
        }
        count += u64::from(raw.send(write, &vec![0; data]).is_ok());
    }
    rest(stop);
    count
}

fn does_not_read_digests(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    // The login itself is without digests; afterwards every PDU needs them, and no further one has data.
    let mut raw = login(addr, isid, "DataDigest=CRC32C\0MaxRecvDataSegmentLength=262144\0").unwrap();
    raw.clear_attention_with_digests(0);
    let mut count = 0;
    for _ in 0..8 {
        let read = raw.command(0, &cdb10(0x28, 0, 8 << 20), 8 << 20, 0);
        count += u64::from(raw.send(read, &[]).is_ok());
    }
    rest(stop);
    count.min(1)
}

fn unfinished_lists(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    let mut raw = ready(addr, isid, "InitialR2T=Yes\0ImmediateData=No\0").unwrap();
    let mut count = 0;
    // COMPARE AND WRITE of 255 blocks, which must arrive completely before it begins.
    let len = 2 * 255 * 512;
    for _ in 0..64 {
        let mut cdb = [0; 16];
        (cdb[0], cdb[13]) = (0x89, 255);
        let command = raw.command(0, &cdb, 0, len);
        if raw.send(command, &[]).is_err() {
            break;
        }
        let Ok(pdu) = raw.receive() else { break };
        if pdu.opcode() != R2T {
            continue;
        }
        let (offset, asked) = (pdu.word(40), pdu.word(44));
        let half = asked / 2 / 4 * 4;
        let out = raw.data_out(&pdu, 0, offset, false);
        if raw.send(out, &vec![0; half as usize]).is_err() {
            break;
        }
        count += 1;
    }
    rest(stop);
    count
}

fn stuck_queue(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    let mut raw = ready(addr, isid, "InitialR2T=Yes\0ImmediateData=Yes\0").unwrap();
    let write = raw.command(0, &cdb10(0x2a, 0, 65_536), 0, 65_536);
    raw.send(write, &[]).unwrap();
    let mut count = 0;
    for _ in 0..100 {
        let mut cdb = [0; 16];
        (cdb[0], cdb[13]) = (0x89, 1);
        let command = raw.command(0, &cdb, 0, 1024);
        count += u64::from(raw.send(command, &[0; 1024]).is_ok());
    }
    rest(stop);
    count
}

fn logins(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    let mut number = isid;
    again(stop, || {
        number = number.wrapping_add(4);
        login(addr, number, "")
    })
}

fn slow_login(addr: SocketAddr, _: u16, stop: &AtomicBool) -> u64 {
    let mut bhs = [0; BHS];
    (bhs[0], bhs[1], bhs[8]) = (0x40 | LOGIN, 0x87, 0x80);
    bhs[7] = 200;
    let mut count = 0;
    while !stop.load(Relaxed) {
        let Ok(mut socket) = TcpStream::connect(addr) else { continue };
        count = 1;
        for byte in bhs {
            if stop.load(Relaxed) || socket.write_all(&[byte]).is_err() {
                break;
            }
            let wait = std::time::Instant::now();
            while wait.elapsed() < Duration::from_secs(1) && !stop.load(Relaxed) {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    count
}

fn pings(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    let raw = ready(addr, isid, "").unwrap();
    let mut ear = raw.socket.try_clone().unwrap();
    let listener = thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while ear.read(&mut bytes).is_ok_and(|count| count > 0) {}
    });
    let count = flood(raw, stop);
    listener.join().unwrap();
    count
}

fn deaf_pings(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    let raw = ready(addr, isid, "").unwrap();
    raw.socket.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    flood(raw, stop)
}

fn flood(mut raw: Raw, stop: &AtomicBool) -> u64 {
    let data = vec![0x55; 4096];
    let mut count = 0;
    while !stop.load(Relaxed) {
        let ping = raw.ping();
        match raw.send(ping, &data) {
            Ok(()) => count += 1,
            // Only half of a ping was sent; nothing more can follow.
            Err(_) => rest(stop),
        }
    }
    let _ = raw.socket.shutdown(std::net::Shutdown::Both);
    count
}

fn resets(addr: SocketAddr, isid: u16, stop: &AtomicBool) -> u64 {
    // The others send resets meanwhile, so a unit attention may always be pending.
    let mut raw = login(addr, isid, "InitialR2T=Yes\0ImmediateData=No\0").unwrap();
    let mut number = 0;
    again(stop, || {
        number += 1;
        let lun = (number % 2) as u8;
        let write = raw.command(lun, &cdb10(0x2a, 0, 65_536), 0, 65_536);
        raw.send(write, &[])?;
        let function = if number % 8 == 0 { TARGET_WARM_RESET } else { LOGICAL_UNIT_RESET };
        let reset = raw.manage(function, lun, u32::MAX);
        let itt = u32::from_be_bytes(reset[16..20].try_into().unwrap());
        raw.send(reset, &[])?;
        while raw.receive()?.itt() != itt {}
        Ok(())
    })
}

fn churn(addr: SocketAddr, index: u16, stop: &AtomicBool) -> u64 {
    let mut number = index;
    again(stop, || {
        number = number.wrapping_add(8);
        let mut raw = login(addr, number, "")?;
        raw.clear_attention(0)?;
        raw.read(0, 0, 4096)?;
        let logout = raw.request(0x40 | LOGOUT, 0x80, 0);
        raw.send(logout, &[])?;
        raw.receive()
    })
}
