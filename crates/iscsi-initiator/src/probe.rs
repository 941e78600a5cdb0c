//! The probe of a LUN, command by command, and the check that two sets of replies come from the same disk.

use crate::event::{IoError, Remedy};
use crate::facts::DeviceFacts;
use crate::probe_command::ProbeCommand;
use crate::task::{Answer, Footprint, NewTask, Owner, Payload};
use linerate_blame::Blame;
use linerate_iscsi_proto::pdu::Lun;
use linerate_scsi_proto::alua::AccessState;
use linerate_scsi_proto::sense::code;

/// A list of commands, and the facts from the replies so far.
#[derive(Debug)]
pub(crate) struct Probe {
    commands: &'static [ProbeCommand],
    at: usize,
    pub(crate) facts: DeviceFacts,
}

/// Why a LUN cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) blame: Blame,
    pub(crate) words: String,
    pub(crate) remedy: Option<Remedy>,
}

impl Problem {
    pub(crate) fn new(blame: Blame, words: impl Into<String>) -> Self {
        Self { blame, words: words.into(), remedy: None }
    }

    /// The array's ports do not serve the LUN now.
    pub(crate) fn of_access(words: impl Into<String>) -> Self {
        Self { remedy: Some(Remedy::AccessState), ..Self::new(Blame::Peer, words) }
    }
}

const NO_LUN: &str = "the target has no such LUN; `discover` lists those it has";

impl Probe {
    pub(crate) fn new(commands: &'static [ProbeCommand], lun: u16) -> Self {
        Self { commands, at: 0, facts: DeviceFacts { lun, ..DeviceFacts::default() } }
    }

    /// The next command as a task of `owner`; none when all are done.
    pub(crate) fn next(&mut self, lun: Lun, owner: Owner) -> Option<NewTask> {
        while self.commands.get(self.at).is_some_and(|command| command.is_answered(&self.facts)) {
            self.at += 1;
        }
        Some(probe_task(*self.commands.get(self.at)?, lun, owner))
    }

    /// Handles the answer to the last command of [`Self::next`].
    pub(crate) fn on_answer(&mut self, answer: Answer, reply: &[u8]) -> Result<(), Problem> {
        let Some(command) = self.commands.get(self.at) else {
            unreachable!("an answer belongs to the command that `next` returned");
        };
        self.at += 1;
        match answer {
            Answer::Good => {
                command.parse(reply, &mut self.facts).map_err(|words| Problem::new(Blame::Peer, words))
            }
            Answer::Failed(IoError::CheckCondition(sense)) if sense.code == code::LUN_NOT_SUPPORTED => {
                Err(Problem::new(Blame::User, NO_LUN))
            }
            Answer::Failed(IoError::CheckCondition(_)) if command.may_be_refused() => Ok(()),
            Answer::Failed(error) => {
                let words = format!("{}: {error}", command.name());
                let is_of_access = matches!(error, IoError::CheckCondition(sense)
                    if AccessState::from_refusal(sense).is_some());
                if is_of_access {
                    return Err(Problem::of_access(words));
                }
                // What is no disk need not know the command.
                Err(check_kind(&self.facts).err().unwrap_or_else(|| Problem::new(Blame::Peer, words)))
            }
        }
    }
}

/// A probe command as a task of `owner`.
pub(crate) fn probe_task(command: ProbeCommand, lun: Lun, owner: Owner) -> NewTask {
    let (cdb, len_bytes) = command.cdb();
    let payload = if len_bytes > 0 { Payload::Kept } else { Payload::None };
    let footprint = Footprint { start: 0, end: 0, changes: false };
    NewTask { lun, cdb, len_bytes, payload, footprint, ..NewTask::control(owner) }
}

/// Whether INQUIRY has told of a disk, if it was answered.
fn check_kind(facts: &DeviceFacts) -> Result<(), Problem> {
    /// Peripheral qualifier: the target has no device here, whether it could have one or not.
    const NOT_CONNECTED: u8 = 0xe0;
    if facts.peripheral & NOT_CONNECTED != 0 {
        return Err(Problem::new(Blame::User, NO_LUN));
    }
    if facts.peripheral != 0 {
        let kind = match facts.peripheral {
            0x01 => "a tape drive",
            0x05 => "a CD or DVD drive",
            0x08 => "a medium changer",
            0x0c => "the array's controller",
            0x0d => "an enclosure",
            _ => "another device",
        };
        let words =
            format!("not a disk but {kind} (SCSI device type {}): name another LUN", facts.peripheral);
        return Err(Problem::new(Blame::User, words));
    }
    Ok(())
}

/// Whether these are the replies of a disk that takes I/O.
pub(crate) fn check_disk(facts: &DeviceFacts) -> Result<(), Problem> {
    check_kind(facts)?;
    if !facts.block_bytes.is_power_of_two() || facts.block_bytes < 512 {
        let words = format!("blocks of {} bytes are not supported", facts.block_bytes);
        return Err(Problem::new(Blame::Peer, words));
    }
    Ok(())
}

/// Whether `now` comes from the same disk as `old`. The disk may have grown.
pub(crate) fn same_disk(old: &DeviceFacts, now: &DeviceFacts) -> Result<(), String> {
    let who = |facts: &DeviceFacts| {
        let DeviceFacts { vendor, product, serial, block_bytes, peripheral, .. } = facts;
        format!(
            "{vendor} {product} serial \"{serial}\", device type {peripheral:#x}, {block_bytes}-byte blocks"
        )
    };
    let (before, after) = (who(old), who(now));
    if before != after {
        return Err(format!("this is another LUN: {after}; it was {before}"));
    }
    if now.capacity_blocks < old.capacity_blocks {
        return Err(format!("the LUN has {} blocks; it had {}", now.capacity_blocks, old.capacity_blocks));
    }
    Ok(())
}

/// Whether two paths of one device lead to the same disk. Unlike after a new login, only the replies prove it: a disk
/// without any identifier is recognised by its size.
pub(crate) fn one_disk(device: &DeviceFacts, path: &DeviceFacts) -> Result<(), String> {
    if device.unit_id != path.unit_id {
        let (device, path) = (&device.unit_id, &path.unit_id);
        return Err(format!("another disk answers: identifier {path:?}; the device's is {device:?}"));
    }
    let named = !device.unit_id.is_empty() || !device.serial.is_empty();
    let grown = path.capacity_blocks > device.capacity_blocks;
    if grown && !named {
        let (device, path) = (device.capacity_blocks, path.capacity_blocks);
        return Err(format!("another disk answers: it has {path} blocks; the device has {device}"));
    }
    same_disk(device, path).map_err(|words| format!("another disk answers: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_scsi_proto::sense::{SenseCode, SenseKey};

    fn disk() -> DeviceFacts {
        DeviceFacts {
            capacity_blocks: 100,
            block_bytes: 512,
            serial: "s1".into(),
            unit_id: "naa.6001".into(),
            ..DeviceFacts::default()
        }
    }

    #[test]
    fn a_controller_that_knows_no_capacity_is_no_disk() {
        let failed = |peripheral| {
            let facts = DeviceFacts { peripheral, ..DeviceFacts::default() };
            let mut probe = Probe { commands: &[ProbeCommand::Capacity10], at: 0, facts };
            let refused = SenseCode::new(SenseKey::IllegalRequest, 0x2000);
            probe.on_answer(Answer::Failed(IoError::CheckCondition(refused)), &[]).unwrap_err()
        };
        let controller = failed(0x0c);
        assert_eq!(controller.blame, Blame::User);
        assert!(controller.words.contains("the array's controller (SCSI device type 12)"));
        let disk = failed(0);
        assert_eq!(disk.blame, Blame::Peer);
        assert!(disk.words.starts_with("READ CAPACITY (10): target: ILLEGAL REQUEST"), "{}", disk.words);
    }

    #[test]
    fn a_port_that_does_not_serve_the_lun_now_has_a_remedy_of_its_own() {
        for (code, remedy) in [
            (code::PORT_IN_STANDBY, Some(Remedy::AccessState)),
            (code::PORT_UNAVAILABLE, Some(Remedy::AccessState)),
            (0x0401, None),
        ] {
            let mut probe = Probe::new(&[ProbeCommand::TestUnitReady], 0);
            let refusal = IoError::CheckCondition(SenseCode::new(SenseKey::NotReady, code));
            let problem = probe.on_answer(Answer::Failed(refusal), &[]).unwrap_err();
            assert_eq!((problem.blame, problem.remedy), (Blame::Peer, remedy), "{}", problem.words);
        }
    }

    #[test]
    fn paths_lead_to_one_disk_or_not() {
        one_disk(&disk(), &disk()).unwrap();
        one_disk(&disk(), &DeviceFacts { capacity_blocks: 200, ..disk() }).unwrap();
        for (other, word) in [
            (DeviceFacts { unit_id: "naa.6002".into(), ..disk() }, "naa.6002"),
            (DeviceFacts { serial: "s2".into(), ..disk() }, "s2"),
            (DeviceFacts { capacity_blocks: 99, ..disk() }, "99"),
            (DeviceFacts { block_bytes: 4096, ..disk() }, "4096"),
        ] {
            let words = one_disk(&disk(), &other).unwrap_err();
            assert!(words.contains(word), "{words}");
        }
        let nameless = DeviceFacts { serial: String::new(), unit_id: String::new(), ..disk() };
        let larger = DeviceFacts { capacity_blocks: 101, ..nameless.clone() };
        assert!(one_disk(&nameless, &larger).is_err());
        one_disk(&nameless, &nameless).unwrap();
    }
}
