//! The superblock of a group at the beginning of each member, and the layout of a member.
//!
//! The superblock is one record that holds everything that must change together: the members, the regions that are being
//! written, the progress of initialisation, the journal's epoch. It has a generation. It is written to all members, to two
//! places in turn. The newest complete one on any member is the state of the group. A member with an older superblock is up
//! to date if the newest one lists it as a member: writes after its failure were acknowledged only after a newer superblock
//! had recorded the failure.

mod found;

pub(crate) use found::{Found, Superblocks, look};

use super::{
    super::{
        RaidConfig, RaidLevel,
        config::{Code, Shape},
    },
    bitmap::Bitmap,
    geometry::{Geometry, UNIT},
    journal::Epoch,
};
use crate::disk::Disk;
use bytes::{BufMut, Bytes, BytesMut};
use std::ops::Range;

/// Bytes kept for one superblock; there are two.
const SUPERBLOCK_BYTES: u64 = 64 << 10;
const JOURNAL_START: u64 = 2 * SUPERBLOCK_BYTES;
const JOURNAL_BYTES: std::ops::RangeInclusive<u64> = 128 << 10..=16 << 20;
const MAGIC: &[u8; 8] = b"LnrtRAID";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 20;
/// Most regions of a group. Random writes set the flags of each region once, so many regions cost many superblocks;
/// with few regions the check after a power cut takes longer.
const REGIONS_MAX: u64 = 256;
/// Smallest region of a member.
const REGION_BYTES_MIN: u64 = 64 << 10;
/// Checksums in a page of one unit, after its own.
pub(super) const SUMS_PER_PAGE: u64 = UNIT / 4 - 1;

/// Smallest member.
pub(crate) const MEMBER_BYTES_MIN: u64 = 1 << 20;

/// Offsets of a member's areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) journal: u64,
    pub(super) journal_len: u64,
    pub(super) sums: u64,
    pub(super) stripes_per_region: u64,
}

/// The state of the group, as stored in superblocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) set: u64,
    pub(crate) name: String,
    pub(crate) level: RaidLevel,
    pub(crate) chunk: u32,
    pub(crate) groups: u32,
    pub(crate) group: u32,
    /// Size of the smallest member when the set was made: the layout uses it.
    pub(super) member_bytes: u64,
    pub(crate) block_bytes: u32,
    pub(crate) generation: u64,
    /// Journal records of another epoch are invalid.
    pub(super) epoch: u64,
    /// Checksum pages of another series are invalid; 0: there are none.
    pub(super) sums_series: u64,
    /// Stripes before this one were initialised.
    pub(super) initialised: u64,
    pub(crate) slots: Vec<SlotRecord>,
    /// Regions whose parity or copies may disagree after a power cut.
    pub(super) unsynced: Bitmap,
    /// Regions whose checksums on disk may be old.
    pub(super) unsummed: Bitmap,
    /// Lost units: (slot, first unit, number of units).
    pub(super) marks: Vec<(u32, u64, u64)>,
    /// Whether all writes go through the journal; with a missing member they always do.
    pub(super) is_journaled: bool,
}

/// The slot of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotRecord {
    pub(crate) name: String,
    /// The generation in which the disk got this slot. It distinguishes the disk from earlier disks of the slot.
    pub(crate) id: u64,
    pub(crate) state: SlotRecordState,
}

/// See [`SlotRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotRecordState {
    InSync,
    Out,
    /// Stripes before this one are rebuilt.
    Rebuilding(u64),
}

impl Superblock {
    /// Checks a group of disks and computes its layout. `set` distinguishes sets of the same name.
    pub(crate) fn new(
        config: &RaidConfig,
        shape: Shape,
        group: usize,
        set: u64,
        disks: &[std::rc::Rc<dyn Disk>],
        member_bytes: u64,
        block_bytes: u32,
    ) -> Self {
        let slot = |disk: &std::rc::Rc<dyn Disk>| SlotRecord {
            name: disk.name().to_owned(),
            id: 1,
            state: SlotRecordState::InSync,
        };
        let mut meta = Self {
            set,
            name: config.name.clone(),
            level: config.level,
            chunk: config.chunk_bytes,
            groups: shape.groups as u32,
            group: group as u32,
            member_bytes,
            block_bytes,
            generation: 1,
            epoch: 1,
            sums_series: u64::from(config.checksums),
            initialised: 0,
            slots: disks.iter().map(slot).collect(),
            unsynced: Bitmap::default(),
            unsummed: Bitmap::default(),
            marks: Vec::new(),
            is_journaled: false,
        };
        let (geometry, layout) = meta.lay_out(shape.code);
        let regions = geometry.stripes.div_ceil(layout.stripes_per_region);
        (meta.unsynced, meta.unsummed) = (Bitmap::new(regions), Bitmap::new(regions));
        meta
    }

    /// Size of the smallest member when the set was made.
    pub(crate) fn member_bytes(&self) -> u64 {
        self.member_bytes
    }

    /// The layout. It depends only on values that never change.
    pub(super) fn lay_out(&self, code: Code) -> (Geometry, Layout) {
        // Small stripes have no advantage for copies: concurrent writers wait for a stripe.
        let chunk = u64::from(self.chunk).max(if self.level == RaidLevel::Raid1 { 256 << 10 } else { 0 });
        let journal_len = match code {
            // The journal has space for two stripes, each with the headers of its records.
            Code::Parity(_) => (self.member_bytes / 64 / UNIT * UNIT)
                .clamp(*JOURNAL_BYTES.start(), *JOURNAL_BYTES.end())
                .max(2 * (self.slots.len() as u64 + 1) * chunk),
            Code::None | Code::Copies => 0,
        };
        let sums = JOURNAL_START + journal_len;
        let sums_len = match code {
            Code::None => 0,
            Code::Copies | Code::Parity(_) => {
                (self.member_bytes.saturating_sub(sums) / UNIT).div_ceil(SUMS_PER_PAGE) * UNIT
            }
        };
        let start = (sums + sums_len).next_multiple_of(chunk);
        let stripes = self.member_bytes.saturating_sub(start) / chunk;
        let geometry = Geometry { code, members: self.slots.len(), chunk, stripes, start };
        let stripes_per_region =
            stripes.div_ceil(REGIONS_MAX).next_power_of_two().max(REGION_BYTES_MIN.div_ceil(chunk));
        (geometry, Layout { journal: JOURNAL_START, journal_len, sums, stripes_per_region })
    }

    /// The set, group and epoch of valid journal records.
    pub(super) fn journal_epoch(&self) -> Epoch {
        Epoch { set: self.set, group: self.group, number: self.epoch }
    }

    /// The superblock for one disk.
    pub(super) fn encode(&self, own: Option<(usize, u64)>) -> Bytes {
        let mut out = BytesMut::with_capacity(4096);
        out.put_bytes(0, HEADER_BYTES);
        let (slot, id) = own.map_or((u32::MAX, 0), |(slot, id)| (slot as u32, id));
        out.put_u32_le(slot);
        out.put_u64_le(id);
        out.put_u64_le(self.set);
        put_text(&mut out, &self.name);
        put_text(&mut out, &self.level.to_string());
        for number in [self.chunk, self.groups, self.group, self.block_bytes] {
            out.put_u32_le(number);
        }
        for number in [self.member_bytes, self.generation, self.epoch, self.sums_series, self.initialised] {
            out.put_u64_le(number);
        }
        out.put_u32_le(self.slots.len() as u32);
        for slot in &self.slots {
            put_text(&mut out, &slot.name);
            out.put_u64_le(slot.id);
            out.put_u64_le(match slot.state {
                SlotRecordState::InSync => u64::MAX,
                SlotRecordState::Out => u64::MAX - 1,
                SlotRecordState::Rebuilding(done) => done,
            });
        }
        for bits in [&self.unsynced, &self.unsummed] {
            out.put_u32_le(bits.words().len() as u32);
            bits.words().iter().for_each(|word| out.put_u64_le(*word));
        }
        out.put_u32_le(self.marks.len() as u32);
        for (slot, unit, len) in &self.marks {
            out.put_u32_le(*slot);
            out.put_u64_le(*unit);
            out.put_u64_le(*len);
        }
        out.put_u8(u8::from(self.is_journaled));
        seal(out)
    }

    /// Whether all marks still fit into a superblock.
    pub(super) fn fits(&self) -> bool {
        self.encode(None).len() as u64 <= SUPERBLOCK_BYTES
    }

    /// Zeros for both superblocks of a disk.
    pub(super) fn no_superblocks() -> Bytes {
        Bytes::from(vec![0; JOURNAL_START as usize])
    }

    /// Whether at least one stripe fits on the members; otherwise the size that they need.
    pub(crate) fn check_size(&self, code: Code) -> Result<(), u64> {
        let (geometry, layout) = self.lay_out(code);
        let least = layout.sums.next_multiple_of(geometry.chunk) + 2 * geometry.chunk;
        if geometry.stripes > 0 { Ok(()) } else { Err(least.max(MEMBER_BYTES_MIN)) }
    }

    /// Makes the number of flags equal to the number of regions: superblocks store whole words.
    pub(super) fn fit_regions(&mut self, regions: u64) {
        for bits in [&mut self.unsynced, &mut self.unsummed] {
            *bits = Bitmap::from_words(regions, bits.words());
        }
    }

    /// Marks a unit as lost.
    pub(super) fn mark(&mut self, slot: u32, unit: u64) {
        if self.has_mark(slot, unit..unit + 1) {
            return;
        }
        // Losses are usually consecutive.
        if let Some(run) = self.marks.iter_mut().find(|(of, from, len)| *of == slot && from + len == unit) {
            run.2 += 1;
        } else {
            self.marks.push((slot, unit, 1));
        }
    }

    /// Whether any of the units is marked.
    pub(super) fn has_mark(&self, slot: u32, units: Range<u64>) -> bool {
        self.marks.iter().any(|&(of, from, len)| of == slot && from < units.end && units.start < from + len)
    }

    /// Removes the marks of units.
    pub(super) fn unmark(&mut self, slot: u32, units: Range<u64>) {
        let mut left = Vec::new();
        for (of, from, len) in std::mem::take(&mut self.marks) {
            let end = from + len;
            if of != slot || end <= units.start || units.end <= from {
                left.push((of, from, len));
                continue;
            }
            left.extend((from < units.start).then(|| (of, from, units.start - from)));
            left.extend((units.end < end).then(|| (of, units.end, end - units.end)));
        }
        self.marks = left;
    }

    /// The offset of the superblock of this generation on a disk.
    pub(super) fn place(&self) -> u64 {
        self.generation % 2 * SUPERBLOCK_BYTES
    }
}

/// The header: magic, version, length with the header, checksum of all of it with the checksum 0.
fn seal(mut out: BytesMut) -> Bytes {
    let len = out.len();
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    out[12..16].copy_from_slice(&(len as u32).to_le_bytes());
    let sum = linerate_crc32c::crc32c(&out);
    out[16..20].copy_from_slice(&sum.to_le_bytes());
    out.resize(len.next_multiple_of(UNIT as usize), 0);
    out.freeze()
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u32_le(text.len() as u32);
    out.put_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{found::open, *};
    use crate::disk::MemoryDisk;
    use futures::executor::block_on;
    use std::rc::Rc;

    fn meta() -> Superblock {
        let config = RaidConfig::new("r0", RaidLevel::Raid5);
        let disk =
            |number| Rc::new(MemoryDisk::new(format!("d{number}"), 8 << 20, 512).unwrap()) as Rc<dyn Disk>;
        let shape = config.shape(3).unwrap();
        let mut meta = Superblock::new(&config, shape, 0, 77, &[disk(0), disk(1), disk(2)], 8 << 20, 512);
        meta.slots[1].state = SlotRecordState::Rebuilding(5);
        meta.slots[2].state = SlotRecordState::Out;
        meta.marks.push((1, 9, 3));
        meta.unsynced.set(3, true);
        meta
    }

    #[test]
    fn the_newest_whole_superblock_is_found() {
        let disk = MemoryDisk::new("d0", 8 << 20, 512).unwrap();
        assert!(matches!(block_on(look(&disk)), Superblocks::Absent));
        let mut meta = meta();
        for generation in 4..7 {
            meta.generation = generation;
            block_on(disk.write(meta.place(), meta.encode(Some((2, 1))), true)).unwrap();
        }
        let newest = || match block_on(look(&disk)) {
            Superblocks::Whole { found, is_alone } => (found, is_alone),
            other => panic!("{other:?}"),
        };
        let (found, is_alone) = newest();
        assert!(!is_alone);
        assert_eq!(found.own, Some((2, 1)));
        assert_eq!(found.meta.encode(None), meta.encode(None));
        block_on(disk.write(meta.place(), Bytes::from(vec![1; 512]), true)).unwrap();
        assert_eq!(newest().0.meta.generation, 5);
        // Damage differs from absence, and a later version differs from damage.
        let mut damaged = meta.encode(None).slice(..512).to_vec();
        damaged[40] ^= 1;
        for place in [0, SUPERBLOCK_BYTES] {
            block_on(disk.write(place, damaged.clone().into(), true)).unwrap();
        }
        assert!(matches!(block_on(look(&disk)), Superblocks::Damaged));
        block_on(disk.write(0, Superblock::no_superblocks(), true)).unwrap();
        let mut later = meta.encode(None).slice(..512).to_vec();
        later[8] = 2;
        block_on(disk.write(meta.place(), later.into(), true)).unwrap();
        assert!(matches!(block_on(look(&disk)), Superblocks::Version(2)));
    }

    #[test]
    fn a_superblock_from_before_the_journal_was_a_choice_is_read() {
        let superblock = Superblock { is_journaled: true, ..meta() }.encode(Some((2, 1)));
        assert!(open(&superblock).unwrap().meta.is_journaled);
        let len = u32::from_le_bytes(superblock[12..16].try_into().unwrap()) as usize;
        let mut shorter = BytesMut::from(&superblock[..len - 1]);
        shorter[16..HEADER_BYTES].fill(0);
        let found = open(&seal(shorter)).unwrap();
        assert_eq!(
            (found.own, found.meta),
            (Some((2, 1)), Superblock { ..open(&meta().encode(None)).unwrap().meta })
        );
    }

    #[test]
    fn marks_join_and_split() {
        let mut meta = Superblock { marks: Vec::new(), ..meta() };
        (10..20).for_each(|unit| meta.mark(1, unit));
        meta.mark(1, 15);
        meta.mark(2, 20);
        assert_eq!(meta.marks, [(1, 10, 10), (2, 20, 1)]);
        meta.unmark(1, 12..14);
        assert_eq!(meta.marks, [(1, 10, 2), (1, 14, 6), (2, 20, 1)]);
        assert!(meta.has_mark(1, 0..11) && !meta.has_mark(1, 12..14) && !meta.has_mark(0, 0..99));
    }

    #[test]
    fn areas_do_not_overlap_and_regions_are_few() {
        for member_bytes in [MEMBER_BYTES_MIN, 100 << 20, 3 << 40] {
            for code in [Code::None, Code::Copies, Code::Parity(2)] {
                let (geometry, layout) = Superblock { member_bytes, ..meta() }.lay_out(code);
                let pages = (geometry.stripes * geometry.chunk / UNIT).div_ceil(SUMS_PER_PAGE);
                assert!(layout.journal + layout.journal_len <= layout.sums);
                assert!(code == Code::None || layout.sums + pages * UNIT <= geometry.start);
                assert!(geometry.start + geometry.stripes * geometry.chunk <= member_bytes);
                assert!(
                    geometry.stripes > 0
                        && geometry.stripes.div_ceil(layout.stripes_per_region) <= REGIONS_MAX
                );
            }
        }
    }
}
