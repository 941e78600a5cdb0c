//! Settings of a session, as the user asks for them. What was negotiated is in [`crate::FileFacts`].

use crate::wire::negotiate::{Cipher, Dialect};
use linerate_io::Nanos;
use schemars::JsonSchema;
use serde::Deserialize;

/// Whether messages are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SigningChoice {
    /// If the server requires it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Not; a server that requires signatures fails the logon.
    Off,
}

/// Whether messages are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EncryptionChoice {
    /// If the server or the share requires it.
    #[default]
    Auto,
    /// Not; a server or share that requires it fails the logon.
    Off,
    /// Always, with the cipher that the server prefers.
    On,
    /// AES-128-CCM
    #[serde(rename = "aes-128-ccm")]
    Aes128Ccm,
    /// AES-128-GCM
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    /// AES-256-CCM
    #[serde(rename = "aes-256-ccm")]
    Aes256Ccm,
    /// AES-256-GCM
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
}

impl EncryptionChoice {
    /// The ciphers to offer, the preferred one first.
    pub(crate) fn ciphers(self) -> Vec<Cipher> {
        match self {
            Self::Auto | Self::On => Cipher::ALL.to_vec(),
            Self::Off => Vec::new(),
            Self::Aes128Ccm => vec![Cipher::Aes128Ccm],
            Self::Aes128Gcm => vec![Cipher::Aes128Gcm],
            Self::Aes256Ccm => vec![Cipher::Aes256Ccm],
            Self::Aes256Gcm => vec![Cipher::Aes256Gcm],
        }
    }

    /// All messages must be encrypted.
    pub(crate) fn is_required(self) -> bool {
        !matches!(self, Self::Auto | Self::Off)
    }
}

/// Values of `max_io`: from one block of the load to the longest message that the protocol has.
const MAX_IO_BYTES: std::ops::RangeInclusive<u32> = 512..=8 << 20;

/// Values of `channels`.
const CHANNELS: std::ops::RangeInclusive<u16> = 1..=16;

/// Settings of one session. Times in seconds.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SmbOptions {
    /// Signatures.
    pub signing: SigningChoice,
    /// Encryption.
    pub encryption: EncryptionChoice,
    /// The only dialect that is offered; None: all from 2.1 to 3.1.1.
    pub dialect: Option<Dialect>,
    /// The longest READ and WRITE in bytes; longer I/Os are split. None: what the server permits.
    #[serde(rename = "max_io")]
    pub max_io_bytes: Option<u32>,
    /// Connections of the session of each file (multichannel).
    pub channels: u16,
    /// The server is asked to keep the file open when its connection is lost.
    pub durable: bool,
    /// Limit of TCP connect, logon and opening the file together.
    pub login_timeout_s: f64,
    /// Limit of one request; then it is cancelled, and after the same time again the connection counts as lost.
    pub command_timeout_s: f64,
    /// How long I/Os wait for a lost connection to be restored before they fail; 0: not at all.
    pub replacement_timeout_s: f64,
}

impl Default for SmbOptions {
    fn default() -> Self {
        Self {
            signing: SigningChoice::Auto,
            encryption: EncryptionChoice::Auto,
            dialect: None,
            max_io_bytes: None,
            channels: 1,
            durable: true,
            login_timeout_s: 15.0,
            command_timeout_s: 30.0,
            replacement_timeout_s: 120.0,
        }
    }
}

impl SmbOptions {
    /// Refuses values that no server can agree to.
    pub fn check(&self) -> Result<(), SmbOptionsError> {
        for (key, seconds, least) in [
            ("login_timeout_s", self.login_timeout_s, 0.001),
            ("command_timeout_s", self.command_timeout_s, 0.001),
            ("replacement_timeout_s", self.replacement_timeout_s, 0.0),
        ] {
            // A million seconds keeps every deadline far from the end of a 64-bit nanosecond clock.
            if !(least..=1e6).contains(&seconds) {
                return Err(SmbOptionsError::Time { key, seconds, least });
            }
        }
        if let Some(bytes) = self.max_io_bytes.filter(|bytes| !MAX_IO_BYTES.contains(bytes)) {
            return Err(SmbOptionsError::MaxIo(bytes));
        }
        if !CHANNELS.contains(&self.channels) {
            return Err(SmbOptionsError::Channels(self.channels));
        }
        if self.channels > 1 && self.dialect == Some(Dialect::Smb210) {
            return Err(SmbOptionsError::ChannelsOfDialect);
        }
        let is_ccm = matches!(self.encryption, EncryptionChoice::On | EncryptionChoice::Aes128Ccm);
        match self.dialect {
            Some(Dialect::Smb210) if self.encryption.is_required() => Err(SmbOptionsError::Cipher("2.1")),
            Some(Dialect::Smb300 | Dialect::Smb302) if self.encryption.is_required() && !is_ccm => {
                Err(SmbOptionsError::Cipher("3.0 and 3.0.2"))
            }
            _ => Ok(()),
        }
    }

    /// The dialects to offer.
    pub(crate) fn dialects(&self) -> Vec<Dialect> {
        self.dialect.map_or_else(|| Dialect::ALL.to_vec(), |one| vec![one])
    }
}

/// Seconds as nanoseconds.
pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

/// Options that contradict each other (fault: user).
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SmbOptionsError {
    /// A time outside its range.
    #[error("{key}: {seconds} is not between {least} and 1000000 seconds")]
    Time {
        /// The option.
        key: &'static str,
        /// Its value.
        seconds: f64,
        /// The least value.
        least: f64,
    },
    /// A length outside its range.
    #[error("max_io: {0} is not between 512 and 8388608 bytes")]
    MaxIo(u32),
    /// A number of channels outside its range.
    #[error("channels: {0} is not between 1 and 16")]
    Channels(u16),
    /// The dialect has no channels.
    #[error("channels: dialect 2.1 has only one; use a dialect of 3.0 or later, or leave channels out")]
    ChannelsOfDialect,
    /// The dialect does not have the cipher.
    #[error(
        "encryption: there is no such cipher in dialect {0}; 2.1 has none, 3.0 and 3.0.2 have aes-128-ccm"
    )]
    Cipher(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_that_a_dialect_lacks_are_refused() {
        let options = |json| serde_json::from_str::<SmbOptions>(json).unwrap();
        assert!(options(r#"{"dialect": "3.1.1", "encryption": "aes-256-gcm"}"#).check().is_ok());
        assert!(options(r#"{"dialect": "3.0", "encryption": "aes-128-ccm"}"#).check().is_ok());
        assert!(options(r#"{"dialect": "3.0", "encryption": "aes-128-gcm"}"#).check().is_err());
        assert!(options(r#"{"dialect": "2.1", "encryption": "on"}"#).check().is_err());
        assert!(options(r#"{"login_timeout_s": 0}"#).check().is_err());
        assert!(options(r#"{"replacement_timeout_s": 0}"#).check().is_ok());
        assert!(options(r#"{"replacement_timeout_s": -1}"#).check().is_err());
        assert!(options(r#"{"channels": 16}"#).check().is_ok());
        assert!(options(r#"{"channels": 0}"#).check().is_err());
        assert!(options(r#"{"channels": 17}"#).check().is_err());
        assert!(options(r#"{"channels": 2, "dialect": "2.1"}"#).check().is_err());
        assert!(options(r#"{"max_io": 65536}"#).check().is_ok());
        assert!(options(r#"{"max_io": 511}"#).check().is_err());
        assert!(options(r#"{"max_io": 8388609}"#).check().is_err());
    }
}
