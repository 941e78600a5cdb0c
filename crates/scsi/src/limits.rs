//! Limits that the unit publishes (VPD B0, RECEIVE COPY RESULTS) and enforces.

/// Largest payload of one command in bytes (VPD B0 MAXIMUM TRANSFER LENGTH).
pub const MAX_TRANSFER_BYTES: u32 = 8 << 20;
/// Largest piece that a task reads from the medium, or fills, in one step.
pub const MEDIUM_CHUNK_BYTES: u32 = 1 << 20;

/// COMPARE AND WRITE: the maximum of its one-byte length field.
pub(crate) const MAX_COMPARE_BLOCKS: u8 = 255;
/// A few other commands can read or write all blocks that one command fills.
pub(crate) const MAX_WRITE_SAME_BLOCKS: u32 = 1 << 15;
/// All descriptors of one UNMAP together.
pub(crate) const MAX_UNMAP_BLOCKS: u32 = 1 << 20;
pub(crate) const MAX_UNMAP_DESCRIPTORS: u32 = 256;
