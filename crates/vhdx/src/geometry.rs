//! Sizes of a virtual disk, and the numbers that follow from them (MS-VHDX 2.4 and 2.5).

use crate::wire::{KIB, MIB};

/// Largest virtual disk (MS-VHDX 2.6.2.2).
const SIZE_BYTES_MAX: u64 = 64 << 40;
/// Limits of a block (MS-VHDX 2.6.2.1).
const BLOCK_BYTES_MIN: u32 = 1 << 20;
const BLOCK_BYTES_MAX: u32 = 256 << 20;
/// Sectors that one sector bitmap block describes (MS-VHDX 2.4).
const CHUNK_SECTORS: u64 = 1 << 23;
const BAT_ENTRY_BYTES: u64 = 8;

/// Sizes that fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "units end a name")]
pub(crate) struct ImageGeometry {
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u32,
    pub(crate) logical_sector_bytes: u32,
    pub(crate) physical_sector_bytes: u32,
}

impl ImageGeometry {
    /// Errors: which size is wrong, and what it may be.
    pub(crate) fn new(
        size_bytes: u64,
        block_bytes: u32,
        logical_sector_bytes: u32,
        physical_sector_bytes: u32,
    ) -> Result<Self, String> {
        for (name, bytes) in [("logical", logical_sector_bytes), ("physical", physical_sector_bytes)] {
            if bytes != 512 && bytes != 4096 {
                return Err(format!("{name} sectors of {bytes} bytes; 512 and 4096 are possible"));
            }
        }
        if !block_bytes.is_power_of_two() || !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes) {
            return Err(format!(
                "blocks of {block_bytes} bytes; powers of two from 1 to 256 MiB are possible"
            ));
        }
        if size_bytes == 0
            || size_bytes > SIZE_BYTES_MAX
            || !size_bytes.is_multiple_of(u64::from(logical_sector_bytes))
        {
            return Err(format!(
                "a disk of {size_bytes} bytes; whole sectors of {logical_sector_bytes} bytes up to 64 TiB are possible"
            ));
        }
        Ok(Self { size_bytes, block_bytes, logical_sector_bytes, physical_sector_bytes })
    }

    /// Number of payload blocks; at least one.
    pub(crate) fn blocks(&self) -> u64 {
        self.size_bytes.div_ceil(u64::from(self.block_bytes))
    }

    /// Payload blocks per sector bitmap block.
    fn chunk_ratio(&self) -> u64 {
        CHUNK_SECTORS * u64::from(self.logical_sector_bytes) / u64::from(self.block_bytes)
    }

    /// Index of a payload block's entry. The entry of a sector bitmap block follows those of its chunk.
    pub(crate) fn bat_index(&self, block: u64) -> u64 {
        block + block / self.chunk_ratio()
    }

    /// Whether an entry is that of a sector bitmap block.
    pub(crate) fn is_bitmap_entry(&self, index: u64) -> bool {
        index % (self.chunk_ratio() + 1) == self.chunk_ratio()
    }

    /// Entries up to that of the last payload block.
    pub(crate) fn bat_entries(&self) -> u64 {
        self.bat_index(self.blocks() - 1) + 1
    }

    /// Bytes of these entries, in pages of 4 KiB.
    pub(crate) fn bat_bytes(&self) -> u64 {
        (self.bat_entries() * BAT_ENTRY_BYTES).next_multiple_of(4 * KIB)
    }

    /// Bytes of a new image's BAT region.
    pub(crate) fn bat_region_bytes(&self) -> u64 {
        self.bat_bytes().next_multiple_of(MIB)
    }
}

#[cfg(test)]
mod tests {
    use super::ImageGeometry;
    use proptest::prelude::*;

    #[test]
    fn entries_interleave_as_the_specification_shows() {
        // Blocks of 256 MiB and sectors of 512 bytes: 16 blocks in a chunk.
        let geometry = ImageGeometry::new(33 * (256 << 20), 256 << 20, 512, 4096).unwrap();
        assert_eq!([15, 16, 32].map(|block| geometry.bat_index(block)), [15, 17, 34]);
        assert_eq!(geometry.bat_entries(), 35);
        let bitmaps: Vec<u64> = (0..35).filter(|&index| geometry.is_bitmap_entry(index)).collect();
        assert_eq!(bitmaps, [16, 33]);
    }

    #[test]
    fn sizes_outside_the_limits_are_refused() {
        assert!(ImageGeometry::new(64 << 40, 1 << 20, 512, 4096).is_ok());
        for (size, block, logical, physical, named) in [
            (0, 1 << 20, 512, 4096, "a disk of 0 bytes"),
            (513, 1 << 20, 512, 4096, "a disk of 513 bytes"),
            ((64 << 40) + 512, 1 << 20, 512, 4096, "up to 64 TiB"),
            (1 << 20, 1 << 19, 512, 4096, "blocks of 524288 bytes"),
            (1 << 20, 1 << 29, 512, 4096, "blocks of 536870912 bytes"),
            (1 << 20, 3 << 20, 512, 4096, "blocks of 3145728 bytes"),
            (1 << 20, 1 << 20, 1024, 4096, "logical sectors of 1024"),
            (1 << 20, 1 << 20, 512, 520, "physical sectors of 520"),
        ] {
            let error = ImageGeometry::new(size, block, logical, physical).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_payload_entry_is_a_bitmap_entry(
            size in 1_u64..(64 << 40) / 4096,
            block_shift in 20_u32..29,
            logical in prop::sample::select(vec![512, 4096]),
            at in any::<prop::sample::Index>(),
        ) {
            let geometry = ImageGeometry::new(size * 4096, 1 << block_shift, logical, 4096).unwrap();
            let block = at.index(geometry.blocks() as usize) as u64;
            let index = geometry.bat_index(block);
            prop_assert!(!geometry.is_bitmap_entry(index));
            prop_assert!(index < geometry.bat_entries());
            prop_assert!(geometry.bat_entries() * 8 <= geometry.bat_region_bytes());
        }
    }
}
