//! A virtual clock and a simulated network behind the driver trait.
