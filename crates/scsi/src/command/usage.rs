//! REPORT SUPPORTED OPERATION CODES (SPC-4 6.35), generated from the command table.

use super::{CommandRow, visible};
use crate::nexus::Itl;
use linerate_scsi_proto::sense::Sense;
use linerate_scsi_proto::wire::{be16, be32};

const TIMEOUTS_LEN: u16 = 10;
/// The nominal time is not given (0); after 60 seconds without an answer an initiator may check the state of a command.
const TIMEOUTS: [u8; 12] = [0, TIMEOUTS_LEN as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60];

pub(crate) fn report_opcodes(itl: &Itl, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let with_timeouts = cdb[2] & 0x80 != 0;
    let config = itl.unit().config();
    let mut out = match cdb[2] & 0x07 {
        0 => all(visible(config), with_timeouts),
        options @ 1..=3 => {
            let rows: Vec<_> = visible(config).filter(|row| row.opcode == cdb[3]).collect();
            one(select(&rows, options, be16(cdb, 4))?, with_timeouts)
        }
        _ => return Err(Sense::cdb(2)),
    };
    out.truncate(be32(cdb, 6) as usize);
    Ok(out)
}

fn all(rows: impl Iterator<Item = &'static CommandRow>, with_timeouts: bool) -> Vec<u8> {
    let mut out = vec![0; 4];
    for row in rows {
        let action = u16::from(row.service_action.unwrap_or(0)).to_be_bytes();
        let flags = u8::from(row.service_action.is_some()) | if with_timeouts { 0x02 } else { 0 };
        out.extend_from_slice(&[row.opcode, 0, action[0], action[1], 0, flags, 0, row.usage.len() as u8]);
        if with_timeouts {
            out.extend_from_slice(&TIMEOUTS);
        }
    }
    let len = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&len.to_be_bytes());
    out
}

/// The row for reporting options 1 (opcode without service actions), 2 (with) or 3 (either).
fn select(
    rows: &[&'static CommandRow],
    options: u8,
    action: u16,
) -> Result<Option<&'static CommandRow>, Sense> {
    let has_actions = rows.iter().any(|row| row.service_action.is_some());
    match options {
        1 if has_actions => return Err(Sense::cdb(2)),
        2 if !has_actions && !rows.is_empty() => return Err(Sense::cdb(2)),
        _ => {}
    }
    let wanted = |row: &&&CommandRow| row.service_action.is_none_or(|own| u16::from(own) == action);
    Ok(rows.iter().find(wanted).copied())
}

fn one(row: Option<&CommandRow>, with_timeouts: bool) -> Vec<u8> {
    const NOT_SUPPORTED: u8 = 1;
    const SUPPORTED: u8 = 3;
    let Some(row) = row else { return vec![0, NOT_SUPPORTED, 0, 0] };
    let flags = SUPPORTED | if with_timeouts { 0x80 } else { 0 };
    let mut out = vec![0, flags, 0, row.usage.len() as u8];
    out.extend((0..row.usage.len()).map(|index| row.usage_byte(index)));
    if with_timeouts {
        out.extend_from_slice(&TIMEOUTS);
    }
    out
}
