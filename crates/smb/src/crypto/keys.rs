//! Derived keys (MS-SMB2 3.1.4.2; NIST SP 800-108 in counter mode with HMAC-SHA256), and the hash of the negotiation.

use super::Key128;
use crate::wire::negotiate::{Cipher, Dialect};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};

/// The hash of all messages of the negotiation and the logon (MS-SMB2 3.1.4.4.1): a changed message gives other keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreauthHash([u8; 64]);

impl Default for PreauthHash {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl PreauthHash {
    /// Adds a message, without its prefix.
    pub(crate) fn add(&mut self, message: &[u8]) {
        self.0 = Sha512::new().chain_update(self.0).chain_update(message).finalize().into();
    }
}

/// The keys of a session.
#[derive(Clone)]
pub(crate) struct SessionKeys {
    /// Of signatures.
    pub(crate) signing: Key128,
    /// Of messages that the client encrypts, and of those that the server encrypts; the first half of each for
    /// ciphers with short keys.
    pub(crate) client: [u8; 32],
    /// See `client`.
    pub(crate) server: [u8; 32],
}

impl SessionKeys {
    /// The keys from the key of the logon.
    pub(crate) fn derive(
        dialect: Dialect,
        cipher: Option<Cipher>,
        session_key: &Key128,
        preauth: &PreauthHash,
    ) -> Self {
        let hash = &preauth.0[..];
        let [signing, client, server]: [(&[u8], &[u8]); 3] = match dialect {
            Dialect::Smb210 => {
                return Self { signing: *session_key, client: [0; 32], server: [0; 32] };
            }
            Dialect::Smb300 | Dialect::Smb302 => [
                (b"SMB2AESCMAC\0", b"SmbSign\0"),
                (b"SMB2AESCCM\0", b"ServerIn \0"),
                (b"SMB2AESCCM\0", b"ServerOut\0"),
            ],
            Dialect::Smb311 => {
                [(b"SMBSigningKey\0", hash), (b"SMBC2SCipherKey\0", hash), (b"SMBS2CCipherKey\0", hash)]
            }
        };
        let bits = if matches!(cipher, Some(Cipher::Aes256Ccm | Cipher::Aes256Gcm)) { 256 } else { 128 };
        let long = |(label, context): (&[u8], &[u8])| derive(session_key, label, context, bits);
        Self {
            signing: derive(session_key, signing.0, signing.1, 128)[..16].try_into().unwrap_or_default(),
            client: long(client),
            server: long(server),
        }
    }
}

impl std::fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKeys(..)")
    }
}

/// One round of the function, which gives at most 256 bits.
fn derive(key: &Key128, label: &[u8], context: &[u8], bits: u32) -> [u8; 32] {
    let mut mac = hmac_sha256(key);
    mac.update(&1u32.to_be_bytes());
    mac.update(label);
    mac.update(&[0]);
    mac.update(context);
    mac.update(&bits.to_be_bytes());
    mac.finalize().into_bytes().into()
}

/// An HMAC-SHA256 with its key.
pub(super) fn hmac_sha256(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of every length")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        std::array::from_fn(byte)
    }

    /// The keys that Microsoft published for a session of 3.0 and one of 3.1.1 ("SMB 2 and SMB 3 security in Windows
    /// 10: the anatomy of signing and cryptographic keys", 2015).
    #[test]
    fn the_signing_keys_are_the_published_ones() {
        let session_key = hex("7CD451825D0450D235424E44BA6E78CC");
        let keys = SessionKeys::derive(Dialect::Smb300, None, &session_key, &PreauthHash::default());
        assert_eq!(keys.signing, hex("0B7E9C5CAC36C0F6EA9AB275298CEDCE"));
        let hash = PreauthHash(hex(concat!(
            "0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB79",
            "28622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01"
        )));
        let session_key = hex("270E1BA896585EEB7AF3472D3B4C75A7");
        let keys = SessionKeys::derive(Dialect::Smb311, None, &session_key, &hash);
        assert_eq!(keys.signing, hex("73FE7A9A77BEF0BDE49C650D8CCB5F76"));
    }

    #[test]
    fn the_hash_and_the_length_of_the_key_change_the_keys() {
        let hash = PreauthHash::default();
        let base = SessionKeys::derive(Dialect::Smb311, Some(Cipher::Aes128Gcm), &[7; 16], &hash);
        let mut other = hash;
        other.add(b"changed");
        let changed = SessionKeys::derive(Dialect::Smb311, Some(Cipher::Aes128Gcm), &[7; 16], &other);
        assert_ne!(base.signing, changed.signing);
        assert_ne!(base.client, base.server);
        let long = SessionKeys::derive(Dialect::Smb311, Some(Cipher::Aes256Gcm), &[7; 16], &hash);
        assert_ne!(base.client, long.client);
        assert_eq!(base.signing, long.signing);
        assert!(!format!("{base:?}").contains('7'));
    }
}
