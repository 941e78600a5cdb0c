//! Framing and bodies: cut at any place, changed at any place.

use linerate_smb::wire::body::{CreateResponse, QueryInfoResponse};
use linerate_smb::wire::durable::{DurableVersion, is_granted};
use linerate_smb::wire::files::{opened, queried_size, read_data, written};
use linerate_smb::wire::frame::{HEAD_BYTES, MessagePart, MessageReader, prefix};
use linerate_smb::wire::header::{FLAG_RESPONSE, MessageHeader, SmbCommand};
use linerate_smb::wire::logon::{SessionSetup, Tree};
use linerate_smb::wire::negotiate::{Cipher, Dialect, Negotiated, SmbOffer};
use linerate_smb::wire::{WireError, message};
use proptest::prelude::*;
use zerocopy::little_endian::{U16, U32, U64};

/// The messages of a stream that arrives in pieces; with `direct`, some of each rest arrives directly.
fn cut(bytes: &[u8], pieces: &[usize], direct: bool) -> Result<Vec<Vec<u8>>, WireError> {
    let mut reader = MessageReader::new(1 << 20);
    let (mut found, mut current) = (Vec::new(), Vec::new());
    let mut at = 0;
    let mut pieces = pieces.iter().cycle();
    while at < bytes.len() {
        let end = (at + pieces.next().unwrap()).min(bytes.len());
        if direct && reader.direct_remaining() > 0 {
            let len = (end - at).min(reader.direct_remaining() as usize);
            current.extend_from_slice(&bytes[at..at + len]);
            reader.advance_direct(len as u32);
            at += len;
        }
        let mut piece = &bytes[at..end.max(at)];
        at = end.max(at);
        loop {
            let (used, part) = reader.next(piece)?;
            match part {
                MessagePart::NeedMore => break,
                MessagePart::Head { rest_len } => {
                    current = reader.head().to_vec();
                    if rest_len == 0 {
                        found.push(std::mem::take(&mut current));
                    }
                }
                MessagePart::Rest { bytes, offset, complete } => {
                    assert!(offset as usize + HEAD_BYTES == current.len());
                    current.extend_from_slice(&piece[bytes]);
                    if complete {
                        found.push(std::mem::take(&mut current));
                    }
                }
            }
            piece = &piece[used..];
        }
    }
    Ok(found)
}

fn offer() -> SmbOffer {
    SmbOffer {
        dialects: Dialect::ALL.to_vec(),
        ciphers: Cipher::ALL.to_vec(),
        multi_channel: false,
        signing_required: false,
        client_guid: [1; 16],
        salt: [2; 32],
    }
}

fn response(command: SmbCommand) -> MessageHeader {
    MessageHeader { flags: U32::new(FLAG_RESPONSE), ..MessageHeader::request(command, 1, 1, 1) }
}

proptest! {
    #[test]
    fn messages_are_the_same_however_the_stream_is_cut(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 64..400), 1..6),
        pieces in prop::collection::vec(1usize..200, 1..8),
        direct in any::<bool>(),
    ) {
        let stream: Vec<u8> =
            messages.iter().flat_map(|one| [&prefix(one.len()).unwrap()[..], one].concat()).collect();
        prop_assert_eq!(cut(&stream, &pieces, direct).unwrap(), messages);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = cut(&bytes, &[7, 64], false);
        let _ = (Negotiated::parse(&bytes, &offer()), SessionSetup::parse(&bytes), Tree::parse(&bytes));
        let _ = is_granted(&bytes, DurableVersion::V2);
        let _ = (opened(&bytes), queried_size(&bytes), read_data(&bytes), written(&bytes));
    }

    #[test]
    fn a_changed_answer_is_read_or_refused(at in 0usize..200, byte in any::<u8>()) {
        // Our own offer has the contexts of an answer; with the number of an answer it is nearly one.
        let mut bytes = offer().request(&response(SmbCommand::Negotiate));
        bytes[64] = 65;
        let place = at % bytes.len();
        bytes[place] = byte;
        let _ = Negotiated::parse(&bytes, &offer());
    }
}

#[test]
fn lengths_that_are_not_permitted_are_refused_before_any_byte_of_the_message() {
    for len in [0u32, 63, (1 << 20) + 1, u32::MAX] {
        let error = cut(&len.to_be_bytes(), &[4], false).unwrap_err();
        assert!(matches!(error, WireError::Length { announced, .. } if announced == len), "{error}");
    }
}

#[test]
fn answers_give_back_what_they_hold() {
    let body = CreateResponse { end_of_file: U64::new(77), file_id: [9; 16], ..CreateResponse::default() };
    let bytes = message(&response(SmbCommand::Create), &body, &[]);
    assert_eq!(opened(&bytes), Ok(([9; 16], 77)));
    let size = [&[0; 8][..], &55u64.to_le_bytes(), &[0; 8]].concat();
    let (output_offset, output_len) = (U16::new(72), U32::new(24));
    let body = QueryInfoResponse { output_offset, output_len, ..QueryInfoResponse::default() };
    let bytes = message(&response(SmbCommand::QueryInfo), &body, &size);
    assert_eq!(queried_size(&bytes), Ok(55));
    assert_eq!(opened(&bytes), Err(WireError::Structure { expected: 89, found: 9 }));
}
