//! A flash drive: a latency per command, and a rate that all commands share.

use super::drives::FlashSheet;
use linerate_io::Nanos;

const SHEET_BYTES: f64 = 4096.0;
/// Number of sequential streams that a controller recognises.
const STREAMS: usize = 16;

/// A flash drive's controller.
///
/// A command takes at least its latency. The controller processes a limited number of commands and bytes per second:
/// the cost of a command is a fixed part and its transfer, so that random 4 KiB commands reach the sheet's IOPS.
/// Sequential commands (which continue one of the last streams) have the sheet's sequential latency, and sequential
/// writes cause no cleaning. Rare slow commands are not modelled, because the sheets do not have their figures.
#[derive(Debug)]
pub(super) struct Flash {
    read: Costs,
    write: Costs,
    /// Time at which the controller has completed all earlier commands.
    passed: Nanos,
    /// Where the last streams ended, oldest first.
    ends: [u64; STREAMS],
}

/// One direction's costs, in nanoseconds.
#[derive(Debug)]
struct Costs {
    random: f64,
    sequential: f64,
    /// Fixed part of a command's cost.
    random_command: f64,
    sequential_command: f64,
    byte: f64,
}

impl Flash {
    /// At rest.
    pub(super) fn new(sheet: &FlashSheet) -> Self {
        let command_ns = |iops: f64, mb_s: f64| (1e9 / iops - SHEET_BYTES * 1e3 / mb_s).max(0.0);
        let read_command_ns = command_ns(sheet.read_iops, sheet.read_mb_s);
        let costs = |[random_us, sequential_us, iops, mb_s]: [f64; 4]| Costs {
            random: random_us * 1e3,
            sequential: sequential_us * 1e3,
            random_command: command_ns(iops, mb_s),
            sequential_command: read_command_ns,
            byte: 1e3 / mb_s,
        };
        Self {
            read: costs([sheet.random_read_us, sheet.sequential_read_us, sheet.read_iops, sheet.read_mb_s]),
            write: costs([
                sheet.random_write_us,
                sheet.sequential_write_us,
                sheet.write_iops,
                sheet.write_mb_s,
            ]),
            passed: 0,
            ends: [u64::MAX; STREAMS],
        }
    }

    /// Completion time of a command that arrives now.
    pub(super) fn done(&mut self, now: Nanos, writes: bool, offset: u64, len: u64) -> Nanos {
        let stream = self.ends.iter().position(|end| *end == offset);
        self.ends[stream.unwrap_or(0)..].rotate_left(1);
        self.ends[STREAMS - 1] = offset + len;
        let costs = if writes { &self.write } else { &self.read };
        let (latency_ns, command_ns) = if stream.is_some() {
            (costs.sequential, costs.sequential_command)
        } else {
            (costs.random, costs.random_command)
        };
        // The latency of the sheet includes a transfer of 4 KiB.
        let longer_ns = (len as f64 - SHEET_BYTES).max(0.0) * costs.byte;
        let cost_ns = command_ns + len as f64 * costs.byte;
        self.passed = self.passed.max(now) + cost_ns.round() as Nanos;
        self.passed.max(now + (latency_ns + longer_ns).round() as Nanos)
    }
}
