//! Operation codes (SPC-4 annex E) and service actions of the commands that Linerate sends or supports.

macro_rules! opcodes {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: u8 = $code;)*

        /// Name of a command; none for a code that is not in this list.
        pub fn name(opcode: u8) -> Option<&'static str> {
            match opcode { $($code => Some($text),)* _ => None }
        }
    };
}

opcodes! {
    TEST_UNIT_READY = 0x00, "TEST UNIT READY";
    REQUEST_SENSE = 0x03, "REQUEST SENSE";
    READ_6 = 0x08, "READ (6)";
    WRITE_6 = 0x0A, "WRITE (6)";
    INQUIRY = 0x12, "INQUIRY";
    MODE_SELECT_6 = 0x15, "MODE SELECT (6)";
    RESERVE_6 = 0x16, "RESERVE (6)";
    RELEASE_6 = 0x17, "RELEASE (6)";
    MODE_SENSE_6 = 0x1A, "MODE SENSE (6)";
    START_STOP_UNIT = 0x1B, "START STOP UNIT";
    SEND_DIAGNOSTIC = 0x1D, "SEND DIAGNOSTIC";
    READ_CAPACITY_10 = 0x25, "READ CAPACITY (10)";
    READ_10 = 0x28, "READ (10)";
    WRITE_10 = 0x2A, "WRITE (10)";
    WRITE_AND_VERIFY_10 = 0x2E, "WRITE AND VERIFY (10)";
    VERIFY_10 = 0x2F, "VERIFY (10)";
    PRE_FETCH_10 = 0x34, "PRE-FETCH (10)";
    SYNCHRONIZE_CACHE_10 = 0x35, "SYNCHRONIZE CACHE (10)";
    READ_DEFECT_DATA_10 = 0x37, "READ DEFECT DATA (10)";
    WRITE_SAME_10 = 0x41, "WRITE SAME (10)";
    UNMAP = 0x42, "UNMAP";
    LOG_SENSE = 0x4D, "LOG SENSE";
    MODE_SELECT_10 = 0x55, "MODE SELECT (10)";
    RESERVE_10 = 0x56, "RESERVE (10)";
    RELEASE_10 = 0x57, "RELEASE (10)";
    MODE_SENSE_10 = 0x5A, "MODE SENSE (10)";
    PERSISTENT_RESERVE_IN = 0x5E, "PERSISTENT RESERVE IN";
    PERSISTENT_RESERVE_OUT = 0x5F, "PERSISTENT RESERVE OUT";
    EXTENDED_COPY = 0x83, "EXTENDED COPY";
    RECEIVE_COPY_RESULTS = 0x84, "RECEIVE COPY RESULTS";
    READ_16 = 0x88, "READ (16)";
    COMPARE_AND_WRITE = 0x89, "COMPARE AND WRITE";
    WRITE_16 = 0x8A, "WRITE (16)";
    OR_WRITE_16 = 0x8B, "ORWRITE (16)";
    WRITE_AND_VERIFY_16 = 0x8E, "WRITE AND VERIFY (16)";
    VERIFY_16 = 0x8F, "VERIFY (16)";
    PRE_FETCH_16 = 0x90, "PRE-FETCH (16)";
    SYNCHRONIZE_CACHE_16 = 0x91, "SYNCHRONIZE CACHE (16)";
    WRITE_SAME_16 = 0x93, "WRITE SAME (16)";
    SERVICE_ACTION_IN_16 = 0x9E, "SERVICE ACTION IN (16)";
    REPORT_LUNS = 0xA0, "REPORT LUNS";
    MAINTENANCE_IN = 0xA3, "MAINTENANCE IN";
    READ_12 = 0xA8, "READ (12)";
    WRITE_12 = 0xAA, "WRITE (12)";
    WRITE_AND_VERIFY_12 = 0xAE, "WRITE AND VERIFY (12)";
    VERIFY_12 = 0xAF, "VERIFY (12)";
    READ_DEFECT_DATA_12 = 0xB7, "READ DEFECT DATA (12)";
}

/// Service action of SERVICE ACTION IN (16): READ CAPACITY (16).
pub const READ_CAPACITY_16: u8 = 0x10;
/// Service action of SERVICE ACTION IN (16): GET LBA STATUS.
pub const GET_LBA_STATUS: u8 = 0x12;
/// Service action of MAINTENANCE IN: REPORT TARGET PORT GROUPS.
pub const REPORT_TARGET_PORT_GROUPS: u8 = 0x0A;
/// Service action of MAINTENANCE IN: REPORT SUPPORTED OPERATION CODES.
pub const REPORT_SUPPORTED_OPCODES: u8 = 0x0C;

/// Service action of a CDB: bits 4 to 0 of byte 1. It has a meaning only for the commands that have one.
pub fn service_action(cdb: &[u8; 16]) -> u8 {
    cdb[1] & 0x1F
}
