//! Memory between tasks and the kernel: pieces of equal size, page-aligned for direct I/O.
//!
//! Pieces of one size cannot fragment. The piece that was freed last is still in the cache and is used first. The
//! memory uses huge pages if the host has them, because for direct I/O the kernel looks up every page.

use linerate_io::{Driver, Region, RegionId, Seg};
use std::{io, sync::Arc};

/// Size of a piece.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces of one region.
const SLAB_PIECES: u32 = 64;
/// Most regions: together they hold 128 MiB of transfers.
const SLABS_MAX: usize = 32;

/// The pieces of one thread.
#[derive(Debug, Default)]
pub(super) struct Memory {
    slabs: Vec<(RegionId, Arc<Region>)>,
    free: Vec<MemoryPiece>,
}

/// Number of a piece, over all regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryPiece(u32);

impl Memory {
    /// Takes pieces for `len` bytes. False: too few are free, and none was taken.
    pub(super) fn take<D: Driver>(
        &mut self,
        len: usize,
        driver: &mut D,
        pieces: &mut Vec<MemoryPiece>,
    ) -> io::Result<bool> {
        let count = len.div_ceil(PIECE_BYTES);
        while self.free.len() < count {
            if self.slabs.len() == SLABS_MAX {
                return Ok(false);
            }
            let region = Region::in_huge_pages(u64::from(SLAB_PIECES) * PIECE_BYTES as u64)?;
            let first = self.slabs.len() as u32 * SLAB_PIECES;
            self.slabs.push((driver.attach(Arc::clone(&region)), region));
            self.free.extend((first..first + SLAB_PIECES).rev().map(MemoryPiece));
        }
        pieces.extend(self.free.drain(self.free.len() - count..).rev());
        Ok(true)
    }

    /// Frees pieces without references.
    pub(super) fn give_back(&mut self, pieces: &mut Vec<MemoryPiece>) {
        self.free.extend(pieces.drain(..).rev());
    }

    /// The segments of the first `len` bytes.
    pub(super) fn segments(&self, pieces: &[MemoryPiece], len: usize, segs: &mut Vec<Seg>) {
        segs.clear();
        for (at, &piece) in pieces.iter().enumerate() {
            let (region, _, offset) = self.place(piece);
            let len = (len - at * PIECE_BYTES).min(PIECE_BYTES) as u32;
            segs.push(Seg { region, offset, len });
        }
    }

    /// Copies bytes in.
    pub(super) fn write(&self, pieces: &[MemoryPiece], bytes: &[u8]) {
        for (&piece, chunk) in pieces.iter().zip(bytes.chunks(PIECE_BYTES)) {
            let (_, region, offset) = self.place(piece);
            region.write(offset, chunk);
        }
    }

    /// Sets the first `len` bytes to zero.
    pub(super) fn clear(&self, pieces: &[MemoryPiece], len: usize) {
        for (at, &piece) in pieces.iter().enumerate() {
            let (_, region, offset) = self.place(piece);
            region.fill(offset, (len - at * PIECE_BYTES).min(PIECE_BYTES) as u64, &[0]);
        }
    }

    /// Copies bytes out.
    pub(super) fn read(&self, pieces: &[MemoryPiece], into: &mut [u8]) {
        for (&piece, chunk) in pieces.iter().zip(into.chunks_mut(PIECE_BYTES)) {
            let (_, region, offset) = self.place(piece);
            region.read(offset, chunk);
        }
    }

    fn place(&self, MemoryPiece(number): MemoryPiece) -> (RegionId, &Region, u64) {
        let (id, region) = &self.slabs[(number / SLAB_PIECES) as usize];
        (*id, region, u64::from(number % SLAB_PIECES) * PIECE_BYTES as u64)
    }
}
