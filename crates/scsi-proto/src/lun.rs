//! LUN fields and REPORT LUNS (SAM-5 4.7, SPC-4 6.33).

use crate::wire::field;

/// Largest number of a single-level LUN (flat space addressing, SAM-5 4.7.7.3).
pub const MAX_LUN: u16 = 16_383;

/// The LUN field of a number up to [`MAX_LUN`]: peripheral device addressing below 256, flat space addressing above.
pub fn to_field(number: u16) -> [u8; 8] {
    debug_assert!(number <= MAX_LUN, "a single-level LUN has 14 bits");
    let [high, low] = number.to_be_bytes();
    let method = if number < 256 { 0 } else { 0x40 };
    [method | high, low, 0, 0, 0, 0, 0, 0]
}

/// The number in a LUN field of one level, peripheral device (bus 0) or flat space addressing; none for any other.
#[inline]
pub fn from_field(field: [u8; 8]) -> Option<u16> {
    let [first, second, rest @ ..] = field;
    if rest != [0; 6] {
        return None;
    }
    match first >> 6 {
        0 if first == 0 => Some(u16::from(second)),
        1 => Some(u16::from_be_bytes([first & 0x3F, second])),
        _ => None,
    }
}

/// REPORT LUNS parameter data of these numbers.
pub fn encode_list(numbers: impl ExactSizeIterator<Item = u16>) -> Vec<u8> {
    let mut out = ((numbers.len() * 8) as u32).to_be_bytes().to_vec();
    out.extend_from_slice(&[0; 4]);
    out.extend(numbers.flat_map(to_field));
    out
}

/// The numbers in REPORT LUNS parameter data. Entries of other addressing methods are left out.
pub fn parse_list(reply: &[u8]) -> Option<Vec<u16>> {
    let announced = u32::from_be_bytes(field(reply, 0)?) as usize;
    let list = reply.get(8..)?;
    let entries = list[..announced.min(list.len())].chunks_exact(8);
    Some(entries.filter_map(|entry| from_field(field(entry, 0)?)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_other_addressing_has_no_number() {
        for number in [0, 1, 255, 256, MAX_LUN] {
            assert_eq!(from_field(to_field(number)), Some(number));
        }
        assert_eq!(from_field([0x40, 7, 0, 0, 0, 0, 0, 0]), Some(7), "flat addressing of a small LUN");
        for other in [[1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0], [0xC1, 1, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(from_field(other), None);
        }
    }

    #[test]
    fn lists_in_both_addressing_forms() {
        let mut reply = vec![0, 0, 0, 24, 0, 0, 0, 0];
        reply.extend([0, 7, 0, 0, 0, 0, 0, 0]);
        reply.extend([0x41, 0x2C, 0, 0, 0, 0, 0, 0]);
        reply.extend([0xC1, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse_list(&reply), Some(vec![7, 300]));
        assert_eq!(parse_list(&reply[..7]), None);
    }
}
