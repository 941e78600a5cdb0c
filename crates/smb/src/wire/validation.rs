//! `FSCTL_VALIDATE_NEGOTIATE_INFO` (MS-SMB2 2.2.31.4, 2.2.32.6): the client repeats, signed, what it offered, and the
//! server what it chose. So a negotiation that was changed on its way is noticed in dialects without a hash of it.

use super::body::{IoctlRequest, IoctlResponse};
use super::header::MessageHeader;
use super::negotiate::{Negotiated, SmbOffer};
use super::{HEADER_BYTES, WireError, body_of, message, part};
use zerocopy::little_endian::U32;

const VALIDATE_NEGOTIATE_INFO: u32 = 0x0014_0204;
const NO_FILE: [u8; 16] = [0xFF; 16];
const OF_FILE_SYSTEM: u32 = 1;
const ANSWER_BYTES: usize = 24;

/// The request.
pub fn validate(header: &MessageHeader, offer: &SmbOffer) -> Vec<u8> {
    let mut input = offer.capabilities().to_le_bytes().to_vec();
    input.extend(offer.client_guid);
    input.extend(offer.security_mode().to_le_bytes());
    input.extend((offer.dialects.len() as u16).to_le_bytes());
    input.extend(offer.dialects.iter().flat_map(|dialect| dialect.code().to_le_bytes()));
    let body = IoctlRequest {
        control_code: U32::new(VALIDATE_NEGOTIATE_INFO),
        file_id: NO_FILE,
        input_offset: U32::new((HEADER_BYTES + size_of::<IoctlRequest>()) as u32),
        input_len: U32::new(input.len() as u32),
        max_output_len: U32::new(ANSWER_BYTES as u32),
        flags: U32::new(OF_FILE_SYSTEM),
        ..IoctlRequest::default()
    };
    message(header, &body, &input)
}

/// Whether a response repeats what was negotiated.
pub fn is_valid(response: &[u8], negotiated: &Negotiated) -> Result<bool, WireError> {
    let body: &IoctlResponse = body_of(response)?;
    let found = part(response, body.output_offset.get(), body.output_len.get())?;
    let mut expected = negotiated.capabilities.to_le_bytes().to_vec();
    expected.extend(negotiated.server_guid);
    expected.extend(negotiated.security_mode.to_le_bytes());
    expected.extend(negotiated.dialect.code().to_le_bytes());
    Ok(found == expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::negotiate::{CAP_LARGE_MTU, Dialect, SIGNING_ENABLED, SigningAlgorithm};

    #[test]
    fn an_answer_must_repeat_every_value() {
        let negotiated = Negotiated {
            dialect: Dialect::Smb302,
            signing_required: false,
            signing: SigningAlgorithm::AesCmac,
            cipher: None,
            multi_credit: true,
            multi_channel: false,
            max_read_bytes: 1,
            max_write_bytes: 1,
            capabilities: CAP_LARGE_MTU,
            server_guid: [7; 16],
            security_mode: SIGNING_ENABLED,
        };
        let at = HEADER_BYTES + size_of::<IoctlResponse>();
        let body = IoctlResponse {
            output_offset: U32::new(at as u32),
            output_len: U32::new(ANSWER_BYTES as u32),
            ..IoctlResponse::default()
        };
        let output = [&[4, 0, 0, 0][..], &[7; 16], &[1, 0, 0x02, 0x03]].concat();
        let right = message(&MessageHeader::default(), &body, &output);
        assert_eq!(is_valid(&right, &negotiated), Ok(true));
        for byte in at..right.len() {
            let mut changed = right.clone();
            changed[byte] ^= 1;
            assert_eq!(is_valid(&changed, &negotiated), Ok(false), "byte {byte}");
        }
        assert_eq!(is_valid(&right[..right.len() - 1], &negotiated), Err(WireError::Range));
    }
}
