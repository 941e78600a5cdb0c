//! Power cuts at any call of any session, also while an image is created and while its log is replayed. What was flushed
//! is there; every other sector has a content that it was given.

use crate::cut_disk::{CutDisk, Fault, Kind};
use linerate_sim::{Rng, for_each_seed};
use linerate_vhdx::{CreateOptions, GuidSource, OpenMode, Preallocation, VhdxError, VhdxImage};
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

const MIB: u64 = 1 << 20;
const SECTOR_BYTES: usize = 512;
const LIVES: u64 = 4;
/// Seeds of a full test, and the cuts that they make at least.
const SEEDS: u64 = 2_800;
const CUTS_MIN: u64 = 10_000;

/// The numbers that each sector may hold: the durable one, then later ones. 0 is zeros.
struct Oracle {
    sectors: Vec<Vec<u32>>,
    last: u32,
}

impl Oracle {
    fn new(size_bytes: u64) -> Self {
        Self { sectors: vec![vec![0]; size_bytes as usize / SECTOR_BYTES], last: 0 }
    }

    /// Data of a new write, which may or may not be seen from now on.
    fn write(&mut self, first: usize, count: usize) -> Vec<u8> {
        self.last += 1;
        self.sectors[first..first + count].iter_mut().for_each(|sector| sector.push(self.last));
        (first..first + count).flat_map(|sector| content(sector, self.last)).collect()
    }

    fn flushed(&mut self) {
        for sector in &mut self.sectors {
            sector.drain(..sector.len() - 1);
        }
    }

    /// Checks the disk after a cut. From now on, what was found is durable.
    fn check(&mut self, disk: &[u8]) -> Result<(), String> {
        for (number, found) in disk.chunks(SECTOR_BYTES).enumerate() {
            let stamp = u32::from_le_bytes([found[0], found[1], found[2], found[3]]);
            let versions = &mut self.sectors[number];
            if !versions.contains(&stamp) || found != content(number, stamp) {
                return Err(format!(
                    "sector {number} holds {:?}..., expected one of {versions:?}",
                    &found[..8]
                ));
            }
            *versions = vec![stamp];
        }
        Ok(())
    }
}

fn content(sector: usize, stamp: u32) -> [u8; SECTOR_BYTES] {
    let mut bytes = [0; SECTOR_BYTES];
    if stamp > 0 {
        for word in bytes.chunks_exact_mut(8) {
            word[..4].copy_from_slice(&stamp.to_le_bytes());
            word[4..].copy_from_slice(&(sector as u32).to_le_bytes());
        }
    }
    bytes
}

/// One image and its lives.
struct Scene {
    rng: Rng,
    oracle: Oracle,
    cuts: u64,
}

impl Scene {
    fn guids(&mut self) -> GuidSource {
        GuidSource::from_seed(self.rng.next_u64())
    }

    /// Writes, flushes and reads until the power is cut, or the image is closed.
    fn live(&mut self, image: &mut VhdxImage<&mut CutDisk>) -> Result<Result<(), VhdxError>, String> {
        let sector_bytes = image.logical_sector_bytes() as usize;
        let sectors = self.oracle.sectors.len() * SECTOR_BYTES / sector_bytes;
        for _ in 0..self.rng.range(1, 25) {
            let result = match self.rng.range(0, 9) {
                0..=5 => {
                    let first = self.rng.range(0, sectors as u64 - 1) as usize;
                    let most = if self.rng.chance(10) { 3000 } else { 40 };
                    let count = (self.rng.range(1, most) as usize).min(sectors - first);
                    let unit = sector_bytes / SECTOR_BYTES;
                    let data = self.oracle.write(first * unit, count * unit);
                    image.write((first * sector_bytes) as u64, &data)
                }
                6..=8 => image.flush().map(|()| self.oracle.flushed()),
                _ => {
                    let mut disk = vec![0; self.oracle.sectors.len() * SECTOR_BYTES];
                    match image.read(0, &mut disk) {
                        Ok(()) => self.newest(&disk)?,
                        Err(error) => return Ok(Err(error)),
                    }
                    Ok(())
                }
            };
            if result.is_err() {
                return Ok(result);
            }
        }
        Ok(Ok(()))
    }

    /// While the power is on, a read returns the last write.
    fn newest(&self, disk: &[u8]) -> Result<(), String> {
        for (number, found) in disk.chunks(SECTOR_BYTES).enumerate() {
            let stamp = self.oracle.sectors[number].last().copied().unwrap_or(0);
            if found != content(number, stamp) {
                return Err(format!("sector {number} is read as {:?}..., not as write {stamp}", &found[..8]));
            }
        }
        Ok(())
    }

    /// Opens the image after a cut; the power may be cut again meanwhile. Returns the disk after it was checked.
    fn recover(&mut self, mut disk: CutDisk) -> Result<CutDisk, String> {
        loop {
            disk = disk.after_cut(&mut self.rng);
            self.cuts += 1;
            if self.rng.chance(40) {
                disk.cut_after(self.rng.range(0, 12));
            }
            match VhdxImage::open(&mut disk, OpenMode::ReadWrite, self.guids()) {
                Ok(mut image) => {
                    let mut content = vec![0; self.oracle.sectors.len() * SECTOR_BYTES];
                    match image.read(0, &mut content) {
                        Ok(()) => self.oracle.check(&content)?,
                        Err(VhdxError::File { .. }) => continue,
                        Err(error) => return Err(error.to_string()),
                    }
                    return Ok(disk);
                }
                Err(VhdxError::File { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

fn options(rng: &mut Rng) -> CreateOptions {
    let kinds = [Preallocation::Off, Preallocation::Off, Preallocation::Length, Preallocation::Full];
    let logical_sector_bytes = if rng.chance(50) { 512 } else { 4096 };
    CreateOptions {
        size_bytes: rng.range(1, 5) * MIB + rng.range(0, 3) * 4096,
        block_bytes: if rng.chance(70) { 1 << 20 } else { 2 << 20 },
        logical_sector_bytes,
        preallocation: kinds[rng.range(0, 3) as usize],
    }
}

/// An image of some kind in several lives; returns the number of cuts.
fn history(seed: u64, fault: Fault) -> Result<u64, String> {
    let mut rng = Rng::new(seed);
    let options = options(&mut rng);
    let kind = if rng.chance(25) { Kind::Lun(14 * MIB) } else { Kind::File };
    let mut disk = CutDisk::new(kind);
    let mut scene = Scene { oracle: Oracle::new(options.size_bytes), rng, cuts: 0 };
    if scene.rng.chance(30) {
        // There was another image before, which was not closed.
        let guids = scene.guids();
        let mut old = VhdxImage::create(&mut disk, &options, guids).map_err(|error| error.to_string())?;
        old.write(0, &[7; 8192]).and_then(|()| old.flush()).map_err(|error| error.to_string())?;
    }
    if scene.rng.chance(20) {
        disk.cut_after(scene.rng.range(0, 25));
    }
    let guids = scene.guids();
    if VhdxImage::create(&mut disk, &options, guids).is_err() {
        return interrupted(scene, disk);
    }
    disk.set_fault(fault);
    for life in 0..LIVES {
        disk.cut_after(scene.rng.range(0, 60));
        let guids = scene.guids();
        if life > 0 || scene.rng.chance(50) {
            match VhdxImage::open(&mut disk, OpenMode::ReadWrite, guids) {
                Ok(mut image) => {
                    let lived = scene.live(&mut image)?;
                    if lived.is_ok() && scene.rng.chance(60) && image.close().is_ok() {
                        scene.oracle.flushed();
                    }
                }
                Err(VhdxError::File { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        disk = scene.recover(disk)?;
    }
    Ok(scene.cuts)
}

/// The power was cut while the image was created: the file is no image, or a new one, or the old one.
fn interrupted(mut scene: Scene, disk: CutDisk) -> Result<u64, String> {
    let mut disk = disk.after_cut(&mut scene.rng);
    match VhdxImage::open(&mut disk, OpenMode::ReadWrite, scene.guids()) {
        Ok(mut image) => {
            let mut content = vec![0; scene.oracle.sectors.len() * SECTOR_BYTES];
            image.read(0, &mut content).map_err(|error| error.to_string())?;
            content[..8192].iter().all(|byte| *byte == 7).then(|| content[..8192].fill(0));
            scene.oracle.check(&content)?;
            Ok(1)
        }
        Err(VhdxError::Foreign) => Ok(1),
        Err(error) => Err(format!("after a cut during create: {error}")),
    }
}

#[test]
fn power_cuts_lose_nothing_that_was_flushed() {
    let cuts = AtomicU64::new(0);
    let is_full = for_each_seed(SEEDS, |seed| {
        cuts.fetch_add(history(seed, Fault::None).unwrap(), Ordering::Relaxed);
    });
    assert!(!is_full || cuts.load(Ordering::Relaxed) >= CUTS_MIN, "only {cuts:?} cuts");
}

/// The errors of 100 histories on a disk with a fault, without the numbers in them.
fn errors(fault: Fault) -> BTreeSet<String> {
    let found = (0..100).filter_map(|seed| history(seed, fault).err());
    found
        .map(|error| error.split_inclusive(' ').filter(|word| !word.contains(char::is_numeric)).collect())
        .collect()
}

#[test]
fn without_the_log_the_power_cuts_are_noticed() {
    let errors = errors(Fault::Loses { from: MIB, to: 2 * MIB });
    assert!(
        errors.iter().any(|error| error.contains("no sequence of entries in it is complete")),
        "{errors:?}"
    );
}

#[test]
fn without_flushes_the_power_cuts_are_noticed() {
    let errors = errors(Fault::IgnoresFlush);
    assert!(errors.iter().any(|error| error.contains("expected one of")), "{errors:?}");
}

#[test]
fn the_histories_without_a_fault_are_clean() {
    assert_eq!(errors(Fault::None), BTreeSet::new());
}
