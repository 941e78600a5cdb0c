//! Keys, signatures and encryption (MS-SMB2 3.1.4). The primitives are those of `RustCrypto`.

mod gmac;
pub(crate) mod keys;
pub(crate) mod sealing;
pub(crate) mod signing;

/// A key of 16 bytes.
pub(crate) type Key128 = [u8; 16];
