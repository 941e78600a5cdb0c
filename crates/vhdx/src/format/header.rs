//! The two headers (MS-VHDX 2.2.2). The one with the greater sequence number is current; an update writes the other.

use super::{HEADER_SECTION_BYTES, SECTOR_BYTES};
use crate::{
    error::{Structure, VhdxError},
    file::{ImageFile, Medium},
    guid::Guid,
    wire::{KIB, MIB, checksum, put, seal, u16_at, u32_at, u64_at},
};

/// Where the headers are.
const OFFSETS: [u64; 2] = [64 * KIB, 128 * KIB];
const SIGNATURE: &[u8; 4] = b"head";
const CHECKSUM_AT: usize = 4;
const ZERO_GUID: [u8; 16] = [0; 16];
/// The only version of the format and of its log.
const VERSION: u16 = 1;
const LOG_VERSION: u16 = 0;

/// The content of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// Greater than that of any earlier header.
    pub(crate) sequence: u64,
    /// Changes before the first change of the file in a session.
    pub(crate) file_write: Guid,
    /// Changes before the first change of the virtual disk in a session.
    pub(crate) data_write: Guid,
    /// The identifier of valid log entries; None: the log is empty.
    pub(crate) log: Option<Guid>,
    pub(crate) log_offset: u64,
    pub(crate) log_bytes: u32,
}

/// The current header, and which of the two it is.
#[derive(Clone, Debug)]
pub(crate) struct Headers {
    current: FileHeader,
    slot: usize,
}

impl FileHeader {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; SECTOR_BYTES as usize];
        put(&mut bytes, 0, SIGNATURE);
        put(&mut bytes, 8, &self.sequence.to_le_bytes());
        put(&mut bytes, 16, self.file_write.bytes());
        put(&mut bytes, 32, self.data_write.bytes());
        put(&mut bytes, 48, self.log.as_ref().map_or(&ZERO_GUID, Guid::bytes).as_slice());
        put(&mut bytes, 64, &LOG_VERSION.to_le_bytes());
        put(&mut bytes, 66, &VERSION.to_le_bytes());
        put(&mut bytes, 68, &self.log_bytes.to_le_bytes());
        put(&mut bytes, 72, &self.log_offset.to_le_bytes());
        seal(&mut bytes, CHECKSUM_AT);
        bytes
    }

    /// Whether signature and checksum are right.
    fn is_valid(bytes: &[u8]) -> bool {
        bytes.starts_with(SIGNATURE) && u32_at(bytes, CHECKSUM_AT) == checksum(bytes, CHECKSUM_AT)
    }

    /// The fields of valid bytes at `offset` of a file of `file_bytes` bytes.
    fn parse(bytes: &[u8], offset: u64, file_bytes: u64) -> Result<Self, VhdxError> {
        let damaged = |at: u64, reason: String| VhdxError::damaged(Structure::Header, offset + at, reason);
        let (version, log_version) = (u16_at(bytes, 66), u16_at(bytes, 64));
        let log_guid = Guid::at(bytes, 48);
        let log = (!log_guid.is_zero()).then_some(log_guid);
        if version != VERSION {
            let feature = format!("version {version} of the format; only version {VERSION} is known");
            return Err(VhdxError::unsupported(Structure::Header, offset + 66, feature));
        }
        if log_version != LOG_VERSION && log.is_some() {
            let feature = format!("version {log_version} of the log; close the image where it was written");
            return Err(VhdxError::unsupported(Structure::Header, offset + 64, feature));
        }
        let (log_offset, log_bytes) = (u64_at(bytes, 72), u32_at(bytes, 68));
        if !u64::from(log_bytes).is_multiple_of(MIB) || log_bytes == 0 {
            return Err(damaged(68, format!("a log of {log_bytes} bytes is not whole MiB")));
        }
        let fits = log_offset.checked_add(u64::from(log_bytes)).is_some_and(|end| end <= file_bytes);
        if !log_offset.is_multiple_of(MIB) || log_offset < HEADER_SECTION_BYTES || !fits {
            let reason =
                format!("a log of {log_bytes} bytes at {log_offset} in a file of {file_bytes} bytes");
            return Err(damaged(72, reason));
        }
        Ok(Self {
            sequence: u64_at(bytes, 8),
            file_write: Guid::at(bytes, 16),
            data_write: Guid::at(bytes, 32),
            log,
            log_offset,
            log_bytes,
        })
    }
}

impl Headers {
    /// Reads both and takes the current one.
    pub(crate) fn read<F: ImageFile>(medium: &mut Medium<F>, file_bytes: u64) -> Result<Self, VhdxError> {
        let mut valid = Vec::new();
        for (slot, offset) in OFFSETS.into_iter().enumerate() {
            let bytes = medium.read_vec(offset, SECTOR_BYTES)?;
            if FileHeader::is_valid(&bytes) {
                valid.push((slot, bytes));
            }
        }
        let sequence = |bytes: &[u8]| u64_at(bytes, 8);
        if let [(_, one), (_, two)] = valid.as_slice()
            && sequence(one) == sequence(two)
            && one != two
        {
            let reason = "both headers have the same sequence number, but their contents differ";
            return Err(VhdxError::damaged(Structure::Header, OFFSETS[0], reason));
        }
        let Some((slot, bytes)) = valid.into_iter().max_by_key(|(_, bytes)| sequence(bytes)) else {
            let reason = format!("neither this header nor that at byte {} has its checksum", OFFSETS[1]);
            return Err(VhdxError::damaged(Structure::Header, OFFSETS[0], reason));
        };
        Ok(Self { current: FileHeader::parse(&bytes, OFFSETS[slot], file_bytes)?, slot })
    }

    /// Writes both headers of a new image. The caller flushes.
    pub(crate) fn create<F: ImageFile>(
        medium: &mut Medium<F>,
        first: &FileHeader,
    ) -> Result<Self, VhdxError> {
        medium.write(OFFSETS[0], &first.bytes())?;
        let second = FileHeader { sequence: first.sequence + 1, ..first.clone() };
        medium.write(OFFSETS[1], &second.bytes())?;
        Ok(Self { current: second, slot: 1 })
    }

    pub(crate) fn current(&self) -> &FileHeader {
        &self.current
    }

    /// Writes the header that is not current, with changes, and makes it durable (MS-VHDX 2.2.2.1).
    pub(crate) fn update<F: ImageFile>(
        &mut self,
        medium: &mut Medium<F>,
        change: impl FnOnce(&mut FileHeader),
    ) -> Result<(), VhdxError> {
        let slot = 1 - self.slot;
        let mut next = self.current.clone();
        // An image whose number is at its end was not written by counting.
        next.sequence = next.sequence.checked_add(1).ok_or_else(|| {
            VhdxError::damaged(
                Structure::Header,
                OFFSETS[self.slot] + 8,
                "no sequence number is after this one",
            )
        })?;
        change(&mut next);
        medium.write(OFFSETS[slot], &next.bytes())?;
        medium.flush()?;
        *self = Self { current: next, slot };
        Ok(())
    }
}
