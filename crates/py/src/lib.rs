//! The seam between Rust and Python: linerate._core.
