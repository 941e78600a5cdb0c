//! Random places by parts of an area that follow each other, each with its share (diskspd's `-rdpct` and `-rdabs`).
//!
//! Source of the rules: diskspd 2.2, `ThreadTargetState` in Common.h. Ends of parts are rounded down to the grid. A
//! part in percent that has no place of its own gives its share to a neighbour. Parts in bytes that begin behind the
//! end of the area are left out, and the others keep their proportion.

use super::{PlaceError, area::Area};
use crate::{
    spec::{DistributionSpec, RangeUnit},
    stream::rng::{Rng, Weighted},
};

/// The parts of an area, ready to draw from.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    parts: Weighted<Places>,
    grid: u64,
}

/// Places on the grid: `count` of them from position `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    first: u64,
    count: u64,
}

/// Places with their share.
type Shared = (f64, Places);

impl Distribution {
    /// For I/Os of up to `bytes`, on a grid of `grid` bytes.
    pub(super) fn new(
        spec: &DistributionSpec,
        area: &Area,
        bytes: u64,
        grid: u64,
    ) -> Result<Self, PlaceError> {
        let parts = match spec.unit {
            RangeUnit::Percent => in_percent(&spec.parts, area.places(bytes, grid), grid),
            RangeUnit::Bytes => in_bytes(&spec.parts, area.len() - area.lead(grid), bytes, grid),
        };
        let at = |places: Places| Places { first: area.lead(grid) + places.first, ..places };
        let parts = Weighted::new(parts.into_iter().map(|(share, places)| (share, at(places))).collect());
        Ok(Self { parts: parts.ok_or(PlaceError::Nowhere { found: area.len() })?, grid })
    }

    /// A random position in the area.
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let Places { first, count } = *self.parts.draw(rng);
        first + rng.below(count) * self.grid
    }
}

/// Parts in percent of an area of `places` places.
fn in_percent(parts: &[(f64, f64)], places: u64, grid: u64) -> Vec<Shared> {
    let len = places * grid;
    let of_len = |percent: f64| (percent * len as f64 / 100.0) as u64;
    // Indices of places while the parts are made.
    let mut made: Vec<Shared> = Vec::new();
    let (mut from, mut carried, mut next) = (0.0, 0.0, 0);
    for &(share, length) in parts {
        let (begin_bytes, end) = (of_len(from), of_len(from + length) / grid);
        from += length;
        if share <= 0.0 {
            continue;
        }
        let begin = begin_bytes / grid;
        let has_none = end * grid < begin_bytes || (begin < next && (end <= next || next >= places));
        if has_none {
            match made.last_mut() {
                Some((last, of)) if of.first == end || begin < next => *last += share,
                _ => carried += share,
            }
            continue;
        }
        let first = begin.max(next);
        match made.last_mut() {
            Some((last, _)) if *last < share => *last += std::mem::take(&mut carried),
            _ => {}
        }
        let count = end.saturating_sub(first).max(1);
        made.push((share + std::mem::take(&mut carried), Places { first, count }));
        next = first + count;
    }
    if let Some((last, of)) = made.last_mut()
        && carried > 0.0
    {
        *last += carried;
        of.count = places - of.first;
    }
    made.into_iter().map(|(share, of)| (share, Places { first: of.first * grid, ..of })).collect()
}

/// Parts in bytes of an area of `len` bytes; a length of 0 is the rest.
fn in_bytes(parts: &[(f64, f64)], len: u64, bytes: u64, grid: u64) -> Vec<Shared> {
    let mut made = Vec::new();
    let mut first = 0;
    for &(share, length) in parts {
        let own = length as u64;
        let rest = len.saturating_sub(first);
        if rest < bytes {
            break;
        }
        if share > 0.0 {
            let length = if own == 0 { rest } else { own.min(rest) };
            // No I/O passes the end of the area.
            let count = length.div_ceil(grid).min((rest - bytes) / grid + 1);
            made.push((share, Places { first, count }));
        }
        first += own;
    }
    made
}

#[cfg(test)]
mod tests {
    use super::{Places, in_bytes, in_percent};

    const KIB: u64 = 1 << 10;

    fn kib(parts: Vec<(f64, Places)>) -> Vec<(f64, u64, u64)> {
        parts.into_iter().map(|(share, of)| (share, of.first / KIB, of.count)).collect()
    }

    #[test]
    fn parts_in_percent_follow_each_other() {
        let parts = [(90.0, 10.0), (0.0, 10.0), (5.0, 20.0), (5.0, 60.0)];
        let made = kib(in_percent(&parts, 100, 4 * KIB));
        assert_eq!(made, [(90.0, 0, 10), (5.0, 80, 20), (5.0, 160, 60)]);
    }

    #[test]
    fn a_part_without_a_place_of_its_own_gives_its_share_to_a_neighbour() {
        // 100 KiB: a percent is 1 KiB, and a place 4 KiB.
        let made = kib(in_percent(&[(10.0, 96.0), (10.0, 3.0), (80.0, 1.0)], 25, 4 * KIB));
        assert_eq!(made, [(10.0, 0, 24), (90.0, 96, 1)]);
        let made = kib(in_percent(&[(10.0, 1.0), (10.0, 1.0), (80.0, 98.0)], 25, 4 * KIB));
        assert_eq!(made, [(20.0, 0, 1), (80.0, 4, 24)]);
        let made = kib(in_percent(&[(50.0, 6.0), (20.0, 1.0), (30.0, 93.0)], 25, 4 * KIB));
        assert_eq!(made, [(50.0, 0, 1), (50.0, 4, 24)]);
        let made = kib(in_percent(&[(60.0, 50.0), (40.0, 50.0)], 1, 4 * KIB));
        assert_eq!(made, [(100.0, 0, 1)]);
    }

    #[test]
    fn parts_in_bytes_end_with_the_area() {
        let parts = [(90.0, 10_240.0), (0.0, 10_240.0), (5.0, 20_480.0), (5.0, 0.0)];
        let large = in_bytes(&parts, 80 * KIB, KIB, KIB);
        assert_eq!(kib(large), [(90.0, 0, 10), (5.0, 20, 20), (5.0, 40, 40)]);
        // Of a smaller area only the first part is left.
        assert_eq!(kib(in_bytes(&parts, 20 * KIB, KIB, KIB)), [(90.0, 0, 10)]);
        assert_eq!(kib(in_bytes(&parts, 30 * KIB, KIB, KIB)), [(90.0, 0, 10), (5.0, 20, 10)]);
        // I/Os that are longer than the grid do not pass the end.
        assert_eq!(kib(in_bytes(&[(100.0, 0.0)], 16 * KIB, 8 * KIB, KIB)), [(100.0, 0, 9)]);
    }
}
