//! Which pages of a pool are free. A released page becomes free once the release is durable and no operation reads or
//! writes it, nor sends bytes from where the disk has them.

use crate::disk::LentPages;
use futures::channel::oneshot;
use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    fmt,
    rc::Rc,
};

/// The pages of one pool. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pages(Rc<RefCell<Inner>>);

struct Inner {
    /// A bit per page; set: free.
    free: Vec<u64>,
    free_count: u64,
    /// A bit per page; set: it was in use before, so the disk below has space for it.
    used: Vec<u64>,
    /// A bit per page; set: nothing was written to it since the disk was made of zeros. Empty: not known of any page.
    zero: Vec<u64>,
    count: u64,
    /// Where the search for a free page continues, so that sequential writes get sequential pages.
    cursor: usize,
    /// Released pages whose release is not durable yet.
    released: Vec<u32>,
    /// How many releases are being stored.
    settling: u64,
    /// Transfers in progress, per page.
    pins: HashMap<u32, u32>,
    lent: LentPages,
    /// Pages whose release is durable, but that are still pinned or lent.
    lingering: HashSet<u32>,
    /// Tasks that wait for one of those.
    waiting: Vec<oneshot::Sender<()>>,
}

impl Pages {
    /// `count` pages, all of them free.
    pub(crate) fn new(count: u32) -> Self {
        let mut free = vec![u64::MAX; (count as usize).div_ceil(64)];
        if let Some(last) = free.last_mut().filter(|_| !count.is_multiple_of(64)) {
            *last = (1 << (count % 64)) - 1;
        }
        let count = u64::from(count);
        Self(Rc::new(RefCell::new(Inner {
            free,
            free_count: count,
            used: vec![0; (count as usize).div_ceil(64)],
            zero: Vec::new(),
            count,
            cursor: 0,
            released: Vec::new(),
            settling: 0,
            pins: HashMap::new(),
            lent: LentPages::default(),
            lingering: HashSet::new(),
            waiting: Vec::new(),
        })))
    }

    /// All pages hold zeros.
    pub(crate) fn set_all_zero(&self) {
        let mut inner = self.0.borrow_mut();
        inner.zero = vec![u64::MAX; inner.free.len()];
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.borrow().count
    }

    /// Pages that are free now.
    pub(crate) fn free(&self) -> u64 {
        let mut inner = self.0.borrow_mut();
        inner.take_back();
        inner.free_count
    }

    /// Pages that are free as soon as all changes so far are durable.
    pub(crate) fn returning(&self) -> u64 {
        let inner = self.0.borrow();
        inner.released.len() as u64 + inner.settling
    }

    /// Pages that are free as soon as their transfers have ended.
    pub(crate) fn lingering(&self) -> u64 {
        self.0.borrow().lingering.len() as u64
    }

    /// Whether nothing but a lease keeps one of those pages. The end of a lease wakes no task.
    pub(crate) fn awaits_lease(&self) -> bool {
        let inner = self.0.borrow();
        inner.lingering.iter().any(|page| !inner.pins.contains_key(page))
    }

    /// Waits until the next of those pages is free; see [`Pages::awaits_lease`].
    pub(crate) async fn unpinned(&self) {
        let (sender, receiver) = oneshot::channel();
        self.0.borrow_mut().waiting.push(sender);
        // The dropped sender is the signal.
        let _ = receiver.await;
    }

    /// Marks a page as used; false if it does not exist or is used already.
    pub(crate) fn claim(&self, page: u32) -> bool {
        let mut inner = self.0.borrow_mut();
        let is_claimed = inner.claim(page);
        if is_claimed {
            inner.note_used(page);
        }
        is_claimed
    }

    /// Takes a free page. It is returned when the guard is dropped, unless it is kept.
    pub(crate) fn take(&self) -> Option<FreshPage> {
        let mut inner = self.0.borrow_mut();
        inner.take_back();
        let page = inner.take()?;
        let is_zero = inner.take_zero(page);
        Some(FreshPage { pages: self.clone(), page, is_zero, is_kept: false })
    }

    /// Takes a free page that was in use before, because the disk below has no space for others.
    pub(crate) fn take_used(&self) -> Option<FreshPage> {
        let page = self.0.borrow_mut().take_used()?;
        Some(FreshPage { pages: self.clone(), page, is_zero: false, is_kept: false })
    }

    /// Releases a page. The next [`Pages::take_released`] returns it.
    pub(crate) fn release(&self, page: u32) {
        self.0.borrow_mut().released.push(page);
    }

    /// The pages that were released since the last call.
    pub(crate) fn take_released(&self) -> Vec<u32> {
        let mut inner = self.0.borrow_mut();
        inner.settling += inner.released.len() as u64;
        std::mem::take(&mut inner.released)
    }

    /// The release of these pages is durable.
    pub(crate) fn settle(&self, released: Vec<u32>) {
        let mut inner = self.0.borrow_mut();
        inner.settling -= released.len() as u64;
        inner.lingering.extend(released);
        inner.take_back();
    }

    /// The pages that are lent.
    pub(crate) fn lent(&self) -> LentPages {
        self.0.borrow().lent.clone()
    }

    /// Prevents another use of a page while it is read or written.
    pub(crate) fn pin(&self, page: u32) -> Pin {
        *self.0.borrow_mut().pins.entry(page).or_default() += 1;
        Pin { pages: self.clone(), page }
    }

    fn unpin(&self, page: u32) {
        let mut inner = self.0.borrow_mut();
        let Some(pins) = inner.pins.get_mut(&page) else {
            unreachable!("a page is unpinned as often as it was pinned");
        };
        *pins -= 1;
        if *pins == 0 {
            inner.pins.remove(&page);
            if inner.lingering.contains(&page) {
                inner.take_back();
                inner.waiting.clear();
            }
        }
    }
}

impl Inner {
    fn note_used(&mut self, page: u32) {
        self.used[page as usize / 64] |= 1 << (page % 64);
    }

    /// Whether a page that will be written holds zeros until then.
    fn take_zero(&mut self, page: u32) -> bool {
        let (word, bit) = (page as usize / 64, 1_u64 << (page % 64));
        let is_zero = self.zero.get(word).is_some_and(|bits| bits & bit != 0);
        if is_zero {
            self.zero[word] &= !bit;
        }
        is_zero
    }

    fn claim(&mut self, page: u32) -> bool {
        let (word, bit) = (page as usize / 64, 1_u64 << (page % 64));
        let is_free = self.free.get(word).is_some_and(|bits| bits & bit != 0);
        if is_free {
            self.free[word] &= !bit;
            self.free_count -= 1;
        }
        is_free
    }

    /// Pages that nothing uses any more are free again.
    fn take_back(&mut self) {
        if self.lingering.is_empty() {
            return;
        }
        let mut lingering = std::mem::take(&mut self.lingering);
        lingering.retain(|&page| {
            let is_used = self.pins.contains_key(&page) || self.lent.is_lent(page);
            if !is_used {
                self.put(page);
            }
            is_used
        });
        self.lingering = lingering;
    }

    fn put(&mut self, page: u32) {
        self.free[page as usize / 64] |= 1 << (page % 64);
        self.free_count += 1;
    }

    fn take(&mut self) -> Option<u32> {
        if self.free_count == 0 {
            return None;
        }
        let words = self.free.len();
        let word = (0..words).map(|step| (self.cursor + step) % words).find(|word| self.free[*word] != 0)?;
        self.cursor = word;
        let page = word as u32 * 64 + self.free[word].trailing_zeros();
        self.claim(page).then_some(page)
    }

    fn take_used(&mut self) -> Option<u32> {
        let both = |word: &usize| self.free[*word] & self.used[*word];
        let word = (0..self.free.len()).find(|word| both(word) != 0)?;
        let page = word as u32 * 64 + both(&word).trailing_zeros();
        // If it has no space either, it is not tried again.
        self.used[word] &= !(1 << (page % 64));
        self.claim(page).then_some(page)
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.0.borrow();
        f.debug_struct("Pages")
            .field("free", &inner.free_count)
            .field("of", &inner.count)
            .finish_non_exhaustive()
    }
}

/// A page without references yet.
#[derive(Debug)]
pub(crate) struct FreshPage {
    pages: Pages,
    page: u32,
    is_zero: bool,
    is_kept: bool,
}

impl FreshPage {
    /// Whether the disk holds zeros there.
    pub(crate) fn is_zero(&self) -> bool {
        self.is_zero
    }

    pub(crate) fn page(&self) -> u32 {
        self.page
    }

    /// The page has a reference from now on.
    pub(crate) fn keep(mut self) -> u32 {
        self.is_kept = true;
        self.pages.0.borrow_mut().note_used(self.page);
        self.page
    }
}

impl Drop for FreshPage {
    fn drop(&mut self) {
        if !self.is_kept {
            self.pages.0.borrow_mut().put(self.page);
        }
    }
}

/// See [`Pages::pin`].
#[derive(Debug)]
pub(crate) struct Pin {
    pages: Pages,
    page: u32,
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.pages.unpin(self.page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Chunk, Lease};
    use linerate_io::Region;

    #[test]
    fn a_page_comes_back_when_that_is_durable_and_nobody_uses_it() {
        let pages = Pages::new(2);
        let (one, other) = (pages.take().unwrap().keep(), pages.take().unwrap().keep());
        assert!(pages.take().is_none());
        let pin = pages.pin(one);
        pages.release(one);
        pages.release(other);
        assert_eq!((pages.free(), pages.returning(), pages.lingering()), (0, 2, 0));
        pages.settle(pages.take_released());
        assert_eq!((pages.free(), pages.returning(), pages.lingering()), (1, 0, 1));
        drop(pin);
        assert_eq!((pages.free(), pages.returning(), pages.lingering()), (2, 0, 0));
    }

    #[test]
    fn a_page_that_is_lent_and_pinned_comes_back_after_both() {
        let pages = Pages::new(1);
        let page = pages.take().unwrap().keep();
        let (lent, region) = (pages.lent(), Region::anonymous(4096).unwrap());
        let (pin, mut lease) = (pages.pin(page), Lease::default());
        lease.lend(Chunk::at(&region, 0, 512).in_page(&lent, page)).unwrap();
        pages.release(page);
        pages.settle(pages.take_released());
        assert!(pages.take().is_none() && !pages.awaits_lease());
        drop(pin);
        assert!(pages.take().is_none() && pages.awaits_lease());
        drop(lease);
        assert!(pages.take().is_some() && !pages.awaits_lease());
    }

    #[test]
    fn pages_that_were_in_use_are_found_again_and_tried_once() {
        let pages = Pages::new(200);
        assert!(pages.claim(150) && pages.take_used().is_none());
        pages.release(150);
        pages.settle(pages.take_released());
        let page = pages.take_used().unwrap();
        assert_eq!(page.page(), 150);
        drop(page);
        assert_eq!((pages.free(), pages.take_used().is_none()), (200, true));
    }

    #[test]
    fn a_page_of_zeros_is_one_until_it_is_taken() {
        let pages = Pages::new(65);
        assert!(!pages.take().unwrap().is_zero());
        pages.set_all_zero();
        let page = pages.take().unwrap();
        assert_eq!((page.page(), page.is_zero()), (0, true));
        // It may have been written in part, although it was not kept.
        drop(page);
        let again = pages.take().unwrap();
        assert_eq!((again.page(), again.is_zero()), (0, false));
        let rest: Vec<_> = std::iter::from_fn(|| pages.take()).collect();
        assert!(rest.len() == 64 && rest.iter().all(FreshPage::is_zero));
    }

    #[test]
    fn what_was_not_kept_goes_back_and_nothing_is_handed_out_twice() {
        let pages = Pages::new(130);
        drop(pages.take().unwrap());
        let taken: HashSet<u32> = std::iter::from_fn(|| pages.take().map(FreshPage::keep)).collect();
        assert_eq!((taken.len(), taken.iter().max()), (130, Some(&129)));
        assert!(!pages.claim(5) && !pages.claim(130));
    }
}
