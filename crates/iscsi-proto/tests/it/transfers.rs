//! Data sequences: both sides with each other, and each with a peer that breaks the rules.

use linerate_iscsi_proto::params::SessionParams;
use linerate_iscsi_proto::pdu::*;
use linerate_iscsi_proto::transfer::*;
use proptest::prelude::*;

pub(crate) fn command(len: u32, immediate: u32, final_pdu: bool) -> ScsiCommand {
    ScsiCommand {
        immediate: false,
        final_pdu,
        read: false,
        write: true,
        attribute: TaskAttribute::Simple,
        lun: Lun(0),
        itt: 9,
        expected_len: len,
        cmd_sn: 0,
        exp_stat_sn: 0,
        cdb: [0; 16],
        ahs_len: 0,
        data_len: immediate,
    }
}

pub(crate) fn data_out(ttt: u32, piece: &Piece) -> DataOut {
    DataOut {
        final_pdu: piece.final_pdu,
        lun: Lun(0),
        itt: 9,
        ttt,
        exp_stat_sn: 0,
        data_sn: piece.data_sn,
        buffer_offset: piece.buffer_offset,
        data_len: piece.len,
    }
}

fn any_params() -> impl Strategy<Value = SessionParams> {
    let length = || prop_oneof![512u32..5000, 512u32..1 << 20];
    (length(), length(), length(), any::<bool>(), any::<bool>(), 1u16..6).prop_map(
        |(segment, a, b, immediate_data, initial_r2t, max_outstanding_r2t)| SessionParams {
            peer_max_recv_data_segment_length: segment,
            max_burst_length: a.max(b),
            first_burst_length: a.min(b),
            immediate_data,
            initial_r2t,
            max_outstanding_r2t,
            ..SessionParams::default()
        },
    )
}

fn to_r2t(grant: R2tGrant) -> R2t {
    grant.pdu(Lun(0), 9, StatusNumbers::default())
}

proptest! {
    /// A write between both sides: every byte arrives once, in order, within every negotiated limit.
    #[test]
    fn a_write_moves_every_byte_once(
        params in any_params(), len in prop_oneof![0u32..20_000, 0u32..3_000_000], cut in 0u32..4, slot in 0u32..1 << 23,
    ) {
        let wanted = if cut == 0 { len / 3 } else { len };
        let mut source = InitiatorWrite::new(len, &params);
        prop_assert!(source.immediate_len() == 0 || params.immediate_data);
        let command = command(len, source.immediate_len(), source.command_final());
        let mut sink = TargetWrite::begin(&command, wanted, &params, slot).unwrap();
        let mut arrived = source.immediate_len();
        let mut bursts: Vec<Burst> = source.unsolicited().into_iter().collect();
        let mut outstanding = 0;
        loop {
            while let Some(grant) = sink.next_r2t() {
                prop_assert_eq!(ttt_slot(grant.ttt), slot);
                prop_assert!(grant.desired_len <= params.max_burst_length);
                bursts.push(source.accept(&to_r2t(grant)).unwrap());
                outstanding += 1;
                prop_assert!(outstanding <= u32::from(params.max_outstanding_r2t));
            }
            if outstanding == u32::from(params.max_outstanding_r2t) {
                let more = R2tGrant { ttt: 1, r2t_sn: sink.r2ts(), buffer_offset: 0, desired_len: 1 };
                let limit = params.max_outstanding_r2t;
                prop_assert_eq!(source.accept(&to_r2t(more)), Err(R2tError::TooMany { limit }));
            }
            if bursts.is_empty() {
                break;
            }
            let burst = bursts.remove(0);
            let ttt = burst.ttt;
            if ttt != RESERVED_TAG {
                source.answered();
                outstanding -= 1;
            }
            for piece in burst {
                prop_assert_eq!(piece.buffer_offset, arrived);
                prop_assert!(piece.len <= params.peer_max_recv_data_segment_length && piece.len > 0);
                prop_assert_eq!(sink.accept(&data_out(ttt, &piece)), Ok(piece.final_pdu));
                arrived += piece.len;
            }
        }
        prop_assert!(sink.is_complete());
        prop_assert_eq!(sink.received(), arrived);
        prop_assert!(arrived >= wanted && arrived <= len);
        let unsolicited = len.min(params.first_burst_length);
        prop_assert!(arrived == wanted.max(arrived.min(unsolicited)));
    }

    #[test]
    fn a_read_moves_every_byte_once(params in any_params(), len in prop_oneof![0u32..20_000, 0u32..3_000_000]) {
        let mut sink = InitiatorRead::new(len);
        let mut split = DataInSplit::new(len, &params);
        let mut last = len == 0;
        for piece in split.by_ref() {
            prop_assert!(!last);
            last = piece.last;
            let status = piece.last.then_some(DataInStatus { status: 0, residual: Residual::None });
            let pdu = DataIn {
                final_pdu: piece.final_pdu,
                acknowledge: false,
                status,
                lun: Lun(0),
                itt: 9,
                ttt: RESERVED_TAG,
                sn: StatusNumbers::default(),
                data_sn: piece.data_sn,
                buffer_offset: piece.buffer_offset,
                data_len: piece.len,
            };
            let end = status.map_or(ReadEnd::Open, ReadEnd::Status);
            prop_assert_eq!(sink.accept(&pdu), Ok(end));
        }
        prop_assert!(last);
        prop_assert_eq!(sink.received(), len);
        prop_assert_eq!(sink.finish(split.pdus()), Ok(()));
    }
}

#[test]
fn a_write_that_failed_early_still_swallows_what_is_on_its_way() {
    let params = SessionParams { initial_r2t: false, immediate_data: false, ..SessionParams::default() };
    let mut source = InitiatorWrite::new(100_000, &params);
    let mut sink = TargetWrite::begin(&command(100_000, 0, false), 0, &params, 1).unwrap();
    assert!(!sink.is_complete());
    assert_eq!(sink.next_r2t(), None);
    let burst = source.unsolicited().unwrap();
    for piece in burst {
        sink.accept(&data_out(RESERVED_TAG, &piece)).unwrap();
    }
    assert!(sink.is_complete());
    assert_eq!((sink.received(), sink.next_r2t()), (65_536, None));
    let r2t = to_r2t(R2tGrant { ttt: 1, r2t_sn: 0, buffer_offset: 65_536, desired_len: 34_464 });
    assert_eq!(source.accept(&r2t).unwrap().map(|piece| piece.len).sum::<u32>(), 34_464);
}
