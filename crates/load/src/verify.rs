//! Verify mode: every written unit contains its address and the number of its write; every unit that is read is
//! compared with the last write.
//!
//! A unit is one block of the volume. It starts with its address, its generation (how often this run has written it),
//! the run's seed and a checksum of these. The rest follows from them, so the expected content needs no storage except
//! one generation per unit. Units that this run has not written are not compared.

use crate::stream::rng::mix;
use linerate_io::Region;
use std::fmt;

/// Largest unit.
pub(crate) const UNIT_BYTES_MAX: u32 = 4096;
/// Set in a generation after a failed write: the unit may hold the old or the new content.
pub(crate) const UNSURE: u32 = 1 << 31;
const HEADER_BYTES: usize = 32;
const GENERATION_BYTES: u64 = size_of::<u32>() as u64;
const SHOWN_BYTES: usize = 16;

/// What a unit contains follows from this, and from the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitName {
    /// Number of its file; 0: the unit is one of a volume.
    pub(crate) file: u32,
    /// Offset in the file or on the volume.
    pub(crate) address: u64,
    /// How often it was written.
    pub(crate) generation: u32,
}

/// The content of units.
#[derive(Debug)]
pub(crate) struct Stamp {
    unit: usize,
    seed: u64,
    content: Box<[u8]>,
}

impl Stamp {
    /// For units of `unit_bytes`.
    pub(crate) fn new(unit_bytes: u32, seed: u64) -> Self {
        let unit = unit_bytes as usize;
        Self { unit, seed, content: vec![0; unit].into() }
    }

    /// Puts a unit into memory.
    pub(crate) fn put(&mut self, memory: &Region, place: u64, address: u64, generation: u32) {
        memory.write(place, self.content(UnitName { file: 0, address, generation }));
    }

    /// Compares a unit in memory. Returns what is wrong.
    pub(crate) fn check(
        &mut self,
        memory: &Region,
        place: u64,
        address: u64,
        generation: u32,
    ) -> Option<Wrong> {
        let unit = UnitName { file: 0, address, generation };
        memory.compare(place, self.content(unit))?;
        let mut found = vec![0; self.unit];
        memory.read(place, &mut found);
        self.compare(&found, unit)
    }

    /// Compares a unit; `found` may be shorter at the end of a file. Returns what is wrong.
    pub(crate) fn compare(&mut self, found: &[u8], unit: UnitName) -> Option<Wrong> {
        let expected = &self.content(unit)[..found.len()];
        if expected == found {
            return None;
        }
        let byte = expected.iter().zip(found).position(|(expected, found)| expected != found)?;
        let shown = byte..(byte + SHOWN_BYTES).min(found.len());
        let expected = expected[shown.clone()].to_vec();
        let (diagnosis, other_file) = self.diagnose(found, unit);
        Some(Wrong {
            offset: unit.address,
            generation: unit.generation,
            diagnosis,
            other_file,
            byte,
            expected,
            found: found[shown].to_vec(),
        })
    }

    /// Addresses and places in memory of the units of an I/O.
    pub(crate) fn units(&self, offset: u64, len: u32, at: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let unit = self.unit as u64;
        (0..u64::from(len) / unit).map(move |nth| (offset + nth * unit, at + nth * unit))
    }

    /// The content of a unit.
    pub(crate) fn content(&mut self, unit: UnitName) -> &[u8] {
        let written = u64::from(unit.file) << 32 | u64::from(unit.generation);
        let header = [unit.address, written, self.seed, checksum(unit.address, written, self.seed)];
        let mut state = header[3];
        let fill = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state ^ state >> 33
        });
        for (word, value) in self.content.chunks_exact_mut(8).zip(header.into_iter().chain(fill)) {
            word.copy_from_slice(&value.to_le_bytes());
        }
        &self.content
    }

    /// The likely cause of a wrong unit by its header, and the number of the other file that it belongs to.
    fn diagnose(&self, found: &[u8], unit: UnitName) -> (String, Option<u32>) {
        let mut words = [0; HEADER_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(found.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        }
        let [at, written, seed, sum] = words;
        let (file, generation) = ((written >> 32) as u32, written as u32);
        let cause = if found.iter().all(|byte| *byte == 0) {
            "the block is all zeros (a lost write, or discarded)".into()
        } else if found.len() < HEADER_BYTES {
            "the content is damaged (the block is too short for a header)".into()
        } else if sum != checksum(at, written, seed) {
            "the block's header is damaged".into()
        } else if seed != self.seed {
            "the block was written by another run".into()
        } else if file != unit.file {
            let cause = format!("a block of another file, of offset {at} (a misdirected write or read)");
            return (cause, Some(file));
        } else if at != unit.address {
            format!("the block belongs at offset {at} (a misdirected write or read)")
        } else if generation < unit.generation {
            format!("generation {generation} of the block (a lost or late write)")
        } else if generation > unit.generation {
            format!("generation {generation} of the block (a write that was not acknowledged or not ours)")
        } else {
            "the header is right, the content is damaged".into()
        };
        (cause, None)
    }
}

/// The expected content of one volume.
#[derive(Debug)]
pub(crate) struct Expected {
    stamp: Stamp,
    generations: Box<[u32]>,
}

impl Expected {
    /// For a volume of `volume_bytes` in units of `unit_bytes`; none is written yet. Fails if this host has too little
    /// memory for their generations.
    pub(crate) fn new(volume_bytes: u64, unit_bytes: u32, seed: u64) -> Result<Self, NoMemory> {
        let units = volume_bytes / u64::from(unit_bytes);
        let mut memory: Vec<u32> = Vec::new();
        // Asked for and given back: zeroed memory that takes no page before its use cannot be asked for with an answer.
        let fits = memory.try_reserve_exact(units as usize);
        std::hint::black_box(&memory);
        fits.map_err(|_| NoMemory { bytes: units.saturating_mul(GENERATION_BYTES), volume_bytes })?;
        drop(memory);
        Ok(Self { stamp: Stamp::new(unit_bytes, seed), generations: vec![0; units as usize].into() })
    }

    /// Puts the next generation of the units at `offset` into memory, for a write.
    pub(crate) fn stamp(&mut self, memory: &Region, at: u64, offset: u64, len: u32) {
        for (address, place) in self.stamp.units(offset, len, at) {
            let generation = self.generation(address) + 1;
            self.stamp.put(memory, place, address, generation);
        }
    }

    /// The write of these units has ended.
    pub(crate) fn written(&mut self, offset: u64, len: u32, succeeded: bool) {
        for (address, _) in self.stamp.units(offset, len, 0) {
            let next = self.generation(address) + 1;
            let index = self.index(address);
            self.generations[index] = if succeeded { next } else { next | UNSURE };
        }
    }

    /// Compares read data with written data. Returns the first wrong unit.
    pub(crate) fn check(&mut self, memory: &Region, at: u64, offset: u64, len: u32) -> Option<Wrong> {
        self.stamp.units(offset, len, at).find_map(|(address, place)| {
            let known = self.generations[self.index(address)];
            if known == 0 || known & UNSURE != 0 {
                return None;
            }
            self.stamp.check(memory, place, address, known)
        })
    }

    fn index(&self, address: u64) -> usize {
        (address / self.stamp.unit as u64) as usize
    }

    fn generation(&self, address: u64) -> u32 {
        self.generations[self.index(address)] & !UNSURE
    }
}

fn checksum(address: u64, generation: u64, seed: u64) -> u64 {
    mix(mix(mix(address) ^ generation) ^ seed)
}

/// This host has too little memory to know what each block of a volume should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "to verify {volume_bytes} bytes takes {bytes} bytes of memory, more than this host gives; use less of the volume: \
     --size, or size in the workload file"
)]
pub(crate) struct NoMemory {
    bytes: u64,
    volume_bytes: u64,
}

/// A unit with another content than the last write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) offset: u64,
    generation: u32,
    diagnosis: String,
    /// The block is one of this file.
    pub(crate) other_file: Option<u32>,
    byte: usize,
    expected: Vec<u8>,
    found: Vec<u8>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        write!(
            f,
            "block at offset {}: expected generation {}, found: {}; first difference at byte {}: expected {}, got {}",
            self.offset,
            self.generation,
            self.diagnosis,
            self.byte,
            hex(&self.expected),
            hex(&self.found)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Expected, Region};

    const LEN: u32 = 4096;

    /// A volume in memory, written once through the stamps.
    fn written() -> (Expected, std::sync::Arc<Region>) {
        let (mut expected, memory) =
            (Expected::new(1 << 20, 512, 42).unwrap(), Region::anonymous(1 << 20).unwrap());
        expected.stamp(&memory, 8192, 8192, LEN);
        expected.written(8192, LEN, true);
        (expected, memory)
    }

    fn wrong_after(change: impl FnOnce(&Region)) -> String {
        let (mut expected, memory) = written();
        change(&memory);
        expected.check(&memory, 8192, 8192, LEN).map_or_else(|| "right".into(), |wrong| wrong.to_string())
    }

    #[test]
    fn what_was_written_is_right_and_what_was_not_is_not_judged() {
        let (mut expected, memory) = written();
        assert_eq!(expected.check(&memory, 8192, 8192, LEN), None);
        assert_eq!(expected.check(&memory, 0, 0, 65536), None);
    }

    #[test]
    fn a_volume_that_is_too_large_for_the_memory_is_refused() {
        let error = Expected::new(1 << 62, 512, 42).unwrap_err().to_string();
        assert!(error.contains("36028797018963968 bytes of memory") && error.contains("--size"), "{error}");
    }

    #[test]
    fn every_kind_of_damage_is_named() {
        assert_eq!(wrong_after(|_| ()), "right");
        let flipped = wrong_after(|memory| memory.write(8192 + 1024 + 100, &[0xFF, 0xFF]));
        assert!(
            flipped.contains("block at offset 9216") && flipped.contains("content is damaged"),
            "{flipped}"
        );
        assert!(flipped.contains("byte 100: expected") && flipped.contains("got ff ff"), "{flipped}");
        assert!(wrong_after(|memory| memory.fill(8192, 512, &[0])).contains("all zeros"));
        assert!(
            wrong_after(|memory| memory.copy_to(8704, memory, 8192, 512)).contains("belongs at offset 8704")
        );
        assert!(wrong_after(|memory| memory.write(8200, &[9])).contains("header is damaged"));
    }

    #[test]
    fn a_lost_write_shows_as_an_old_generation() {
        let (mut expected, memory) = written();
        let elsewhere = Region::anonymous(u64::from(LEN)).unwrap();
        expected.stamp(&elsewhere, 0, 8192, LEN);
        expected.written(8192, LEN, true);
        let wrong = expected.check(&memory, 8192, 8192, LEN).unwrap().to_string();
        assert!(wrong.contains("expected generation 2, found: generation 1"), "{wrong}");
    }

    #[test]
    fn after_a_failed_write_either_content_is_accepted() {
        let (mut expected, memory) = written();
        expected.written(8192, LEN, false);
        assert_eq!(expected.check(&memory, 8192, 8192, LEN), None);
        expected.stamp(&memory, 8192, 8192, LEN);
        expected.written(8192, LEN, true);
        assert_eq!(expected.check(&memory, 8192, 8192, LEN), None);
    }
}
