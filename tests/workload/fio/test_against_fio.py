"""The reader against fio itself: `fio --showcmd` says how it read a file, its first lines say what the jobs became."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, load_workload
from linerate.workload.fio.jobs import FioJob, read_jobs
from linerate.workload.fio.lexer import JobOption, JobSection, read_sections
from linerate.workload.fio.refused import ASYNCHRONOUS, ENTRY_OPERATIONS, REFUSED_ENGINES, SYNCHRONOUS
from linerate.workload.fio.tables import find_keyword
from linerate.workload.problems import Problems
from linerate.workload.spec import SizeRange, Sizes

from tests.support import need

from .random_jobs import LOAD, job_file, wrong_job_file

SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(40, 200))]
_TOKEN = re.compile(r" --([a-z_]+)(?:=(.*?))?(?= --[a-z_]+[= ]| *$)", re.DOTALL)
_STARTED = re.compile(
    r"^(.*): \(g=\d+\): rw=(\w+), bs=\(R\) (\S+)B-(\S+)B, \(W\) (\S+)B-(\S+)B,.*iodepth=(\d+)$"
)

Options = Counter[tuple[str, str | None]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LINERATE_TEST_NAME", "disk")
    return tmp_path


def fio(*words: str) -> str:
    command = [need.tool("fio"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def shown_by_fio(path: str) -> list[tuple[str, Options]]:
    """Sections as `--showcmd` prints them: the options before the first job under an empty name, then each job."""
    sections: list[tuple[str, Options]] = [("", Counter())]
    for keyword, value in _TOKEN.findall(fio("--showcmd", path).strip("\n").removeprefix("fio")):
        if keyword == "name":
            sections.append((value.strip(), Counter()))
        else:
            sections[-1][1][option(keyword, value.strip('" ') or None)] += 1
    return sections


def option(keyword: str, value: str | None) -> tuple[str, str | None]:
    row = find_keyword(keyword)
    return (row.name if row else keyword), value


def as_fio_shows(sections: list[JobSection]) -> list[tuple[str, Options]]:
    """fio prints all globals so far when a `[global]` ends, so they stand with the job before it."""
    shown: list[tuple[str, Options]] = [("", Counter())]
    defaults: list[JobOption] = []
    for section in sections:
        if section.is_global:
            defaults += section.options
        else:
            shown.append((section.name, Counter()))
        printed = defaults if section.is_global else section.options
        shown[-1][1].update(option(one.keyword, one.value) for one in printed)
    return shown


def read(path: Path) -> list[JobSection]:
    problems = Problems()
    sections = read_sections(path, {}, problems)
    problems.raise_if_any()
    return sections


@pytest.mark.parametrize("seed", SEEDS)
def test_lines_are_read_as_fio_reads_them(seed: int, folder: Path) -> None:
    text, more = job_file(seed)
    (folder / "w.fio").write_text(text, newline="")
    (folder / "more.inc").write_text(more)
    assert as_fio_shows(read(Path("w.fio"))) == shown_by_fio("w.fio"), f"seed {seed}:\n{text}"


def extent(sizes: Sizes) -> tuple[int, int]:
    if isinstance(sizes, SizeRange):
        return sizes.min_bytes, sizes.max_bytes
    return min(size for size, _ in sizes.parts), max(size for size, _ in sizes.parts)


def size_shown(text: str) -> int:
    """fio rounds what it shows: `1024KiB` without its last letter."""
    number, unit = re.fullmatch(r"([\d.]+)([KMG]i)?", text).groups()  # type: ignore[union-attr]
    return round(float(number) * {None: 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}[unit])


def form_of(job: FioJob) -> str:
    load = job.load
    word = "rw" if 0 < load.read_percent < 100 else "read" if load.read_percent else "write"
    return f"rand{word}" if load.random_percent else word


@pytest.mark.parametrize("seed", range(60))
def test_what_fio_refuses_is_refused(seed: int, folder: Path) -> None:
    text = wrong_job_file(seed)
    (folder / "w.fio").write_text(text, newline="")
    command = [need.tool("fio"), "--parse-only", "w.fio"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0, f"seed {seed}:\n{text}"
    with pytest.raises(UserError) as caught:
        load_workload("w.fio", overrides=Overrides(luns=LunMap({"*": "null:8g"})))
    keyword = text.rstrip().rpartition("\n")[2].partition("=")[0]
    assert f"w.fio:{text.count(chr(10))}: {keyword}" in caught.value.message, f"seed {seed}:\n{text}"


def test_every_keyword_of_fio_is_known(folder: Path) -> None:
    names = re.findall(r"^ *([a-z][a-z0-9_-]*) *:", fio("--cmdhelp=all"), re.MULTILINE)
    assert len(names) > 200
    assert [name for name in names if find_keyword(name) is None] == []


def test_every_engine_of_fio_is_known_with_its_keywords(folder: Path) -> None:
    engines = [line.strip() for line in fio("--enghelp").splitlines() if line.startswith("\t")]
    assert len(engines) > 20
    known = (*ASYNCHRONOUS, *SYNCHRONOUS, *ENTRY_OPERATIONS, *REFUSED_ENGINES)
    assert [engine for engine in engines if engine not in known] == []
    for engine in engines:
        command = [need.tool("fio"), f"--enghelp={engine}"]  # code 1: an engine without options
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        names = re.findall(r"^([a-z][a-z0-9_-]*) *:", shown, re.MULTILINE)
        assert [name for name in names if find_keyword(name) is None] == [], engine


@pytest.mark.parametrize("seed", range(40))
def test_jobs_are_what_fio_makes_of_them(seed: int, folder: Path) -> None:
    first = ("[global]", "ioengine=null", "size=32m", "io_size=2m", "rwmixread=20")
    # With both, fio uses bssplit, as the reader does, and prints the limits of bsrange.
    keywords = [word for word in LOAD if word != ("bsrange", "bssplit")[seed % 2]]
    text, more = job_file(seed, first, keywords)
    (folder / "w.fio").write_text(text + "\n[last]\n", newline="")
    (folder / "more.inc").write_text(more)
    problems = Problems()
    jobs = read_jobs(read(Path("w.fio")), problems)
    problems.raise_if_any()
    lines = [found for line in fio("w.fio").splitlines() if (found := _STARTED.match(line))]
    assert len(lines) == len(jobs), f"seed {seed}:\n{text}"
    for job, line in zip(jobs, lines, strict=True):
        where = f"seed {seed}, {job.name}:\n{text}"
        name, form, *sizes, depth = line.groups()
        assert (name, int(depth)) == (job.name, job.load.depth), where
        if form_of(job).removeprefix("rand") == "rw" or "rw" not in form:
            assert form == form_of(job), where
        low_read, high_read, low_write, high_write = map(size_shown, sizes)
        if job.load.read_percent > 0:
            assert extent(job.load.read_sizes) == (low_read, high_read), where
        if job.load.read_percent < 100:
            assert extent(job.load.write_sizes) == (low_write, high_write), where


@pytest.mark.parametrize("areas", ["zoned:50/5:30/15:20/", "zoned:60/10:40/40", "zoned:10:90"])
def test_areas_have_the_shares_that_fio_gives_them(areas: str, folder: Path) -> None:
    text = "[a]\nioengine=null\nrw=randread\nsize=16m\n"
    (folder / "w.fio").write_text(f"{text}random_distribution={areas}\n")
    offsets = [
        int(found, 16) for found in re.findall(r"fill: io_u.*?off=(0x[0-9a-f]+)", fio("--debug=io", "w.fio"))
    ]
    assert len(offsets) == 4096
    (run,) = load_workload("w.fio").steps()
    distribution = run.spec.streams[0].distribution
    assert distribution is not None
    start = 0.0
    for share, length in distribution.parts:
        inside = [start <= offset * 100 / (16 << 20) < start + length for offset in offsets]
        assert sum(inside) / 40.96 == pytest.approx(share, abs=3)
        start += length
    assert start == pytest.approx(100)


@pytest.mark.parametrize("size", ["1m:3m", "3m:1m", "2m:1m:512k"])
def test_fio_uses_the_last_of_several_sizes(size: str, folder: Path) -> None:
    (folder / "w.fio").write_text(f"[a]\nioengine=null\nrw=read\nbs=64k\nsize={size}\n")
    ios = len(re.findall(r"fill: io_u.*?off=(0x[0-9a-f]+)", fio("--debug=io", "w.fio")))
    (run,) = load_workload("w.fio").steps()
    assert run.spec.volumes[0].size_bytes == ios * 65536
