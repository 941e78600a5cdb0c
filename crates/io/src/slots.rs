//! A table of objects addressed by [`Handle`]s that go stale when the object is removed.

use crate::Handle;

/// One entry: how often it was reused, and what it holds now.
#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Objects by handle. Entries are reused, handles are not: a handle of a removed object finds nothing.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Handle {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.value = Some(value);
            return Handle::new(index, slot.generation);
        }
        self.slots.push(Slot { generation: 0, value: Some(value) });
        Handle::new(self.slots.len() as u32 - 1, 0)
    }

    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        let slot = self.slots.get(handle.index() as usize)?;
        if slot.generation == handle.generation() { slot.value.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let slot = self.slots.get_mut(handle.index() as usize)?;
        if slot.generation == handle.generation() { slot.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<T> {
        let slot = self.slots.get_mut(handle.index() as usize)?;
        if slot.generation != handle.generation() {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(handle.index());
        Some(value)
    }

    /// Handles of everything in the table.
    pub(crate) fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let occupied = self.slots.iter().enumerate().filter(|(_, slot)| slot.value.is_some());
        occupied.map(|(index, slot)| Handle::new(index as u32, slot.generation))
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_removed_handle_never_finds_the_next_object() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_eq!(first.index(), second.index());
        assert_eq!((slots.get(first), slots.get(second)), (None, Some(&'b')));
        assert_eq!(slots.remove(first), None);
    }
}
