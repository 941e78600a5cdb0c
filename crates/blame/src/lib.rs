//! Whose fault an error is: one type for all crates, which becomes the error's class and the exit code in Python
//! (`linerate.errors`).

use serde::Serialize;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The user: an address, an option, a file or a secret is wrong.
    User,
    /// The other side (target, initiator, partner array), or the network on the way to it.
    Peer,
    /// The machine that this runs on.
    Host,
    /// This program.
    Us,
}

impl Blame {
    /// The word in results and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Peer => "peer",
            Self::Host => "host",
            Self::Us => "us",
        }
    }
}
