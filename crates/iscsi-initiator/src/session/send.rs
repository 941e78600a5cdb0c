//! Sending: all queued PDUs become one gather list.
//!
//! `CmdSN` and `ExpStatSN` are set when a command is sent, not when it is queued. So a command that is cancelled while
//! it waits leaves no gap in the numbers, and no PDU has an old acknowledgement. Order in the list: login, answers to
//! the target's pings, write data that the target waits for, control PDUs, commands.

use super::Session;
use super::connection::Connection;
use super::loss::LossReason;
use super::tasks::{Progress, Stage, TaskIndex};
use crate::balance::Load;
use crate::task::{Owner, Payload};
use linerate_io::{AttachedRegions, Driver, Nanos, Outgoing, Seg};
use linerate_iscsi_proto::digest::Crc32c;
use linerate_iscsi_proto::frame::Framer;
use linerate_iscsi_proto::params::DigestKind;
use linerate_iscsi_proto::pdu::{
    BHS_BYTES, Bhs, DataOut, Header, LogoutReason, LogoutRequest, Lun, NopOut, RESERVED_TAG, ScsiCommand,
    TaskAttribute, TaskFunction, TaskManagement,
};
use linerate_iscsi_proto::send_targets::InitiatorText;
use linerate_iscsi_proto::transfer::{Burst, InitiatorRead, InitiatorWrite};
use linerate_scsi_proto::unmap;
use std::io;

/// Largest `SendTargets` text from one portal: about 100,000 targets.
const TEXT_BYTES_MAX: usize = 16 << 20;

impl Session {
    /// Passes the queued PDUs to the driver and receives again. While a send is in progress, new PDUs wait for its end,
    /// so that they are sent together.
    pub(crate) fn flush<D: Driver>(&mut self, driver: &mut D, regions: &AttachedRegions, now: Nanos) {
        for at in 0..self.connections.len() {
            self.fill(at, regions, now);
        }
        if self.state.sends_commands() {
            self.send_commands(regions, now);
        }
        for at in 0..self.connections.len() {
            let connection = &mut self.connections[at];
            if let Some(outgoing) = connection.outgoing.take_if(|outgoing| !outgoing.is_empty()) {
                driver.send(connection.stream, outgoing);
            }
            self.receive_again(driver, at);
        }
    }

    /// Collects the PDUs that are sent before commands.
    fn fill(&mut self, at: usize, regions: &AttachedRegions, now: Nanos) {
        let connection = &mut self.connections[at];
        if !connection.is_connected() {
            return;
        }
        // The driver has the list for a send.
        let Some(mut out) = connection.outgoing.take() else { return };
        if !connection.login_bytes.is_empty() {
            out.push_bytes(&connection.login_bytes);
            connection.login_bytes.clear();
        }
        if connection.is_full() {
            self.send_pongs(at, &mut out);
            while let Some((itt, burst)) = self.connections[at].bursts.pop_front() {
                if let Some(index) = self.tasks.find(itt) {
                    self.send_burst(index, at, burst, &mut out, regions);
                    if let Progress::Write(write) = &mut self.tasks[index].progress {
                        write.answered();
                    }
                }
            }
            while let Some(index) = self.connections[at].urgent.pop_front() {
                self.send_control(index, at, &mut out, now);
            }
        }
        self.connections[at].outgoing = Some(out);
    }

    /// Gives commands their numbers, and puts each on one of the connections that can send.
    fn send_commands(&mut self, regions: &AttachedRegions, now: Nanos) {
        while self.window.can_send()
            && !self.probes.is_empty()
            && let Some(at) = self.choose_connection(0)
            && let Some(index) = self.probes.pop_front()
        {
            self.send_command(index, at, regions, now);
        }
        while let Some(&index) = self.queue.front() {
            if !self.window.can_send() || (self.tasks.retried > 0 && self.must_wait(index)) {
                break;
            }
            let Some(at) = self.choose_connection(self.tasks[index].len_bytes) else { break };
            self.queue.pop_front();
            self.send_command(index, at, regions, now);
        }
    }

    /// The connection for the next command. A connection that is still sending cannot take it; None if all of them are.
    #[inline]
    fn choose_connection(&mut self, bytes: u32) -> Option<usize> {
        let count = self.connections.len();
        if count == 1 {
            return self.connections[0].outgoing.is_some().then_some(0);
        }
        let connections = &self.connections;
        let can_send = |at: usize| connections[at].outgoing.is_some();
        let load = |at: usize| Load {
            ios: if can_send(at) { connections[at].in_flight } else { u32::MAX },
            ..Load::default()
        };
        let first = if count == 0 { return None } else { self.spread.select(count, bytes, load) };
        (first..count).chain(0..first).find(|at| can_send(*at))
    }

    #[inline]
    fn send_command(&mut self, index: TaskIndex, at: usize, regions: &AttachedRegions, now: Nanos) {
        let connection = &mut self.connections[at];
        let Some(mut out) = connection.outgoing.take() else {
            unreachable!("a connection was chosen that can send")
        };
        connection.in_flight += 1;
        let (framer, params, exp_stat_sn) =
            (connection.framer, connection.params, connection.expected.number());
        let itt = self.tasks.itt(index);
        let task = &mut self.tasks[index];
        task.connection = at as u8;
        let (mut immediate, mut final_pdu, mut unsolicited) = (0, true, None);
        match task.payload {
            Payload::None => task.progress = Progress::None,
            Payload::In(_) | Payload::Kept => {
                task.reply.clear();
                task.progress = Progress::Read(InitiatorRead::new(task.len_bytes));
            }
            Payload::Out(_) | Payload::UnmapList { .. } => {
                let write = InitiatorWrite::new(task.len_bytes, &params);
                (immediate, final_pdu, unsolicited) =
                    (write.immediate_len(), write.command_final(), write.unsolicited());
                task.progress = Progress::Write(write);
            }
        }
        task.stage = Stage::Sent;
        task.cmd_sn = self.window.take();
        if task.first_sent == 0 {
            task.first_sent = now;
        }
        let pdu = ScsiCommand {
            immediate: false,
            final_pdu,
            read: matches!(task.progress, Progress::Read(_)),
            write: matches!(task.progress, Progress::Write(_)),
            attribute: TaskAttribute::Simple,
            lun: task.lun,
            itt,
            expected_len: task.len_bytes,
            cmd_sn: task.cmd_sn,
            exp_stat_sn,
            cdb: task.cdb,
            ahs_len: 0,
            data_len: immediate,
        };
        push_header(&mut out, framer, |bhs| pdu.emit(bhs));
        push_payload(&mut out, framer, regions, &task.payload, 0, immediate);
        if let Some(burst) = unsolicited {
            self.send_burst(index, at, burst, &mut out, regions);
        }
        self.connections[at].outgoing = Some(out);
    }

    fn send_burst(
        &mut self,
        index: TaskIndex,
        at: usize,
        burst: Burst,
        out: &mut Outgoing,
        regions: &AttachedRegions,
    ) {
        let (framer, exp_stat_sn) = (self.connections[at].framer, self.connections[at].expected.number());
        let itt = self.tasks.itt(index);
        let task = &self.tasks[index];
        let ttt = burst.ttt;
        for piece in burst {
            let pdu = DataOut {
                final_pdu: piece.final_pdu,
                lun: if ttt == RESERVED_TAG { Lun(0) } else { task.lun },
                itt,
                ttt,
                exp_stat_sn,
                data_sn: piece.data_sn,
                buffer_offset: piece.buffer_offset,
                data_len: piece.len,
            };
            push_header(out, framer, |bhs| pdu.emit(bhs));
            push_payload(out, framer, regions, &task.payload, piece.buffer_offset, piece.len);
        }
    }

    /// A NOP-Out that answers a ping copies LUN and target transfer tag (RFC 7143 11.18).
    fn send_pongs(&mut self, at: usize, out: &mut Outgoing) {
        let connection = &mut self.connections[at];
        let (framer, exp_stat_sn) = (connection.framer, connection.expected.number());
        for ping in connection.pongs.drain(..) {
            let pdu = NopOut {
                immediate: true,
                lun: ping.lun,
                itt: RESERVED_TAG,
                ttt: ping.ttt,
                cmd_sn: self.window.immediate(),
                exp_stat_sn,
                data_len: 0,
            };
            push_header(out, framer, |bhs| pdu.emit(bhs));
        }
    }

    fn send_control(&mut self, index: TaskIndex, at: usize, out: &mut Outgoing, now: Nanos) {
        let itt = self.tasks.itt(index);
        let Connection { framer, expected, .. } = self.connections[at];
        let (cmd_sn, exp_stat_sn) = (self.window.immediate(), expected.number());
        let owner = self.tasks[index].owner;
        match owner {
            Owner::Ping => {
                let (lun, ttt) = (Lun(0), RESERVED_TAG);
                let pdu = NopOut { immediate: true, lun, itt, ttt, cmd_sn, exp_stat_sn, data_len: 0 };
                push_header(out, framer, |bhs| pdu.emit(bhs));
            }
            Owner::Abort { itt: referenced_itt } => {
                let Some(victim) = self.tasks.find(referenced_itt) else {
                    // Answered while the abort waited.
                    self.tasks.remove(index);
                    return;
                };
                let (lun, ref_cmd_sn) = (self.tasks[victim].lun, self.tasks[victim].cmd_sn);
                let pdu = TaskManagement {
                    immediate: true,
                    function: TaskFunction::AbortTask,
                    lun,
                    itt,
                    referenced_itt,
                    cmd_sn,
                    exp_stat_sn,
                    ref_cmd_sn,
                    exp_data_sn: 0,
                };
                push_header(out, framer, |bhs| pdu.emit(bhs));
            }
            Owner::Text => self.send_text(index, at, out),
            Owner::Logout => {
                let reason = LogoutReason::CloseSession;
                let pdu = LogoutRequest { immediate: true, reason, itt, cid: 0, cmd_sn, exp_stat_sn };
                push_header(out, framer, |bhs| pdu.emit(bhs));
            }
            Owner::Io { .. } | Owner::Probe { .. } | Owner::AccessPoll { .. } => {
                unreachable!("commands are not sent by the urgent queue");
            }
        }
        let task = &mut self.tasks[index];
        task.stage = Stage::Sent;
        if task.first_sent == 0 {
            task.first_sent = now;
        }
    }

    /// The request, or an empty request for the rest of the answer.
    fn send_text(&mut self, index: TaskIndex, at: usize, out: &mut Outgoing) {
        let (mut pdu, text) = if let Some(next) = self.text_next.take() {
            (next, Vec::new())
        } else {
            let exchange = InitiatorText::new(self.tasks.itt(index), TEXT_BYTES_MAX);
            let first = exchange.start("All");
            self.text = Some(exchange);
            first
        };
        pdu.cmd_sn = self.window.immediate();
        let framer = self.connections[at].framer;
        pdu.exp_stat_sn = self.connections[at].expected.number();
        push_header(out, framer, |bhs| pdu.emit(bhs));
        out.push_bytes(&text);
        out.push_bytes(&framer.trailer(pdu.data_len, || Crc32c::EMPTY.update(&text)));
    }

    /// A send has ended.
    pub(crate) fn sent(
        &mut self,
        at: usize,
        result: io::Result<()>,
        mut outgoing: Box<Outgoing>,
    ) -> Result<(), LossReason> {
        outgoing.clear();
        self.connections[at].outgoing = Some(outgoing);
        result.map_err(|error| LossReason::Broken { portal: self.portal_now(at), error: error.to_string() })
    }
}

#[inline]
fn push_header(out: &mut Outgoing, framer: Framer, emit: impl FnOnce(&mut Bhs)) {
    if framer.header_digest == DigestKind::None {
        if let Some(bhs) = out.push_with(BHS_BYTES).first_chunk_mut() {
            emit(bhs);
            tracing::trace!(event = "pdu", "sent {}", Header(bhs));
        }
        return;
    }
    let mut bhs = [0; BHS_BYTES];
    emit(&mut bhs);
    tracing::trace!(event = "pdu", "sent {}", Header(&bhs));
    out.push_bytes(&framer.header(&bhs));
}

/// Appends `len` bytes of a task's data from `offset`, with padding and digest.
#[inline]
fn push_payload(
    out: &mut Outgoing,
    framer: Framer,
    regions: &AttachedRegions,
    payload: &Payload,
    offset: u32,
    len: u32,
) {
    if len == 0 {
        return;
    }
    match *payload {
        Payload::Out(seg) => {
            let part = Seg { offset: seg.offset + u64::from(offset), len, ..seg };
            out.push_seg(part);
            out.push_bytes(&framer.trailer(len, || segment_crc(regions, part, Crc32c::EMPTY)));
        }
        Payload::UnmapList { block, blocks } => {
            let list = unmap::one_range(unmap::Range { lba: block, blocks });
            let part = &list[offset as usize..(offset + len) as usize];
            out.push_bytes(part);
            out.push_bytes(&framer.trailer(len, || Crc32c::EMPTY.update(part)));
        }
        Payload::None | Payload::In(_) | Payload::Kept => {}
    }
}

/// Updates a checksum with a segment.
pub(super) fn segment_crc(regions: &AttachedRegions, seg: Seg, start: Crc32c) -> Crc32c {
    match regions.get(seg.region) {
        Some(region) => start.update_by(|sum| region.crc32c(sum, seg.offset, u64::from(seg.len))),
        None => start,
    }
}
