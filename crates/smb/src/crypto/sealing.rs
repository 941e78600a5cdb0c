//! Encryption of whole messages (MS-SMB2 3.1.4.3): AES in CCM or GCM, in place.

use crate::wire::header::{SEALED_HEADER_BYTES, SealedHeader};
use crate::wire::negotiate::Cipher;
use aes::{Aes128, Aes256};
use aes_gcm::aead::consts::{U11, U16};
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use ccm::Ccm;
use zerocopy::{FromBytes, IntoBytes};

const GCM_NONCE_BYTES: usize = 12;
const CCM_NONCE_BYTES: usize = 11;
const TAG_AT: std::ops::Range<usize> = 4..20;

/// A key for one direction. Its nonces count, so none is used twice. All channels of a session have the same key, so the
/// number of the channel is in the nonce.
pub(crate) struct SealingKey {
    cipher: Keyed,
    channel: [u8; 3],
    next_nonce: u64,
}

enum Keyed {
    Ccm128(Box<Ccm<Aes128, U16, U11>>),
    Ccm256(Box<Ccm<Aes256, U16, U11>>),
    Gcm128(Box<Aes128Gcm>),
    Gcm256(Box<Aes256Gcm>),
}

/// From a keyed cipher and the nonce of a header, calls a method of the cipher.
macro_rules! with_cipher {
    ($keyed:expr, $nonce:expr, |$cipher:ident, $short:ident| $work:expr) => {
        match $keyed {
            Keyed::Ccm128($cipher) => with_cipher!(@ $nonce, CCM_NONCE_BYTES, $short, $work),
            Keyed::Ccm256($cipher) => with_cipher!(@ $nonce, CCM_NONCE_BYTES, $short, $work),
            Keyed::Gcm128($cipher) => with_cipher!(@ $nonce, GCM_NONCE_BYTES, $short, $work),
            Keyed::Gcm256($cipher) => with_cipher!(@ $nonce, GCM_NONCE_BYTES, $short, $work),
        }
    };
    (@ $nonce:expr, $bytes:expr, $short:ident, $work:expr) => {{
        let mut short = [0u8; $bytes];
        short.copy_from_slice(&$nonce[..$bytes]);
        let $short = &short.into();
        $work
    }};
}

impl SealingKey {
    /// The key for a cipher; short keys are the first half of `key`. `channel` is below 2^24.
    pub(crate) fn new(cipher: Cipher, key: &[u8; 32], channel: u32) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&key[..16]);
        let cipher = match cipher {
            Cipher::Aes128Ccm => Keyed::Ccm128(Box::new(KeyInit::new(&short.into()))),
            Cipher::Aes128Gcm => Keyed::Gcm128(Box::new(KeyInit::new(&short.into()))),
            Cipher::Aes256Ccm => Keyed::Ccm256(Box::new(KeyInit::new(&(*key).into()))),
            Cipher::Aes256Gcm => Keyed::Gcm256(Box::new(KeyInit::new(&(*key).into()))),
        };
        let [first, second, third, _] = channel.to_le_bytes();
        Self { cipher, channel: [first, second, third], next_nonce: 0 }
    }

    /// Encrypts a message. `sealed` has space for the header of an encrypted message, then the message.
    pub(crate) fn seal(&mut self, session_id: u64, sealed: &mut [u8]) {
        let (head, message) = sealed.split_at_mut(SEALED_HEADER_BYTES);
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.next_nonce.to_le_bytes());
        nonce[8..CCM_NONCE_BYTES].copy_from_slice(&self.channel);
        self.next_nonce += 1;
        let header = SealedHeader::new(session_id, nonce, message.len() as u32);
        head.copy_from_slice(header.as_bytes());
        let authenticated = &header.as_bytes()[SealedHeader::AUTHENTICATED_AT..];
        let tag: [u8; 16] = with_cipher!(&self.cipher, nonce, |cipher, nonce| {
            let tag = cipher.encrypt_inout_detached(nonce, authenticated, message.into());
            tag.expect("a message is shorter than every cipher's limit").into()
        });
        head[TAG_AT].copy_from_slice(&tag);
    }

    /// Decrypts a message in place: `sealed` starts with the header of an encrypted message. Returns the message.
    pub(crate) fn open<'a>(&self, session_id: u64, sealed: &'a mut [u8]) -> Result<&'a [u8], SealError> {
        if sealed.len() < SEALED_HEADER_BYTES {
            return Err(SealError::Malformed);
        }
        let (head, message) = sealed.split_at_mut(SEALED_HEADER_BYTES);
        let header = SealedHeader::read_from_bytes(head).map_err(|_| SealError::Malformed)?;
        let is_whole = header.original_size.get() as usize == message.len();
        if !is_whole || header.flags.get() != 1 || header.session_id.get() != session_id {
            return Err(SealError::Malformed);
        }
        let authenticated = &header.as_bytes()[SealedHeader::AUTHENTICATED_AT..];
        with_cipher!(&self.cipher, header.nonce, |cipher, nonce| {
            let tag = &header.signature.into();
            cipher.decrypt_inout_detached(nonce, authenticated, (&mut *message).into(), tag)
        })
        .map_err(|_| SealError::Forged)?;
        Ok(message)
    }
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey(..)")
    }
}

/// An encrypted message cannot be used (fault: peer or network).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    /// Its header is wrong.
    #[error("the header of an encrypted message is wrong")]
    Malformed,
    /// It was changed, or encrypted with another key.
    #[error("an encrypted message was changed on its way, or encrypted with another key")]
    Forged,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair(cipher: Cipher) -> (SealingKey, SealingKey) {
        (SealingKey::new(cipher, &[5; 32], 0), SealingKey::new(cipher, &[5; 32], 0))
    }

    proptest! {
        #[test]
        fn what_was_sealed_opens_and_what_was_changed_does_not(
            message in prop::collection::vec(any::<u8>(), 1..300),
            which in 0usize..4,
            flip in any::<prop::sample::Index>(),
        ) {
            let (mut key, same) = pair(Cipher::ALL[which]);
            let mut sealed = [vec![0; SEALED_HEADER_BYTES], message.clone()].concat();
            key.seal(9, &mut sealed);
            let (mut changed, mut whole) = (sealed.clone(), sealed.clone());
            prop_assert_eq!(same.open(9, &mut whole).unwrap(), &message[..]);
            prop_assert!(same.open(8, &mut sealed).is_err());
            // The receiver of the message checks its first four bytes.
            let at = 4 + flip.index(changed.len() - 4);
            changed[at] ^= 1;
            prop_assert!(same.open(9, &mut changed).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            prop_assert!(pair(Cipher::Aes128Gcm).0.open(0, &mut bytes).is_err());
        }
    }

    #[test]
    fn no_nonce_is_used_twice_also_by_another_channel() {
        let nonce = |key: &mut SealingKey| {
            let mut sealed = vec![0; SEALED_HEADER_BYTES + 4];
            key.seal(1, &mut sealed);
            SealedHeader::read_from_prefix(&sealed).unwrap().0.nonce
        };
        for cipher in Cipher::ALL {
            let [mut first, mut other] = [0, 1].map(|channel| SealingKey::new(cipher, &[5; 32], channel));
            let nonces = [nonce(&mut first), nonce(&mut first), nonce(&mut other), nonce(&mut other)];
            assert!(nonces.iter().all(|one| nonces.iter().filter(|nonce| *nonce == one).count() == 1));
        }
    }
}
