//! The model through its public interface: shares, rates, losses, delays and pauses, all in virtual time.

mod delivery;
mod faults;
mod flow_control;
mod lab;
mod live;
mod queueing;
mod topology;
