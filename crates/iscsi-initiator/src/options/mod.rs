//! What a user may set: where a LUN is, how its sessions and paths work, and with which credentials.

pub(crate) mod address;
pub(crate) mod credentials;
pub(crate) mod error;
pub(crate) mod paths;
pub(crate) mod session;
