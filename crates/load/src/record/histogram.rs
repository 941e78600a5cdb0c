//! A latency distribution in nanoseconds: an HDR histogram of three significant digits, its two standard encodings, and
//! the interval log that `HdrHistogram`'s own tools read.

use base64::{Engine, engine::general_purpose::STANDARD};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::fmt::Write;
use thiserror::Error;

/// Largest value with its own bucket, in ns (one hour); longer ones count as this.
pub const HISTOGRAM_MAX_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Counts of nanoseconds in HDR buckets of three significant digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self(
            hdrhistogram::Histogram::new_with_bounds(1, HISTOGRAM_MAX_NS, SIGNIFICANT_DIGITS)
                .unwrap_or_else(|error| unreachable!("constant bounds are valid: {error}")),
        )
    }

    /// Adds `count` values of `value_ns`.
    pub fn record(&mut self, value_ns: u64, count: u64) {
        self.0.saturating_record_n(value_ns, count);
    }

    /// Adds the counts of another histogram. Values beyond an hour count as an hour.
    pub fn merge(&mut self, other: &Self) {
        for bucket in other.0.iter_recorded() {
            self.0.saturating_record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
    }

    /// The value in ns that the share `q` (0 to 1) of the counts does not exceed; 0 when empty.
    pub fn quantile(&self, q: f64) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.value_at_quantile(q) }
    }

    /// Values recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Smallest value in ns, to the stored precision; 0 when empty.
    pub fn min(&self) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.min() }
    }

    /// Largest value in ns, to the stored precision; 0 when empty.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// Mean in ns, from the middles of the buckets; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.mean() }
    }

    /// Buckets in use, ascending: lowest value, highest value, count.
    pub fn buckets(&self) -> Vec<(u64, u64, u64)> {
        let bounds = |value| (self.0.lowest_equivalent(value), self.0.highest_equivalent(value));
        self.0
            .iter_recorded()
            .map(|bucket| {
                let (low, high) = bounds(bucket.value_iterated_to());
                (low, high, bucket.count_at_value())
            })
            .collect()
    }

    /// `HdrHistogram`'s V2 encoding, compressed with deflate, as interval log lines have it in base64.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .unwrap_or_else(|error| unreachable!("writing to memory cannot fail: {error}"));
        bytes
    }

    /// Reads `HdrHistogram` V2, compressed or not.
    pub fn decode(bytes: &[u8]) -> Result<Self, HistogramError> {
        let read = Deserializer::new()
            .deserialize::<u64, _>(&mut std::io::Cursor::new(bytes))
            .map_err(|error| HistogramError::Malformed(error.to_string()))?;
        let mut histogram = Self::new();
        histogram.merge(&Self(read));
        Ok(histogram)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes the text of an `HdrHistogram` interval log (format 1.3), for `HistogramLogProcessor` and similar tools.
#[derive(Debug, Default)]
pub struct HlogWriter {
    started: bool,
}

impl HlogWriter {
    /// A writer at the start of a log.
    pub fn new() -> Self {
        Self::default()
    }

    /// The header: format, and the wall-clock second (Unix time) from which interval start times count.
    pub fn header(&mut self, start_unix_s: f64) -> String {
        self.started = true;
        format!(
            "#[Histogram log format version 1.3]\n#[StartTime: {start_unix_s:.3} (seconds since epoch)]\n\
             #[BaseTime: {start_unix_s:.3} (seconds since epoch)]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        )
    }

    /// One line: an interval's histogram under a tag. The maximum is in milliseconds, as readers of the format expect
    /// for nanosecond histograms. Characters that would end the tag are replaced.
    pub fn line(&self, tag: &str, start_s: f64, end_s: f64, histogram: &Histogram) -> String {
        let mut line = String::new();
        if !tag.is_empty() {
            let clean: String =
                tag.chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect();
            let _ = write!(line, "Tag={clean},");
        }
        let max_ms = histogram.max() as f64 / 1e6;
        let text = STANDARD.encode(histogram.encode());
        let _ = writeln!(line, "{start_s:.3},{:.3},{max_ms:.3},{text}", end_s - start_s);
        line
    }
}

/// The bytes are not a histogram (fault: their writer).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HistogramError {
    /// Neither V2 nor V2 compressed.
    #[error("not an HdrHistogram V2 encoding: {0}")]
    Malformed(String),
}
