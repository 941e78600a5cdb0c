//! `docs/pitfalls.md` names a test for each known bug; this test sees to it that the named tests exist.

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

#[test]
fn every_pitfall_has_a_test_or_a_reason() {
    let mut names = BTreeSet::new();
    for folder in ["crates", "tests", "python", "bench"] {
        functions(&root().join(folder), &mut names);
    }
    let page = std::fs::read_to_string(root().join("docs/pitfalls.md")).unwrap();
    let mut numbers = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, _side, description, proof] = cells[..] else { continue };
        let Ok(number) = number.parse::<u32>() else { continue };
        numbers.push(number);
        assert!(description.len() > 20, "pitfall {number} needs a description");
        let named: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        for name in &named {
            assert!(
                names.contains(*name),
                "pitfall {number} names {name}, which is no function of the repository"
            );
        }
        let reason = proof.starts_with("not applicable: ") || proof.starts_with("not covered: ");
        assert!(!named.is_empty() || reason, "pitfall {number} names neither a test nor a reason");
    }
    assert_eq!(numbers, (1..=41).collect::<Vec<u32>>());
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
