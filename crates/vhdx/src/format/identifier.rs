//! The file type identifier (MS-VHDX 2.2.1): the first bytes of an image.

use crate::wire::put;

/// Its length in bytes; the rest of its 64 KiB is reserved.
pub(crate) const BYTES: usize = 520;
const SIGNATURE: &[u8; 8] = b"vhdxfile";
const CREATOR: &str = concat!("Linerate ", env!("CARGO_PKG_VERSION"));

/// Whether a file that begins like this is a VHDX image.
pub(crate) fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(SIGNATURE)
}

/// The identifier of a new image.
pub(crate) fn new() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    put(&mut bytes, 0, SIGNATURE);
    for (at, unit) in CREATOR.encode_utf16().enumerate() {
        put(&mut bytes, 8 + 2 * at, &unit.to_le_bytes());
    }
    bytes
}
