//! `docs/rfc7143-states.md` is generated from the state tables; this test fails if it is not current.
//! `LINERATE_WRITE_DOCS=1 cargo test -p linerate-iscsi-proto doc_states` writes it again.

use linerate_iscsi_proto::login::{INITIATOR_LOGIN, Row, TARGET_LOGIN};
use std::fmt::{Debug, Write};

fn diagram<S: Debug, E: Debug>(out: &mut String, title: &str, rule: &str, table: &[Row<S, E>]) {
    write!(out, "\n## {title}\n\n{rule}\n\n```mermaid\nstateDiagram-v2\n").unwrap();
    writeln!(out, "    [*] --> {:?}", table[0].0).unwrap();
    for (from, event, to) in table {
        writeln!(out, "    {from:?} --> {to:?}: {event:?}").unwrap();
    }
    out.push_str("```\n\n| state | event | next state |\n| --- | --- | --- |\n");
    for (from, event, to) in table {
        writeln!(out, "| {from:?} | {event:?} | {to:?} |").unwrap();
    }
}

fn page() -> String {
    let mut out = String::from(
        "# State machines of iSCSI\n\nDrawn from the tables in `crates/iscsi-proto/src/login/table.rs`; a test keeps \
         this page \
         current. What is not\nin a table must not happen: the login fails. The life of a session on the \
         initiator's side is a table too:\n`TRANSITIONS` in `crates/iscsi-initiator/src/session/state.rs`.\n",
    );
    let rule = "One login as the target sees it (RFC 7143 section 6.3). Multi-PDU text stays within a state.";
    diagram(&mut out, "Login, target", rule, TARGET_LOGIN);
    let rule = "One login as the initiator sees it: a state names what was sent last.";
    diagram(&mut out, "Login, initiator", rule, INITIATOR_LOGIN);
    out
}

#[test]
fn the_page_of_state_machines_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rfc7143-states.md");
    if std::env::var_os("LINERATE_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == page(), "docs/rfc7143-states.md is not current; run with LINERATE_WRITE_DOCS=1");
}

#[test]
fn every_state_is_reached_and_every_row_is_unambiguous() {
    fn check<S: Debug + PartialEq, E: Debug + PartialEq>(table: &[Row<S, E>]) {
        for (index, (from, event, _)) in table.iter().enumerate() {
            let twice = table[..index].iter().any(|(other, on, _)| other == from && on == event);
            assert!(!twice, "{from:?} on {event:?} is written twice");
            let reached =
                *from == table[0].0 || table.iter().any(|(other, _, to)| other != from && to == from);
            assert!(reached, "nothing leads to {from:?}");
        }
    }
    check(TARGET_LOGIN);
    check(INITIATOR_LOGIN);
}
