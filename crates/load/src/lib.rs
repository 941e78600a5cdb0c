//! Makes I/O and times it.
