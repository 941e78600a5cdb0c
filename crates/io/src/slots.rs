//! A table of objects addressed by [`Handle`]s that go stale when the object is removed, and the questions about them
//! that every driver answers alike.

use crate::{Handle, TcpInfo, file, net::socket, pool::OpenFile};
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
};

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

/// What an object of a driver is to those who ask about it.
#[derive(Debug)]
pub(crate) enum View<'a> {
    Listener(&'a TcpListener),
    Stream(&'a TcpStream),
    File(&'a OpenFile),
}

/// An object of a driver.
pub(crate) trait Viewed {
    /// None once it is being closed: its handle finds nothing any more.
    fn view(&self) -> Option<View<'_>>;
}

impl<T: Viewed> Slots<T> {
    fn view(&self, handle: Handle) -> Option<View<'_>> {
        self.get(handle).and_then(Viewed::view)
    }

    /// See [`crate::Driver::local_addr`].
    pub(crate) fn local_addr(&self, handle: Handle) -> io::Result<SocketAddr> {
        match self.view(handle) {
            Some(View::Listener(socket)) => socket.local_addr(),
            Some(View::Stream(socket)) => socket.local_addr(),
            _ => Err(stale()),
        }
    }

    /// See [`crate::Driver::tcp_info`].
    pub(crate) fn tcp_info(&self, stream: Handle) -> io::Result<TcpInfo> {
        match self.view(stream) {
            Some(View::Stream(socket)) => socket::tcp_info(socket.as_fd()),
            _ => Err(stale()),
        }
    }

    /// See [`crate::Driver::file_size`].
    pub(crate) fn file_size(&self, file: Handle) -> io::Result<u64> {
        match self.view(file) {
            Some(View::File(open)) => file::size_bytes(&open.file, open.kind),
            _ => Err(stale()),
        }
    }
}

/// A handle of something that is not there, or is no such thing.
pub(crate) fn stale() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the handle was closed")
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
