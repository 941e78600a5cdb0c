"""Keyword tables: shortening, aliases, refusal by name, suggestions; and the page made from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload.vdbench.documentation import page
from linerate.workload.vdbench.tables import TABLES, Block, Effect, find

from .conftest import Read

PREFIXES = {
    Block.WD: {
        "re": "rdpct", "rd": "rdpct", "ra": "range", "rh": "rhpct", "wh": "whpct", "se": "seekpct", "sk": "skew",
        "st": "stride", "str": "stride", "stre": "streams", "xf": "xfersize", "xfer": "xfersize", "wr": "wrpct",
        "pr": "priority", "io": "iorate", "op": "openflags", "ho": "hotband", "hos": "host", "readpct": "rdpct",
        "writepct": "wrpct", "hd": "host",
    },
    Block.SD: {
        "lu": "lun", "si": "size", "th": "threads", "thread": "threads", "hi": "hitarea", "of": "offset",
        "al": "align", "ra": "range", "re": "replay", "resetl": "resetlun", "resetb": "resetbus", "jo": "journal",
        "op": "openflags", "openflag": "openflags", "co": "count",
    },
    Block.FSD: {
        "an": "anchor", "wi": "width", "de": "depth", "si": "sizes", "size": "sizes", "sh": "shared",
        "ws": "workingsetsize", "wo": "workingsetsize", "to": "totalsize", "total": "totalsize", "fi": "files",
        "di": "distribution", "op": "openflags", "co": "count",
    },
    Block.FWD: {
        "re": "rdpct", "rd": "rdpct", "st": "stopafter", "op": "operation", "operations": "operation",
        "fi": "fileselect",
        "fileio": "fileio", "xf": "xfersize", "xfersizes": "xfersize", "sk": "skew", "th": "threads", "ho": "host",
        "open": "openflags",
    },
    Block.RD: {
        "io": "iorate", "el": "elapsed", "in": "interval", "wa": "warmup", "pa": "pause", "cu": "curve",
        "st": "stopcurve", "sta": "startcmd", "di": "distribution", "en": "endcmd", "op": "operations",
        "ope": "operations", "open": "openflags", "maxdata": "maxdata", "forx": "xfersize", "forth": "threads",
        "forr": "rdpct", "forrh": "rhpct", "forw": "whpct", "fors": "seekpct", "forh": "hitarea", "forc": "compratio",
        "xf": "xfersize", "th": "threads", "rdp": "rdpct", "rh": "rhpct", "wh": "whpct", "se": "seekpct",
        "hi": "hitarea",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("block", "typed", "meant"),
    [(block, typed, meant) for block, row in PREFIXES.items() for typed, meant in row.items()],
)
def test_shortened_keywords_mean_what_they_mean_in_vdbench(block: Block, typed: str, meant: str) -> None:
    row = find(block, typed)
    assert row is not None
    assert row.canonical == meant


@pytest.mark.parametrize("typed", ["maxd", "maxdatar", "m"])
def test_maxdata_is_never_shortened(typed: str) -> None:
    assert find(Block.RD, typed) is None


def test_every_row_says_what_it_does_or_why_not() -> None:
    for rows in TABLES.values():
        names = [row.name for row in rows]
        assert len(names) == len(set(names))
        for row in rows:
            assert row.meaning
            assert row.accepted or row.effect is Effect.REFUSED


MINIMAL = "sd=sd1,lun=x{sd}\nwd=wd1,sd=sd1{wd}\nrd=rd1,wd=wd1{rd}\n"
FILES = "fsd=fsd1,anchor=/x{fsd}\nfwd=fwd1,fsd=fsd1{fwd}\nrd=rd1,fwd=fwd1,fwdrate=max\n"


@pytest.mark.parametrize(
    ("block", "row"),
    [(b, r) for b, rows in TABLES.items() for r in rows if r.effect is Effect.REFUSED],
    ids=lambda part: getattr(part, "name", str(part)),
)
def test_refused_keywords_are_refused_by_name_with_line_and_reason(
    read: Read, block: Block, row: object
) -> None:
    name, meaning = getattr(row, "name"), getattr(row, "meaning")  # noqa: B009
    before = {Block.GENERAL: f"{name}=2\n", Block.HD: f"hd=localhost,{name}=2\n"}.get(block, "")
    added = {key: f",{name}=2" if key == block.value else "" for key in ("sd", "wd", "rd")}
    line = {"sd": 1, "wd": 2, "rd": 3, "fwd": 2}.get(block.value, 1)
    text = before + MINIMAL.format(**added)
    if block in (Block.FSD, Block.FWD):
        text = FILES.format(**{key: f",{name}=2" if key == block.value else "" for key in ("fsd", "fwd")})
    with pytest.raises(UserError) as caught:
        read(text)
    assert caught.value.message == f"w.vdb:{line}: {name}=2: is not supported: {meaning}"


def test_a_shortened_refused_keyword_is_named_in_full(read: Read) -> None:
    with pytest.raises(UserError, match=r"w\.vdb:1: resetl=5: resetlun is not supported: device resets"):
        read(MINIMAL.format(sd=",resetl=5", wd="", rd=""))


def test_a_journal_that_nothing_is_written_to_is_accepted(read: Read) -> None:
    plan = read("journal=no\n" + MINIMAL.format(sd=",journal=/tmp", wd="", rd=""))
    assert [str(notice).split(":")[1] for notice in plan.warnings] == ["1", "2"]
    with pytest.raises(UserError, match=r"w\.vdb:1: journal=yes: is not supported: there is no journal"):
        read("journal=yes\n" + MINIMAL.format(sd="", wd="", rd=""))


def test_an_unknown_keyword_is_an_error_with_the_nearest_one(read: Read) -> None:
    with pytest.raises(
        UserError, match=r"w\.vdb:2: xfresize=4k: no keyword 'xfresize' in the wd block"
    ) as caught:
        read(MINIMAL.format(sd="", wd=",xfresize=4k", rd=""))
    assert caught.value.hint == "did you mean xfersize?"


def test_a_keyword_of_another_block_says_where_it_belongs(read: Read) -> None:
    with pytest.raises(UserError, match="no keyword 'lun' in the rd block") as caught:
        read(MINIMAL.format(sd="", wd="", rd=",lun=/dev/sdc"))
    assert "it belongs to the sd block" in caught.value.hint


def test_all_problems_of_a_file_are_told_at_once(read: Read) -> None:
    with pytest.raises(UserError) as caught:
        read(MINIMAL.format(sd=",threads=many", wd=",rdpct=200", rd=",elapsed=1,journal=x"))
    told = caught.value.message.split("\n")
    assert [line.split(": ")[0] for line in told] == ["w.vdb:1", "w.vdb:3", "w.vdb:2", "w.vdb:3"]


@pytest.mark.parametrize("text", ["messagescan=no", "report=host_detail", "debug=86", "port=5570"])
def test_keywords_without_effect_are_accepted_with_a_notice(read: Read, text: str) -> None:
    plan = read(f"{text}\n" + MINIMAL.format(sd="", wd="", rd=""))
    assert str(plan.warnings[0]).startswith(f"w.vdb:1: {text}: no effect, ")


def test_the_page_is_current() -> None:
    shown = Path(__file__).parents[2] / "docs" / "vdbench.md"
    assert shown.read_text() == page(), (
        "run: python -m linerate.workload.vdbench.documentation > docs/vdbench.md"
    )
