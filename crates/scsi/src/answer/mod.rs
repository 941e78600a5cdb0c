//! Commands that are answered at once, from the facts of the unit.
//!
//! [`inquiry`] and [`vpd`] have its identity, [`report`] its size and health, [`ports`] its ports; [`control`] reads
//! and changes its state. Each function returns the data-in already cut to the CDB's allocation length.

pub(crate) mod control;
pub(crate) mod inquiry;
pub(crate) mod luns;
pub(crate) mod ports;
pub(crate) mod report;
pub(crate) mod vpd;
