//! Signatures of messages (MS-SMB2 3.1.4.1, 3.1.5.1), computed over pieces, so that data need not be copied together.

use super::Key128;
use super::gmac::{Gmac, GmacKey};
use super::keys::hmac_sha256;
use crate::wire::header::SIGNATURE_AT;
use crate::wire::negotiate::SigningAlgorithm;
use aes::Aes128;
use cmac::{Cmac, KeyInit, Mac};
use hmac::Hmac;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// A signature on the wire.
pub(crate) type Signature = [u8; 16];

/// Who sends a message, as far as its signature depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The client.
    Client,
    /// The client, and the message is a CANCEL.
    ClientCancel,
    /// The server.
    Server,
}

/// The key of a session's signatures.
#[derive(Clone)]
pub(crate) struct SigningKey(Algorithm);

#[derive(Clone)]
enum Algorithm {
    Hmac(Box<Hmac<Sha256>>),
    Cmac(Box<Cmac<Aes128>>),
    Gmac(Box<GmacKey>),
}

/// A signature in progress.
#[derive(Clone)]
pub(crate) struct Signing(Progress);

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "one lives on the stack for one message; a box would allocate")]
enum Progress {
    Hmac(Hmac<Sha256>),
    Cmac(Cmac<Aes128>),
    Gmac(Gmac),
}

impl SigningKey {
    /// The key for an algorithm.
    pub(crate) fn new(algorithm: SigningAlgorithm, key: &Key128) -> Self {
        Self(match algorithm {
            SigningAlgorithm::HmacSha256 => Algorithm::Hmac(Box::new(hmac_sha256(key))),
            SigningAlgorithm::AesCmac => Algorithm::Cmac(Box::new(Cmac::new(&(*key).into()))),
            SigningAlgorithm::AesGmac => Algorithm::Gmac(Box::new(GmacKey::new(key))),
        })
    }

    /// Starts a signature with the head of a message, whose own signature counts as zeros.
    #[inline]
    pub(crate) fn start(&self, head: &[u8], message_id: u64, sender: Sender) -> Signing {
        let mut signing = Signing(match &self.0 {
            Algorithm::Hmac(keyed) => Progress::Hmac((**keyed).clone()),
            Algorithm::Cmac(keyed) => Progress::Cmac((**keyed).clone()),
            Algorithm::Gmac(key) => Progress::Gmac(key.start(nonce(message_id, sender))),
        });
        signing.update(&head[..SIGNATURE_AT.start]);
        signing.update(&[0; SIGNATURE_AT.end - SIGNATURE_AT.start]);
        signing.update(&head[SIGNATURE_AT.end..]);
        signing
    }
}

impl Signing {
    /// Adds bytes of the message.
    #[inline]
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Progress::Hmac(mac) => mac.update(bytes),
            Progress::Cmac(mac) => mac.update(bytes),
            Progress::Gmac(mac) => mac.update(bytes),
        }
    }

    /// The signature.
    #[inline]
    pub(crate) fn finish(self) -> Signature {
        let mut signature = [0; 16];
        match self.0 {
            Progress::Hmac(mac) => signature.copy_from_slice(&mac.finalize().into_bytes()[..16]),
            Progress::Cmac(mac) => signature.copy_from_slice(&mac.finalize().into_bytes()),
            Progress::Gmac(mac) => signature = mac.finish(),
        }
        signature
    }

    /// Whether the message has this signature; takes the same time for every wrong one.
    #[inline]
    pub(crate) fn matches(self, signature: &Signature) -> bool {
        self.finish().ct_eq(signature).into()
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

impl std::fmt::Debug for Signing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signing(..)")
    }
}

/// The nonce of GMAC: the number of the message, then its sender and whether it is a CANCEL.
fn nonce(message_id: u64, sender: Sender) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&message_id.to_le_bytes());
    nonce[8] = match sender {
        Sender::Client => 0,
        Sender::Server => 1,
        Sender::ClientCancel => 2,
    };
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key128 =
        [0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c];

    #[test]
    fn each_algorithm_ignores_the_signature_in_the_head_and_nothing_else() {
        for algorithm in [SigningAlgorithm::HmacSha256, SigningAlgorithm::AesCmac, SigningAlgorithm::AesGmac]
        {
            let key = SigningKey::new(algorithm, &KEY);
            let sign = |head: &[u8], id, sender| key.start(head, id, sender).finish();
            let mut head = [3; 80];
            let base = sign(&head, 1, Sender::Client);
            head[50] = 9;
            assert_eq!(base, sign(&head, 1, Sender::Client), "{algorithm:?}");
            head[47] = 9;
            assert_ne!(base, sign(&head, 1, Sender::Client), "{algorithm:?}");
            assert!(key.start(&[3; 80], 1, Sender::Client).matches(&base));
            assert!(!key.start(&[4; 80], 1, Sender::Client).matches(&base));
        }
        let key = SigningKey::new(SigningAlgorithm::AesGmac, &KEY);
        let signatures = [Sender::Client, Sender::ClientCancel, Sender::Server]
            .map(|sender| key.start(&[0; 64], 7, sender).finish());
        assert!(signatures[0] != signatures[1] && signatures[1] != signatures[2]);
    }
}
