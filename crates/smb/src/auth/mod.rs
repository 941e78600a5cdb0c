//! The logon: `NTLMv2` (MS-NLMP) in SPNEGO (RFC 4178). It has no clock and no randomness of its own.

mod ntlm;
mod spnego;

pub(crate) use ntlm::NtlmError;

use crate::credentials::SmbCredentials;
use crate::crypto::Key128;
use ntlm::{Challenge, NtlmClient};

/// A logon in progress.
#[derive(Debug)]
pub(crate) struct Logon {
    ntlm: NtlmClient,
}

/// The last token of the client, and the key of the session.
pub(crate) struct LogonEnd {
    /// For the server.
    pub(crate) token: Vec<u8>,
    /// The key from which all others are derived.
    pub(crate) session_key: Key128,
}

impl Logon {
    /// A logon of this user on a host; `random` is the client's challenge.
    pub(crate) fn new(credentials: SmbCredentials, host: &str, random: [u8; 8]) -> Self {
        Self { ntlm: NtlmClient::new(credentials, host, random) }
    }

    /// The first token.
    pub(crate) fn start() -> Vec<u8> {
        spnego::initial_token(&ntlm::negotiate())
    }

    /// The answer to the server's challenge.
    pub(crate) fn answer(&self, server_token: &[u8]) -> Result<LogonEnd, NtlmError> {
        let inner = spnego::response_token(server_token).ok_or(NtlmError::Spnego)?;
        let answer = self.ntlm.authenticate(&Challenge::parse(&inner)?)?;
        let mic = answer.sign(&spnego::mechanisms());
        Ok(LogonEnd { token: spnego::final_token(&answer.message, &mic), session_key: answer.session_key })
    }
}

impl std::fmt::Debug for LogonEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogonEnd(..)")
    }
}
