//! Commands whose data-out is a parameter list that changes the unit's state: MODE SELECT, PERSISTENT RESERVE
//! OUT.

use super::{StepEvent, Steps, out_of_turn, plan};
use crate::plan::Refusal;
use crate::{
    MediumOp, Plan, Reply, TaskStep,
    answer::control,
    command::CommandRequest,
    mode,
    nexus::Itl,
    port::PortPair,
    reservation::{Changes, Kind, TransportId, full_status},
};
use linerate_scsi_proto::mode::{ModeForm, ModeValues};
use linerate_scsi_proto::sense::{Sense, code};
use linerate_scsi_proto::wire::{be16, be32, be64};
use std::sync::Arc;

/// The parameter list of a command must be complete.
fn whole_list(request: &CommandRequest<'_>, asked_bytes: u32) -> Result<u32, Refusal> {
    if request.expected.out_bytes < asked_bytes {
        return Err(Refusal::DataOutLength { asked_bytes });
    }
    Ok(asked_bytes)
}

/// MODE SELECT (6), (10).
pub(crate) fn mode_select(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let (form, len) = match request.cdb[0] {
        0x15 => (ModeForm::Six, u32::from(request.cdb[4])),
        _ => (ModeForm::Ten, u32::from(be16(request.cdb, 7))),
    };
    let len_bytes = whole_list(request, len)?;
    Ok(plan(itl, len_bytes, ModeSelect { form, len_bytes, wanted: None }))
}

struct ModeSelect {
    form: ModeForm,
    len_bytes: u32,
    /// Values to apply once the medium is synced.
    wanted: Option<ModeValues>,
}

impl Steps for ModeSelect {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        match event {
            StepEvent::Start => Ok(TaskStep::DataOut { len_bytes: self.len_bytes }),
            StepEvent::Bytes(list) => {
                let current = itl.unit().lock().mode;
                let wanted = mode::select(&list, self.form, current, &control::medium(itl))?;
                if current.write_cache && !wanted.write_cache {
                    // After the cache is turned off, it must be empty (SBC-3 6.4.5).
                    self.wanted = Some(wanted);
                    let len_bytes = itl.unit().capacity_blocks() * u64::from(itl.block_bytes());
                    let op = MediumOp::Sync { offset_bytes: 0, len_bytes };
                    return Ok(TaskStep::Medium { lun: itl.lun(), op });
                }
                Ok(apply_mode(itl, wanted))
            }
            StepEvent::Done => {
                self.wanted.take().map_or_else(out_of_turn, |wanted| Ok(apply_mode(itl, wanted)))
            }
            StepEvent::Mapped { .. } | StepEvent::Resume => out_of_turn(),
        }
    }
}

fn apply_mode(itl: &Itl, wanted: ModeValues) -> TaskStep {
    itl.unit().change(|state| {
        if state.mode != wanted {
            state.mode = wanted;
            state.tell_all_but(Some(itl.id()), code::MODE_PARAMETERS_CHANGED);
        }
    });
    TaskStep::Done(Reply::good())
}

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;
const REGISTER_AND_MOVE: u8 = 7;

/// Activate persist through power loss: a bit of byte 20 of the parameter list.
const APTPL: u8 = 0x01;

/// Parameter list of every service action except REGISTER AND MOVE.
const LIST_BYTES: u32 = 24;
/// More than the longest transport ID needs.
const MAX_LIST_BYTES: u32 = 1024;

/// PERSISTENT RESERVE OUT.
pub(crate) fn reserve_out(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let (action, scope_and_type, asked) = (request.cdb[1] & 0x1F, request.cdb[2], be32(request.cdb, 5));
    let right_length = match action {
        REGISTER_AND_MOVE => (LIST_BYTES..=MAX_LIST_BYTES).contains(&asked),
        _ => asked == LIST_BYTES,
    };
    if !right_length {
        return Err(Sense::illegal(code::PARAMETER_LIST_LENGTH).into());
    }
    let len_bytes = whole_list(request, asked)?;
    Ok(plan(itl, len_bytes, ReserveOut { action, scope_and_type, len_bytes }))
}

struct ReserveOut {
    action: u8,
    scope_and_type: u8,
    len_bytes: u32,
}

impl Steps for ReserveOut {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        match event {
            StepEvent::Start => Ok(TaskStep::DataOut { len_bytes: self.len_bytes }),
            StepEvent::Bytes(list) => Ok(match self.apply(itl, &list)? {
                Some(op) => TaskStep::Medium { lun: itl.lun(), op },
                None => self.done(),
            }),
            StepEvent::Done => Ok(self.done()),
            _ => out_of_turn(),
        }
    }
}

impl ReserveOut {
    fn done(&self) -> TaskStep {
        TaskStep::Done(Reply { ended_tasks: self.action == PREEMPT_AND_ABORT, ..Reply::good() })
    }

    /// Reservation type, which must have logical unit scope.
    fn kind(&self) -> Result<Kind, Sense> {
        Kind::from_code(self.scope_and_type).ok_or(Sense::cdb(2))
    }

    /// Applies it, and returns the state to keep before the answer.
    fn apply(&self, itl: &Itl, list: &[u8]) -> Result<Option<MediumOp>, Refusal> {
        itl.unit().change(|state| {
            // Another nexus may have made a SCSI-2 reservation while the list was in transit.
            if state.reservations.scsi2.is_some_and(|holder| holder != itl.id()) {
                return Err(Refusal::Conflict);
            }
            let was_kept = state.reservations.persistent.kept;
            let changes = self.run(itl, list, state)?;
            state.announce(&changes);
            let persistent = &mut state.reservations.persistent;
            Ok((was_kept || persistent.kept).then(|| {
                persistent.saves += 1;
                let reservations = if persistent.kept { full_status(persistent) } else { Vec::new() };
                MediumOp::Keep { number: persistent.saves, reservations }
            }))
        })
    }

    fn run(&self, itl: &Itl, list: &[u8], state: &mut crate::unit::State) -> Result<Changes, Refusal> {
        let persistent = &mut state.reservations.persistent;
        let (key, action_key) = (be64(list, 0), be64(list, 8));
        let port = itl.port();
        match self.action {
            REGISTER | REGISTER_AND_IGNORE => {
                let checked = (self.action == REGISTER).then_some(key);
                let changes = persistent.register(&registered_ports(itl, list[20])?, checked, action_key)?;
                persistent.kept = list[20] & APTPL != 0;
                Ok(changes)
            }
            RESERVE => persistent.reserve(port, key, self.kind()?),
            RELEASE => persistent.release(port, key, self.kind()?),
            CLEAR => persistent.clear(port, key),
            PREEMPT | PREEMPT_AND_ABORT => {
                let abort = self.action == PREEMPT_AND_ABORT;
                persistent.preempt(port, key, action_key, Kind::from_code(self.scope_and_type), abort)
            }
            _ => {
                let (to, unregister) = move_target(itl, list)?;
                persistent.register_and_move(port, key, &to, action_key, unregister)
            }
        }
    }
}

/// The nexuses that a REGISTER is for: this one, or this initiator through every target port with
/// `ALL_TG_PT`.
fn registered_ports(itl: &Itl, flags: u8) -> Result<Vec<PortPair>, Sense> {
    const ALL_TG_PT: u8 = 0x04;
    // REPORT CAPABILITIES lists what is supported.
    let supported = if itl.unit().config().keeps_reservations { ALL_TG_PT | APTPL } else { ALL_TG_PT };
    if flags & !supported != 0 {
        return Err(Sense::parameter(20));
    }
    let this = itl.port();
    let mut ports = vec![this.clone()];
    if flags & ALL_TG_PT != 0 {
        for port in &itl.unit().config().ports {
            if port.relative_id != this.relative_port {
                ports.push(PortPair { relative_port: port.relative_id, ..this.clone() });
            }
        }
    }
    Ok(ports)
}

/// The `I_T` nexus that REGISTER AND MOVE names (SPC-4 table 213), and UNREG.
fn move_target(itl: &Itl, list: &[u8]) -> Result<(PortPair, bool), Sense> {
    const UNREG: u8 = 0x02;
    let (flags, relative_port, id_len) = (list[17], be16(list, 18), be32(list, 20) as usize);
    if flags & !UNREG != 0 {
        return Err(Sense::parameter(17));
    }
    if !itl.unit().config().ports.iter().any(|port| port.relative_id == relative_port) {
        return Err(Sense::parameter(18));
    }
    let id = list.get(24..24 + id_len).ok_or(Sense::illegal(code::PARAMETER_LIST_LENGTH))?;
    let id = TransportId::parse(id).ok_or(Sense::parameter(24))?;
    // A name without ISID identifies a device, not a port.
    let isid = id.isid.ok_or(Sense::parameter(24))?;
    let initiator = crate::InitiatorPort { name: id.name, isid };
    Ok((PortPair { initiator, relative_port }, flags & UNREG != 0))
}
