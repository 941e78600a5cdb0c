//! Superblocks as found on disks, from any version and any array.

use super::{
    super::bitmap::Bitmap, HEADER_BYTES, MAGIC, MEMBER_BYTES_MIN, SUPERBLOCK_BYTES, SlotRecord,
    SlotRecordState, Superblock, VERSION,
};
use crate::{disk::Disk, raid::RaidError};
use bytes::{Buf, BytesMut, TryGetError};

/// A superblock of one disk.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) meta: Superblock,
    /// Its slot, and the id that it got with the slot; None: a spare.
    pub(crate) own: Option<(usize, u64)>,
}

/// See [`look`].
#[derive(Clone, Debug)]
pub(crate) enum Superblocks {
    /// No superblock of a RAID set.
    Absent,
    /// There were some, but none is valid.
    Damaged,
    /// They have a version that this program does not know.
    Version(u32),
    /// The newest valid one.
    Whole {
        found: Box<Found>,
        /// The other one is damaged.
        is_alone: bool,
    },
}

/// The superblocks of a disk. If they cannot be read, they count as damaged.
pub(crate) async fn look(disk: &dyn Disk) -> Superblocks {
    if disk.size_bytes() < MEMBER_BYTES_MIN {
        return Superblocks::Absent;
    }
    let read = |copy| disk.read(copy * SUPERBLOCK_BYTES, BytesMut::zeroed(SUPERBLOCK_BYTES as usize));
    let (first, second) = futures::join!(read(0), read(1));
    let (mut whole, mut is_damaged, mut version) = (Vec::new(), false, None);
    for copy in [first, second] {
        let Ok(bytes) = copy else {
            is_damaged = true;
            continue;
        };
        match open(&bytes) {
            Some(found) => whole.push(found),
            None if bytes.starts_with(MAGIC) => {
                match u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) {
                    VERSION => is_damaged = true,
                    other => version = Some(other),
                }
            }
            None => {}
        }
    }
    match whole.into_iter().max_by_key(|found| found.meta.generation) {
        Some(found) => {
            Superblocks::Whole { found: Box::new(found), is_alone: is_damaged || version.is_some() }
        }
        None if is_damaged => Superblocks::Damaged,
        None => version.map_or(Superblocks::Absent, Superblocks::Version),
    }
}

/// The superblock in these bytes, if it is valid.
pub(super) fn open(bytes: &[u8]) -> Option<Found> {
    let len = u32::from_le_bytes(bytes[12..16].try_into().ok()?) as usize;
    let sealed = bytes.get(..len)?;
    if len < HEADER_BYTES || &sealed[..8] != MAGIC || sealed[8..12] != VERSION.to_le_bytes() {
        return None;
    }
    let sum = u32::from_le_bytes(sealed[16..20].try_into().ok()?);
    let computed = linerate_crc32c::crc32c_append(linerate_crc32c::crc32c(&sealed[..16]), &[0; 4]);
    if linerate_crc32c::crc32c_append(computed, &sealed[HEADER_BYTES..]) != sum {
        return None;
    }
    decode(&mut &sealed[HEADER_BYTES..]).ok()
}

/// Another program wrote a sealed body that does not decode.
struct Foreign;

impl From<TryGetError> for Foreign {
    fn from(_: TryGetError) -> Self {
        Self
    }
}

impl From<std::string::FromUtf8Error> for Foreign {
    fn from(_: std::string::FromUtf8Error) -> Self {
        Self
    }
}

impl From<RaidError> for Foreign {
    fn from(_: RaidError) -> Self {
        Self
    }
}

fn decode(from: &mut &[u8]) -> Result<Found, Foreign> {
    let (slot, id) = (from.try_get_u32_le()?, from.try_get_u64_le()?);
    let own = (slot != u32::MAX).then_some((slot as usize, id));
    let set = from.try_get_u64_le()?;
    let name = text(from)?;
    let level = text(from)?.parse()?;
    let (chunk, groups) = (from.try_get_u32_le()?, from.try_get_u32_le()?);
    let (group, block_bytes) = (from.try_get_u32_le()?, from.try_get_u32_le()?);
    let (member_bytes, generation) = (from.try_get_u64_le()?, from.try_get_u64_le()?);
    let (epoch, sums_series) = (from.try_get_u64_le()?, from.try_get_u64_le()?);
    let initialised = from.try_get_u64_le()?;
    let slots = (0..from.try_get_u32_le()?).map(|_| slot_meta(from)).collect::<Result<Vec<_>, _>>()?;
    let (unsynced, unsummed) = (bits(from)?, bits(from)?);
    let mark =
        |from: &mut &[u8]| Ok((from.try_get_u32_le()?, from.try_get_u64_le()?, from.try_get_u64_le()?));
    let marks = (0..from.try_get_u32_le()?).map(|_| mark(from)).collect::<Result<Vec<_>, Foreign>>()?;
    // Superblocks of the first version end here.
    let is_journaled = from.try_get_u8().is_ok_and(|flag| flag != 0);
    let meta = Superblock {
        set,
        name,
        level,
        chunk,
        groups,
        group,
        member_bytes,
        block_bytes,
        generation,
        epoch,
        sums_series,
        initialised,
        slots,
        unsynced,
        unsummed,
        marks,
        is_journaled,
    };
    Ok(Found { meta, own })
}

fn slot_meta(from: &mut &[u8]) -> Result<SlotRecord, Foreign> {
    let (name, id) = (text(from)?, from.try_get_u64_le()?);
    let state = match from.try_get_u64_le()? {
        u64::MAX => SlotRecordState::InSync,
        state if state == u64::MAX - 1 => SlotRecordState::Out,
        done => SlotRecordState::Rebuilding(done),
    };
    Ok(SlotRecord { name, id, state })
}

fn text(from: &mut &[u8]) -> Result<String, Foreign> {
    let len = from.try_get_u32_le()? as usize;
    if len > from.len() {
        return Err(Foreign);
    }
    Ok(String::from_utf8(from.copy_to_bytes(len).to_vec())?)
}

fn bits(from: &mut &[u8]) -> Result<Bitmap, Foreign> {
    let words = (0..from.try_get_u32_le()?).map(|_| from.try_get_u64_le()).collect::<Result<Vec<_>, _>>()?;
    Ok(Bitmap::from_words(words.len() as u64 * 64, &words))
}
