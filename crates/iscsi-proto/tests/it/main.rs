//! Tests of the protocol through its public interface, one file per topic.
#![allow(clippy::unwrap_used, reason = "tests")]

mod chap;
mod doc_states;
mod doc_tests;
mod framing;
mod joining;
mod keys;
mod login;
mod pair;
mod pdus;
mod pitfalls_initiator;
mod pitfalls_target;
mod text;
mod transfers;
