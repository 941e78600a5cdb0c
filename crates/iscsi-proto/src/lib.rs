//! Sans-I/O iSCSI (RFC 7143), initiator and target side.
//!
//! This crate has no sockets, no clocks and no threads: its input and output are bytes and structs. Read it from the
//! wire up:
//!
//! 1. [`pdu`]: the 48-byte headers as plain structs; [`digest`]: CRC32C.
//! 2. [`frame`]: the receiver that cuts a byte stream into PDUs without copying payload.
//! 3. [`text`], [`keys`], [`names`], [`params`]: `key=value` text, the table of keys and their negotiation.
//! 4. [`chap`] and [`login`]: authentication and the login state machines of both sides; [`send_targets`]: discovery.
//! 5. [`window`] and [`transfer`]: numbering of commands and statuses, bookkeeping of data sequences, for full feature
//!    phase. Nothing allocates here, and one PDU costs tens of nanoseconds.
//!
//! Only error recovery level 0 is supported: any error on a connection ends it, and the initiator logs in again.
//! `docs/supported-rfc7143.md` lists for each clause what is supported.

pub mod chap;
pub mod digest;
pub mod frame;
pub mod keys;
pub mod login;
pub mod names;
pub mod params;
pub mod pdu;
pub mod send_targets;
pub mod text;
pub mod transfer;
pub mod window;
