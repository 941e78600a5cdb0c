//! The place of the next I/O: random places on a grid, sequential cursors, strides, hot bands and hit areas.
//!
//! Positions count from the start of the stream's range. A range that passes the end of the volume has two pieces, the
//! second at the volume's start; no I/O crosses the boundary.

mod area;
mod distribution;

use super::rng::{Chance, Rng};
use crate::spec::{RangeUnit, StreamSpec, StrideSpec};
use area::Area;
use distribution::Distribution;

pub(crate) use area::PlaceError;

/// Generator of places for one stream on one volume.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    area: Area,
    band: Option<Area>,
    /// Of a stream whose random places are uneven.
    distribution: Option<Box<Distribution>>,
    hit: Option<Hit>,
    jump: Chance,
    stride: Option<StrideSpec>,
    /// Passes of the stride that have ended, of those that begin one after the other.
    pass: u32,
    align: Option<u64>,
    block: u64,
    stop_at_end: bool,
    ios_per_place: u32,
    /// Several kinds of I/O move the cursors.
    is_mixed: bool,
    /// I/Os that still follow at the current random place.
    left_at_place: u32,
    cursors: Cursors,
    /// Those of writes, where reads and writes each go on by themselves.
    write_cursors: Option<Box<Cursors>>,
}

/// The cursors of an area, each with its part of it, that take turns.
#[derive(Clone, Debug)]
struct Cursors {
    list: Box<[Cursor]>,
    turn: usize,
}

/// A sequential reader or writer within its part of the area.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    start: u64,
    end: u64,
    at: u64,
}

/// A part of the area for a share of the I/Os.
#[derive(Clone, Debug)]
struct Hit {
    area: Area,
    reads: Chance,
    writes: Chance,
}

impl Address {
    /// For a volume of `volume_bytes` in blocks of `block_bytes`.
    pub(crate) fn new(spec: &StreamSpec, volume_bytes: u64, block_bytes: u32) -> Result<Self, PlaceError> {
        let block = u64::from(block_bytes);
        let largest = u64::from(spec.largest_io_bytes());
        let volume_end = volume_bytes / block * block;
        let volume_start = if spec.skip_first_block { largest.next_multiple_of(block) } else { 0 };
        let whole = Area::new(volume_start, volume_end, spec.range.as_ref(), block)?;
        let band = match &spec.hotband {
            Some(band) => Some(Area::new(volume_start, volume_end, Some(band), block)?),
            None => None,
        };
        let (hit, area) = match &spec.hit_area {
            Some(hit) if hit.read_percent > 0.0 || hit.write_percent > 0.0 => {
                let (inside, outside) = whole.split(hit.bytes.next_multiple_of(block))?;
                let reads = Chance::percent(hit.read_percent);
                (Some(Hit { area: inside, reads, writes: Chance::percent(hit.write_percent) }), outside)
            }
            _ => (None, whole),
        };
        let grid = spec.grid_bytes();
        for part in [Some(&area), band.as_ref(), hit.as_ref().map(|hit| &hit.area)].into_iter().flatten() {
            part.must_hold(largest, grid)?;
        }
        let distribution = match &spec.distribution {
            Some(parts) => Some(Box::new(Distribution::new(parts, &area, largest, grid)?)),
            None => None,
        };
        let mut cursors = Cursor::divide(area.len(), spec.cursors, largest)?;
        if !spec.stop_at_end {
            cursors.iter_mut().for_each(|cursor| cursor.keep_off_joint(area.joint(), largest));
        }
        Ok(Self {
            area,
            band,
            distribution,
            hit,
            jump: Chance::percent(if spec.stop_at_end { 0.0 } else { spec.random_percent }),
            stride: spec.stride,
            pass: 0,
            align: spec.align_bytes,
            block,
            stop_at_end: spec.stop_at_end,
            ios_per_place: spec.ios_per_place,
            is_mixed: !spec.mix.is_empty(),
            left_at_place: 0,
            write_cursors: spec
                .separate_directions
                .then(|| Box::new(Cursors { list: cursors.clone(), turn: 0 })),
            cursors: Cursors { list: cursors, turn: 0 },
        })
    }

    /// The bytes of its part of the volume, without a hit area.
    pub(crate) fn part_bytes(&self) -> u64 {
        self.area.len()
    }

    /// The place of the next I/O of up to `size` bytes: offset in the volume and size (smaller only for the last piece
    /// before an end where the stream stops). `None`: the stream has reached its end on this volume.
    pub(crate) fn draw(&mut self, size: u32, is_read: bool, rng: &mut Rng) -> Option<(u64, u32)> {
        self.draw_with(size, is_read, (self.jump, self.align), rng)
    }

    /// The same with the share of random places and the grid of a kind of I/O.
    pub(crate) fn draw_with(
        &mut self,
        size: u32,
        is_read: bool,
        (jump, align): (Chance, Option<u64>),
        rng: &mut Rng,
    ) -> Option<(u64, u32)> {
        let bytes = u64::from(size);
        let grid = align.unwrap_or(bytes);
        if let Some(hit) = &self.hit
            && (if is_read { hit.reads } else { hit.writes }).roll(rng)
        {
            return Some((hit.area.on_grid(hit.area.even(bytes, grid, rng), bytes, grid), size));
        }
        let goes_on =
            if self.ios_per_place > 1 { self.stays_at_place(bytes, is_read) } else { !jump.roll(rng) };
        if goes_on {
            return self.sequential(bytes, is_read, align);
        }
        if let Some(stride) = self.stride {
            return self.stride(bytes, grid, stride, is_read, rng);
        }
        if let Some(band) = &self.band {
            return Some((band.on_grid(band.decaying(bytes, grid, rng), bytes, grid), size));
        }
        let position = match &self.distribution {
            Some(parts) => parts.draw(rng),
            None => self.area.even(bytes, grid, rng),
        };
        if self.jump != Chance::Always || self.ios_per_place > 1 || self.is_mixed {
            self.cursors_of(is_read).next().at = position + bytes;
        }
        Some((self.area.on_grid(position, bytes, grid), size))
    }

    /// Whether the next I/O follows the last one at a random place.
    fn stays_at_place(&mut self, bytes: u64, is_read: bool) -> bool {
        if self.left_at_place == 0 {
            self.left_at_place = self.ios_per_place - 1;
            return false;
        }
        self.left_at_place -= 1;
        let (joint, align) = (self.area.joint(), self.align);
        let cursor = self.cursors_of(is_read).current();
        cursor.align(align);
        cursor.has_room(bytes, joint)
    }

    /// Begins again: every cursor goes back to the start of its part.
    pub(crate) fn rewind(&mut self) {
        for cursors in [Some(&mut self.cursors), self.write_cursors.as_deref_mut()].into_iter().flatten() {
            cursors.list.iter_mut().for_each(|cursor| cursor.at = cursor.start);
            cursors.turn = 0;
        }
        (self.left_at_place, self.pass) = (0, 0);
    }

    /// The next place of the current cursor, on the grid.
    fn sequential(&mut self, bytes: u64, is_read: bool, align: Option<u64>) -> Option<(u64, u32)> {
        let (joint, block, stop) = (self.area.joint(), self.block, self.stop_at_end);
        for _ in 0..self.cursors.list.len() {
            let cursor = self.cursors_of(is_read).next();
            cursor.align(align);
            let taken =
                if stop { cursor.up_to_end(bytes, joint, block) } else { Some(cursor.around(bytes, joint)) };
            if let Some((position, len)) = taken {
                return Some((self.area.at(position), len as u32));
            }
        }
        None
    }

    /// Skips forward instead of jumping to a random place. The first I/O is at the start, and so is the one after the
    /// end, or one I/O further in each pass.
    fn stride(
        &mut self,
        bytes: u64,
        grid: u64,
        stride: StrideSpec,
        is_read: bool,
        rng: &mut Rng,
    ) -> Option<(u64, u32)> {
        let begun = u64::from(self.pass) * bytes;
        let cursor = self.cursors_of(is_read).current();
        if cursor.at > cursor.start + begun {
            let skip = stride.min_bytes + rng.below(stride.max_bytes - stride.min_bytes + 1);
            cursor.at += skip / grid * grid;
        }
        if stride.passes > 1 && cursor.at + bytes > cursor.end {
            self.pass = (self.pass + 1) % stride.passes;
            let next = u64::from(self.pass) * bytes;
            let cursor = self.cursors_of(is_read).current();
            cursor.at = cursor.start + next;
        }
        self.sequential(bytes, is_read, self.align)
    }

    /// The cursors that a read or a write moves.
    fn cursors_of(&mut self, is_read: bool) -> &mut Cursors {
        match &mut self.write_cursors {
            Some(cursors) if !is_read => cursors,
            _ => &mut self.cursors,
        }
    }
}

impl Cursors {
    /// The one whose turn it is.
    fn current(&mut self) -> &mut Cursor {
        &mut self.list[self.turn]
    }

    /// The same, and the turn passes on.
    fn next(&mut self) -> &mut Cursor {
        let turn = self.turn;
        self.turn = if turn + 1 == self.list.len() { 0 } else { turn + 1 };
        &mut self.list[turn]
    }
}

impl Cursor {
    /// Divides an area of `len` bytes among `count` cursors, in whole multiples of the largest size.
    fn divide(len: u64, count: u32, largest: u64) -> Result<Box<[Self]>, PlaceError> {
        let count = u64::from(count.max(1));
        let part = len / count / largest * largest;
        if part == 0 {
            return Err(PlaceError::TooSmall { needed: largest * count, found: len });
        }
        let cursor = |k| {
            let end = if k + 1 == count { len } else { (k + 1) * part };
            Self { start: k * part, end, at: k * part }
        };
        Ok((0..count).map(cursor).collect())
    }

    /// Does not use the rest on one side of the boundary if it cannot hold the largest I/O.
    fn keep_off_joint(&mut self, joint: u64, largest: u64) {
        if !(self.start..self.end).contains(&joint) {
            return;
        }
        if joint - self.start < largest {
            (self.start, self.at) = (joint, joint);
        } else if self.end - joint < largest {
            self.end = joint;
        }
    }

    /// Goes on to the grid.
    fn align(&mut self, grid: Option<u64>) {
        if let Some(grid) = grid {
            self.at = self.at.next_multiple_of(grid);
        }
    }

    /// Whether an I/O fits before the end, and before the boundary.
    fn has_room(&self, bytes: u64, joint: u64) -> bool {
        let limit = if self.at < joint { self.end.min(joint) } else { self.end };
        self.at + bytes <= limit
    }

    /// The next piece; after the end it continues at the start.
    fn around(&mut self, bytes: u64, joint: u64) -> (u64, u64) {
        if self.at < joint && self.at + bytes > joint {
            self.at = joint;
        }
        if self.at + bytes > self.end {
            self.at = self.start;
        }
        let position = self.at;
        self.at += bytes;
        (position, bytes)
    }

    /// The next piece before the end; the last one may be shorter.
    fn up_to_end(&mut self, bytes: u64, joint: u64, block: u64) -> Option<(u64, u64)> {
        let limit = if self.at < joint { self.end.min(joint) } else { self.end };
        let len = bytes.min((limit.saturating_sub(self.at)) / block * block);
        let position = self.at;
        self.at += len;
        (len > 0).then_some((position, len))
    }
}

/// Bytes of a range bound, for a volume from `start` to `end`.
fn bound(value: f64, unit: RangeUnit, start: u64, end: u64) -> u64 {
    match unit {
        RangeUnit::Percent => start + ((end - start) as f64 * value / 100.0) as u64,
        RangeUnit::Bytes => start.max(value as u64),
    }
}

#[cfg(test)]
mod tests;
