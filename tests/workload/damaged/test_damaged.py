"""Encodings, ends of lines, lengths and depths that no reader may fail on: a plan, or an error with the line, soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, RunPlan, load_workload

from tests.workload.iometer.writer import Icf

MIB = 1 << 20
CPU_S_MAX = 5.0
VDB = "sd=sd1,lun=/dev/x\nwd=wd1,sd=sd1,rdpct=70\nrd=rd1,wd=wd1,iorate=max,elapsed=4,interval=1\n"
FIO = "[a]\nfilename=x\nrw=randread\ntime_based\nruntime=4\n"
CMD = "diskspd -b8K -d5 -r E:\\x.dat\n"
XML = (
    "<Profile><TimeSpans><TimeSpan><Duration>5</Duration><Targets><Target><Path>a.dat</Path></Target></Targets>"
    "</TimeSpan></TimeSpans></Profile>\n"
)
TEXTS = {"w.vdb": VDB, "w.fio": FIO, "w.cmd": CMD, "w.xml": XML, "w.icf": Icf().text()}
ENCODINGS = {
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16, big end first": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR alone": lambda text: text.replace("\n", "\r").encode(),
}


def load(name: str, content: bytes) -> RunPlan:
    Path(name).write_bytes(content)
    began = time.process_time()
    try:
        return load_workload(name, overrides=Overrides(luns=LunMap({"*": "null:8g"})))
    finally:
        assert time.process_time() - began < CPU_S_MAX


def refusal(name: str, content: bytes) -> str:
    with pytest.raises(UserError) as caught:
        load(name, content)
    assert len(caught.value.message) < 5000
    return caught.value.message


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def specs_of(plan: RunPlan) -> list[str]:
    return [run.spec.seam_json() for run in plan.steps()]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", TEXTS)
def test_an_encoding_and_ends_of_lines_do_not_change_a_plan(name: str, encoding: str) -> None:
    content = ENCODINGS[encoding](TEXTS[name])
    assert specs_of(load(name, content)) == specs_of(load(name, TEXTS[name].encode()))


@pytest.mark.parametrize("name", TEXTS)
def test_nul_bytes_are_refused_with_their_line(name: str) -> None:
    text = TEXTS[name]
    assert refusal(name, text.encode("utf-16-le")) == f"{name}:1: NUL bytes: UTF-16 without its mark"
    assert refusal(name, text.encode("utf-16-be")) == f"{name}:1: NUL bytes: UTF-16 without its mark"
    line = text.count("\n") + 1
    assert refusal(name, text.encode() + b"\0") == f"{name}:{line}: a NUL byte"


@pytest.mark.parametrize("declared", ["shift_jis", "rot13", "hex", "idna", "undefined", "utf-16", "x-none"])
def test_the_encoding_that_a_profile_declares_does_not_matter(declared: str) -> None:
    content = f'<?xml version="1.0" encoding="{declared}"?>{XML}'.encode()
    assert specs_of(load("w.xml", content)) == specs_of(load("w.xml", XML.encode()))


LONG = {
    "a list of vdbench": (
        "w.vdb",
        VDB.replace("max", f"({'1,' * MIB}1)"),
        "w.vdb:3: a line of 2,097,197 char",
    ),
    "a name of vdbench": (
        "w.vdb",
        VDB.replace("/dev/x", "x" * 10 * MIB),
        "w.vdb:1: a line of 10,485,771 char",
    ),
    "lines of vdbench that go on": (
        "w.vdb",
        f"{VDB}xy={'x' * (MIB - 4)},\nxy=1\n",
        "w.vdb:5: a line of 1,048,580 characters; at most 1,048,576 are read",
    ),
    "a line of fio": ("w.fio", f"{FIO}filename={'x' * 10 * MIB}", "w.fio:6: a line of 10,485,769 characters"),
    "sections of fio": ("w.fio", "[a]\n" * 2 * MIB, "w.fio: more than 1,000,000 lines"),
    "labels of Iometer": ("w.icf", "Version 1.1.0\n" + "'x\n" * MIB, "w.icf:2: 'x: outside of a section"),
    "a command": ("w.cmd", f"diskspd {'x' * 10 * MIB}", "w.cmd:1: a line of 10,485,768 characters"),
    "a loop": (
        "w.cmd",
        f"for /l %%a in (1,1,{'9' * 5000}) do {CMD}",
        "w.cmd: no command of diskspd or sqlio",
    ),
    "elements": ("w.xml", "<Profile>" * MIB, "w.xml:1: Profile: too deep"),
    "a nested list": ("w.toml", "x = " + "[" * 10 * MIB, "w.toml: nested too deeply"),
    "a long key": ("w.toml", ".".join("a" * MIB) + " = 1", "w.toml:1: a key of more than 64 parts"),
    "a long table": ("w.toml", f"[x]\n[{' . '.join('a' * MIB)}]", "w.toml:2: a key of more than 64 parts"),
    "a large file": ("w.toml", "#" * (16 * MIB + 1), "w.toml: larger than 16 MiB"),
    "a nested object": ("w.json", '{"a":' * MIB, "w.json: a JSON file, which Linerate does not read"),
    "a list of objects": ("w.json", '[{"a":' * MIB, "w.json: a JSON file, which Linerate does not read"),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.long
def test_what_is_too_long_or_too_deep_is_refused_soon(name: str) -> None:
    file, text, message = LONG[name]
    assert refusal(file, text.encode()).startswith(message)


def test_a_file_with_very_many_errors_is_not_read_further() -> None:
    text = VDB + "".join(f"x{number}=1\n" for number in range(5000))
    assert refusal("w.vdb", text.encode()).endswith("and 980 more")
