//! Answers as PDUs: headers are written to the gather list, payload is referenced in place.

use super::{outbound::Outbound, session::Session, tasks::TaskEntry};
use crate::{
    buffers::pool::{ChunkPool, Chunks, pieces},
    context::WorkerContext,
    engine::InPlace,
    memory_volume::MemoryVolume,
};
use linerate_io::{Driver, Seg};
use linerate_iscsi_proto::{
    digest::Crc32c,
    params::DigestKind,
    pdu::{
        BHS_BYTES, Bhs, DataIn, DataInStatus, Header, Lun, RESERVED_TAG, Residual, ScsiResponse,
        StatusNumbers,
    },
    transfer::{DataInPiece, DataInSplit},
};
use linerate_scsi::{Extent, Reply, Status};
use std::net::SocketAddr;

/// The target failed or refused a command because of the transport (fixed format, SPC-4 4.5.3).
const ABORTED_COMMAND: u8 = 0x0b;

/// A command as its answer needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) itt: u32,
    pub(super) immediate: bool,
    /// Bytes that the initiator expects to receive, and to send.
    pub(super) expected_in: u32,
    pub(super) expected_out: u32,
}

impl From<&TaskEntry> for Asked {
    fn from(entry: &TaskEntry) -> Self {
        let TaskEntry { itt, immediate, expected_in, expected_out, .. } = *entry;
        Self { itt, immediate, expected_in, expected_out }
    }
}

/// Writes the answers of one session to its gather list.
pub(super) struct Answers<'a> {
    pub(super) peer: SocketAddr,
    pub(super) out: &'a mut Outbound,
    pub(super) session: &'a mut Session,
}

impl Answers<'_> {
    /// A header, with its digest if there is one.
    pub(super) fn header(&mut self, emit: impl FnOnce(&mut Bhs)) {
        self.out.pdus += 1;
        if self.session.framer.header_digest == DigestKind::None
            && let Ok(bhs) = <&mut Bhs>::try_from(self.out.list.push_with(BHS_BYTES))
        {
            emit(bhs);
            tracing::trace!(event = "pdu", peer = %self.peer, "sent {}", Header(bhs));
            return;
        }
        let mut bhs = [0; BHS_BYTES];
        emit(&mut bhs);
        tracing::trace!(event = "pdu", peer = %self.peer, "sent {}", Header(&bhs));
        self.out.list.push_bytes(&self.session.framer.header(&bhs));
    }

    /// A data segment that is copied, with padding and digest.
    pub(super) fn data(&mut self, bytes: &[u8]) {
        self.out.list.push_bytes(bytes);
        let crc = || Crc32c::EMPTY.update(bytes);
        self.out.list.push_bytes(&self.session.framer.trailer(bytes.len() as u32, crc));
    }

    /// Numbers for a PDU that carries status.
    pub(super) fn status_numbers(&mut self) -> StatusNumbers {
        self.session.window.status()
    }

    /// The command has ended: its place in the window is free, and the answer says so.
    fn release(&mut self, immediate: bool) {
        if !immediate {
            self.session.window.release();
        }
    }

    /// The command has ended without an answer.
    pub(super) fn forget(&mut self, asked: Asked) {
        self.release(asked.immediate);
    }

    /// Answers a read of a memory volume, without a copy. Not for sessions with data digests.
    pub(super) fn read_memory(&mut self, asked: Asked, extent: &Extent, pages: &MemoryVolume) {
        self.release(asked.immediate);
        let residual = Residual::of(asked.expected_in, u64::from(extent.asked_bytes));
        if extent.len_bytes == 0 {
            return self.status(asked.itt, Status::Good, residual, 0, &[]);
        }
        for piece in DataInSplit::new(extent.len_bytes, &self.session.params) {
            self.data_in_header(asked.itt, &piece, Some(residual));
            let offset = extent.offset_bytes + u64::from(piece.buffer_offset);
            pages.parts(offset, u64::from(piece.len)).for_each(|part| self.out.list.push_seg(part.seg()));
            self.padding(piece.len);
        }
    }

    /// Answers a read whose data is in I/O buffers; they are kept until it has been sent.
    pub(super) fn read_buffers(
        &mut self,
        asked: Asked,
        extent: &Extent,
        chunks: Chunks,
        pool: &mut ChunkPool,
    ) {
        let digests = self.session.digests_data();
        self.read_pieces(asked, extent, chunks, pool, |pool, segs, piece| {
            if digests {
                pool.digest(segs, piece.buffer_offset, piece.len, Crc32c::EMPTY)
            } else {
                Crc32c::EMPTY
            }
        });
    }

    /// Answers a read from where the disks have its bytes, without a copy; the lease is kept until they have been sent.
    /// Not for sessions with data digests.
    pub(super) fn read_in_place<D: Driver>(
        &mut self,
        asked: Asked,
        extent: &Extent,
        in_place: InPlace,
        context: &mut WorkerContext<D>,
    ) {
        let WorkerContext { driver, disk_regions, segs, .. } = context;
        self.release(asked.immediate);
        let residual = Residual::of(asked.expected_in, u64::from(extent.asked_bytes));
        for part in &in_place.parts {
            let region = disk_regions.id(driver, &part.region);
            segs.push(Seg { region, offset: part.offset, len: part.len });
        }
        for piece in DataInSplit::new(extent.len_bytes, &self.session.params) {
            self.data_in_header(asked.itt, &piece, Some(residual));
            for (seg, start, len) in pieces(segs, piece.buffer_offset, piece.len) {
                self.out.list.push_seg(Seg { offset: seg.offset + u64::from(start), len, ..seg });
            }
            self.padding(piece.len);
        }
        segs.clear();
        self.out.in_place.push(in_place);
    }

    /// Answers a read of a memory volume with a copy in I/O buffers. Each byte is in the cache for its checksum.
    pub(super) fn read_copied(
        &mut self,
        asked: Asked,
        extent: &Extent,
        pages: &MemoryVolume,
        chunks: Chunks,
        pool: &mut ChunkPool,
    ) {
        self.read_pieces(asked, extent, chunks, pool, |pool, segs, piece| {
            let offset = extent.offset_bytes + u64::from(piece.buffer_offset);
            pool.copy_from(segs, piece.buffer_offset, pages.parts(offset, u64::from(piece.len)))
        });
    }

    /// Sends I/O buffers in pieces. `crc` fills a piece, if that is still to be done, and returns its checksum.
    fn read_pieces(
        &mut self,
        asked: Asked,
        extent: &Extent,
        chunks: Chunks,
        pool: &mut ChunkPool,
        crc: impl Fn(&ChunkPool, &[Seg], &DataInPiece) -> Crc32c,
    ) {
        self.release(asked.immediate);
        let residual = Residual::of(asked.expected_in, u64::from(extent.asked_bytes));
        let segs = chunks.segs();
        for piece in DataInSplit::new(extent.len_bytes, &self.session.params) {
            let crc = crc(pool, segs, &piece);
            self.data_in_header(asked.itt, &piece, Some(residual));
            for (seg, start, len) in pieces(segs, piece.buffer_offset, piece.len) {
                self.out.list.push_seg(Seg { offset: seg.offset + u64::from(start), len, ..seg });
            }
            self.out.list.push_bytes(&self.session.framer.trailer(piece.len, || crc));
        }
        pool.append(&mut self.out.chunks, chunks);
    }

    /// Answers a command whose data-in, if any, is in `reply`.
    pub(super) fn reply(&mut self, asked: Asked, reply: &Reply) {
        self.release(asked.immediate);
        let wanted = asked.expected_in.min(reply.data_in.len() as u32);
        let residual = if asked.expected_out > 0 {
            Residual::of(asked.expected_out, u64::from(reply.asked_out_bytes))
        } else {
            Residual::of(
                asked.expected_in,
                (reply.data_in.len() as u64).max(u64::from(reply.asked_out_bytes)),
            )
        };
        let collapse = reply.status == Status::Good && wanted > 0;
        let split = DataInSplit::new(wanted, &self.session.params);
        let mut pdus = 0;
        for piece in split {
            self.data_in_header(asked.itt, &piece, collapse.then_some(residual));
            let start = piece.buffer_offset as usize;
            self.data(&reply.data_in[start..start + piece.len as usize]);
            pdus += 1;
        }
        if !collapse {
            self.status(asked.itt, reply.status, residual, pdus, &reply.sense);
        }
    }

    /// Answers a write that succeeded.
    pub(super) fn written(&mut self, asked: Asked, extent: &Extent, r2ts: u32) {
        self.release(asked.immediate);
        let residual = Residual::of(asked.expected_out, u64::from(extent.asked_bytes));
        self.status(asked.itt, Status::Good, residual, r2ts, &[]);
    }

    /// CHECK CONDITION, ABORTED COMMAND, because of the transport.
    pub(super) fn abort_command(&mut self, asked: Asked, (asc, ascq): (u8, u8)) {
        self.release(asked.immediate);
        let mut sense = [0; 18];
        (sense[0], sense[2], sense[7]) = (0x70, ABORTED_COMMAND, 10);
        (sense[12], sense[13]) = (asc, ascq);
        let residual = Residual::of(asked.expected_in.max(asked.expected_out), 0);
        self.status(asked.itt, Status::CheckCondition, residual, 0, &sense);
    }

    fn data_in_header(&mut self, itt: u32, piece: &DataInPiece, collapse: Option<Residual>) {
        let end = collapse.filter(|_| piece.last);
        let status = end.map(|residual| DataInStatus { status: Status::Good as u8, residual });
        let sn = if status.is_some() {
            self.session.window.status()
        } else {
            StatusNumbers { stat_sn: 0, ..self.session.window.peek() }
        };
        let pdu = DataIn {
            final_pdu: piece.final_pdu,
            acknowledge: false,
            status,
            lun: Lun(0),
            itt,
            ttt: RESERVED_TAG,
            sn,
            data_sn: piece.data_sn,
            buffer_offset: piece.buffer_offset,
            data_len: piece.len,
        };
        self.header(|bhs| pdu.emit(bhs));
    }

    fn padding(&mut self, len: u32) {
        if !len.is_multiple_of(4) {
            self.out.list.push_bytes(&self.session.framer.trailer(len, || Crc32c::EMPTY));
        }
    }

    /// A SCSI response, with sense data if there are any (RFC 7143 section 11.4.7).
    fn status(&mut self, itt: u32, status: Status, residual: Residual, exp_data_sn: u32, sense: &[u8]) {
        let data_len = if sense.is_empty() { 0 } else { sense.len() as u32 + 2 };
        let sn = self.status_numbers();
        let response =
            ScsiResponse { response: 0, status: status as u8, itt, sn, exp_data_sn, residual, data_len };
        self.header(|bhs| response.emit(bhs));
        if data_len > 0 {
            let len = (sense.len() as u16).to_be_bytes();
            self.out.list.push_bytes(&len);
            self.out.list.push_bytes(sense);
            let crc = || Crc32c::EMPTY.update(&len).update(sense);
            self.out.list.push_bytes(&self.session.framer.trailer(data_len, crc));
        }
    }
}
