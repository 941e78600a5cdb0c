//! The model as a user of it sees it: shares, rates, losses, delays and pauses, all in virtual time.

mod delivery;
mod faults;
mod flow_control;
mod lab;
mod live;
mod queueing;
mod topology;
