//! The names of results: the volumes of a job, and the parts of its work.

/// The volumes of results, by [`Role`].
pub const VOLUMES: [&str; 3] = ["image", "source", "target"];
/// The streams of results: the parts of a job.
pub const STREAMS: [&str; 8] = [
    "read_map",
    "read_source",
    "write_zeros",
    "write_data",
    "write_metadata",
    "image_structures",
    "read_image",
    "write_target",
];

/// A volume of a job: an index of [`VOLUMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Image,
    Source,
    Target,
}

/// What an I/O is part of: an index of [`STREAMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobPart {
    Map,
    Source,
    Zeros,
    Data,
    Metadata,
    /// Header, log and block table of the image, and the zeros of new blocks.
    Structures,
    ImageRead,
    Target,
}
