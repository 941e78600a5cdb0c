//! Commands that are answered at once, from what the unit knows about itself.
//!
//! [`inquiry`] and [`vpd`] say who it is, [`report`] how large and how well, [`ports`] how to reach it,
//! [`control`] reads and changes its state. Each function returns the data-in already cut to the CDB's
//! allocation length.

pub(crate) mod control;
pub(crate) mod inquiry;
pub(crate) mod luns;
pub(crate) mod ports;
pub(crate) mod report;
pub(crate) mod vpd;
