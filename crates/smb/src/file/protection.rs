//! Signatures and encryption of one session: whether, with which keys, and the messages that carry them.

use crate::crypto::keys::SessionKeys;
use crate::crypto::sealing::{SealError, SealingKey};
use crate::crypto::signing::{Sender, Signature, SigningKey};
use crate::wire::HEADER_BYTES;
use crate::wire::frame::{PREFIX_BYTES, prefix};
use crate::wire::header::{FLAG_SIGNED, MessageHeader, SEALED_HEADER_BYTES, SIGNATURE_AT, first_of_compound};
use crate::wire::negotiate::Negotiated;
use linerate_io::{AttachedRegions, Outgoing, Seg};
use zerocopy::FromBytes;

/// A whole request, or a compound of them, that waits to be sent.
#[derive(Debug)]
pub(super) struct ControlMessage {
    pub(super) bytes: Vec<u8>,
    pub(super) sender: Sender,
    /// It is signed even if I/Os are not.
    pub(super) sign: bool,
}

/// The state of a session. Without keys nothing is signed or encrypted.
#[derive(Debug, Default)]
pub(super) struct Protection {
    signing: Option<SigningKey>,
    sealing: Option<(SealingKey, SealingKey)>,
    session_id: u64,
    /// Every request is signed, and every response must be.
    pub(super) signs: bool,
    /// Every request is encrypted, and every response must be.
    pub(super) seals: bool,
}

impl Protection {
    /// The session has keys. `channel` is the number of the channel in it.
    pub(super) fn set_keys(
        &mut self,
        session_id: u64,
        negotiated: &Negotiated,
        keys: &SessionKeys,
        channel: u32,
    ) {
        self.session_id = session_id;
        self.signing = Some(SigningKey::new(negotiated.signing, &keys.signing));
        let key = |cipher, key| SealingKey::new(cipher, key, channel);
        self.sealing = negotiated.cipher.map(|cipher| (key(cipher, &keys.client), key(cipher, &keys.server)));
    }

    /// Signs a whole request of the client with the key as it is now.
    pub(super) fn sign(&self, bytes: &mut [u8]) {
        if let Some(key) = &self.signing {
            sign_message(key, bytes, Sender::Client);
        }
    }

    /// The session has no keys: a guest's.
    pub(super) fn forget_keys(&mut self) {
        *self = Self::default();
    }

    pub(super) fn has_keys(&self) -> bool {
        self.signing.is_some()
    }

    pub(super) fn can_seal(&self) -> bool {
        self.sealing.is_some()
    }

    /// The key for the signatures of the server.
    pub(super) fn verifier(&self) -> Option<&SigningKey> {
        self.signing.as_ref()
    }

    /// Decrypts a message in place.
    pub(super) fn open<'a>(&self, sealed: &'a mut [u8]) -> Result<&'a [u8], SealError> {
        let (_, opening) = self.sealing.as_ref().ok_or(SealError::Malformed)?;
        opening.open(self.session_id, sealed)
    }

    /// Appends a whole request, or a compound of them, which is encrypted as one or signed one by one.
    pub(super) fn push_message(&mut self, out: &mut Outgoing, message: ControlMessage) {
        let ControlMessage { mut bytes, sender, sign } = message;
        if self.seals {
            let place = sealed_place(out, bytes.len());
            place[SEALED_HEADER_BYTES..].copy_from_slice(&bytes);
            self.seal(place);
            return;
        }
        if let Some(key) = self.signing.as_ref().filter(|_| sign || self.signs) {
            let mut rest = &mut bytes[..];
            while !rest.is_empty() {
                let len = first_of_compound(rest).expect("a compound of our own");
                let (first, others) = rest.split_at_mut(len);
                sign_message(key, first, sender);
                rest = others;
            }
        }
        out.push_bytes(&plain_prefix(bytes.len()));
        out.push_bytes(&bytes);
    }

    /// Appends a request of an I/O: `head_bytes` that `write` fills in, then the data of a write.
    #[inline]
    pub(super) fn push_io(
        &mut self,
        out: &mut Outgoing,
        regions: &AttachedRegions,
        head_bytes: usize,
        data: Option<Seg>,
        write: impl FnOnce(&mut [u8]),
    ) {
        let data_bytes = data.map_or(0, |seg| seg.len as usize);
        if self.seals {
            let place = sealed_place(out, head_bytes + data_bytes);
            let (head, rest) = place[SEALED_HEADER_BYTES..].split_at_mut(head_bytes);
            write(head);
            if let Some(seg) = data {
                regions.of(seg).read(seg.offset, rest);
            }
            self.seal(place);
            return;
        }
        let place = out.push_with(PREFIX_BYTES + head_bytes);
        place[..PREFIX_BYTES].copy_from_slice(&plain_prefix(head_bytes + data_bytes));
        let head = &mut place[PREFIX_BYTES..];
        write(head);
        if let Some(key) = self.signing.as_ref().filter(|_| self.signs) {
            let signature = sign_io(key, head, regions, data);
            head[SIGNATURE_AT].copy_from_slice(&signature);
        }
        if let Some(seg) = data {
            out.push_seg(seg);
        }
    }

    fn seal(&mut self, place: &mut [u8]) {
        let (key, _) = self.sealing.as_mut().expect("a session that encrypts has the keys");
        key.seal(self.session_id, place);
    }
}

fn sign_message(key: &SigningKey, bytes: &mut [u8], sender: Sender) {
    let message_id = set_signed(bytes);
    let signature = key.start(bytes, message_id, sender).finish();
    bytes[SIGNATURE_AT].copy_from_slice(&signature);
}

fn sign_io(key: &SigningKey, head: &mut [u8], regions: &AttachedRegions, data: Option<Seg>) -> Signature {
    let message_id = set_signed(head);
    let mut signing = key.start(head, message_id, Sender::Client);
    if let Some(seg) = data {
        regions.for_each_chunk(seg, |chunk| signing.update(chunk));
    }
    signing.finish()
}

/// Marks a message as signed; returns its number.
fn set_signed(message: &mut [u8]) -> u64 {
    let (header, _) = MessageHeader::mut_from_prefix(message).expect("a request starts with a header");
    header.flags.set(header.flags.get() | FLAG_SIGNED);
    header.message_id.get()
}

/// The prefix of a message, and the place for its encrypted form after it.
fn sealed_place(out: &mut Outgoing, message_bytes: usize) -> &mut [u8] {
    let bytes = SEALED_HEADER_BYTES + message_bytes;
    let place = out.push_with(PREFIX_BYTES + bytes);
    place[..PREFIX_BYTES].copy_from_slice(&plain_prefix(bytes));
    &mut place[PREFIX_BYTES..]
}

fn plain_prefix(message_bytes: usize) -> [u8; PREFIX_BYTES] {
    debug_assert!(message_bytes >= HEADER_BYTES, "a message has a header");
    prefix(message_bytes).expect("the longest I/O is limited so that its message fits")
}
