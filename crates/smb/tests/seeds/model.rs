//! What the file must contain.

/// A write that may or may not have reached the file.
struct OpenWrite {
    at: usize,
    data: Vec<u8>,
}

/// The bytes of the file, and the writes whose fate is not known yet.
pub(crate) struct Model {
    bytes: Vec<u8>,
    open_writes: Vec<OpenWrite>,
}

impl Model {
    pub(crate) fn new(len: usize) -> Self {
        Self { bytes: vec![0; len], open_writes: Vec::new() }
    }

    pub(crate) fn part(&self, at: usize, len: usize) -> &[u8] {
        &self.bytes[at..at + len]
    }

    /// The server has answered that these bytes are written.
    pub(crate) fn written(&mut self, at: usize, data: &[u8]) {
        self.bytes[at..at + data.len()].copy_from_slice(data);
    }

    /// The write ended without success: each of its bytes is the old or the new one.
    pub(crate) fn not_known(&mut self, at: usize, data: Vec<u8>) {
        self.open_writes.push(OpenWrite { at, data });
    }

    /// Whether a part of the range is not known.
    pub(crate) fn is_open(&self, at: usize, len: usize) -> bool {
        self.open_writes.iter().any(|write| at < write.at + write.data.len() && write.at < at + len)
    }

    /// Compares with the file when the server has ended every connection: first byte that is neither of what it may be.
    /// Afterwards all bytes are known.
    pub(crate) fn settle(&mut self, file: &[u8]) -> Option<usize> {
        for OpenWrite { at, data } in self.open_writes.drain(..) {
            let own = self.bytes[at..].iter_mut().zip(&data).zip(&file[at..]);
            own.filter(|((_, new), now)| new == now).for_each(|((byte, new), _)| *byte = *new);
        }
        if file.len() != self.bytes.len() {
            return Some(file.len().min(self.bytes.len()));
        }
        self.bytes.iter().zip(file).position(|(own, now)| own != now)
    }
}
