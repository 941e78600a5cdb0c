//! iSCSI transport IDs (SPC-4 7.6.4.6): an initiator port as bytes.

use crate::InitiatorPort;

const ISCSI_PROTOCOL: u8 = 0x5;
const PORT_FORMAT: u8 = 0x40;
const SEPARATOR: &str = ",i,0x";

/// A transport ID: an initiator port, or an iSCSI name without ISID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransportId {
    pub(crate) name: String,
    pub(crate) isid: Option<[u8; 6]>,
}

impl TransportId {
    pub(crate) fn of(port: &InitiatorPort) -> Self {
        Self { name: port.name.clone(), isid: Some(port.isid) }
    }

    /// Name, separator and ISID, NUL-terminated and padded to a multiple of four, at least 20 bytes.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let mut text = self.name.clone().into_bytes();
        if let Some(isid) = self.isid {
            text.extend_from_slice(SEPARATOR.as_bytes());
            text.extend(isid.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
        }
        text.push(0);
        text.resize(text.len().next_multiple_of(4).max(20), 0);
        let format = if self.isid.is_some() { PORT_FORMAT } else { 0 };
        out.extend_from_slice(&[format | ISCSI_PROTOCOL, 0]);
        out.extend_from_slice(&(text.len() as u16).to_be_bytes());
        out.extend_from_slice(&text);
    }

    /// Parses one transport ID that fills `bytes`; `None` if it is not a well-formed iSCSI transport ID.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..4)?;
        let text = bytes.get(4..4 + usize::from(u16::from_be_bytes([header[2], header[3]])))?;
        if text.len() < 20 || text.len() % 4 != 0 || header[0] & 0x3F != ISCSI_PROTOCOL {
            return None;
        }
        let end = text.iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&text[..end]).ok()?;
        match header[0] & 0xC0 {
            0 => Some(Self { name: text.to_owned(), isid: None }),
            PORT_FORMAT => {
                let (name, isid) = text.rsplit_once(SEPARATOR)?;
                Some(Self { name: name.to_owned(), isid: Some(parse_isid(isid)?) })
            }
            _ => None,
        }
    }
}

fn parse_isid(text: &str) -> Option<[u8; 6]> {
    if text.len() != 12 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u64::from_str_radix(text, 16).ok()?;
    value.to_be_bytes()[2..].try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trip(name in "iqn\\.[a-z0-9.:-]{1,200}", isid in proptest::option::of(any::<[u8; 6]>())) {
            let id = TransportId { name, isid };
            let mut bytes = Vec::new();
            id.emit(&mut bytes);
            prop_assert_eq!(bytes.len() % 4, 0);
            prop_assert_eq!(TransportId::parse(&bytes), Some(id));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = TransportId::parse(&bytes);
        }
    }

    #[test]
    fn malformed_ids_are_refused() {
        let mut bytes = Vec::new();
        TransportId { name: "iqn.2026-11.test:a".into(), isid: Some([1; 6]) }.emit(&mut bytes);
        for cut in 0..bytes.len() {
            assert_eq!(TransportId::parse(&bytes[..cut]), None, "cut at {cut}");
        }
        bytes[0] = 0x46;
        assert_eq!(TransportId::parse(&bytes), None, "another protocol");
    }
}
