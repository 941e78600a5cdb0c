"""The tidy tests' own eyes: hidden braces, lifetimes, raw strings and nested functions are read as Rust reads them."""

from __future__ import annotations

from tests.tidy.tree import bare_rust, python_functions, rust_functions

TRICKY = """
fn one<'a>(text: &'a str) -> char {
    let _ = "} not the end \\" }"; // } nor this
    let _ = r#"raw " } "#;
    /* } */
    let brace = '}';
    fn inner() {}
    brace
}
trait Shape { fn declared(&self) -> [u8; 4]; }
fn two() -> bool { matches!('{', '\\'') }
"""


def test_rust_functions_are_measured_past_hidden_braces() -> None:
    found = {function.name: (function.line, function.lines) for function in rust_functions(TRICKY)}
    assert found == {"one": (2, 8), "inner": (7, 1), "two": (11, 1)}


def test_blanking_keeps_lines_and_code() -> None:
    bare = bare_rust(TRICKY)
    assert bare.count("\n") == TRICKY.count("\n")
    assert "fn one<'a>(text: &'a str)" in bare
    assert "raw" not in bare
    assert "nor this" not in bare


def test_python_functions_count_their_docstring() -> None:
    source = 'def f():\n    """Doc."""\n    return 1\n'
    assert [(f.name, f.line, f.lines) for f in python_functions(source)] == [("f", 1, 3)]
