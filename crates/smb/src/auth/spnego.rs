//! The tokens of SPNEGO (RFC 4178 section 4.2) around those of NTLM, in DER.

use der::asn1::{ObjectIdentifier, OctetString};
use der::{Any, Decode, Encode, Enumerated, Header, Sequence, Tag, TagNumber};

const SPNEGO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.2");
const NTLM: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.2.2.10");

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumerated)]
#[repr(u32)]
enum NegState {
    AcceptCompleted = 0,
    AcceptIncomplete = 1,
    Reject = 2,
    RequestMic = 3,
}

#[derive(Sequence)]
struct NegTokenInit {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    mech_types: Vec<ObjectIdentifier>,
    #[asn1(context_specific = "2", tag_mode = "EXPLICIT")]
    mech_token: OctetString,
}

#[derive(Sequence)]
struct NegTokenResp {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    state: Option<NegState>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    mechanism: Option<ObjectIdentifier>,
    #[asn1(context_specific = "2", tag_mode = "EXPLICIT", optional = "true")]
    token: Option<OctetString>,
    #[asn1(context_specific = "3", tag_mode = "EXPLICIT", optional = "true")]
    mic: Option<OctetString>,
}

/// The list of mechanisms that the client offers, whose signature ends the logon.
pub(super) fn mechanisms() -> Vec<u8> {
    der(&vec![NTLM])
}

/// The first token of the client.
pub(super) fn initial_token(ntlm: &[u8]) -> Vec<u8> {
    let inner = NegTokenInit { mech_types: vec![NTLM], mech_token: octets(ntlm) };
    let body = [der(&SPNEGO), tagged(0, &der(&inner))].concat();
    with_tag(Tag::Application { constructed: true, number: TagNumber(0) }, &body)
}

/// The last token of the client.
pub(super) fn final_token(ntlm: &[u8], mic: &[u8]) -> Vec<u8> {
    let state = Some(NegState::AcceptIncomplete);
    let inner = NegTokenResp { state, mechanism: None, token: Some(octets(ntlm)), mic: Some(octets(mic)) };
    tagged(1, &der(&inner))
}

/// The NTLM token in a token of the server.
pub(super) fn response_token(token: &[u8]) -> Option<Vec<u8>> {
    let outer = Any::from_der(token).ok()?;
    if outer.header().tag() != (Tag::ContextSpecific { constructed: true, number: TagNumber(1) }) {
        return None;
    }
    let inner = NegTokenResp::from_der(outer.value()).ok()?;
    let is_ntlm = inner.mechanism.is_none_or(|mechanism| mechanism == NTLM);
    let is_open = inner.state != Some(NegState::Reject);
    inner.token.filter(|_| is_ntlm && is_open).map(|token| token.as_bytes().to_vec())
}

fn octets(bytes: &[u8]) -> OctetString {
    OctetString::new(bytes).expect("a token of NTLM is shorter than the limit of DER")
}

fn tagged(number: u32, inner: &[u8]) -> Vec<u8> {
    with_tag(Tag::ContextSpecific { constructed: true, number: TagNumber(number) }, inner)
}

fn with_tag(tag: Tag, inner: &[u8]) -> Vec<u8> {
    let length = inner.len().try_into().expect("a token is shorter than the limit of DER");
    [&der(&Header::new(tag, length)), inner].concat()
}

fn der(value: &impl Encode) -> Vec<u8> {
    value.to_der().expect("a token is shorter than the limit of DER")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_token_names_ntlm_only() {
        let token = initial_token(b"NTLMSSP\0");
        let head =
            [0x60, 0x28, 6, 6, 0x2b, 6, 1, 5, 5, 2, 0xa0, 0x1e, 0x30, 0x1c, 0xa0, 0xe, 0x30, 0xc, 6, 0xa];
        assert_eq!(&token[..head.len()], head);
        assert!(token.ends_with(b"\xa2\x0a\x04\x08NTLMSSP\0"));
    }

    #[test]
    fn a_token_is_found_in_an_answer_and_a_refusal_has_none() {
        let answer = |state, mechanism| {
            let inner = NegTokenResp { state, mechanism, token: Some(octets(b"abc")), mic: None };
            response_token(&tagged(1, &der(&inner)))
        };
        assert_eq!(answer(Some(NegState::AcceptIncomplete), Some(NTLM)), Some(b"abc".to_vec()));
        assert_eq!(answer(None, None), Some(b"abc".to_vec()));
        assert_eq!(answer(Some(NegState::Reject), Some(NTLM)), None);
        assert_eq!(answer(None, Some(SPNEGO)), None);
        assert_eq!(response_token(&initial_token(b"abc")), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            response_token(&bytes);
        }
    }
}
