//! AES-128-GMAC over pieces (NIST SP 800-38D): GCM without a plaintext, whose authenticated data is the message.

use super::Key128;
use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;

const BLOCK_BYTES: usize = 16;

/// The keys of a GMAC.
#[derive(Clone)]
pub(super) struct GmacKey {
    cipher: Aes128,
    hash: GHash,
}

impl GmacKey {
    pub(super) fn new(key: &Key128) -> Self {
        let cipher = Aes128::new(&Array::from(*key));
        let mut hash_key = Array::from([0; BLOCK_BYTES]);
        cipher.encrypt_block(&mut hash_key);
        Self { cipher, hash: GHash::new(&hash_key) }
    }

    /// Starts a signature; a nonce is used once per key.
    pub(super) fn start(&self, nonce: [u8; 12]) -> Gmac {
        let mut counter = [0; BLOCK_BYTES];
        counter[..12].copy_from_slice(&nonce);
        counter[15] = 1;
        let mut mask = Array::from(counter);
        self.cipher.encrypt_block(&mut mask);
        Gmac { hash: self.hash.clone(), mask: mask.into(), partial: [0; BLOCK_BYTES], filled: 0, bytes: 0 }
    }
}

/// A signature in progress.
#[derive(Clone)]
pub(super) struct Gmac {
    hash: GHash,
    mask: [u8; BLOCK_BYTES],
    partial: [u8; BLOCK_BYTES],
    filled: usize,
    bytes: u64,
}

impl Gmac {
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.filled > 0 {
            let take = (BLOCK_BYTES - self.filled).min(bytes.len());
            self.partial[self.filled..self.filled + take].copy_from_slice(&bytes[..take]);
            self.filled += take;
            bytes = &bytes[take..];
            if self.filled < BLOCK_BYTES {
                return;
            }
            self.hash.update(&[Array::from(self.partial)]);
            self.filled = 0;
        }
        let whole = bytes.len() / BLOCK_BYTES * BLOCK_BYTES;
        self.hash.update_padded(&bytes[..whole]);
        let rest = &bytes[whole..];
        self.partial[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    pub(super) fn finish(mut self) -> [u8; BLOCK_BYTES] {
        let partial = self.partial;
        self.hash.update_padded(&partial[..self.filled]);
        let mut lengths = [0; BLOCK_BYTES];
        lengths[..8].copy_from_slice(&(self.bytes * 8).to_be_bytes());
        self.hash.update(&[Array::from(lengths)]);
        let mut tag: [u8; BLOCK_BYTES] = self.hash.finalize().into();
        tag.iter_mut().zip(self.mask).for_each(|(byte, mask)| *byte ^= mask);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes_gcm::Aes128Gcm;
    use aes_gcm::aead::AeadInOut;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tag_is_that_of_gcm_however_the_message_is_cut(
            key in any::<[u8; 16]>(),
            nonce in any::<[u8; 12]>(),
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..70), 0..6),
        ) {
            let mut mac = GmacKey::new(&key).start(nonce);
            for piece in &pieces {
                mac.update(piece);
            }
            let whole = Aes128Gcm::new(&key.into());
            let tag = whole.encrypt_inout_detached(&nonce.into(), &pieces.concat(), (&mut [][..]).into()).unwrap();
            prop_assert_eq!(mac.finish(), <[u8; 16]>::from(tag));
        }
    }
}
