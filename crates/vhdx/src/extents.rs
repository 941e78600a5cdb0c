//! Which MiB of an image are in use: no two structures may overlap.

use crate::{
    error::{Structure, VhdxError},
    wire::MIB,
};

/// No structure ends later: the largest disk, its table and its bitmaps need half of it.
const END_MAX: u64 = 128 << 40;

/// The MiB that are in use, one bit each; 16 MiB of memory at most.
#[derive(Debug)]
pub(crate) struct Extents {
    file_bytes: u64,
    taken: Vec<u64>,
    end: u64,
}

impl Extents {
    /// None are in use but the header section.
    pub(crate) fn new(file_bytes: u64) -> Self {
        Self { file_bytes, taken: vec![1], end: MIB }
    }

    /// The end of the last structure, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Takes whole MiB for something that the field at byte `place` of `structure` points to.
    pub(crate) fn claim(
        &mut self,
        offset: u64,
        bytes: u64,
        structure: Structure,
        place: u64,
    ) -> Result<(), VhdxError> {
        debug_assert!(offset.is_multiple_of(MIB) && bytes.is_multiple_of(MIB));
        let Some(end) = offset.checked_add(bytes).filter(|&end| end <= self.file_bytes.min(END_MAX)) else {
            let reason = format!(
                "it points to {bytes} bytes at {offset}, outside the file of {} bytes",
                self.file_bytes
            );
            return Err(VhdxError::damaged(structure, place, reason));
        };
        for mib in offset / MIB..end / MIB {
            let (word, bit) = ((mib / 64) as usize, 1 << (mib % 64));
            if self.taken.len() <= word {
                self.taken.resize(word + 1, 0);
            }
            if self.taken[word] & bit != 0 {
                let reason =
                    format!("it points to {bytes} bytes at {offset}, where another structure is already");
                return Err(VhdxError::damaged(structure, place, reason));
            }
            self.taken[word] |= bit;
        }
        self.end = self.end.max(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Extents;
    use crate::{error::Structure, wire::MIB};

    #[test]
    fn what_overlaps_or_is_outside_is_refused() {
        let mut extents = Extents::new(200 * MIB);
        let mut claim =
            |mib, count| extents.claim(mib * MIB, count * MIB, Structure::Bat, 7).map_err(|e| e.to_string());
        assert_eq!(claim(60, 10), Ok(()));
        assert_eq!(claim(70, 130), Ok(()));
        assert_eq!(claim(1, 59), Ok(()));
        for (mib, count, said) in
            [(0, 1, "already"), (69, 1, "already"), (199, 2, "outside"), (u64::MAX / MIB, 1, "outside")]
        {
            let error = claim(mib, count).unwrap_err();
            assert!(error.contains(said) && error.contains("byte 7"), "{error}");
        }
        assert_eq!(extents.end(), 200 * MIB);
    }

    #[test]
    fn a_huge_sparse_file_does_not_take_huge_memory() {
        let mut extents = Extents::new(u64::MAX);
        assert!(extents.claim(1 << 60, MIB, Structure::Bat, 0).is_err());
        assert!(extents.claim((128 << 40) - MIB, MIB, Structure::Bat, 0).is_ok());
        assert_eq!(extents.taken.len(), 1 << 21);
    }
}
