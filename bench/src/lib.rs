//! Comparison benches.
