//! The objects of a driver by [`Handle`], and the common answers of all drivers about them. A handle is stale once its
//! object is removed.

use crate::{Handle, TcpInfo, file, net::socket, pool::OpenFile};
use slab::Slab;
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
};

/// One object, and the generation of its handle.
#[derive(Debug)]
struct Occupied<T> {
    generation: u32,
    value: T,
}

/// Objects by handle. Entries are reused, handles are not: a handle of a removed object has no object.
#[derive(Debug)]
pub struct Slots<T> {
    entries: Slab<Occupied<T>>,
    /// Of the next handle. Generations ascend over all entries, so a later handle of an entry has a higher one.
    generation: u32,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slots<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self { entries: Slab::new(), generation: 0 }
    }

    /// Adds an object.
    pub fn insert(&mut self, value: T) -> Handle {
        let generation = self.generation;
        self.generation = generation.wrapping_add(1);
        Handle::new(self.entries.insert(Occupied { generation, value }) as u32, generation)
    }

    /// The object of a valid handle.
    pub fn get(&self, handle: Handle) -> Option<&T> {
        let entry = self.entries.get(handle.index() as usize)?;
        (entry.generation == handle.generation()).then_some(&entry.value)
    }

    /// The object of a valid handle.
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let entry = self.entries.get_mut(handle.index() as usize)?;
        (entry.generation == handle.generation()).then_some(&mut entry.value)
    }

    /// Removes an object; its handle is stale from now on.
    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        self.get(handle)?;
        Some(self.entries.remove(handle.index() as usize).value)
    }

    /// Handles of all objects in the table.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.entries.iter().map(|(index, entry)| Handle::new(index as u32, entry.generation))
    }
}

/// The socket or file behind an object.
#[derive(Debug)]
pub(crate) enum SocketOrFile<'a> {
    Listener(&'a TcpListener),
    Stream(&'a TcpStream),
    File(&'a OpenFile),
}

/// An object of a driver.
pub(crate) trait DriverObject {
    /// None once it is being closed: then its handle has no object.
    fn socket_or_file(&self) -> Option<SocketOrFile<'_>>;
}

/// A table of driver objects.
pub(crate) trait DriverObjects {
    /// None for a stale handle.
    fn socket_or_file(&self, handle: Handle) -> Option<SocketOrFile<'_>>;

    /// See [`crate::Driver::local_addr`].
    fn local_addr(&self, handle: Handle) -> io::Result<SocketAddr> {
        match self.socket_or_file(handle) {
            Some(SocketOrFile::Listener(socket)) => socket.local_addr(),
            Some(SocketOrFile::Stream(socket)) => socket.local_addr(),
            _ => Err(stale()),
        }
    }

    /// See [`crate::Driver::tcp_info`].
    fn tcp_info(&self, stream: Handle) -> io::Result<TcpInfo> {
        match self.socket_or_file(stream) {
            Some(SocketOrFile::Stream(socket)) => socket::tcp_info(socket.as_fd()),
            _ => Err(stale()),
        }
    }

    /// See [`crate::Driver::file_size`].
    fn file_size(&self, file: Handle) -> io::Result<u64> {
        match self.socket_or_file(file) {
            Some(SocketOrFile::File(open)) => file::size_bytes(&open.file, open.kind),
            _ => Err(stale()),
        }
    }
}

impl<T: DriverObject> DriverObjects for Slots<T> {
    fn socket_or_file(&self, handle: Handle) -> Option<SocketOrFile<'_>> {
        self.get(handle).and_then(DriverObject::socket_or_file)
    }
}

/// The error for a handle of a removed object, or of another kind of object.
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
