"""Sections, labels, encodings, and bad input: each is answered with file, line and the way out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, load_workload

from .conftest import ReadIcf, only_run, refusal, specs_of
from .writer import Icf, Spec, Work

PLAIN = Icf()
TEXT = PLAIN.text()
CPU_S_MAX = 4.0


def without(part: str) -> str:
    assert part in TEXT
    return TEXT.replace(part, "")


def changed(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new)


def at(needle: str) -> str:
    """The place of a text in the file."""
    return f"w.icf:{TEXT[: TEXT.index(needle)].count(chr(10)) + 1}"


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\t", "   "),
        TEXT.replace("\n", "\n\n"),
        "\ufeff" + TEXT,
        TEXT.replace("'", "'  "),
        TEXT.replace("'Test Type", "'TEST TYPE").replace("'Worker type", "'WORKER Type"),
        TEXT.replace("size,% of size,% reads", "size, % of size , %  Reads"),
        TEXT.replace("=", "").rstrip(),
        without("Version 1.1.0 \n").replace("'TEST", "Version 1.1.0\n'TEST", 1),
        PLAIN.text().replace(PLAIN.display(), ""),
        f"Version 1.1.0\n{PLAIN.managers()}{PLAIN.specifications()}{PLAIN.setup()}",
    ],
    ids=[
        "crlf",
        "blanks",
        "empty lines",
        "bom",
        "after quote",
        "case",
        "names",
        "bars",
        "end",
        "display",
        "order",
    ],
)
def test_these_are_the_same_configuration(icf: ReadIcf, text: str) -> None:
    assert specs_of(icf(text)) == specs_of(icf(TEXT))


def test_names_in_all_encodings_are_read(icf: ReadIcf) -> None:
    text = Icf(specs=(Spec("gr\u00f6\u00dfe"),), workers=(Work(specs=("gr\u00f6\u00dfe",)),)).text()
    names = [next(icf(text.encode(code)).steps()).name for code in ("cp1252", "utf-8", "utf-16")]
    assert names == ["gr\u00f6\u00dfe"] * 3
    assert specs_of(icf(TEXT.encode().replace(b"some words", b"\x81\xfe"))) == specs_of(icf(TEXT))


BAD = {
    "nothing": (b"", "w.icf: no version in the first line"),
    "blanks alone": (b"\n \t\n", "w.icf: no version in the first line"),
    "no version": (without("Version 1.1.0 \n"), "w.icf:1: no version in the first line"),
    "UTF-16 without a mark": (TEXT.encode("utf-16-le"), "w.icf:1: NUL bytes: UTF-16 without its mark"),
    "a NUL": (changed("NORMAL", "NOR\0MAL"), f"{at('NORMAL')}: a NUL byte"),
    "a long line": (
        changed("some words", "x" * 10_000_000),
        "w.icf:4: a line of 10,000,001 characters; at most 1,024 are read",
    ),
    "an unknown label": (
        changed("'Ramp Up Time (s)", "'Ramp Time"),
        f"{at('Ramp')}: 'Ramp Time: not known in 'TEST SETUP",
    ),
    "a label of another section": (
        changed("'Test Type", "'Worker type"),
        f"{at('Test Type')}: 'Worker type: not known in 'TEST SETUP",
    ),
    "a line without a label": (
        changed("'MANAGER", "4096,100\n'MANAGER"),
        f"{at('MANAGER')}: 4096,100: no label above it",
    ),
    "an escape sequence": (
        changed("'Ramp Up Time (s)", "'\x1b[2J"),
        f"{at('Ramp')}: '?[2J: not known in 'TEST SETUP",
    ),
    "a file that is not one": (
        b"<html><body>not found</body></html>",
        "w.icf:1: no version in the first line",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_line_and_the_way_out(name: str, icf: ReadIcf) -> None:
    text, expected = BAD[name]
    begun = time.process_time()
    error = refusal(icf, text)
    assert time.process_time() - begun < CPU_S_MAX
    assert error.message.split("\n")[0].split(" (")[0] == expected
    assert error.hint


@pytest.mark.parametrize("part", ["setup", "specifications", "managers"])
def test_a_section_that_comes_twice_is_refused(icf: ReadIcf, part: str) -> None:
    again: str = getattr(PLAIN, part)()
    text = TEXT.replace(again, again + again)
    label = again.partition(" =")[0]
    second = text.count("\n", 0, text.rindex(label)) + 1
    error = refusal(icf, text)
    assert error.message.startswith(f"w.icf:{second}: a second {label}; the first is in line")
    assert error.hint == "remove one of them"


@pytest.mark.parametrize("part", ["setup", "specifications", "managers"])
def test_a_section_without_its_end_is_refused(icf: ReadIcf, part: str) -> None:
    whole: str = getattr(PLAIN, part)()
    cut = whole[: whole.rindex("'END")]
    error = refusal(icf, TEXT.replace(whole, cut))
    assert f"inside of {whole.partition(' =')[0]} (line" in error.message
    assert "save the configuration in Iometer again" in error.hint


def test_a_file_that_was_cut_off_is_refused_wherever_that_was(icf: ReadIcf) -> None:
    lines = TEXT.split("\n")
    ends = len(lines) - 2  # without the second version line it is whole
    for number in range(ends - 1):
        error = refusal(icf, "\n".join(lines[:number]))
        assert error.message.startswith("w.icf")
    assert len(icf("\n".join(lines[:ends]))) == 1


def test_a_missing_section_is_named(icf: ReadIcf) -> None:
    error = refusal(icf, TEXT.replace(PLAIN.managers(), ""))
    assert error.message.startswith("w.icf: no manager")
    assert "save it in Iometer" in error.hint
    error = refusal(icf, TEXT.replace(PLAIN.specifications(), ""))
    assert "no access specification '4k'" in error.message
    error = refusal(icf, TEXT.replace(PLAIN.setup(), ""))
    assert error.message == "w.icf: no 'Run Time, or one of 0: Iometer runs until it is stopped"
    assert "--elapsed" in error.hint


def test_without_a_run_time_the_command_line_says_it(icf: ReadIcf) -> None:
    spec = only_run(icf(Icf(run_s=0), elapsed_s=7))
    assert spec.elapsed_s == 7


def test_a_mistyped_label_is_answered_with_the_nearest(icf: ReadIcf) -> None:
    assert (
        refusal(icf, changed("'Ramp Up Time (s)", "'Rampup Time (s)")).hint
        == "did you mean 'Ramp Up Time (s)?"
    )


def test_all_mistakes_are_told_at_once(icf: ReadIcf) -> None:
    text = changed("4096,100,67", "4096,90,67").replace("\t1,DISABLED", "\tx,DISABLED")
    message = refusal(icf, text).message
    assert "the percentages add up to 90, not 100" in message
    assert "outstanding I/Os x: not a whole number" in message


def test_a_configuration_is_known_by_its_first_line_or_its_name(tmp_path: Path) -> None:
    overrides = Overrides(luns=LunMap({"*": "null:8g"}))
    for name in ("w.icf", "w.ICF", "w.txt", "w"):
        (tmp_path / name).write_text(TEXT)
        assert len(load_workload(tmp_path / name, overrides=overrides)) == 1
    with pytest.raises(UserError, match="only vdbench files can be read together"):
        load_workload([tmp_path / "w.icf", tmp_path / "w.txt"])
    with pytest.raises(UserError, match=r"w\.icf: X cannot be substituted"):
        load_workload(tmp_path / "w.icf", substitutions={"X": "1"}, overrides=overrides)


@pytest.mark.parametrize("size", [1 << 20, 17 << 20])
def test_large_files_end_soon(icf: ReadIcf, size: int) -> None:
    begun = time.process_time()
    error = refusal(icf, TEXT + "x\n" * (size // 2))
    assert error.message.startswith("w.icf")
    assert time.process_time() - begun < CPU_S_MAX
