//! A receive owns its memory: the end of a task does not free memory that a peer can still write to, and a task that
//! was reported as ended changes nothing any more.

use crate::support::{
    raw::{
        ABORT_TASK, ABORT_TASK_SET, CLEAR_TASK_SET, LOGICAL_UNIT_RESET, Pdu, R2T, Raw, TARGET_WARM_RESET,
        TASK_MANAGEMENT_RESPONSE, Who, cdb10,
    },
    wait_for,
};
use linerate_iscsi_target::{Array, ArrayConfig};
use std::{io::Write, net::SocketAddr, time::Duration};

const LEN: u32 = 65_536;
const KEYS: &str = "MaxConnections=4\0InitialR2T=Yes\0ImmediateData=No\0";
const EVIL: &str = "iqn.2026-11.lab.linerate:evil";
const HONEST: &str = "iqn.2026-11.lab.linerate:honest";
const DRIVERS: [&str; 2] = ["epoll", "auto"];

/// An array of two targets with one volume each, on one worker.
fn array(driver: &str, dir: Option<&tempfile::TempDir>) -> Array {
    let volume = |name: &str| {
        let kind = match dir {
            Some(dir) => format!(r#""kind": "file", "path": "{}""#, dir.path().join(name).display()),
            None => r#""kind": "memory""#.into(),
        };
        format!(
            r#"{{"name": "iqn.2026-11.lab.linerate:{name}",
                "volumes": [{{"lun": 0, "name": "{name}", "size_bytes": 16777216, {kind}}}]}}"#
        )
    };
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "driver": "{driver}", "workers": 1,
            "targets": [{}, {}]}}"#,
        volume("evil"),
        volume("honest")
    );
    let config: ArrayConfig = serde_json::from_str(&json).unwrap();
    Array::start(config).unwrap()
}

fn login(addr: SocketAddr, target: &str, isid: u16) -> Raw {
    let who = Who { initiator: "iqn.2026-11.lab.linerate:host", target, isid, keys: KEYS };
    let mut raw = Raw::login(addr, &who).unwrap();
    raw.clear_attention(0).unwrap();
    raw
}

/// A second connection of the session of `first`.
fn second(first: &Raw, addr: SocketAddr, target: &str, isid: u16) -> Raw {
    let who = Who { initiator: "iqn.2026-11.lab.linerate:host", target, isid, keys: KEYS };
    first.add(addr, &who, 1).unwrap()
}

/// Begins a write of `LEN` bytes at block 0 and waits for its R2T.
fn begin_write(raw: &mut Raw) -> Pdu {
    let bhs = raw.command(0, &cdb10(0x2a, 0, LEN), 0, LEN);
    raw.send(bhs, &[]).unwrap();
    let r2t = raw.receive().unwrap();
    assert_eq!((r2t.opcode(), r2t.word(44)), (R2T, LEN));
    r2t
}

/// Announces all the data of a write, and does not send it.
fn announce(raw: &mut Raw, r2t: &Pdu) {
    let mut bhs = raw.data_out(r2t, 0, 0, true);
    bhs[5..8].copy_from_slice(&LEN.to_be_bytes()[1..]);
    raw.socket.write_all(&bhs).unwrap();
    // The array has read the header, and waits for the rest.
    std::thread::sleep(Duration::from_millis(50));
}

/// Sends a task management function and waits for its answer.
fn manage(raw: &mut Raw, function: u8, itt: u32) {
    let bhs = raw.manage(function, 0, itt);
    raw.send(bhs, &[]).unwrap();
    let answer = raw.receive().unwrap();
    assert_eq!((answer.opcode(), answer.bhs[2]), (TASK_MANAGEMENT_RESPONSE, 0), "function complete");
}

#[test]
fn an_aborted_write_cannot_reach_the_buffers_of_another_session() {
    let dir = tempfile::tempdir().unwrap();
    for driver in DRIVERS {
        let array = array(driver, Some(&dir));
        let addr = array.portals()[0];
        let mut first = login(addr, EVIL, 1);
        let mut evil = second(&first, addr, EVIL, 1);
        let mut honest = login(addr, HONEST, 2);
        for round in 0..5 {
            evil.cmd_sn = first.cmd_sn;
            let r2t = begin_write(&mut evil);
            first.cmd_sn = evil.cmd_sn;
            announce(&mut evil, &r2t);
            manage(&mut first, ABORT_TASK, r2t.itt());

            let fill = vec![0x11 + round; LEN as usize];
            let asked = begin_write(&mut honest);
            let half = LEN as usize / 2;
            let out = honest.data_out(&asked, 0, 0, false);
            honest.send(out, &fill[..half]).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            evil.socket.write_all(&vec![0xEE; LEN as usize]).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let out = honest.data_out(&asked, 1, half as u32, true);
            honest.send(out, &fill[half..]).unwrap();
            assert_eq!(honest.receive().unwrap().status(), Some(0));
            assert!(honest.read(0, 0, LEN).unwrap() == fill, "{driver}: bytes of another session");
        }
        assert!(first.read(0, 0, LEN).unwrap().iter().all(|&byte| byte == 0), "{driver}: aborted");
        wait_for(&array, "all is given back", |stats| stats.tasks == 0 && stats.pool_bytes == 0);
    }
}

#[test]
fn an_answered_task_management_function_means_that_nothing_lands_any_more() {
    for driver in DRIVERS {
        let array = array(driver, None);
        let addr = array.portals()[0];
        let mut first = login(addr, EVIL, 1);
        let mut writer = second(&first, addr, EVIL, 1);
        for function in [ABORT_TASK, ABORT_TASK_SET, CLEAR_TASK_SET, LOGICAL_UNIT_RESET, TARGET_WARM_RESET] {
            writer.cmd_sn = first.cmd_sn;
            let r2t = begin_write(&mut writer);
            first.cmd_sn = writer.cmd_sn;
            announce(&mut writer, &r2t);
            manage(&mut first, function, r2t.itt());
            let _ = first.clear_attention(0);
            writer.cmd_sn = first.cmd_sn;
            writer.socket.write_all(&vec![function; LEN as usize]).unwrap();
            std::thread::sleep(Duration::from_millis(30));
            let after = first.read(0, 0, LEN).unwrap();
            assert!(after.iter().all(|&byte| byte == 0), "{driver}: function {function}");
        }
        wait_for(&array, "all is given back", |stats| stats.tasks == 0);
    }
}

/// VERIFY needs no data, but an initiator may send some; it arrives while the volume is read.
#[test]
fn data_that_nobody_asked_for_disturbs_no_operation() {
    let dir = tempfile::tempdir().unwrap();
    for driver in DRIVERS {
        let array = array(driver, Some(&dir));
        let who = Who {
            initiator: "iqn.2026-11.lab.linerate:host",
            target: EVIL,
            isid: 1,
            keys: "InitialR2T=No\0ImmediateData=Yes\0",
        };
        let mut raw = Raw::login(array.portals()[0], &who).unwrap();
        raw.clear_attention(0).unwrap();
        for _ in 0..50 {
            let mut verify = raw.command(0, &cdb10(0x2f, 0, 8 << 20), 0, 512);
            verify[1] &= !0x80;
            let mut out = [0; 48];
            (out[0], out[1]) = (0x05, 0x80);
            out[16..20].copy_from_slice(&verify[16..20]);
            out[20..24].copy_from_slice(&u32::MAX.to_be_bytes());
            raw.send(verify, &[]).unwrap();
            raw.send(out, &[0xEE; 512]).unwrap();
            assert_eq!(raw.receive().unwrap().status(), Some(0), "{driver}");
        }
        wait_for(&array, "all is given back", |stats| stats.tasks == 0 && stats.pool_bytes == 0);
    }
}

#[test]
fn a_reset_by_another_session_means_the_same() {
    for driver in DRIVERS {
        for workers in [1, 3] {
            let json = format!(
                r#"{{"portals": ["127.0.0.1:0"], "driver": "{driver}", "workers": {workers}, "targets": [
                    {{"name": "{EVIL}", "volumes": [
                        {{"lun": 0, "name": "v", "kind": "memory", "size_bytes": 16777216}}]}}]}}"#
            );
            let array = Array::start(serde_json::from_str(&json).unwrap()).unwrap();
            let addr = array.portals()[0];
            let mut writers: Vec<_> = (0..4).map(|isid| login(addr, EVIL, isid)).collect();
            let mut other = login(addr, EVIL, 9);
            for function in [CLEAR_TASK_SET, LOGICAL_UNIT_RESET, TARGET_WARM_RESET] {
                for writer in &mut writers {
                    let r2t = begin_write(writer);
                    announce(writer, &r2t);
                }
                manage(&mut other, function, u32::MAX);
                let _ = other.clear_attention(0);
                for writer in &mut writers {
                    writer.socket.write_all(&vec![function; LEN as usize]).unwrap();
                }
                std::thread::sleep(Duration::from_millis(30));
                let after = other.read(0, 0, LEN).unwrap();
                assert!(after.iter().all(|&byte| byte == 0), "{driver}: function {function}");
                for writer in &mut writers {
                    writer.clear_attention(0).unwrap();
                }
            }
            wait_for(&array, "all is given back", |stats| stats.tasks == 0);
        }
    }
}
