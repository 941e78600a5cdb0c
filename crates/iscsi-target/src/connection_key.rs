//! The name of a connection.

/// Names a connection across workers; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
