//! `NTLMv2` (MS-NLMP 2.2.1, 3.3.2): three messages, and the key of the session.
//!
//! No session key is exchanged (`NTLMSSP_NEGOTIATE_KEY_EXCH`), so the key is the one that both sides compute, and RC4 is
//! not needed.

use crate::credentials::SmbCredentials;
use crate::crypto::Key128;
use crate::wire::unicode::{utf16, utf16_capital};
use hmac::{Hmac, KeyInit, Mac};
use md4::Md4;
use md5::{Digest, Md5};

const SIGNATURE: [u8; 8] = *b"NTLMSSP\0";
const CHALLENGE: u32 = 2;
const FIXED_BYTES: usize = 88;
const MIC_AT: usize = 72;

const UNICODE: u32 = 0x1;
const REQUEST_TARGET: u32 = 0x4;
const SIGN: u32 = 0x10;
const NTLM: u32 = 0x200;
const ALWAYS_SIGN: u32 = 0x8000;
const EXTENDED_SECURITY: u32 = 0x8_0000;
const TARGET_INFO: u32 = 0x80_0000;
const VERSION: u32 = 0x200_0000;
const KEY_128: u32 = 0x2000_0000;
const KEY_56: u32 = 0x8000_0000;
const OFFERED: u32 = UNICODE
    | REQUEST_TARGET
    | SIGN
    | NTLM
    | ALWAYS_SIGN
    | EXTENDED_SECURITY
    | TARGET_INFO
    | VERSION
    | KEY_128
    | KEY_56;
/// What `NTLMv2` cannot do without.
const NEEDED: u32 = UNICODE | EXTENDED_SECURITY | TARGET_INFO;
/// The version that Windows 7 reports, with revision 15 of NTLM.
const VERSION_BYTES: [u8; 8] = [6, 1, 0xB1, 0x1D, 0, 0, 0, 15];

/// Attributes of the target (MS-NLMP 2.2.2.1).
const AV_END: u16 = 0;
const AV_FLAGS: u16 = 6;
const AV_TIMESTAMP: u16 = 7;
const AV_TARGET_NAME: u16 = 9;
const FLAG_MIC: u32 = 2;

/// The magic constant of MS-NLMP 3.4.5.2.
const SIGN_KEY: &[u8] = b"session key to client-to-server signing key magic constant\0";

/// The client's side of a logon.
#[derive(Debug)]
pub(super) struct NtlmClient {
    credentials: SmbCredentials,
    /// The service that is used, such as `cifs/nas`.
    service: String,
    challenge: [u8; 8],
}

/// The server's challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Challenge {
    message: Vec<u8>,
    flags: u32,
    nonce: [u8; 8],
    attributes: Vec<u8>,
}

/// The client's answer.
pub(super) struct NtlmAnswer {
    pub(super) message: Vec<u8>,
    pub(super) session_key: Key128,
}

/// The first message.
pub(super) fn negotiate() -> Vec<u8> {
    let mut message = header(1);
    message.extend(OFFERED.to_le_bytes());
    message.extend([0; 16]);
    message.extend(VERSION_BYTES);
    message
}

impl NtlmClient {
    pub(super) fn new(credentials: SmbCredentials, host: &str, challenge: [u8; 8]) -> Self {
        Self { credentials, service: format!("cifs/{host}"), challenge }
    }

    /// The last message.
    pub(super) fn authenticate(&self, server: &Challenge) -> Result<NtlmAnswer, NtlmError> {
        if server.flags & NEEDED != NEEDED {
            return Err(NtlmError::Weak);
        }
        let attributes = Attributes::of(&server.attributes, &self.service)?;
        let key = response_key(&self.credentials);
        let temp = [
            &[1, 1, 0, 0, 0, 0, 0, 0][..],
            &attributes.time,
            &self.challenge,
            &[0; 4],
            &attributes.bytes,
            &[0; 4],
        ]
        .concat();
        let proof = hmac_md5(&key, &[&server.nonce, &temp]);
        let session_key = hmac_md5(&key, &[&proof]);
        let mut message = self.message(server.flags & OFFERED, &[&proof, &temp[..]].concat());
        let mic = hmac_md5(&session_key, &[&negotiate(), &server.message, &message]);
        message[MIC_AT..MIC_AT + 16].copy_from_slice(&mic);
        Ok(NtlmAnswer { message, session_key })
    }

    /// The last message without its MIC.
    fn message(&self, flags: u32, response: &[u8]) -> Vec<u8> {
        let domain = utf16(&self.credentials.domain);
        let user = utf16(&self.credentials.user);
        // The response for LM is zeros: the one for NT is better. Last comes the exchanged key, which there is not.
        let parts: [&[u8]; 6] = [&[0; 24], response, &domain, &user, &[], &[]];
        let mut message = header(3);
        let mut at = FIXED_BYTES as u32;
        for part in parts {
            let len = (part.len() as u16).to_le_bytes();
            message.extend([len, len].concat());
            message.extend(at.to_le_bytes());
            at += part.len() as u32;
        }
        message.extend(flags.to_le_bytes());
        message.extend(VERSION_BYTES);
        message.extend([0; 16]);
        message.extend(parts.concat());
        message
    }
}

impl Challenge {
    /// Reads the server's message.
    pub(super) fn parse(message: &[u8]) -> Result<Self, NtlmError> {
        let bad = NtlmError::Malformed;
        let field = |at: usize, len: usize| message.get(at..at + len).ok_or(NtlmError::Malformed);
        if !message.starts_with(&SIGNATURE) || u32_at(message, 8) != Some(CHALLENGE) {
            return Err(bad);
        }
        let attributes_len = u16_at(message, 40).ok_or(NtlmError::Malformed)?;
        let attributes_at = u32_at(message, 44).ok_or(NtlmError::Malformed)?;
        let end = (attributes_at as usize).checked_add(attributes_len.into()).ok_or(NtlmError::Malformed)?;
        Ok(Self {
            flags: u32_at(message, 20).ok_or(NtlmError::Malformed)?,
            nonce: field(24, 8)?.try_into().map_err(|_| NtlmError::Malformed)?,
            attributes: message.get(attributes_at as usize..end).ok_or(NtlmError::Malformed)?.to_vec(),
            message: message.to_vec(),
        })
    }
}

impl NtlmAnswer {
    /// The signature of a text (MS-NLMP 3.4.4.2, the first one and without an exchanged key).
    pub(super) fn sign(&self, text: &[u8]) -> [u8; 16] {
        let key: Key128 = Md5::new().chain_update(self.session_key).chain_update(SIGN_KEY).finalize().into();
        let sequence = [0; 4];
        let mut mic = [0; 16];
        mic[0] = 1;
        mic[4..12].copy_from_slice(&hmac_md5(&key, &[&sequence, text])[..8]);
        mic[12..].copy_from_slice(&sequence);
        mic
    }
}

/// The server's attributes with those of the client, and the time in them.
struct Attributes {
    bytes: Vec<u8>,
    time: [u8; 8],
}

impl Attributes {
    fn of(from_server: &[u8], service: &str) -> Result<Self, NtlmError> {
        let (mut bytes, mut time) = (Vec::new(), [0; 8]);
        let mut at = 0;
        let mut flags = FLAG_MIC;
        loop {
            let id = u16_at(from_server, at).ok_or(NtlmError::Malformed)?;
            let len = usize::from(u16_at(from_server, at + 2).ok_or(NtlmError::Malformed)?);
            let value = from_server.get(at + 4..at + 4 + len).ok_or(NtlmError::Malformed)?;
            at += 4 + len;
            match id {
                AV_END => break,
                AV_FLAGS => flags |= u32_at(value, 0).ok_or(NtlmError::Malformed)?,
                AV_TARGET_NAME => {}
                _ => push(&mut bytes, id, value),
            }
            if id == AV_TIMESTAMP {
                time = value.try_into().map_err(|_| NtlmError::Malformed)?;
            }
        }
        push(&mut bytes, AV_FLAGS, &flags.to_le_bytes());
        push(&mut bytes, AV_TARGET_NAME, &utf16(service));
        push(&mut bytes, AV_END, &[]);
        Ok(Self { bytes, time })
    }
}

fn push(bytes: &mut Vec<u8>, id: u16, value: &[u8]) {
    bytes.extend(id.to_le_bytes());
    bytes.extend((value.len() as u16).to_le_bytes());
    bytes.extend(value);
}

/// `NTOWFv2` (MS-NLMP 3.3.2).
fn response_key(credentials: &SmbCredentials) -> Key128 {
    let hash = Md4::digest(utf16(credentials.password.reveal()));
    hmac_md5(&hash, &[&utf16_capital(&credentials.user), &utf16(&credentials.domain)])
}

fn header(kind: u32) -> Vec<u8> {
    [&SIGNATURE[..], &kind.to_le_bytes()].concat()
}

fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> Key128 {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(&parts.concat());
    mac.finalize().into_bytes().into()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// A logon cannot continue (fault: peer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NtlmError {
    /// The outer token is malformed, or the server refuses NTLM.
    #[error("the server does not accept a logon with NTLM")]
    Spnego,
    /// The inner message is malformed.
    #[error("the server's NTLM challenge is malformed")]
    Malformed,
    /// The server does not know `NTLMv2`.
    #[error("the server does not support NTLMv2")]
    Weak,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// MS-NLMP 4.2.4: the server's attributes, and what follows from user, domain and password of 4.2.1.
    const ATTRIBUTES: &[u8] = b"\x02\0\x0c\0D\0o\0m\0a\0i\0n\0\x01\0\x0c\0S\0e\0r\0v\0e\0r\0\0\0\0\0";

    fn client() -> NtlmClient {
        NtlmClient::new(SmbCredentials::new("Domain", "User", "Password"), "Server", [0xaa; 8])
    }

    #[test]
    fn the_hash_of_the_password_is_the_published_one() {
        let key = response_key(&client().credentials);
        assert_eq!(u128::from_be_bytes(key), 0x0c86_8a40_3bfd_7a93_a300_1ef2_2ef0_2e3f);
        let temp = [&[1, 1][..], &[0; 14], &[0xaa; 8], &[0; 4], ATTRIBUTES, &[0; 4]].concat();
        let proof = hmac_md5(&key, &[&0x0123_4567_89ab_cdef_u64.to_be_bytes(), &temp]);
        assert_eq!(u128::from_be_bytes(proof), 0x68cd_0ab8_51e5_1c96_aabc_927b_ebef_6a1c);
        assert_eq!(u128::from_be_bytes(hmac_md5(&key, &[&proof])), 0x8de4_0cca_dbc1_4a82_f15c_b0ad_0de9_5ca3);
    }

    fn challenge(flags: u32) -> Vec<u8> {
        let len = (ATTRIBUTES.len() as u16).to_le_bytes();
        [
            &header(2)[..],
            &[0; 8],
            &flags.to_le_bytes(),
            &[9; 8],
            &[0; 8],
            &len,
            &len,
            &[48, 0, 0, 0],
            ATTRIBUTES,
        ]
        .concat()
    }

    #[test]
    fn an_answer_names_the_user_and_not_the_password() {
        let server = Challenge::parse(&challenge(NEEDED | SIGN)).unwrap();
        let answer = client().authenticate(&server).unwrap();
        let holds = |text: &str| answer.message.windows(2 * text.len()).any(|part| part == utf16(text));
        assert!(holds("User") && holds("Domain") && holds("cifs/Server") && !holds("Password"));
        assert!(!format!("{:?}", client()).contains("Password"));
        let weak = Challenge::parse(&challenge(UNICODE)).unwrap();
        assert_eq!(client().authenticate(&weak).err(), Some(NtlmError::Weak));
    }

    proptest! {
        #[test]
        fn no_challenge_makes_it_panic(
            cut in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut message = challenge(NEEDED);
            let at = at.index(message.len());
            message[at] = byte;
            message.truncate(cut.index(message.len() + 1));
            if let Ok(challenge) = Challenge::parse(&message) {
                let _ = client().authenticate(&challenge);
            }
        }
    }
}
