//! Writes of a lost connection that a server of dialect 3.0 does late, and the same writes sent again.

use crate::fake::sequence::OpenSequence;
use crate::fake::{Asked, Fake, Peer};
use linerate_smb::wire::header::SmbCommand;
use linerate_smb::wire::negotiate::Dialect;
use linerate_smb::wire::status::Status;
use linerate_smb::{SmbDisk, SmbOptions, SmbToolError};
use std::io;
use std::sync::{Arc, Mutex};

const LEN: usize = 4096;

/// A request of the file as the server got it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    command: u16,
    sequence: u16,
    is_replay: bool,
    status: Status,
}

/// The server's state over all connections.
#[derive(Default)]
struct Server {
    sequence: OpenSequence,
    /// The write that the first connection leaves behind.
    late: Option<Asked>,
    has_lost_one: bool,
    seen: Vec<Seen>,
}

impl Server {
    fn begin(&mut self, asked: &Asked) -> bool {
        let begins = self.sequence.begin(asked);
        let status = if begins { Status::SUCCESS } else { Status::FILE_NOT_AVAILABLE };
        let (sequence, is_replay) = (asked.header.channel_sequence(), asked.header.is_replay());
        self.seen.push(Seen { command: asked.command(), sequence, is_replay, status });
        begins
    }

    fn serve(&mut self, peer: &mut Peer, asked: &Asked) -> io::Result<bool> {
        let begins = self.begin(asked);
        if begins {
            let bytes = peer.answer(asked)?;
            self.sequence.end(asked);
            peer.raw(&bytes)?;
        } else {
            peer.refuse(asked, Status::FILE_NOT_AVAILABLE)?;
        }
        Ok(begins)
    }
}

/// When the server gets to the write that its first connection left behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Late {
    /// It was in work when the connection ended, and ends after a refused write.
    InWork,
    /// It arrives when the second connection has written twice.
    Arrives,
}

fn start(late: Late, dialect: u16) -> (Fake, Arc<Mutex<Server>>) {
    let server = Arc::new(Mutex::new(Server::default()));
    let own = Arc::clone(&server);
    let fake = Fake::start(move |peer| {
        (peer.dialect, peer.durable) = (dialect, dialect >= 0x300);
        peer.log_on()?;
        let mut writes = 0;
        loop {
            let asked = peer.read()?;
            let mut server = own.lock().unwrap();
            if asked.command() == SmbCommand::Write as u16 {
                writes += 1;
                if !std::mem::replace(&mut server.has_lost_one, true) {
                    if late == Late::InWork {
                        assert!(server.begin(&asked), "the first write is refused");
                    }
                    server.late = Some(asked);
                    return Ok(());
                }
            }
            let begins = server.serve(peer, &asked)?;
            let is_due = if late == Late::InWork { !begins } else { writes == 2 };
            if is_due && let Some(asked) = server.late.take() {
                if late == Late::InWork {
                    peer.answer(&asked)?;
                    server.sequence.end(&asked);
                } else if server.begin(&asked) {
                    peer.answer(&asked)?;
                }
            }
        }
    });
    (fake, server)
}

/// Writes twice to one place; the connection is lost during the first write.
fn write_twice(fake: &Fake, dialect: Dialect) -> Result<(), SmbToolError> {
    let way = SmbOptions {
        dialect: Some(dialect),
        command_timeout_s: 2.0,
        replacement_timeout_s: 5.0,
        ..SmbOptions::default()
    };
    let mut disk: SmbDisk<_> = fake.open(&way)?;
    disk.write(0, &[1; LEN])?;
    disk.write(0, &[2; LEN])
}

fn seen(command: SmbCommand, sequence: u16, is_replay: bool, status: Status) -> Seen {
    Seen { command: command as u16, sequence, is_replay, status }
}

#[test]
fn a_write_of_the_lost_connection_that_arrives_late_is_refused() {
    let (fake, server) = start(Late::Arrives, 0x300);
    write_twice(&fake, Dialect::Smb300).unwrap();
    assert!(fake.disk.lock().unwrap()[..LEN] == [2; LEN], "the late write overwrote a later one");
    let expected = [
        seen(SmbCommand::QueryInfo, 1, false, Status::SUCCESS),
        seen(SmbCommand::Write, 1, true, Status::SUCCESS),
        seen(SmbCommand::Write, 1, false, Status::SUCCESS),
        seen(SmbCommand::Write, 0, false, Status::FILE_NOT_AVAILABLE),
    ];
    assert_eq!(server.lock().unwrap().seen[..4], expected);
}

#[test]
fn a_write_that_is_sent_again_waits_for_the_one_that_is_still_in_work() {
    let (fake, server) = start(Late::InWork, 0x300);
    write_twice(&fake, Dialect::Smb300).unwrap();
    assert!(fake.disk.lock().unwrap()[..LEN] == [2; LEN], "the earlier write overwrote a later one");
    let expected = [
        seen(SmbCommand::Write, 0, false, Status::SUCCESS),
        seen(SmbCommand::QueryInfo, 1, false, Status::SUCCESS),
        seen(SmbCommand::Write, 1, true, Status::FILE_NOT_AVAILABLE),
        seen(SmbCommand::Write, 1, true, Status::SUCCESS),
        seen(SmbCommand::Write, 1, false, Status::SUCCESS),
    ];
    assert_eq!(server.lock().unwrap().seen[..5], expected);
}

#[test]
fn a_server_that_refuses_a_write_for_ever_ends_it() {
    let connections = Mutex::new(0);
    let fake = Fake::start(move |peer| {
        (peer.dialect, peer.durable) = (0x300, true);
        peer.log_on()?;
        let number = std::mem::replace(&mut *connections.lock().unwrap(), 1);
        loop {
            let asked = peer.read()?;
            if asked.command() != SmbCommand::Write as u16 {
                let bytes = peer.answer(&asked)?;
                peer.raw(&bytes)?;
            } else if number == 0 {
                return Ok(());
            } else {
                peer.refuse(&asked, Status::FILE_NOT_AVAILABLE)?;
            }
        }
    });
    let error = write_twice(&fake, Dialect::Smb300).unwrap_err().to_string();
    assert!(error.contains("FILE_NOT_AVAILABLE"), "{error}");
}

#[test]
fn requests_of_dialect_2_1_have_no_sequence() {
    let (fake, server) = start(Late::Arrives, 0x210);
    write_twice(&fake, Dialect::Smb210).unwrap();
    let server = server.lock().unwrap();
    assert!(server.seen.iter().all(|seen| seen.sequence == 0 && !seen.is_replay), "{:?}", server.seen);
}
