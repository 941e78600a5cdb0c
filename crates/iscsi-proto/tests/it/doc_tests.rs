//! `docs/pitfalls.md` names tests for each known bug and `docs/supported-rfc7143.md` for each clause; these tests check
//! that the named tests exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names of all functions in Rust and Python sources below `folder`.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|end| end == "rs" || end == "py") {
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let line = line.trim_start();
                let line =
                    ["pub ", "pub(crate) "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
                if let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("def ")) {
                    names.insert(rest.split(['(', '<']).next().unwrap().to_owned());
                }
            }
        }
    }
}

/// Names of every function of the repository.
fn all_functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["crates", "tests", "python", "bench"] {
        functions(&root().join(folder), &mut names);
    }
    names
}

/// Cells of the rows of a page's table.
fn rows(page: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let lines = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    lines.skip(1).map(cells).collect()
}

/// Checks that a cell names functions that exist, or begins with one of the words for a reason.
fn proven(what: &str, proof: &str, names: &BTreeSet<String>, reasons: &[&str]) {
    let named: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
    for name in &named {
        assert!(names.contains(*name), "{what} names {name}, which is no function of the repository");
    }
    let reason = reasons.iter().any(|word| proof.starts_with(word));
    assert!(!named.is_empty() || reason, "{what} names neither a test nor a reason");
}

#[test]
fn every_pitfall_has_a_test_or_a_reason() {
    let names = all_functions();
    let mut numbers = Vec::new();
    for row in rows("pitfalls.md") {
        let [number, _side, description, proof] = &row[..] else { panic!("{row:?}") };
        assert!(description.len() > 20, "pitfall {number} needs a description");
        proven(&format!("pitfall {number}"), proof, &names, &["not applicable: ", "not covered: "]);
        numbers.push(number.parse::<u32>().unwrap());
    }
    assert_eq!(numbers, (1..=41).collect::<Vec<u32>>());
}

#[test]
fn every_clause_has_a_test_or_a_reason() {
    let names = all_functions();
    let clauses = rows("supported-rfc7143.md");
    assert!(clauses.len() > 50);
    for row in clauses {
        let [clause, subject, _supported, proof] = &row[..] else { panic!("{row:?}") };
        proven(&format!("{clause} {subject}"), proof, &names, &["none: "]);
    }
}

#[test]
fn every_pitfall_test_of_this_crate_is_listed() {
    let mut names = BTreeSet::new();
    functions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), &mut names);
    let page = std::fs::read_to_string(root().join("docs/pitfalls.md")).unwrap();
    for name in names.iter().filter(|name| name.starts_with("pitfall_")) {
        assert!(page.contains(&format!("`{name}`")), "{name} is not listed in docs/pitfalls.md");
    }
}
