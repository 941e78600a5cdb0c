//! The checksum pages in memory, by slot and number: tables of pages, so that none is searched for.

use super::{SUMS_PER_PAGE, UNKNOWN};
use std::ops::Range;

/// Pages of one table: a table of pointers takes 4 KiB.
const TABLE_PAGES: u64 = 512;

/// Checksums of consecutive units.
pub(super) struct Page {
    pub(super) sums: [u32; SUMS_PER_PAGE as usize],
    /// Whether they differ from those on disk.
    pub(super) is_dirty: bool,
}

type Table = Box<[Option<Box<Page>>; TABLE_PAGES as usize]>;

/// The pages that are in memory.
pub(super) struct Pages {
    /// By slot, then by number of the table.
    slots: Vec<Vec<Option<Table>>>,
    count: usize,
}

impl Page {
    /// A page without a known checksum.
    pub(super) fn blank() -> Box<Self> {
        Box::new(Self { sums: [UNKNOWN; SUMS_PER_PAGE as usize], is_dirty: false })
    }

    pub(super) fn put(&mut self, unit: u64, sum: u32) {
        let into = &mut self.sums[(unit % SUMS_PER_PAGE) as usize];
        self.is_dirty |= *into != sum;
        *into = sum;
    }
}

impl Pages {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots: (0..slots).map(|_| Vec::new()).collect(), count: 0 }
    }

    /// The number of pages.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn get(&self, slot: usize, page: u64) -> Option<&Page> {
        let table = self.slots[slot].get((page / TABLE_PAGES) as usize)?.as_ref()?;
        table[(page % TABLE_PAGES) as usize].as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: usize, page: u64) -> Option<&mut Page> {
        let table = self.slots[slot].get_mut((page / TABLE_PAGES) as usize)?.as_mut()?;
        table[(page % TABLE_PAGES) as usize].as_deref_mut()
    }

    /// Adds a page, if there is none of this number.
    pub(super) fn add(&mut self, slot: usize, page: u64, content: Box<Page>) {
        let (tables, number) = (&mut self.slots[slot], (page / TABLE_PAGES) as usize);
        if tables.len() <= number {
            tables.resize_with(number + 1, || None);
        }
        let table = tables[number].get_or_insert_with(|| Box::new([const { None }; TABLE_PAGES as usize]));
        let place = &mut table[(page % TABLE_PAGES) as usize];
        if place.is_none() {
            *place = Some(content);
            self.count += 1;
        }
    }

    /// Removes all pages of a slot.
    pub(super) fn clear(&mut self, slot: usize) {
        self.slots[slot].clear();
        self.count = self.all().count();
    }

    /// Passes the pages of a slot within `numbers`, in order.
    pub(super) fn for_each(
        &mut self,
        slot: usize,
        numbers: Range<u64>,
        mut visit: impl FnMut(u64, &mut Page),
    ) {
        let tables = numbers.start / TABLE_PAGES..numbers.end.div_ceil(TABLE_PAGES);
        for (table, number) in self.slots[slot].iter_mut().zip(0..).skip(tables.start as usize) {
            if number >= tables.end {
                return;
            }
            let pages = table.iter_mut().flat_map(|table| table.iter_mut()).zip(number * TABLE_PAGES..);
            for (page, number) in pages.filter(|(_, number)| numbers.contains(number)) {
                if let Some(page) = page {
                    visit(number, page);
                }
            }
        }
    }

    /// Removes the pages that `is_kept` refuses.
    pub(super) fn retain(&mut self, is_kept: impl Fn(u64, &Page) -> bool) {
        for tables in &mut self.slots {
            for (table, first) in tables.iter_mut().zip((0..).step_by(TABLE_PAGES as usize)) {
                for (page, number) in table.iter_mut().flat_map(|table| table.iter_mut()).zip(first..) {
                    page.take_if(|page| !is_kept(number, page));
                }
            }
        }
        self.count = self.all().count();
    }

    fn all(&self) -> impl Iterator<Item = &Box<Page>> {
        self.slots.iter().flatten().flatten().flat_map(|table| table.iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers at both ends of tables, and a table that stays empty between them.
    const NUMBERS: [u64; 5] = [0, TABLE_PAGES - 1, TABLE_PAGES, 3 * TABLE_PAGES - 1, 3 * TABLE_PAGES];

    fn filled() -> Pages {
        let mut pages = Pages::new(2);
        for number in NUMBERS.into_iter().rev() {
            let mut page = Page::blank();
            page.put(number, 7 + number as u32);
            pages.add(1, number, page);
        }
        pages
    }

    fn numbers(pages: &mut Pages, slot: usize, range: Range<u64>) -> Vec<u64> {
        let mut numbers = Vec::new();
        pages.for_each(slot, range, |number, page| {
            assert_eq!(page.sums[(number % SUMS_PER_PAGE) as usize], 7 + number as u32);
            numbers.push(number);
        });
        numbers
    }

    #[test]
    fn pages_are_found_by_slot_and_number_and_in_order() {
        let mut pages = filled();
        assert_eq!(pages.len(), NUMBERS.len());
        assert!(
            (0..4 * TABLE_PAGES).all(|number| pages.get(1, number).is_some() == NUMBERS.contains(&number))
        );
        assert!(
            NUMBERS
                .iter()
                .all(|number| pages.get(0, *number).is_none() && pages.get_mut(0, *number).is_none())
        );
        assert_eq!(numbers(&mut pages, 1, 0..u64::MAX), NUMBERS);
        assert!(numbers(&mut pages, 0, 0..u64::MAX).is_empty());
        for (from, to) in [(0, 1), (1, 4), (2, 2), (4, 5), (1, 3)] {
            let end = NUMBERS.get(to).map_or(u64::MAX, |number| *number);
            assert_eq!(numbers(&mut pages, 1, NUMBERS[from]..end), NUMBERS[from..to], "{from}..{to}");
        }
    }

    #[test]
    fn a_page_that_is_there_is_kept() {
        let mut pages = filled();
        pages.add(1, NUMBERS[1], Page::blank());
        assert_eq!((pages.len(), numbers(&mut pages, 1, 0..u64::MAX).len()), (NUMBERS.len(), NUMBERS.len()));
    }

    #[test]
    fn removed_pages_are_not_counted() {
        let mut pages = filled();
        pages.add(0, 9, Page::blank());
        pages.retain(|number, page| number > TABLE_PAGES && page.is_dirty);
        assert_eq!((pages.len(), numbers(&mut pages, 1, 0..u64::MAX)), (2, NUMBERS[3..].to_vec()));
        pages.clear(0);
        assert_eq!(pages.len(), 2);
        pages.clear(1);
        assert!(pages.len() == 0 && numbers(&mut pages, 1, 0..u64::MAX).is_empty());
    }
}
