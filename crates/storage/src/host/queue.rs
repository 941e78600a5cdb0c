//! Requests of file disks to their host, in order, and their results.

use crate::disk::FileState;
use bytes::{Bytes, BytesMut};
use futures::channel::oneshot;
use linerate_io::{FileOptions, Handle, Nanos};
use std::{cell::RefCell, collections::VecDeque, io, path::PathBuf, rc::Rc};

/// Requests that the host has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Queue(RefCell<VecDeque<Request>>);

impl Queue {
    pub(crate) fn push(&self, request: Request) {
        self.0.borrow_mut().push_back(request);
    }

    /// Puts back a request that cannot be served yet: it remains the next one.
    pub(super) fn put_back(&self, request: Request) {
        self.0.borrow_mut().push_front(request);
    }

    pub(super) fn pop(&self) -> Option<Request> {
        self.0.borrow_mut().pop_front()
    }
}

/// One request. The waiting caller, if there is one, has the other end of `done`.
#[derive(Debug)]
pub(crate) enum Request {
    Open { path: PathBuf, options: FileOptions, done: oneshot::Sender<io::Result<Opened>> },
    Transfer(Transfer),
    Close(Handle),
}

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) handle: Handle,
    pub(crate) size_bytes: u64,
}

/// One operation on one file.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(super) file: Rc<FileState>,
    pub(super) offset: u64,
    /// When it was requested.
    pub(super) begun: Nanos,
    pub(super) work: Work,
}

impl Transfer {
    /// An operation that begins now and is counted.
    pub(crate) fn new(file: Rc<FileState>, offset: u64, begun: Nanos, work: Work) -> Self {
        file.begin(begun);
        Self { file, offset, begun, work }
    }
}

/// What to do, and the channel for the result.
#[derive(Debug)]
pub(crate) enum Work {
    Read {
        into: BytesMut,
        done: oneshot::Sender<io::Result<BytesMut>>,
    },
    Write {
        data: Bytes,
        durable: bool,
        done: Done,
    },
    Sync {
        done: Done,
    },
    Discard {
        len: u64,
        done: Done,
    },
    /// Asks the file system for the space of a range.
    Reserve {
        len: u64,
        done: Done,
    },
    /// Writes zeros to what is `left` of a discard, if the file system has no discard.
    Clear {
        left: u64,
        len: u64,
        done: Done,
    },
}

pub(crate) type Done = oneshot::Sender<io::Result<()>>;
