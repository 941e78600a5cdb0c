//! Sending: everything queued becomes one gather list.
//!
//! `CmdSN` and `ExpStatSN` are given here, at the moment of sending and not when a command is queued: a command that is
//! cancelled while it waits leaves no hole in the numbering, and no PDU carries an old acknowledgement. Order in the
//! list: login, answers to the target's pings, write data that the target waits for, control PDUs, commands.

use super::state::State;
use super::tasks::{Owner, Payload, Progress, Stage, TaskIndex};
use super::{LossReason, Regions, Session};
use linerate_io::{Driver, Nanos, Outgoing, Seg};
use linerate_iscsi::digest::Crc32c;
use linerate_iscsi::frame::Framer;
use linerate_iscsi::params::DigestKind;
use linerate_iscsi::pdu::{
    BHS_BYTES, Bhs, DataOut, LogoutReason, LogoutRequest, Lun, NopOut, RESERVED_TAG, ScsiCommand,
    TaskAttribute, TaskFunction, TaskManagement,
};
use linerate_iscsi::send_targets::InitiatorText;
use linerate_iscsi::transfer::{Burst, InitiatorRead, InitiatorWrite};
use std::io;

/// `SendTargets` text that is accepted from one portal: some 100,000 targets.
const TEXT_BYTES_MAX: usize = 16 << 20;

impl Session {
    /// Hands what is queued to the driver and receives again. While a send is under way new work waits for its end, so
    /// that it leaves in one piece.
    pub(crate) fn flush<D: Driver>(&mut self, driver: &mut D, regions: &Regions, now: Nanos) {
        // A receive before the connection stands would take the reason why it cannot.
        if self.state == State::Connecting {
            return;
        }
        let Some(link) = &mut self.link else { return };
        if let Some(mut outgoing) = link.outgoing.take() {
            self.fill(&mut outgoing, regions, now);
            let Some(link) = &mut self.link else { return };
            if outgoing.is_empty() {
                link.outgoing = Some(outgoing);
            } else {
                driver.send(link.stream, outgoing);
            }
        }
        self.receive_again(driver);
    }

    fn fill(&mut self, out: &mut Outgoing, regions: &Regions, now: Nanos) {
        if let Some(link) = &mut self.link
            && !link.login_bytes.is_empty()
        {
            out.push_bytes(&link.login_bytes);
            link.login_bytes.clear();
        }
        if !self.state.is_full_feature() {
            return;
        }
        let framer = self.link.as_ref().map(|link| link.framer).unwrap_or_default();
        self.send_pongs(out, framer);
        while let Some((itt, burst)) = self.bursts.pop_front() {
            if let Some(index) = self.tasks.find(itt) {
                self.send_burst(index, burst, out, framer, regions);
                if let Progress::Write(write) = &mut self.tasks[index].progress {
                    write.answered();
                }
            }
        }
        while let Some(index) = self.urgent.pop_front() {
            self.send_control(index, out, framer, now);
        }
        if !self.state.sends_commands() {
            return;
        }
        while self.window.can_send()
            && let Some(index) = self.questions.pop_front()
        {
            self.send_command(index, out, framer, regions, now);
        }
        if self.held {
            return;
        }
        while let Some(&index) = self.queue.front() {
            if !self.window.can_send() || (self.tasks.retried > 0 && self.must_wait(index)) {
                break;
            }
            self.queue.pop_front();
            self.send_command(index, out, framer, regions, now);
        }
    }

    #[inline]
    fn send_command(
        &mut self,
        index: TaskIndex,
        out: &mut Outgoing,
        framer: Framer,
        regions: &Regions,
        now: Nanos,
    ) {
        let itt = self.tasks.itt(index);
        let task = &mut self.tasks[index];
        let (mut immediate, mut final_pdu, mut unsolicited) = (0, true, None);
        match task.payload {
            Payload::None => task.progress = Progress::None,
            Payload::In(_) | Payload::Kept => {
                task.reply.clear();
                task.progress = Progress::Read(InitiatorRead::new(task.len_bytes));
            }
            Payload::Out(_) | Payload::List(_) => {
                let write = InitiatorWrite::new(task.len_bytes, &self.params);
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
            exp_stat_sn: self.window.exp_stat_sn(),
            cdb: task.cdb,
            ahs_len: 0,
            data_len: immediate,
        };
        push_header(out, framer, |bhs| pdu.emit(bhs));
        push_payload(out, framer, regions, &task.payload, 0, immediate);
        if let Some(burst) = unsolicited {
            self.send_burst(index, burst, out, framer, regions);
        }
    }

    fn send_burst(
        &mut self,
        index: TaskIndex,
        burst: Burst,
        out: &mut Outgoing,
        framer: Framer,
        regions: &Regions,
    ) {
        let itt = self.tasks.itt(index);
        let task = &self.tasks[index];
        let ttt = burst.ttt;
        for piece in burst {
            let pdu = DataOut {
                final_pdu: piece.final_pdu,
                lun: if ttt == RESERVED_TAG { Lun(0) } else { task.lun },
                itt,
                ttt,
                exp_stat_sn: self.window.exp_stat_sn(),
                data_sn: piece.data_sn,
                buffer_offset: piece.buffer_offset,
                data_len: piece.len,
            };
            push_header(out, framer, |bhs| pdu.emit(bhs));
            push_payload(out, framer, regions, &task.payload, piece.buffer_offset, piece.len);
        }
    }

    /// A NOP-Out that answers a ping copies LUN and target transfer tag (RFC 7143 11.18).
    fn send_pongs(&mut self, out: &mut Outgoing, framer: Framer) {
        for ping in self.pongs.drain(..) {
            let pdu = NopOut {
                immediate: true,
                lun: ping.lun,
                itt: RESERVED_TAG,
                ttt: ping.ttt,
                cmd_sn: self.window.immediate(),
                exp_stat_sn: self.window.exp_stat_sn(),
                data_len: 0,
            };
            push_header(out, framer, |bhs| pdu.emit(bhs));
        }
    }

    fn send_control(&mut self, index: TaskIndex, out: &mut Outgoing, framer: Framer, now: Nanos) {
        let itt = self.tasks.itt(index);
        let (cmd_sn, exp_stat_sn) = (self.window.immediate(), self.window.exp_stat_sn());
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
            Owner::Text => self.send_text(index, out, framer),
            Owner::Logout => {
                let reason = LogoutReason::CloseSession;
                let pdu = LogoutRequest { immediate: true, reason, itt, cid: 0, cmd_sn, exp_stat_sn };
                push_header(out, framer, |bhs| pdu.emit(bhs));
            }
            Owner::Io { .. } | Owner::Script { .. } | Owner::Check { .. } => {}
        }
        let task = &mut self.tasks[index];
        task.stage = Stage::Sent;
        task.first_sent = now;
    }

    /// The question, or an empty request for the rest of the answer.
    fn send_text(&mut self, index: TaskIndex, out: &mut Outgoing, framer: Framer) {
        let (mut pdu, text) = if let Some(next) = self.text_next.take() {
            (next, Vec::new())
        } else {
            let exchange = InitiatorText::new(self.tasks.itt(index), TEXT_BYTES_MAX);
            let first = exchange.start("All");
            self.text = Some(exchange);
            first
        };
        pdu.cmd_sn = self.window.immediate();
        pdu.exp_stat_sn = self.window.exp_stat_sn();
        push_header(out, framer, |bhs| pdu.emit(bhs));
        out.push_bytes(&text);
        out.push_bytes(&framer.trailer(pdu.data_len, || Crc32c::EMPTY.update(&text)));
    }

    /// A send has ended.
    pub(crate) fn sent(
        &mut self,
        result: io::Result<()>,
        mut outgoing: Box<Outgoing>,
    ) -> Result<(), LossReason> {
        outgoing.clear();
        if let Some(link) = &mut self.link {
            link.outgoing = Some(outgoing);
        }
        result.map_err(|error| LossReason::Broken { portal: self.portal_now(), error: error.to_string() })
    }
}

#[inline]
fn push_header(out: &mut Outgoing, framer: Framer, emit: impl FnOnce(&mut Bhs)) {
    if framer.header_digest == DigestKind::None {
        if let Some(bhs) = out.push_with(BHS_BYTES).first_chunk_mut() {
            emit(bhs);
        }
        return;
    }
    let mut bhs = [0; BHS_BYTES];
    emit(&mut bhs);
    out.push_bytes(&framer.header(&bhs));
}

/// Appends `len` bytes of a task's data from `offset`, with padding and digest.
#[inline]
fn push_payload(
    out: &mut Outgoing,
    framer: Framer,
    regions: &Regions,
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
        Payload::List(list) => {
            let part = &list[offset as usize..(offset + len) as usize];
            out.push_bytes(part);
            out.push_bytes(&framer.trailer(len, || Crc32c::EMPTY.update(part)));
        }
        Payload::None | Payload::In(_) | Payload::Kept => {}
    }
}

/// Runs a checksum over a segment.
pub(super) fn segment_crc(regions: &Regions, seg: Seg, start: Crc32c) -> Crc32c {
    let mut crc = start;
    if let Some(region) = regions.get(seg.region) {
        region.for_each_chunk(seg.offset, u64::from(seg.len), |chunk| crc = crc.update(chunk));
    }
    crc
}
