//! The redo journal: the contents of writes to stripes that lack a member or may soon lack one.
//!
//! A stripe without a member has no second copy of the missing chunk. If a power cut tears the stripe, a new parity would
//! make that chunk garbage. So every change is written to the journals of several members first, durable. The journal is
//! filled from its beginning. When it is full, the members are flushed and a new epoch begins; older records do not count
//! in it.

use super::{geometry::UNIT, superblock::Layout};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::{cell::RefCell, collections::BTreeMap};

const MAGIC: &[u8; 8] = b"LnrtREDO";
/// magic, checksum of header and payload, payload length, set, group, epoch, sequence, number of changes.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 4 + 8 + 8 + 4;
/// Number of members that get each record, if there are so many: more than may fail in the next power cut, and at least
/// two, because one of them may be unreadable.
pub(super) fn copies(tolerance: usize, out: usize) -> usize {
    (tolerance + 1).saturating_sub(out).max(2)
}

/// Allocation of the journal's space; the group writes the records.
pub(super) struct Journal {
    layout: Layout,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    slots: Vec<usize>,
    used: u64,
    sequence: u64,
}

/// The set, group and epoch of valid records. A member may have records of other groups that it was in before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) set: u64,
    pub(super) group: u32,
    pub(super) number: u64,
}

/// Space for the records of one operation.
pub(super) struct Reserved {
    at: u64,
    end: u64,
}

/// New contents of a run of bytes on a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) slot: usize,
    pub(super) offset: u64,
    pub(super) data: Bytes,
}

impl Journal {
    pub(super) fn new(layout: Layout) -> Self {
        Self { layout, state: RefCell::default() }
    }

    /// Begins a new epoch on these members.
    pub(super) fn begin(&self, slots: Vec<usize>) {
        *self.state.borrow_mut() = State { slots, ..State::default() };
    }

    /// The members that hold the journal.
    pub(super) fn slots(&self) -> Vec<usize> {
        self.state.borrow().slots.clone()
    }

    /// Space for records with this many bytes of changes; None if the journal is full.
    pub(super) fn reserve(&self, records: u64, bytes: u64) -> Option<Reserved> {
        let mut state = self.state.borrow_mut();
        let end = state.used + records * UNIT + bytes;
        if end > self.layout.journal_len {
            return None;
        }
        let at = std::mem::replace(&mut state.used, end);
        Some(Reserved { at, end })
    }

    /// A record of the changes, and its position on the members. The records of one stripe are made in the order of
    /// their changes.
    pub(super) fn record(&self, reserved: &mut Reserved, epoch: Epoch, changes: &[Change]) -> (u64, Bytes) {
        let mut state = self.state.borrow_mut();
        state.sequence += 1;
        let record = encode(epoch, state.sequence, changes);
        let at = reserved.at;
        reserved.at += record.len() as u64;
        debug_assert!(reserved.at <= reserved.end, "a record outgrew its reservation");
        (self.layout.journal + at, record)
    }
}

fn encode(epoch: Epoch, sequence: u64, changes: &[Change]) -> Bytes {
    let payload: usize = changes.iter().map(|change| change.data.len()).sum();
    let mut out = BytesMut::with_capacity(UNIT as usize + payload);
    out.put_slice(MAGIC);
    out.put_u32_le(0);
    out.put_u32_le(payload as u32);
    out.put_u64_le(epoch.set);
    out.put_u32_le(epoch.group);
    out.put_u64_le(epoch.number);
    out.put_u64_le(sequence);
    out.put_u32_le(changes.len() as u32);
    for change in changes {
        out.put_u32_le(change.slot as u32);
        out.put_u64_le(change.offset);
        out.put_u32_le(change.data.len() as u32);
    }
    debug_assert!(out.len() <= UNIT as usize, "too many changes for one record");
    out.resize(UNIT as usize, 0);
    for change in changes {
        out.put_slice(&change.data);
    }
    let sum = linerate_crc32c::crc32c(&out);
    out[8..12].copy_from_slice(&sum.to_le_bytes());
    out.freeze()
}

/// Adds the records of one member's journal to `records`, by sequence. Torn records are ignored: their changes have not
/// begun.
pub(super) fn read(area: &Bytes, epoch: Epoch, records: &mut BTreeMap<u64, Vec<Change>>) {
    let mut at = 0;
    while at < area.len() {
        at += match decode(&area.slice(at..), epoch) {
            Some((len, sequence, changes)) => {
                records.insert(sequence, changes);
                len
            }
            None => UNIT as usize,
        };
    }
}

fn decode(area: &Bytes, epoch: Epoch) -> Option<(usize, u64, Vec<Change>)> {
    let mut header = area.get(..UNIT as usize)?;
    if &header[..8] != MAGIC {
        return None;
    }
    header.advance(8);
    let (sum, payload) = (header.get_u32_le(), header.get_u32_le() as usize);
    let found = Epoch { set: header.get_u64_le(), group: header.get_u32_le(), number: header.get_u64_le() };
    let sequence = header.get_u64_le();
    let record = area.get(..(UNIT as usize).checked_add(payload)?)?;
    let computed = linerate_crc32c::crc32c_append(linerate_crc32c::crc32c(&record[..8]), &[0; 4]);
    if found != epoch || linerate_crc32c::crc32c_append(computed, &record[12..]) != sum {
        return None;
    }
    let (mut changes, mut from) = (Vec::new(), UNIT as usize);
    let count = header.get_u32_le() as usize;
    debug_assert!(HEADER_BYTES + count * 16 <= UNIT as usize);
    for _ in 0..count {
        let (slot, offset, len) =
            (header.get_u32_le() as usize, header.get_u64_le(), header.get_u32_le() as usize);
        changes.push(Change { slot, offset, data: area.slice(from..from + len) });
        from += len;
    }
    Some((record.len(), sequence, changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Epoch = Epoch { set: 7, group: 1, number: 3 };

    fn change(slot: usize, byte: u8) -> Change {
        Change { slot, offset: 8192, data: Bytes::from(vec![byte; 8192]) }
    }

    #[test]
    fn whole_records_of_the_epoch_are_read_in_order() {
        let layout = Layout { journal: 0, journal_len: 96 << 10, sums: 0, stripes_per_region: 1 };
        let journal = Journal::new(layout);
        journal.begin(vec![0, 2]);
        let mut area = vec![0; 96 << 10];
        for byte in 0..3 {
            let mut reserved = journal.reserve(1, 5 * 4096).unwrap();
            let (at, record) = journal.record(&mut reserved, OURS, &[change(0, byte), change(2, byte)]);
            area[at as usize..][..record.len()].copy_from_slice(&record);
        }
        assert!(journal.reserve(1, 24 << 10).is_none());
        area[24 * 1024 + 9000] ^= 1;
        let mut records = BTreeMap::new();
        read(&Bytes::from(area.clone()), OURS, &mut records);
        assert_eq!(
            records,
            BTreeMap::from([(1, vec![change(0, 0), change(2, 0)]), (3, vec![change(0, 2), change(2, 2)])])
        );
        for other in [Epoch { number: 2, ..OURS }, Epoch { set: 8, ..OURS }, Epoch { group: 0, ..OURS }] {
            let mut none = BTreeMap::new();
            read(&Bytes::from(area.clone()), other, &mut none);
            assert!(none.is_empty());
        }
    }
}
