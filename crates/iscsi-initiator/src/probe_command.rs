//! The commands of a probe, and how their replies change [`DeviceFacts`].

use crate::facts::DeviceFacts;
use linerate_scsi_proto::{
    alua,
    capacity::{self, Capacity},
    cdb::{self, Cdb},
    inquiry::{STANDARD_BYTES, StandardInquiry},
    log_page::{self, SpaceUse},
    lun, mode,
    vpd::{self, Association, BlockLimits, Provisioning, designator, page},
    wire::text,
};

/// One command of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeCommand {
    TestUnitReady,
    Inquiry,
    SerialNumber,
    Identification,
    PortGroups,
    BlockLimits,
    Provisioning,
    Capacity16,
    Capacity10,
    Caching,
    SpaceUse,
    Luns,
}

/// Space for about sixty port groups.
const GROUPS_BYTES: u32 = 1024;
/// Space for a mode page or a log page.
const PAGE_BYTES: u8 = 252;
/// Space for 8191 LUNs.
const LUN_LIST_BYTES: u32 = 65_528 + 8;

impl ProbeCommand {
    /// The probe of a disk, in order.
    pub(crate) const DISK: &[Self] = &[
        Self::TestUnitReady,
        Self::Inquiry,
        Self::SerialNumber,
        Self::BlockLimits,
        Self::Provisioning,
        Self::Capacity16,
        Self::Capacity10,
    ];
    /// The probe of a disk behind one of several paths. It begins with commands that a LUN answers in any access state.
    pub(crate) const PATH: &[Self] = &[
        Self::Inquiry,
        Self::SerialNumber,
        Self::Identification,
        Self::PortGroups,
        Self::TestUnitReady,
        Self::BlockLimits,
        Self::Provisioning,
        Self::Capacity16,
        Self::Capacity10,
    ];
    /// The probe of a disk that is only looked at: what it tells about itself, and no I/O afterwards.
    pub(crate) const LOOK: &[Self] = &[
        Self::TestUnitReady,
        Self::Inquiry,
        Self::SerialNumber,
        Self::Identification,
        Self::BlockLimits,
        Self::Provisioning,
        Self::Capacity16,
        Self::Capacity10,
        Self::Caching,
        Self::SpaceUse,
    ];
    /// The probe of a target, through LUN 0.
    pub(crate) const TARGET: &[Self] = &[Self::Luns];

    /// CDB and allocation length in bytes.
    pub(crate) fn cdb(self) -> (Cdb, u32) {
        let inquiry = |page: Option<u8>, len: u16| (cdb::inquiry(page, len), u32::from(len));
        match self {
            Self::TestUnitReady => (cdb::test_unit_ready(), 0),
            Self::Inquiry => inquiry(None, STANDARD_BYTES as u16),
            Self::SerialNumber => inquiry(Some(page::SERIAL_NUMBER), 252),
            Self::Identification => inquiry(Some(page::IDENTIFICATION), 1024),
            Self::PortGroups => (cdb::report_target_port_groups(GROUPS_BYTES), GROUPS_BYTES),
            Self::BlockLimits => inquiry(Some(page::BLOCK_LIMITS), 64),
            Self::Provisioning => inquiry(Some(page::PROVISIONING), 64),
            Self::Capacity16 => {
                let len = capacity::LEN_16_BYTES as u32;
                (cdb::read_capacity_16(len), len)
            }
            Self::Capacity10 => (cdb::read_capacity_10(), capacity::LEN_10_BYTES as u32),
            Self::Caching => (cdb::mode_sense_6(mode::CACHING_PAGE, PAGE_BYTES), u32::from(PAGE_BYTES)),
            Self::SpaceUse => {
                (cdb::log_sense(log_page::PROVISIONING, PAGE_BYTES.into()), u32::from(PAGE_BYTES))
            }
            Self::Luns => (cdb::report_luns(LUN_LIST_BYTES), LUN_LIST_BYTES),
        }
    }

    /// As SCSI calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TestUnitReady => "TEST UNIT READY",
            Self::Inquiry
            | Self::SerialNumber
            | Self::Identification
            | Self::BlockLimits
            | Self::Provisioning => "INQUIRY",
            Self::PortGroups => "REPORT TARGET PORT GROUPS",
            Self::Capacity16 => "READ CAPACITY (16)",
            Self::Capacity10 => "READ CAPACITY (10)",
            Self::Caching => "MODE SENSE (6)",
            Self::SpaceUse => "LOG SENSE",
            Self::Luns => "REPORT LUNS",
        }
    }

    /// A target may refuse this command and still be a good disk.
    pub(crate) fn may_be_refused(self) -> bool {
        matches!(
            self,
            Self::SerialNumber
                | Self::Identification
                | Self::PortGroups
                | Self::BlockLimits
                | Self::Provisioning
                | Self::Capacity16
                | Self::Caching
                | Self::SpaceUse
        )
    }

    /// The command is not needed: an earlier reply has the answer, or the LUN has none.
    pub(crate) fn is_answered(self, facts: &DeviceFacts) -> bool {
        match self {
            Self::Capacity10 => facts.block_bytes != 0,
            Self::SpaceUse => !facts.thin,
            Self::PortGroups => facts.tpgs == 0 || facts.port_group.is_none(),
            _ => false,
        }
    }

    /// Reads the reply into `facts`; a message if it cannot be used.
    pub(crate) fn parse(self, reply: &[u8], facts: &mut DeviceFacts) -> Result<(), &'static str> {
        match self {
            Self::TestUnitReady => {}
            Self::Inquiry => {
                let inquiry = StandardInquiry::parse(reply).ok_or("INQUIRY data is too short")?;
                (facts.peripheral, facts.tpgs) = (inquiry.peripheral, inquiry.tpgs);
                (facts.vendor, facts.product) = (inquiry.vendor, inquiry.product);
                facts.revision = inquiry.revision;
            }
            Self::SerialNumber => facts.serial = text(vpd::page_body(reply, page::SERIAL_NUMBER)),
            Self::Identification => identification(vpd::page_body(reply, page::IDENTIFICATION), facts),
            Self::PortGroups => {
                let groups = alua::parse_groups(reply).into_iter();
                facts.groups = groups.map(|group| (group.tag, group.state)).collect();
            }
            Self::BlockLimits => {
                let limits = BlockLimits::parse(vpd::page_body(reply, page::BLOCK_LIMITS));
                facts.max_transfer_blocks = limits.max_transfer_blocks;
                facts.optimal_transfer_blocks = limits.best_transfer_blocks;
            }
            Self::Provisioning => {
                facts.unmap = Provisioning::parse(vpd::page_body(reply, page::PROVISIONING)).unmap;
            }
            Self::Capacity16 => {
                let capacity = Capacity::parse_16(reply).ok_or("READ CAPACITY (16) data is too short")?;
                set_capacity(capacity, facts);
                facts.lowest_aligned_block = Capacity::lowest_aligned_block(reply);
                facts.long_commands = true;
            }
            Self::Capacity10 => {
                let capacity = Capacity::parse_10(reply).ok_or("READ CAPACITY (10) data is too short")?;
                set_capacity(Capacity { thin: facts.thin, ..capacity }, facts);
            }
            Self::Caching => facts.write_cache = mode::write_cache(reply),
            Self::SpaceUse => facts.used_percent = SpaceUse::parse(reply).and_then(SpaceUse::used_percent),
            Self::Luns => facts.luns = lun::parse_list(reply).ok_or("REPORT LUNS data is too short")?,
        }
        Ok(())
    }
}

fn set_capacity(capacity: Capacity, facts: &mut DeviceFacts) {
    facts.capacity_blocks = capacity.blocks;
    facts.block_bytes = capacity.block_bytes;
    facts.physical_block_bytes = capacity.physical_block_bytes;
    facts.thin = capacity.thin;
}

/// The unit's own identifier, and the port group of the answering port.
fn identification(body: &[u8], facts: &mut DeviceFacts) {
    for item in vpd::designators(body) {
        match (item.association, item.kind) {
            (Association::Unit, designator::NAA) => facts.unit_id = unit_id("naa", item.value),
            (Association::Unit, designator::EUI_64) if facts.unit_id.is_empty() => {
                facts.unit_id = unit_id("eui", item.value);
            }
            (Association::Port, designator::PORT_GROUP) => facts.port_group = vpd::parse_number(item.value),
            _ => {}
        }
    }
}

fn unit_id(authority: &str, value: &[u8]) -> String {
    let digits = value.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once(format!("{authority}.")).chain(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_scsi_proto::alua::AccessState;

    #[test]
    fn short_and_false_replies_do_not_panic() {
        let all = [ProbeCommand::DISK, ProbeCommand::PATH, ProbeCommand::LOOK, ProbeCommand::TARGET].concat();
        for command in all {
            for len in 0..100 {
                for byte in [0x00, 0xff, 0x80, 0xb0] {
                    let mut facts = DeviceFacts::default();
                    let _ = command.parse(&vec![byte; len], &mut facts);
                    assert!(facts.luns.len() <= 12 && facts.serial.len() <= 100);
                }
            }
        }
    }

    #[test]
    fn the_long_capacity_makes_the_short_one_unnecessary() {
        let capacity = Capacity {
            blocks: 256,
            block_bytes: 512,
            physical_block_bytes: 4096,
            thin: true,
            unmapped_reads_zeros: true,
        };
        let mut facts = DeviceFacts::default();
        ProbeCommand::Capacity16.parse(&capacity.encode_16(), &mut facts).unwrap();
        assert_eq!((facts.capacity_blocks, facts.block_bytes, facts.physical_block_bytes), (256, 512, 4096));
        assert!(facts.thin && facts.long_commands && ProbeCommand::Capacity10.is_answered(&facts));
    }

    #[test]
    fn identifier_and_group_are_found_among_other_designators() {
        let mut body = vec![1, 0x03, 0, 8, 0x60, 1, 2, 3, 4, 5, 6, 7];
        body.extend([2, 0x01, 0, 3, b'a', b'b', b'c']);
        body.extend([0x51, 0x94, 0, 4, 0, 0, 0, 9]);
        body.extend([0x51, 0x95, 0, 4, 0, 0, 1, 2]);
        let mut facts = DeviceFacts::default();
        identification(&body, &mut facts);
        assert_eq!((facts.unit_id.as_str(), facts.port_group), ("naa.6001020304050607", Some(0x102)));
        for len in 0..body.len() {
            identification(&body[..len], &mut DeviceFacts::default());
        }
    }

    #[test]
    fn the_state_is_that_of_the_port_that_answered() {
        let groups = vec![(1, AccessState::ActiveOptimized), (7, AccessState::Standby)];
        let facts = DeviceFacts { port_group: Some(7), groups, ..DeviceFacts::default() };
        assert_eq!(facts.access(), AccessState::Standby);
        assert_eq!(DeviceFacts::default().access(), AccessState::ActiveOptimized);
    }
}
