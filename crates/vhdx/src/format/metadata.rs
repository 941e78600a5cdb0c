//! The metadata region (MS-VHDX 2.6): a table of items, and the items of a fixed or dynamic image.

use super::regions::ImageRegion;
use crate::{
    error::{Structure, VhdxError},
    file::{ImageFile, Medium},
    geometry::ImageGeometry,
    guid::Guid,
    wire::{KIB, MIB, put, u16_at, u32_at, u64_at},
};
use std::collections::HashMap;

/// Bytes of the table; items follow it.
const TABLE_BYTES: u64 = 64 * KIB;
const SIGNATURE: &[u8; 8] = b"metadata";
const ENTRY_BYTES: usize = 32;
const ENTRIES_MAX: u16 = 2047;
const USER_ENTRIES_MAX: usize = 1024;
const ITEM_BYTES_MAX: u32 = MIB as u32;
/// Flags of an entry (MS-VHDX 2.6.1.2).
const IS_USER: u32 = 1;
const IS_VIRTUAL_DISK: u32 = 2;
const IS_REQUIRED: u32 = 4;
/// Flags of the file parameters (MS-VHDX 2.6.2.1).
const LEAVE_BLOCKS_ALLOCATED: u32 = 1;
const HAS_PARENT: u32 = 2;

const FILE_PARAMETERS: Guid = Guid::new(0xCAA1_6737, 0xFA36, 0x4D43, 0xB3B6_33F0_AA44_E76B);
const DISK_SIZE: Guid = Guid::new(0x2FA5_4224, 0xCD1B, 0x4876, 0xB211_5DBE_D83B_F4B8);
const DISK_ID: Guid = Guid::new(0xBECA_12AB, 0xB2E6, 0x4523, 0x93EF_C309_E000_C746);
const LOGICAL_SECTOR: Guid = Guid::new(0x8141_BF1D, 0xA96F, 0x4709, 0xBA47_F233_A8FA_AB5F);
const PHYSICAL_SECTOR: Guid = Guid::new(0xCDA3_48C7, 0x445D, 0x4471, 0x9CC9_E988_5251_C556);
const PARENT_LOCATOR: Guid = Guid::new(0xA8D3_5F2D, 0xB30B, 0x454D, 0xABF7_D3D8_4834_AB0C);
/// System items with their lengths in bytes; the parent locator has none of its own.
const KNOWN: [(Guid, &str, u32); 5] = [
    (FILE_PARAMETERS, "file parameters", 8),
    (DISK_SIZE, "virtual disk size", 8),
    (DISK_ID, "virtual disk ID", 16),
    (LOGICAL_SECTOR, "logical sector size", 4),
    (PHYSICAL_SECTOR, "physical sector size", 4),
];

/// What the metadata of an image says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) geometry: ImageGeometry,
    /// All blocks stay allocated: a fixed image.
    pub(crate) is_fixed: bool,
    pub(crate) disk_id: Guid,
}

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
struct Item {
    offset: u32,
    bytes: u32,
    /// First byte of the entry in the file.
    place: u64,
}

impl Metadata {
    /// Table and items of a new image.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let geometry = &self.geometry;
        let mut parameters = geometry.block_bytes.to_le_bytes().to_vec();
        let flags = if self.is_fixed { LEAVE_BLOCKS_ALLOCATED } else { 0 };
        parameters.extend(flags.to_le_bytes());
        let contents = [
            parameters,
            geometry.size_bytes.to_le_bytes().to_vec(),
            self.disk_id.bytes().to_vec(),
            geometry.logical_sector_bytes.to_le_bytes().to_vec(),
            geometry.physical_sector_bytes.to_le_bytes().to_vec(),
        ];
        let mut bytes = vec![0; TABLE_BYTES as usize];
        put(&mut bytes, 0, SIGNATURE);
        put(&mut bytes, 10, &(KNOWN.len() as u16).to_le_bytes());
        for (entry, ((guid, _, len), content)) in KNOWN.iter().zip(&contents).enumerate() {
            let (at, offset) = ((entry + 1) * ENTRY_BYTES, bytes.len() as u32);
            let flags = if *guid == FILE_PARAMETERS { IS_REQUIRED } else { IS_REQUIRED | IS_VIRTUAL_DISK };
            put(&mut bytes, at, guid.bytes());
            put(&mut bytes, at + 16, &offset.to_le_bytes());
            put(&mut bytes, at + 20, &len.to_le_bytes());
            put(&mut bytes, at + 24, &flags.to_le_bytes());
            bytes.extend(content);
        }
        bytes
    }

    /// Reads and checks the table and the items of a fixed or dynamic image.
    pub(crate) fn read<F: ImageFile>(medium: &mut Medium<F>, region: ImageRegion) -> Result<Self, VhdxError> {
        let table = medium.read_vec(region.offset, TABLE_BYTES)?;
        let items = parse_table(&table, region)?;
        let mut contents = HashMap::new();
        for (guid, name, bytes) in KNOWN {
            let Some(item) = items.get(&guid) else {
                let reason = format!("the item {name} is missing");
                return Err(VhdxError::damaged(Structure::MetadataTable, region.offset, reason));
            };
            if item.bytes != bytes {
                let reason = format!("the item {name} has {} bytes, not {bytes}", item.bytes);
                return Err(VhdxError::damaged(Structure::MetadataTable, item.place, reason));
            }
            let offset = region.offset + u64::from(item.offset);
            contents.insert(guid, (offset, medium.read_vec(offset, u64::from(bytes))?));
        }
        let (parameters_at, parameters) = &contents[&FILE_PARAMETERS];
        let flags = u32_at(parameters, 4);
        if flags & HAS_PARENT != 0 {
            let feature =
                "it is a differencing image, which needs its parent; merge it into its parent first";
            return Err(VhdxError::unsupported(Structure::MetadataItem, *parameters_at, feature));
        }
        if flags & !(LEAVE_BLOCKS_ALLOCATED | HAS_PARENT) != 0 {
            let reason = format!("reserved flags of the file parameters are set: {flags:#x}");
            return Err(VhdxError::damaged(Structure::MetadataItem, parameters_at + 4, reason));
        }
        let geometry = ImageGeometry::new(
            u64_at(&contents[&DISK_SIZE].1, 0),
            u32_at(parameters, 0),
            u32_at(&contents[&LOGICAL_SECTOR].1, 0),
            u32_at(&contents[&PHYSICAL_SECTOR].1, 0),
        )
        .map_err(|reason| VhdxError::damaged(Structure::MetadataItem, *parameters_at, reason))?;
        Ok(Self {
            geometry,
            is_fixed: flags & LEAVE_BLOCKS_ALLOCATED != 0,
            disk_id: Guid::at(&contents[&DISK_ID].1, 0),
        })
    }
}

/// The system items of a table, by identifier.
fn parse_table(table: &[u8], region: ImageRegion) -> Result<HashMap<Guid, Item>, VhdxError> {
    let damaged =
        |at: u64, reason: String| VhdxError::damaged(Structure::MetadataTable, region.offset + at, reason);
    if !table.starts_with(SIGNATURE) {
        return Err(damaged(0, "it does not begin with \"metadata\"".to_owned()));
    }
    let count = u16_at(table, 10);
    if count > ENTRIES_MAX {
        return Err(damaged(10, format!("{count} entries; {ENTRIES_MAX} are possible")));
    }
    let (mut items, mut used, mut users) = (HashMap::new(), Vec::new(), 0);
    for entry in 1..=usize::from(count) {
        let at = entry * ENTRY_BYTES;
        let (guid, flags) = (Guid::at(table, at), u32_at(table, at + 24));
        let item = Item {
            offset: u32_at(table, at + 16),
            bytes: u32_at(table, at + 20),
            place: region.offset + at as u64,
        };
        if flags & !(IS_USER | IS_VIRTUAL_DISK | IS_REQUIRED) != 0 {
            return Err(damaged(at as u64 + 24, format!("reserved flags of an entry are set: {flags:#x}")));
        }
        let is_user = flags & IS_USER != 0;
        users += usize::from(is_user);
        check_place(&item, region).map_err(|reason| damaged(at as u64 + 16, reason))?;
        if item.bytes > 0 {
            used.push((item.offset, item.offset + item.bytes, at));
        }
        let is_known =
            !is_user && (guid == PARENT_LOCATOR || KNOWN.iter().any(|(known, _, _)| *known == guid));
        if !is_known && flags & IS_REQUIRED != 0 {
            let feature = format!("it requires the item {guid}, which is not known here");
            return Err(VhdxError::unsupported(Structure::MetadataTable, item.place, feature));
        }
        if items.insert((guid, is_user), item).is_some() {
            return Err(damaged(at as u64, format!("the item {guid} is there twice")));
        }
    }
    if users > USER_ENTRIES_MAX {
        return Err(damaged(10, format!("{users} user items; {USER_ENTRIES_MAX} are possible")));
    }
    used.sort_unstable();
    if let Some(pair) = used.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        return Err(damaged(pair[1].2 as u64, "the item overlaps another one".to_owned()));
    }
    Ok(items.into_iter().filter(|((_, is_user), _)| !is_user).map(|((guid, _), item)| (guid, item)).collect())
}

fn check_place(item: &Item, region: ImageRegion) -> Result<(), String> {
    let end = u64::from(item.offset) + u64::from(item.bytes);
    let is_inside = u64::from(item.offset) >= TABLE_BYTES && end <= u64::from(region.bytes);
    let is_empty = item.bytes == 0 && item.offset == 0;
    if is_empty || (is_inside && item.bytes > 0 && item.bytes <= ITEM_BYTES_MAX) {
        return Ok(());
    }
    Err(format!("an item of {} bytes at {} of the region of {} bytes", item.bytes, item.offset, region.bytes))
}
