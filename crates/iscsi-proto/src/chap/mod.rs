//! CHAP, the authentication method of iSCSI logins (RFC 7143 section 12.1.3, RFC 1994).
//!
//! The verifier sends an identifier and a random challenge; the other side proves that it knows the secret with
//! `hash(identifier, secret, challenge)`. [`crate::login`] runs the exchange. This folder has the arithmetic and the
//! rules: algorithms, binary values in text (`binary.rs`), credentials, comparison in constant time.

mod binary;

pub use binary::{BINARY_BYTES_MAX, BinaryError, decode, encode_base64, encode_hex};

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use sha3::Sha3_256;
use std::fmt;
use subtle::ConstantTimeEq;

/// Fewest bytes of a secret without `IPsec`: 96 bits (RFC 7143 section 9.2.1).
pub const SECRET_BYTES_MIN: usize = 12;

/// Most bytes of a secret: initiators accept no more.
pub const SECRET_BYTES_MAX: usize = 255;

/// A hash that CHAP may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// SHA3-256, `CHAP_A=8`.
    Sha3_256,
    /// SHA-256, `CHAP_A=7`.
    Sha256,
    /// SHA-1, `CHAP_A=6`.
    Sha1,
    /// MD5, `CHAP_A=5`: every implementation has it.
    Md5,
}

impl Algorithm {
    /// All of them, the best first.
    pub const ALL: [Self; 4] = [Self::Sha3_256, Self::Sha256, Self::Sha1, Self::Md5];

    /// The number in `CHAP_A` (IANA's PPP authentication algorithms).
    pub fn code(self) -> u32 {
        match self {
            Algorithm::Md5 => 5,
            Algorithm::Sha1 => 6,
            Algorithm::Sha256 => 7,
            Algorithm::Sha3_256 => 8,
        }
    }

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha3_256 => "sha3-256",
        }
    }

    /// From the number in `CHAP_A`.
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.code() == code)
    }

    /// From the name in configurations.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Length in bytes of a response, and of our challenges.
    pub fn response_len(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 | Algorithm::Sha3_256 => 32,
        }
    }

    /// The response to a challenge.
    pub fn respond(self, identifier: u8, secret: &ChapSecret, challenge: &[u8]) -> Vec<u8> {
        fn hash<D: Digest>(identifier: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
            D::new()
                .chain_update([identifier])
                .chain_update(secret)
                .chain_update(challenge)
                .finalize()
                .to_vec()
        }
        match self {
            Algorithm::Md5 => hash::<Md5>(identifier, &secret.0, challenge),
            Algorithm::Sha1 => hash::<Sha1>(identifier, &secret.0, challenge),
            Algorithm::Sha256 => hash::<Sha256>(identifier, &secret.0, challenge),
            Algorithm::Sha3_256 => hash::<Sha3_256>(identifier, &secret.0, challenge),
        }
    }

    /// True if `response` answers the challenge; takes the same time for every difference.
    pub fn verify(self, identifier: u8, secret: &ChapSecret, challenge: &[u8], response: &[u8]) -> bool {
        self.respond(identifier, secret, challenge).ct_eq(response).into()
    }
}

/// A CHAP secret. `Debug` never shows it, and it is wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct ChapSecret(Vec<u8>);

impl ChapSecret {
    /// From its bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        ChapSecret(bytes.into())
    }

    /// Whether it may protect a target (RFC 7143 section 9.2.1). A listener that has recorded one exchange can try
    /// secrets offline, so less than 96 bits need `IPsec`, which this program cannot verify.
    pub fn check(&self) -> Result<(), SecretError> {
        match self.0.len() {
            0 => Err(SecretError::Empty),
            len if len < SECRET_BYTES_MIN => Err(SecretError::Short(len)),
            len if len > SECRET_BYTES_MAX => Err(SecretError::Long(len)),
            _ => Ok(()),
        }
    }

    fn wipe(&mut self) {
        self.0.fill(0);
        // Prevents removal of the stores above as dead code.
        std::hint::black_box(&self.0);
    }
}

impl Drop for ChapSecret {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl fmt::Debug for ChapSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChapSecret(..)")
    }
}

/// A name and its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// `CHAP_N`: compared whole and literally.
    pub name: String,
    /// The secret.
    pub secret: ChapSecret,
}

/// The authentication that a side requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChapConfig {
    algorithms: Vec<Algorithm>,
    initiator: Credentials,
    target: Option<Credentials>,
}

impl ChapConfig {
    /// `algorithms` in order of preference. The initiator authenticates with `initiator`. If `target` is given, the
    /// target must authenticate too (mutual CHAP).
    pub fn new(
        algorithms: &[Algorithm],
        initiator: Credentials,
        target: Option<Credentials>,
    ) -> Result<Self, ChapConfigError> {
        if algorithms.is_empty() {
            return Err(ChapConfigError::NoAlgorithm);
        }
        if initiator.name.is_empty() || target.as_ref().is_some_and(|target| target.name.is_empty()) {
            return Err(ChapConfigError::EmptyName);
        }
        let zero = |side: &Credentials| side.name.contains('\0') || side.name.len() > 255;
        if zero(&initiator) || target.as_ref().is_some_and(zero) {
            return Err(ChapConfigError::BadName);
        }
        if target.as_ref().is_some_and(|target| target.secret == initiator.secret) {
            return Err(ChapConfigError::SameSecret);
        }
        Ok(ChapConfig { algorithms: algorithms.to_vec(), initiator, target })
    }

    /// The same with one algorithm.
    #[must_use]
    pub fn only(self, algorithm: Algorithm) -> Self {
        ChapConfig { algorithms: vec![algorithm], ..self }
    }

    /// Algorithms in order of preference.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.algorithms
    }

    /// The credentials of the initiator.
    pub fn initiator(&self) -> &Credentials {
        &self.initiator
    }

    /// The credentials of the target, with mutual CHAP.
    pub fn target(&self) -> Option<&Credentials> {
        self.target.as_ref()
    }
}

/// Why a CHAP configuration cannot be used (fault: user).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChapConfigError {
    /// No algorithm.
    #[error("CHAP needs at least one algorithm: sha3-256, sha256, sha1 or md5")]
    NoAlgorithm,
    /// An empty name.
    #[error("CHAP needs a user name")]
    EmptyName,
    /// A name that does not fit into a key's value.
    #[error("a CHAP user name has at most 255 bytes and no zero byte")]
    BadName,
    /// Both directions share a secret, which a reflection attack could use (RFC 7143 section 9.2.1).
    #[error("mutual CHAP needs different secrets for the two directions")]
    SameSecret,
}

/// A secret that does not protect a target (fault: user). Only its length is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// No bytes.
    #[error("the secret is empty; RFC 7143 (9.2.1) asks for at least 12 bytes, random ones")]
    Empty,
    /// Fewer than [`SECRET_BYTES_MIN`].
    #[error("the secret has {0} bytes; RFC 7143 (9.2.1) asks for at least 12 bytes (96 bits), random ones")]
    Short(usize),
    /// More than [`SECRET_BYTES_MAX`].
    #[error("the secret has {0} bytes; initiators take at most 255")]
    Long(usize),
}

#[cfg(test)]
mod tests {
    use super::ChapSecret;

    #[test]
    fn a_secret_is_wiped_and_never_shown() {
        let mut secret = ChapSecret::new("only the two of us know");
        assert_eq!(format!("{secret:?}"), "ChapSecret(..)");
        secret.wipe();
        assert_eq!(secret, ChapSecret::new([0; 23]));
    }
}
