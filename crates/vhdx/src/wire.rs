//! Little-endian fields and the checksum of MS-VHDX 2.2.

/// Bytes of a MiB: the unit of everything that is placed in an image.
pub(crate) const MIB: u64 = 1 << 20;
/// Bytes of a KiB.
pub(crate) const KIB: u64 = 1 << 10;

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(field(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(field(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(field(bytes, at))
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// CRC-32C of `bytes` with zeros in the four bytes at `field_at`, where the structure keeps it.
pub(crate) fn checksum(bytes: &[u8], field_at: usize) -> u32 {
    let before = linerate_crc32c::crc32c(&bytes[..field_at]);
    linerate_crc32c::crc32c_append(linerate_crc32c::crc32c_append(before, &[0; 4]), &bytes[field_at + 4..])
}

/// Computes the checksum and writes it into its field.
pub(crate) fn seal(bytes: &mut [u8], field_at: usize) {
    let sum = checksum(bytes, field_at);
    put(bytes, field_at, &sum.to_le_bytes());
}
