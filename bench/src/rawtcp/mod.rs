//! The raw TCP limit: the bytes of an iSCSI session without iSCSI.
//!
//! A read is a 48-byte request, answered by 48 bytes and the data; a write is a 48-byte request and the data, answered by
//! 48 bytes. That is what iSCSI moves when status rides in the last Data-In and write data is immediate. Both sides do
//! as little as can be done and as many requests per system call as there are: the server sends read data from one
//! memory region by gather list and receives write data into it (long data straight from the socket, short data by one
//! copy out of the receive buffer), the client forgets read data and sends write data from memory.
//!
//! Waiting: `block` sleeps in `recv` while there is one connection and in `epoll_wait` when there are several; `spin`
//! never sleeps. The fastest way for each case was kept, because this is the number that others are divided by.

mod client;
mod connection;
mod server;

pub use client::{ClientOptions, ClientReport, run_client};
pub use server::{Server, ServerOptions};

/// Bytes of a request and of a response header: an iSCSI basic header segment.
pub const HEADER_BYTES: usize = 48;

/// How a side waits for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Sleep until there is something to do.
    Block,
    /// Ask again and again.
    Spin,
}

impl std::str::FromStr for Waiting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "block" => Ok(Self::Block),
            "spin" => Ok(Self::Spin),
            _ => Err(format!("{text:?}: expected block or spin")),
        }
    }
}

/// One request, and the header of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) write: bool,
    pub(crate) len_bytes: u32,
    pub(crate) tag: u32,
    pub(crate) offset_bytes: u64,
}

impl Request {
    pub(crate) fn emit(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = u8::from(self.write);
        bytes[4..8].copy_from_slice(&self.len_bytes.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.tag.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset_bytes.to_be_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self {
            write: bytes[0] == 1,
            len_bytes: word(4),
            tag: word(8),
            offset_bytes: u64::from(word(16)) << 32 | u64::from(word(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_request_survives_the_wire() {
        let request = Request { write: true, len_bytes: 4096, tag: 77, offset_bytes: 0x1_2345_6789 };
        assert_eq!(Request::parse(&request.emit()), request);
    }

    #[test]
    fn client_and_server_move_what_was_asked() {
        let slow = Duration::from_micros(20);
        for (read_percent, len, connections, waiting, work) in [
            (100, 4096, 1, Waiting::Block, Duration::ZERO),
            (0, 262_144, 1, Waiting::Block, Duration::ZERO),
            (50, 8192, 1, Waiting::Block, slow),
            (67, 8192, 3, Waiting::Spin, Duration::ZERO),
        ] {
            let server =
                Server::bind(&ServerOptions { port: 0, region_bytes: 1 << 20, waiting, work }).unwrap();
            let port = server.port();
            let serving = std::thread::spawn(move || server.serve(connections));
            let options = ClientOptions {
                port,
                connections,
                depth: 4,
                len_bytes: len,
                own_buffers: waiting == Waiting::Block,
                read_percent,
                region_bytes: 1 << 20,
                seconds: 0.05,
                waiting,
            };
            let report = run_client(&options).unwrap();
            assert!(report.ios > 0);
            serving.join().unwrap().unwrap();
        }
    }
}
