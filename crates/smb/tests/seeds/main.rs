//! The client against Samba's smbd under faults of every kind, by seed.
//!
//! A seed has a file and a few sessions on it. Each session takes a dialect and a protection at random, and ends in one
//! of the ways of [`session::End`]: closed, closed or dropped with I/Os in flight, connection cut at any byte, answers
//! held back until requests are cancelled, server killed. In one half of the sessions the client restores a connection
//! that was cut, several times, and finds a server that was killed and started again. Some sessions have several channels.
//! What must hold:
//!
//! - Read data are right, and no byte beside them is changed.
//! - Every I/O ends once and in time, with an error that the fault explains. If connections are restored, only requests
//!   that were held back for too long end with an error.
//! - A write that the server has acknowledged is in the file after each session. A killed smbd loses none of them,
//!   flushed or not: the host's kernel keeps them. A power cut of the server is another matter, and is not tried here.
//! - A write without an answer has changed nothing but its own bytes.
//!
//! `make smb RUNS=n` runs many seeds, `make smb SEED=n` replays one. Threads and the server's processes make a replay
//! similar, not equal.

#![allow(clippy::unwrap_used, reason = "a test's unwrap is an assertion")]

mod model;
#[path = "../peers/mod.rs"]
mod peers;
mod relay;
mod session;
mod tally;

use linerate_io::{Preference, open_driver, with_driver};
use linerate_sim::{Rng, for_each_seed};
use linerate_smb::wire::negotiate::Dialect;
use linerate_smb::{EncryptionChoice, SigningChoice, SmbOptions};
use model::Model;
use peers::Samba;
use session::{Course, Defect, End, FILE_BYTES, Session};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use tally::Tally;

const SEEDS: u64 = 40;
/// A seed that takes longer hangs.
const SEED_LIMIT: Duration = Duration::from_secs(120);

/// A dialect, with a protection and a number of channels that it has.
fn random_way(rng: &mut Rng) -> SmbOptions {
    use EncryptionChoice::{Aes128Ccm, Aes128Gcm, Aes256Ccm, Aes256Gcm, Auto, Off};
    let signings = [SigningChoice::Off, SigningChoice::On, SigningChoice::Auto];
    let ciphers = [Off, Auto, Auto, Aes128Ccm, Aes128Gcm, Aes256Ccm, Aes256Gcm];
    let channels = if rng.chance(30) { rng.range(2, 4) as u16 } else { 1 };
    loop {
        let way = SmbOptions {
            channels,
            dialect: Some(Dialect::ALL[rng.range(0, Dialect::ALL.len() as u64 - 1) as usize]),
            signing: signings[rng.range(0, 2) as usize],
            encryption: ciphers[rng.range(0, 6) as usize],
            ..SmbOptions::default()
        };
        if way.check().is_ok() {
            return way;
        }
    }
}

/// Tells what was tried when a test panics.
struct SaidOnPanic(String);

impl Drop for SaidOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

fn run_seed(samba: &mut Samba, seed: u64, defect: Option<Defect>) -> Tally {
    let mut rng = Rng::new(seed);
    let mut tally = Tally::default();
    let name = format!("seed-{seed}.img");
    let path = samba.path(&name);
    std::fs::write(&path, vec![0; FILE_BYTES]).unwrap();
    let mut model = Model::new(FILE_BYTES);
    for number in 0..rng.range(2, 4) {
        let (way, reconnects) = (random_way(&mut rng), rng.chance(50));
        let course = Course { end: End::of(&mut rng, reconnects), reconnects, way, defect };
        let what = format!("seed {seed}, session {number}: {course:?}");
        let preference = if rng.chance(50) { Preference::Auto } else { Preference::Epoll };
        let port = samba.port;
        let url = |port| format!("smb://127.0.0.1:{port}/share/{name}");
        let account = (Samba::USER, Samba::PASSWORD);
        let mut kill = || {
            samba.kill();
            if reconnects {
                samba.start_again();
            }
        };
        let said = SaidOnPanic(what);
        with_driver!(open_driver(preference).unwrap(), |driver| {
            let session = Session::new(driver, &mut rng, &mut model, &mut tally, course);
            session.run(url, port, account, &mut kill);
        });
        samba.wait_until_connections_ended();
        let wrong = model.settle(&std::fs::read(&path).unwrap());
        assert_eq!(wrong, None, "a byte of the file is neither what was written nor what was there before");
        drop(said);
        samba.start_if_killed();
    }
    std::fs::remove_file(path).unwrap();
    tally
}

/// Runs a seed in a thread of its own, since a client that hangs returns to no check.
fn run_within_limit(mut samba: Samba, seed: u64) -> (Samba, Tally) {
    let daemon = samba.id();
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || {
        let tally = run_seed(&mut samba, seed, None);
        let _ = sender.send((samba, tally));
    });
    match receiver.recv_timeout(SEED_LIMIT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Disconnected) => resume_unwind(thread.join().unwrap_err()),
        Err(RecvTimeoutError::Timeout) => {
            peers::kill_group(daemon);
            panic!("seed {seed} hangs");
        }
    }
}

#[test]
fn no_fault_loses_an_acknowledged_write_or_an_answer() {
    let Some(samba) = Samba::start("") else { return };
    let (mut samba, mut total) = (Some(samba), Tally::default());
    let is_full = for_each_seed(SEEDS, |seed| {
        let (own, tally) = run_within_limit(samba.take().unwrap(), seed);
        samba = Some(own);
        total += tally;
    });
    eprintln!("{total:?}");
    if is_full {
        assert!(total.has_all(), "a kind of fault was not met: {total:?}");
    }
}

/// The defect is in every session. A seed whose sessions end early may not meet it.
#[test]
fn a_client_that_drops_a_write_or_reads_a_neighbour_is_noticed() {
    const SEEDS_OF_DEFECT: u64 = 4;
    let Some(mut samba) = Samba::start("") else { return };
    for defect in [Defect::DroppedWrite, Defect::NeighbourRead] {
        let mut noticed = 0;
        for seed in 0..SEEDS_OF_DEFECT {
            let run = AssertUnwindSafe(|| run_seed(&mut samba, seed, Some(defect)));
            noticed += u64::from(catch_unwind(run).is_err());
            samba.start_if_killed();
        }
        assert!(noticed > 0, "{defect:?}");
    }
}
