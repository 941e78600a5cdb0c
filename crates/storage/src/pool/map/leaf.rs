//! The pages of one short range of a volume, in one layer.

/// Volume pages that one leaf maps.
pub(crate) const LEAF_PAGES: u64 = 64;

/// The entry of a layer for one page of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// No entry: the layer below decides.
    Below,
    /// Zeros; hides the layer below.
    Zero,
    /// A page of the pool, which this layer owns.
    Page(u32),
}

/// The slots of [`LEAF_PAGES`] consecutive pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    slots: [Slot; LEAF_PAGES as usize],
}

/// The stored form of [`Slot::Zero`]; a page is stored as its number.
const ZERO: u32 = u32::MAX;

impl Leaf {
    pub(crate) const fn new() -> Self {
        Self { slots: [Slot::Below; LEAF_PAGES as usize] }
    }

    pub(crate) fn slots(&self) -> &[Slot; LEAF_PAGES as usize] {
        &self.slots
    }

    pub(crate) fn get(&self, place: usize) -> Slot {
        self.slots[place]
    }

    /// Sets a slot, and returns the old one.
    pub(crate) fn set(&mut self, place: usize, slot: Slot) -> Slot {
        std::mem::replace(&mut self.slots[place], slot)
    }

    /// The number of its pages.
    pub(crate) fn pages(&self) -> u64 {
        self.slots.iter().filter(|slot| matches!(slot, Slot::Page(_))).count() as u64
    }

    /// Without a layer below, zeros need no entry.
    pub(crate) fn drop_zeros(&mut self) {
        self.slots.iter_mut().filter(|slot| **slot == Slot::Zero).for_each(|slot| *slot = Slot::Below);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| *slot == Slot::Below)
    }

    /// A bit per slot with an entry, then the numbers of those slots: 12 bytes for one page, 264 for all.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut said = 0_u64;
        let mut bytes = vec![0; 8];
        for (place, slot) in self.slots.iter().enumerate() {
            let number = match slot {
                Slot::Below => continue,
                Slot::Zero => ZERO,
                Slot::Page(page) => *page,
            };
            said |= 1 << place;
            bytes.extend(number.to_le_bytes());
        }
        bytes[..8].copy_from_slice(&said.to_le_bytes());
        bytes
    }

    /// The reverse of [`Leaf::encode`]; None if the bytes are not a leaf.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (said, numbers) = bytes.split_first_chunk::<8>()?;
        let said = u64::from_le_bytes(*said);
        if numbers.len() != said.count_ones() as usize * 4 {
            return None;
        }
        let mut leaf = Self::new();
        let mut numbers = numbers.chunks_exact(4);
        for (place, slot) in leaf.slots.iter_mut().enumerate() {
            if said >> place & 1 == 1 {
                let number = u32::from_le_bytes(numbers.next()?.try_into().ok()?);
                *slot = if number == ZERO { Slot::Zero } else { Slot::Page(number) };
            }
        }
        Some(leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_leaf_survives_its_bytes(slots in prop::collection::vec(prop::option::of(prop::option::of(0..ZERO)), 64)) {
            let mut leaf = Leaf::new();
            for (place, slot) in slots.iter().enumerate() {
                leaf.set(place, match slot {
                    None => Slot::Below,
                    Some(None) => Slot::Zero,
                    Some(Some(page)) => Slot::Page(*page),
                });
            }
            prop_assert_eq!(Leaf::decode(&leaf.encode()), Some(leaf.clone()));
            let mut longer = leaf.encode();
            longer.push(0);
            prop_assert_eq!(Leaf::decode(&longer), None);
        }
    }
}
