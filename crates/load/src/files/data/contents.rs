//! What runs have written into files, block by block. It outlives a run: a run checks what the format before it wrote.
//!
//! A block is known once it was written; what was there before is not compared. A file is in use by one thread at a
//! time, so its write and the note about it need no common lock.

use super::super::{
    spec::{FilesIn, StructureSpec},
    tree::Tree,
};
use crate::verify::{Stamp, UNSURE, UnitName, Wrong};
use linerate_io::system;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What the runs of one process have written into files. It takes 48 bytes of memory for each file and 4 for each block.
#[derive(Debug)]
pub struct WrittenFiles {
    /// Tells the data of this process from those of others.
    seed: u64,
    structures: Mutex<Structures>,
}

#[derive(Debug)]
struct Structures {
    /// The number of the first file of the next structure.
    next: u32,
    by_anchor: HashMap<String, Arc<StructureContents>>,
}

impl Default for WrittenFiles {
    /// Nothing was written yet.
    fn default() -> Self {
        let structures = Structures { next: 1, by_anchor: HashMap::new() };
        Self { seed: system::unix_time_s().to_bits(), structures: Mutex::new(structures) }
    }
}

/// What decides which files a structure has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    depth: u32,
    width: u32,
    files: u32,
    files_in: FilesIn,
    unit_bytes: u32,
}

/// What was written into the files of one structure.
#[derive(Debug)]
pub(in crate::files) struct StructureContents {
    shape: Shape,
    seed: u64,
    /// The number of its first file.
    first: u32,
    files: Vec<Mutex<FileContents>>,
}

/// What was written into one file.
#[derive(Debug, Default)]
struct FileContents {
    /// End of the last block that was written.
    end: u64,
    /// Generation of the newest block of the files that had this name before.
    floor: u32,
    /// By block; 0: not written.
    generations: Vec<u32>,
}

impl WrittenFiles {
    /// What is known of a structure that is used in blocks of `unit_bytes`. A structure with other files under the same
    /// anchor is forgotten.
    pub(in crate::files) fn of(
        &self,
        spec: &StructureSpec,
        tree: &Tree,
        unit_bytes: u32,
    ) -> Arc<StructureContents> {
        let StructureSpec { depth, width, files, files_in, .. } = *spec;
        let shape = Shape { depth, width, files, files_in, unit_bytes };
        let mut structures = self.structures.lock().unwrap_or_else(PoisonError::into_inner);
        match structures.by_anchor.get(&tree.anchor) {
            Some(known) if known.shape == shape => Arc::clone(known),
            _ => {
                let (first, count) = (structures.next, tree.all_files());
                structures.next = first.wrapping_add(count);
                let files = (0..count).map(|_| Mutex::default()).collect();
                let contents = Arc::new(StructureContents { shape, seed: self.seed, first, files });
                structures.by_anchor.insert(tree.anchor.clone(), Arc::clone(&contents));
                contents
            }
        }
    }
}

impl StructureContents {
    /// Makes the contents of its blocks.
    pub(super) fn new_stamp(&self) -> Stamp {
        Stamp::new(self.shape.unit_bytes, self.seed)
    }

    fn file(&self, file: u32) -> MutexGuard<'_, FileContents> {
        self.files[file as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks of a part of a file: address, index, and place in the part.
    fn units(&self, offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, usize)> + use<> {
        let unit = u64::from(self.shape.unit_bytes);
        (0..bytes as u64).step_by(unit as usize).map(move |at| {
            let address = offset + at;
            (address, (address / unit) as usize, at as usize)
        })
    }

    /// Fills the data of a write with the next generation of its blocks.
    pub(super) fn stamp(&self, stamp: &mut Stamp, file: u32, offset: u64, data: &mut [u8]) {
        let known = self.file(file);
        let name = self.first.wrapping_add(file);
        for (address, index, at) in self.units(offset, data.len()) {
            let unit = UnitName { file: name, address, generation: known.next(index) };
            let end = data.len().min(at + self.shape.unit_bytes as usize);
            let part = &mut data[at..end];
            part.copy_from_slice(&stamp.content(unit)[..part.len()]);
        }
    }

    /// A write of so many bytes has ended.
    pub(super) fn written(&self, file: u32, offset: u64, bytes: usize, succeeded: bool) {
        let mut known = self.file(file);
        let (end, unit) = (offset + bytes as u64, u64::from(self.shape.unit_bytes));
        // A short block at the old end: what follows it now is not what belongs to it.
        let old_end = known.end;
        if !old_end.is_multiple_of(unit) && end > old_end {
            known.doubt((old_end / unit) as usize);
        }
        for (_, index, _) in self.units(offset, bytes) {
            let next = known.next(index);
            known.set(index, if succeeded { next } else { next | UNSURE });
        }
        if !end.is_multiple_of(unit) && end < old_end {
            known.doubt((end / unit) as usize);
        }
        if succeeded {
            known.end = old_end.max(end);
        }
    }

    /// Compares the data of a read with what was written. Returns the first block that differs.
    pub(super) fn check(&self, stamp: &mut Stamp, file: u32, offset: u64, data: &[u8]) -> Option<Wrong> {
        let known = self.file(file);
        let name = self.first.wrapping_add(file);
        self.units(offset, data.len()).find_map(|(address, index, at)| {
            let generation = *known.generations.get(index)?;
            if generation == 0 || generation & UNSURE != 0 {
                return None;
            }
            let end = data.len().min(at + self.shape.unit_bytes as usize);
            stamp.compare(&data[at..end], UnitName { file: name, address, generation })
        })
    }

    /// The file of this structure that has a number.
    pub(super) fn file_of(&self, number: u32) -> Option<u32> {
        let file = number.checked_sub(self.first)?;
        ((file as usize) < self.files.len()).then_some(file)
    }

    /// A file was removed.
    pub(in crate::files) fn removed(&self, file: u32) {
        let mut known = self.file(file);
        let newest = known.generations.iter().map(|generation| generation & !UNSURE).max();
        *known = FileContents { floor: known.floor.max(newest.unwrap_or(0)), ..FileContents::default() };
    }

    /// All files may be removed.
    pub(in crate::files) fn all_removed(&self) {
        (0..self.files.len() as u32).for_each(|file| self.removed(file));
    }

    /// A file that has less than was written into it, with both sizes.
    pub(super) fn shortened(&self, tree: &Tree) -> Option<(u32, u64, u64)> {
        (0..self.files.len() as u32).find_map(|file| {
            let (written, has) = (self.file(file).end, tree.size(file).unwrap_or(0));
            (has < written).then_some((file, written, has))
        })
    }
}

impl FileContents {
    /// The generation that the next write of a block has.
    fn next(&self, index: usize) -> u32 {
        let last = self.generations.get(index).map_or(0, |generation| generation & !UNSURE);
        last.max(self.floor) + 1
    }

    fn set(&mut self, index: usize, generation: u32) {
        if index >= self.generations.len() {
            self.generations.resize(index + 1, 0);
        }
        self.generations[index] = generation;
    }

    /// The content of a block is not known any more.
    fn doubt(&mut self, index: usize) {
        if let Some(generation) = self.generations.get_mut(index).filter(|generation| **generation != 0) {
            *generation |= UNSURE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FilesIn, Mutex, Shape, StructureContents};

    const UNIT: usize = 512;

    fn contents() -> StructureContents {
        let shape =
            Shape { depth: 1, width: 1, files: 2, files_in: FilesIn::Bottom, unit_bytes: UNIT as u32 };
        let files = (0..2).map(|_| Mutex::default()).collect();
        StructureContents { shape, seed: 42, first: 7, files }
    }

    /// A file in memory that is written through the notes.
    struct Written {
        contents: StructureContents,
        bytes: Vec<u8>,
    }

    impl Written {
        fn new() -> Self {
            Self { contents: contents(), bytes: Vec::new() }
        }

        fn write(&mut self, offset: usize, len: usize) {
            let mut data = vec![0; len];
            self.contents.stamp(&mut self.contents.new_stamp(), 0, offset as u64, &mut data);
            self.bytes.resize(self.bytes.len().max(offset + len), 0);
            self.bytes[offset..offset + len].copy_from_slice(&data);
            self.contents.written(0, offset as u64, len, true);
        }

        fn is_right(&self) -> bool {
            self.contents.check(&mut self.contents.new_stamp(), 0, 0, &self.bytes).is_none()
        }
    }

    #[test]
    fn a_short_block_at_the_end_is_checked_until_the_file_grows_past_it() {
        let mut file = Written::new();
        file.write(0, 1000);
        assert!(file.is_right());
        file.bytes[999] ^= 1;
        assert!(!file.is_right());
        file.bytes[999] ^= 1;
        // The rest of the block at 512 is a hole now, which no write has filled.
        file.write(1536, UNIT);
        assert!(file.is_right());
        file.bytes[600] ^= 1;
        assert!(file.is_right());
        file.write(512, UNIT);
        file.bytes[600] ^= 1;
        assert!(!file.is_right());
    }

    #[test]
    fn a_write_that_ends_inside_a_block_leaves_that_block_unknown() {
        let mut file = Written::new();
        file.write(0, 2048);
        file.write(0, 700);
        assert!(file.is_right());
        file.bytes[699] ^= 1;
        assert!(file.is_right());
        file.bytes[511] ^= 1;
        assert!(!file.is_right());
    }

    #[test]
    fn the_generation_of_a_block_outlives_its_file() {
        let mut file = Written::new();
        file.write(0, UNIT);
        file.write(0, UNIT);
        let old = file.bytes.clone();
        file.contents.removed(0);
        assert!(file.is_right(), "what was removed is not known");
        file.write(0, UNIT);
        assert_ne!(file.bytes, old);
        assert_eq!(u64::from_le_bytes(file.bytes[8..16].try_into().unwrap()), 7 << 32 | 3);
    }

    #[test]
    fn a_number_names_a_file_of_this_structure_or_none() {
        let numbers = [6, 7, 8, 9].map(|number| contents().file_of(number));
        assert_eq!(numbers, [None, Some(0), Some(1), None]);
    }
}
