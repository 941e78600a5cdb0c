//! NICs, links and switches in virtual time, without I/O.
//!
//! Nothing here reads a clock or a packet: whoever drives the model says what time it is, hands in frames that a host sends,
//! and takes away those that a host receives. So the same model carries real packets (`crates/fabric`) and simulated ones.

mod config;

pub use config::{
    ConfigError, FRAME_BYTES_MAX, FlowControl, NicConfig, PRIORITIES, Schedule, ScheduleKind, SwitchConfig,
    WireConfig,
};
