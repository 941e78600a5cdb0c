"""The traps of vdbench's scanner, each as a test: strict reading falls into them as vdbench does, lenient
reading says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.vdbench.lexer import Line, has_lenient_patterns, parameters, read_lines, unhide
from linerate.workload.vdbench.tables import is_keyword

from .conftest import Read

MINIMAL = "sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1\n"


def scan(text: str, *, lenient: bool = False) -> tuple[list[tuple[int, str, str]], Problems]:
    problems = Problems()
    lines = [
        Line(SourceLocation("f", n), line.strip())
        for n, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    found = parameters(lines, is_keyword, problems, lenient=lenient)
    return [(p.place.line, p.keyword, unhide(p.value)) for p in found], problems


def strict(text: str) -> list[tuple[int, str, str]]:
    found, problems = scan(text)
    problems.raise_if_any()
    return found


def test_text_after_the_first_blank_is_a_comment() -> None:
    assert strict("sd=sd1,lun=x the first disk, size=1g") == [(1, "sd", "sd1"), (1, "lun", "x")]


def test_a_blank_after_a_comma_glues_the_next_line_on() -> None:
    assert strict("wd=wd1, sd=sd1, rdpct=0\nrd=rd1") == [(1, "wd", "wd1"), (2, "rd", "rd1")]


def test_a_comma_at_the_end_continues_and_keeps_the_line_number() -> None:
    assert strict("sd=sd1,lun=x,  comment\n  size=1g") == [
        (1, "sd", "sd1"),
        (1, "lun", "x"),
        (2, "size", "1g"),
    ]


def test_a_list_may_go_on_in_the_next_line() -> None:
    assert strict("curve=(10,50,\n70)") == [(1, "curve", "(10,50,70)")]


def test_a_new_line_without_a_comma_still_belongs_to_the_block(read: Read) -> None:
    plan = read("sd=sd1,lun=x\nsize=1g\nwd=wd1,sd=sd1\nrdpct=40\nrd=rd1,wd=wd1\n")
    spec = next(plan.steps()).spec
    assert spec.volumes[0].size_bytes == 1 << 30
    assert spec.streams[0].read_percent == 40


def test_quotes_hide_blank_comma_equals_and_dash() -> None:
    assert strict('startcmd="a b,c=d-e",rd=rd1') == [(1, "startcmd", "a b,c=d-e"), (1, "rd", "rd1")]


def test_an_open_quote_reaches_to_the_end_of_the_line() -> None:
    assert strict('startcmd="a b,c') == [(1, "startcmd", "a b,c")]


def test_keywords_ignore_case_and_values_do_not() -> None:
    assert strict("SD=Disk,LUN=/Dev/X") == [(1, "sd", "Disk"), (1, "lun", "/Dev/X")]


def test_a_comma_after_the_last_line_is_ignored() -> None:
    assert strict("sd=sd1,") == [(1, "sd", "sd1")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sd=sd1,,lun=x", "expected keyword=value"),
        ("sd=sd1,lun", "'lun': expected keyword=value"),
        ("lun=", "no value"),
        ("x=1", "at least two letters"),
        ("curve=(1,2", "a parenthesis is missing"),
        ("curve=1)", "a parenthesis is missing"),
    ],
)
def test_malformed_parameters_are_named(text: str, message: str) -> None:
    _, problems = scan(text)
    assert len(problems.errors) == 1
    assert problems.errors[0][0].startswith("f:1: ")
    assert message in problems.errors[0][0]


def test_comments_and_eof(tmp_path: Path) -> None:
    file = tmp_path / "w"
    file.write_text("  # a\n* b\n/ c\n\n   sd=sd1\r\neof of it\nsd=sd2\n")
    lines = read_lines([file], {}, Problems(), lenient=False)
    assert [(line.place.line, line.text) for line in lines] == [(5, "sd=sd1")]


def test_eof_ends_one_file_only(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_text("sd=sd1\neof\nx")
    two.write_text("wd=wd1\n")
    lines = read_lines([one, two], {}, Problems(), lenient=False)
    assert [line.text for line in lines] == ["sd=sd1", "wd=wd1"]


def test_substitution_in_both_forms_everywhere_in_a_line(read: Read) -> None:
    text = "sd=$prefix,lun=x,threads=!t\nwd=wd1,sd=$prefix\nrd=rd1,wd=wd1,xfersize=$size\n"
    run = next(read(text, prefix="disk", t="3", size="8k").steps())
    assert run.spec.volumes[0].name == "disk"
    assert run.spec.volumes[0].outstanding == 3
    assert run.label == "rd1 xfersize=8k"


def test_a_longer_name_is_substituted_before_its_prefix(read: Read) -> None:
    plan = read(
        "sd=sd1,lun=x,threads=$threads2\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,el=$threads\n",
        threads="60",
        threads2="4",
    )
    run = next(plan.steps())
    assert run.spec.volumes[0].outstanding == 4
    assert run.timing_text == "elapsed=60"


def test_a_left_over_substitution_is_an_error_with_its_line(read: Read) -> None:
    with pytest.raises(UserError, match=r"w\.vdb:2: \$size has no value") as caught:
        read("sd=sd1,lun=x\nwd=wd1,sd=sd1,xfersize=$size\nrd=rd1,wd=wd1\n")
    assert caught.value.hint == "give one: size=VALUE"


def test_a_left_over_in_a_comment_is_fatal_in_strict_reading_only(read: Read) -> None:
    text = "* threads=$n\n" + MINIMAL
    with pytest.raises(UserError, match=r"w\.vdb:1: \$n has no value"):
        read(text, lenient=False)
    assert len(read(text)) == 1


def test_an_unused_substitution_is_an_error(read: Read) -> None:
    with pytest.raises(UserError, match=r"w\.vdb: size=8k was given, but no \$size or !size"):
        read(MINIMAL, size="8k")


def test_include_looks_beside_the_file_and_is_substituted(read: Read, tmp_path: Path) -> None:
    (tmp_path / "disks.txt").write_text("* disks\nsd=sd1,lun=x,threads=$t\n")
    run = next(read("include=disks.txt\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1\n", t="7").steps())
    assert run.spec.volumes[0].outstanding == 7


def test_a_missing_or_nested_include_names_its_line(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("include=b.txt\n")
    with pytest.raises(UserError, match=r"a\.txt:1: include=b\.txt: an included file cannot include"):
        read("include=a.txt\n" + MINIMAL)
    with pytest.raises(UserError, match=r"w\.vdb:1: include=none\.txt: no such file"):
        read("include=none.txt\n" + MINIMAL)


LENIENT = [
    (
        "wd=wd1, sd=sd1, rdpct=0",
        [(1, "wd", "wd1"), (1, "sd", "sd1"), (1, "rdpct", "0")],
        "go on in the next line",
    ),
    ("sd=sd1 , lun=x", [(1, "sd", "sd1"), (1, "lun", "x")], "take it as a comment"),
    ("sd=(sd1, sd2)", [(1, "sd", "(sd1,sd2)")], "go on in the next line"),
    ("sd=(sd1 ,sd2)", [(1, "sd", "(sd1,sd2)")], "end the list there"),
    ("wd=wd1 rdpct=50 and more", [(1, "wd", "wd1"), (1, "rdpct", "50")], "take it as a comment"),
    ("wd=wd1,\tsd=sd1", [(1, "wd", "wd1"), (1, "sd", "sd1")], "take it as part of a word"),
]


@pytest.mark.parametrize(("text", "expected", "effect"), LENIENT)
def test_lenient_reading_keeps_what_was_meant_and_says_what_vdbench_does(
    text: str, expected: list[tuple[int, str, str]], effect: str
) -> None:
    found, problems = scan(text, lenient=True)
    assert found == expected
    assert problems.errors == []
    assert problems.notices[0].where == "f:1"
    assert effect in problems.notices[0].message


@pytest.mark.parametrize("comment", ["the fast disk", "size is 1g", "x=y", "-> see rd1", "# rdpct=0"])
def test_lenient_reading_leaves_comments_alone(comment: str) -> None:
    found, problems = scan(f"sd=sd1,lun=x {comment}", lenient=True)
    assert found == [(1, "sd", "sd1"), (1, "lun", "x")]
    assert problems.notices == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("wd=wd1, sd=sd1", True),
        ("sd=sd1 , lun=x", True),
        ("sd=(sd1, sd2)", True),
        ("wd=wd1 rdpct=50", False),
        ("sd=sd1,lun=x, the disk", False),
        ("sd=sd1,lun=x", False),
    ],
)
def test_automatic_reading_turns_lenient_only_where_strict_drops_parameters(text: str, plain: bool) -> None:
    assert has_lenient_patterns([Line(SourceLocation("f", 1), text)], is_keyword) is plain


def test_automatic_reading_takes_a_comment_as_vdbench_does(read: Read) -> None:
    plan = read("sd=sd1,lun=x\nwd=wd1,sd=sd1 rdpct=50\nrd=rd1,wd=wd1\n")
    assert next(plan.steps()).spec.streams[0].read_percent == 100
    assert plan.warnings == ()


def test_automatic_reading_turns_lenient_when_strict_fails(read: Read) -> None:
    text = "sd=sd1,lun=x\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,elapsed=60s\n"
    plan = read(text)
    assert [str(w) for w in plan.warnings] == [
        "w.vdb:3: elapsed=60s: read as seconds; vdbench knows no suffix s"
    ]
    with pytest.raises(UserError, match="'60s' is not a number"):
        read(text, lenient=False)


def test_a_missing_file_is_a_user_error() -> None:
    with pytest.raises(UserError, match="no-such-file"):
        read_lines([Path("no-such-file")], {}, Problems(), lenient=False)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("key", ["sd=sd1,lun", "fsd=fsd1,anchor"])
def test_a_path_that_ends_at_a_blank_is_told(key: str, lenient: bool) -> None:
    found, problems = scan(f"{key}=smb://nas/disks/my folder/a.img,size=1g", lenient=lenient)
    assert found[-1] == (1, key.rpartition(",")[2], "smb://nas/disks/my")
    assert problems.errors == []
    assert "'folder/a.img,size=1g' is a comment, as in vdbench" in problems.notices[0].message
    assert "double quotes" in problems.notices[0].message
