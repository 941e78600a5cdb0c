//! Drive models: the figures of the makers' data sheets.
//!
//! Rates are in MB/s of 10^6 bytes, as in the data sheets. A comment names figures that a data sheet does not have. No
//! figure is fitted to a benchmark.

/// A drive with the figures of its data sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// Its name in array files.
    pub name: &'static str,
    /// Manufacturer, model, and source of the figures.
    pub sheet: &'static str,
    /// Capacity in bytes. A modelled disk may be smaller: it is then the whole drive at a smaller scale, not its outer
    /// tracks.
    pub capacity_bytes: u64,
    /// How it works.
    pub mechanism: Mechanism,
}

/// How a drive works.
#[derive(Clone, Debug, PartialEq)]
pub enum Mechanism {
    /// Platters and one arm.
    Rotating(RotatingSheet),
    /// Flash behind a controller.
    Flash(FlashSheet),
}

/// Times of one direction, all without the controller's overhead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekTimes {
    /// To the next track, in microseconds.
    pub single_us: f64,
    /// Mean over all pairs of tracks, in microseconds.
    pub average_us: f64,
    /// From the first track to the last, in microseconds.
    pub full_us: f64,
}

/// A rotating drive's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct RotatingSheet {
    /// Revolutions per minute.
    pub rpm: f64,
    /// Tracks per cylinder.
    pub heads: u32,
    /// Seeks that end in a read.
    pub read_seek: SeekTimes,
    /// Seeks that end in a write: the head must settle first.
    pub write_seek: SeekTimes,
    /// Sustained rate of the outermost zone.
    pub outer_mb_s: f64,
    /// Sustained rate of the innermost zone.
    pub inner_mb_s: f64,
    /// Bytes per sector on the medium; 4096 under blocks of 512 is a 512e drive.
    pub sector_bytes: u32,
    /// From the command to the start of the seek, in microseconds.
    pub overhead_us: f64,
    /// A command that the buffer serves, without its transfer, in microseconds.
    pub buffered_us: f64,
    /// The link's rate.
    pub link_mb_s: f64,
    /// Buffer for read-ahead and cached writes, in bytes.
    pub buffer_bytes: u64,
    /// Writes complete in the buffer, unless they are durable.
    pub write_cache: bool,
    /// Commands that the drive orders among each other.
    pub queue_depth: usize,
}

/// A flash drive's figures. Its buffer is protected against power loss, so durable writes cost nothing more.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashSheet {
    /// One random read of 4 KiB at a time, in microseconds.
    pub random_read_us: f64,
    /// One random write of 4 KiB at a time, in microseconds.
    pub random_write_us: f64,
    /// One sequential read of 4 KiB at a time, in microseconds.
    pub sequential_read_us: f64,
    /// One sequential write of 4 KiB at a time, in microseconds.
    pub sequential_write_us: f64,
    /// Random reads of 4 KiB with a full queue.
    pub read_iops: f64,
    /// Random writes of 4 KiB with a full queue, in the steady state.
    pub write_iops: f64,
    /// Sequential reads.
    pub read_mb_s: f64,
    /// Sequential writes.
    pub write_mb_s: f64,
}

/// The drive of a name.
pub fn drive(name: &str) -> Option<&'static Drive> {
    DRIVES.iter().find(|drive| drive.name == name)
}

const GB: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;
/// No data sheet has the time of a command without a seek. This is the order of magnitude that hosts measure.
const BUFFERED_US: f64 = 60.0;

/// 7200 rpm, 3.5", SATA, 512-byte sectors.
///
/// Western Digital Ultrastar DC HC310 (HUS726T4TALA6L4, 4 TB): OEM specification revision 1.4, 4.5.1: average seek 7.4 ms
/// read, 8.2 ms write; single track 0.23 and 0.32 ms; latency 4.16 ms; data sheet: 255 MB/s, buffer of 256 MB.
/// Not in the sheets: the full stroke and the innermost rate (here in the proportions of [`SAS_7200`]), the overhead.
const SATA_7200: RotatingSheet = RotatingSheet {
    rpm: 7200.0,
    heads: 8,
    read_seek: SeekTimes { single_us: 230.0, average_us: 7400.0, full_us: 16_800.0 },
    write_seek: SeekTimes { single_us: 320.0, average_us: 8200.0, full_us: 17_600.0 },
    outer_mb_s: 255.0,
    inner_mb_s: 131.0,
    sector_bytes: 512,
    overhead_us: 200.0,
    buffered_us: BUFFERED_US,
    link_mb_s: 600.0,
    buffer_bytes: 256 * MIB,
    write_cache: true,
    queue_depth: 32,
};

/// 7200 rpm, 2.5", SAS.
///
/// Seagate Constellation.2 (ST91000640SS, 1 TB): product manual 100620418 revision H, 5.1 and 5.2: average seek 7.5 ms
/// read, 8.5 ms write; single track 0.23 and 0.44 ms; full stroke 17.06 and 18.08 ms; overhead 0.2 ms; 84 to 163 MB/s; 8
/// heads; latency 4.16 ms; buffer of 64 MB.
const SAS_7200: RotatingSheet = RotatingSheet {
    rpm: 7200.0,
    heads: 8,
    read_seek: SeekTimes { single_us: 230.0, average_us: 7500.0, full_us: 17_060.0 },
    write_seek: SeekTimes { single_us: 440.0, average_us: 8500.0, full_us: 18_080.0 },
    outer_mb_s: 163.0,
    inner_mb_s: 84.0,
    sector_bytes: 512,
    overhead_us: 200.0,
    buffered_us: BUFFERED_US,
    link_mb_s: 600.0,
    buffer_bytes: 64 * MIB,
    write_cache: false,
    queue_depth: 64,
};

/// 10000 rpm, 2.5", SAS.
///
/// Seagate Savvio 10K.4 (ST9600204SS, 600 GB): product manual 100539221 revision A, 4.1 and 4.2: average seek 3.8 ms read,
/// 4.4 ms write; single track 0.30 and 0.56 ms; full stroke 7.81 and 8.18 ms; overhead 0.2 ms; 72 to 135 MB/s; 6 heads;
/// latency 3.0 ms; buffer of 16 MB.
const SAS_10K: RotatingSheet = RotatingSheet {
    rpm: 10_000.0,
    heads: 6,
    read_seek: SeekTimes { single_us: 300.0, average_us: 3800.0, full_us: 7810.0 },
    write_seek: SeekTimes { single_us: 560.0, average_us: 4400.0, full_us: 8180.0 },
    outer_mb_s: 135.0,
    inner_mb_s: 72.0,
    sector_bytes: 512,
    overhead_us: 200.0,
    buffered_us: BUFFERED_US,
    link_mb_s: 600.0,
    buffer_bytes: 16 * MIB,
    write_cache: false,
    queue_depth: 64,
};

/// 15000 rpm, 3.5", SAS.
///
/// Seagate Cheetah 15K.7 (ST3600057SS, 600 GB): product manual 100516226 revision F, 4.2: average seek 3.4 ms read, 3.9 ms
/// write; single track 0.20 and 0.44 ms; 122 to 204 MB/s; latency 2.0 ms; overhead 0.2 ms; buffer of 16 MB. Not in the
/// sheet: the full stroke (here in the proportion of [`SAS_10K`]).
const SAS_15K: RotatingSheet = RotatingSheet {
    rpm: 15_000.0,
    heads: 8,
    read_seek: SeekTimes { single_us: 200.0, average_us: 3400.0, full_us: 6990.0 },
    write_seek: SeekTimes { single_us: 440.0, average_us: 3900.0, full_us: 7250.0 },
    outer_mb_s: 204.0,
    inner_mb_s: 122.0,
    sector_bytes: 512,
    overhead_us: 200.0,
    buffered_us: BUFFERED_US,
    link_mb_s: 600.0,
    buffer_bytes: 16 * MIB,
    write_cache: false,
    queue_depth: 64,
};

/// SATA SSD: Intel DC S4500 (product specification S4500/S4600, typical figures): latency random 110/52 us and
/// sequential 36/36 us for read/write, 72000/33000 IOPS at 4 KiB, 500/490 MB/s.
const SATA_SSD: FlashSheet = FlashSheet {
    random_read_us: 110.0,
    random_write_us: 52.0,
    sequential_read_us: 36.0,
    sequential_write_us: 36.0,
    read_iops: 72_000.0,
    write_iops: 33_000.0,
    read_mb_s: 500.0,
    write_mb_s: 490.0,
};

/// `NVMe` SSD: Intel DC P4500 2 TB (Lenovo product guide, technical specifications): latency random 85/20 us and
/// sequential 10/13 us for read/write, 490000/38000 IOPS at 4 KiB, 3200/1050 MB/s.
const NVME_SSD: FlashSheet = FlashSheet {
    random_read_us: 85.0,
    random_write_us: 20.0,
    sequential_read_us: 10.0,
    sequential_write_us: 13.0,
    read_iops: 490_000.0,
    write_iops: 38_000.0,
    read_mb_s: 3200.0,
    write_mb_s: 1050.0,
};

/// Every drive that can be named.
pub static DRIVES: [Drive; 7] = [
    Drive {
        name: "sata_7200_3_5",
        sheet: "Ultrastar DC HC310 4 TB, 512-byte sectors (OEM specification 1.4)",
        capacity_bytes: 4000 * GB,
        mechanism: Mechanism::Rotating(SATA_7200),
    },
    Drive {
        name: "sata_7200_3_5_512e",
        sheet: "Ultrastar DC HC310 6 TB, 4096-byte sectors (OEM specification 1.4)",
        capacity_bytes: 6000 * GB,
        mechanism: Mechanism::Rotating(RotatingSheet { heads: 10, sector_bytes: 4096, ..SATA_7200 }),
    },
    Drive {
        name: "sas_7200_2_5",
        sheet: "Constellation.2 ST91000640SS (product manual 100620418 H)",
        capacity_bytes: 1000 * GB,
        mechanism: Mechanism::Rotating(SAS_7200),
    },
    Drive {
        name: "sas_10k_2_5",
        sheet: "Savvio 10K.4 ST9600204SS (product manual 100539221 A)",
        capacity_bytes: 600 * GB,
        mechanism: Mechanism::Rotating(SAS_10K),
    },
    Drive {
        name: "sas_15k_3_5",
        sheet: "Cheetah 15K.7 ST3600057SS (product manual 100516226 F)",
        capacity_bytes: 600 * GB,
        mechanism: Mechanism::Rotating(SAS_15K),
    },
    Drive {
        name: "sata_ssd",
        sheet: "Intel SSD DC S4500 (product specification S4500/S4600)",
        capacity_bytes: 960 * GB,
        mechanism: Mechanism::Flash(SATA_SSD),
    },
    Drive {
        name: "nvme_ssd",
        sheet: "Intel SSD DC P4500 2 TB (Lenovo product guide)",
        capacity_bytes: 2000 * GB,
        mechanism: Mechanism::Flash(NVME_SSD),
    },
];
