//! Framing: the PDUs are the same, however the stream is split.

use linerate_iscsi_proto::digest::{Crc32c, digest};
use linerate_iscsi_proto::frame::{Event, FrameError, Framer, Receiver, padding_len};
use linerate_iscsi_proto::params::DigestKind;
use linerate_iscsi_proto::pdu::{BHS_BYTES, Bhs};
use proptest::prelude::*;

/// One PDU as a test sends it and as the receiver must report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) bhs: Bhs,
    pub(crate) ahs: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

fn digests(on: bool) -> DigestKind {
    if on { DigestKind::Crc32c } else { DigestKind::None }
}

fn wire(pdus: &[Whole], framer: Framer) -> Vec<u8> {
    let mut out = Vec::new();
    for pdu in pdus {
        if pdu.ahs.is_empty() {
            framer.write(&pdu.bhs, &pdu.data, &mut out);
            continue;
        }
        out.extend_from_slice(&pdu.bhs);
        out.extend_from_slice(&pdu.ahs);
        out.extend_from_slice(&framer.ahs_digest(&pdu.bhs, &pdu.ahs));
        out.extend_from_slice(&pdu.data);
        out.extend_from_slice(&framer.trailer(pdu.data.len() as u32, || Crc32c::EMPTY.update(&pdu.data)));
    }
    out
}

/// Collects whole PDUs from a receiver that gets pieces; with `direct`, payload is received directly into its
/// destination.
fn collect(stream: &[u8], cuts: &[usize], framer: Framer, direct: bool) -> Result<Vec<Whole>, FrameError> {
    let mut receiver = Receiver::new(1 << 20);
    receiver.negotiated(framer.header_digest, framer.data_digest, 1 << 20);
    let mut pdus: Vec<Whole> = Vec::new();
    let mut complete = 0;
    let mut at = 0;
    let mut cuts = cuts.iter().cycle();
    while at < stream.len() {
        let end = stream.len().min(at + cuts.next().unwrap());
        let mut input = &stream[at..end];
        at = end;
        let straight = (receiver.direct_remaining() as usize).min(input.len());
        if direct && straight > 0 {
            let (head, rest) = input.split_at(straight);
            pdus.last_mut().unwrap().data.extend_from_slice(head);
            receiver.advance_direct(straight as u32, |crc| crc.update(head));
            input = rest;
        }
        loop {
            let step = receiver.next(input)?;
            let used = &input[..step.consumed];
            input = &input[step.consumed..];
            match step.event {
                Event::NeedMore => {
                    assert!(input.is_empty(), "NeedMore must use all input");
                    break;
                }
                Event::Header { data_len } => {
                    let (bhs, ahs) = (*receiver.bhs(), receiver.ahs().to_vec());
                    pdus.push(Whole { bhs, ahs, data: Vec::new() });
                    complete += usize::from(data_len == 0);
                }
                Event::Data { payload, offset, complete: done } => {
                    let pdu = pdus.last_mut().unwrap();
                    assert_eq!(offset as usize, pdu.data.len());
                    pdu.data.extend_from_slice(&used[payload]);
                    complete += usize::from(done);
                }
            }
        }
    }
    assert!(receiver.at_boundary());
    assert_eq!(complete, pdus.len());
    Ok(pdus)
}

fn any_pdu() -> impl Strategy<Value = Whole> {
    let data = prop_oneof![
        3 => Just(Vec::new()),
        5 => prop::collection::vec(any::<u8>(), 1..40),
        2 => prop::collection::vec(any::<u8>(), 500..600),
    ];
    let ahs = prop_oneof![5 => Just(0usize), 2 => 1usize..5, 1 => Just(255)];
    (prop::array::uniform32(any::<u8>()), ahs, data).prop_map(|(head, ahs_words, data)| {
        let mut bhs = [0; BHS_BYTES];
        bhs[..32].copy_from_slice(&head);
        bhs[4] = ahs_words as u8;
        bhs[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        Whole { bhs, ahs: (0..ahs_words * 4).map(|i| i as u8).collect(), data }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_chunking_gives_the_same_pdus(
        pdus in prop::collection::vec(any_pdu(), 1..6),
        cuts in prop::collection::vec(prop_oneof![1usize..8, 1usize..200, Just(100_000)], 1..40),
        header in any::<bool>(), data in any::<bool>(), direct in any::<bool>(),
    ) {
        let framer = Framer { header_digest: digests(header), data_digest: digests(data) };
        let stream = wire(&pdus, framer);
        prop_assert_eq!(collect(&stream, &cuts, framer, direct), Ok(pdus));
    }

    #[test]
    fn one_wrong_bit_is_seen_by_the_digests(
        pdu in any_pdu(), bit in any::<prop::sample::Index>(), cuts in prop::collection::vec(1usize..100, 1..9),
    ) {
        let framer = Framer { header_digest: DigestKind::Crc32c, data_digest: DigestKind::Crc32c };
        let mut stream = wire(std::slice::from_ref(&pdu), framer);
        let header_len = (BHS_BYTES + pdu.ahs.len() + 4) * 8;
        let bit = bit.index(stream.len() * 8);
        // A wrong length changes the position at which the digest is expected: the stream may then end too early.
        prop_assume!(!(4 * 8..8 * 8).contains(&bit));
        stream[bit / 8] ^= 1 << (bit % 8);
        let expected = if bit < header_len { FrameError::HeaderDigest } else { FrameError::DataDigest };
        prop_assert_eq!(collect(&stream, &cuts, framer, false), Err(expected));
    }

    #[test]
    fn noise_never_panics(
        noise in prop::collection::vec(any::<u8>(), 0..400), cut in 1usize..100,
        header in any::<bool>(), data in any::<bool>(),
    ) {
        let mut receiver = Receiver::new(256);
        receiver.negotiated(digests(header), digests(data), 256);
        'stream: for chunk in noise.chunks(cut) {
            let mut input = chunk;
            loop {
                let Ok(step) = receiver.next(input) else { break 'stream };
                prop_assert!(step.consumed <= input.len());
                input = &input[step.consumed..];
                if step.event == Event::NeedMore {
                    break;
                }
            }
        }
    }
}

#[test]
fn lengths_are_checked_on_the_header() {
    let mut bhs = [0; BHS_BYTES];
    bhs[5..8].copy_from_slice(&[0xff, 0xff, 0xff]);
    let mut receiver = Receiver::new(8192);
    assert_eq!(receiver.next(&bhs), Err(FrameError::TooLong { announced: 0x00ff_ffff, limit: 8192 }));
    bhs[5..8].copy_from_slice(&8192_u32.to_be_bytes()[1..]);
    let step = Receiver::new(8192).next(&bhs).unwrap();
    assert_eq!((step.consumed, step.event), (48, Event::Header { data_len: 8192 }));
}

/// The check value of CRC32C and the test patterns of RFC 3720 appendix B.4.
#[test]
fn digests_of_the_rfc() {
    assert_eq!(Crc32c::EMPTY.update(b"123456789").value(), 0xe306_9283);
    assert_eq!(digest(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
    assert_eq!(digest(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
    let up: Vec<u8> = (0..32).collect();
    assert_eq!(digest(&up), [0x4e, 0x79, 0xdd, 0x46]);
    let down: Vec<u8> = (0..32).rev().collect();
    assert_eq!(digest(&down), [0x5c, 0xdb, 0x3f, 0x11]);
    for cut in 0..32 {
        assert_eq!(Crc32c::EMPTY.update(&up[..cut]).update(&up[cut..]).to_wire(), [0x4e, 0x79, 0xdd, 0x46]);
    }
}

#[test]
fn padding_fills_to_words() {
    assert_eq!([0, 1, 2, 3, 4, 5].map(padding_len), [0, 3, 2, 1, 0, 3]);
    let framer = Framer::default();
    assert_eq!(&*framer.trailer(5, || unreachable!("no digest")), &[0, 0, 0]);
}
