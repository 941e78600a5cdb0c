"""Names that users give never lead out of a folder, and two of them never to one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate.cli.place import place_of
from linerate.filename import LENGTH_MAX, file_name, file_names, slug

from tests.cli.conftest import linerate

EVIL = [
    "../../x",
    "/etc/passwd",
    "",
    ".",
    "..",
    "a\0b",
    "x" * 5000,
    "-rf",
    "a/b",
    "con\n",
    "C:\\x",
    "~root",
    "%2e%2e%2f",
]
LOAD = """\
name = {name}
warm_up = "0s"
elapsed = "0.2s"
interval = "0.1s"
volume = [{{ name = "v1", target = "null:1g" }}]
stream = [{{ name = "s" }}]
run = [{{ name = {name} }}]
"""


def _assert_safe(file: str) -> None:
    assert file
    assert len(file) <= LENGTH_MAX
    assert Path(file).name == file
    assert file.isascii()
    assert not set(file) & set("\0/\\\n ~%:")
    assert file[0] not in ".-"


@pytest.mark.parametrize("name", EVIL)
def test_evil_names(name: str) -> None:
    _assert_safe(file_name(name))
    _assert_safe(slug(name))
    assert place_of(name).parent == Path("runs")


@given(st.lists(st.text(max_size=200), max_size=20))
def test_names_come_to_files_of_their_own(names: list[str]) -> None:
    files = file_names(names, reserved=("summary",))
    assert set(files) == set(names)
    lowered = [file.lower() for file in files.values()]
    assert len(set(lowered)) == len(lowered)
    assert "summary" not in lowered
    for file in lowered:
        _assert_safe(file)


def test_plain_names_stay_as_they_are() -> None:
    plain = ["oltp", "sd1", "rd1_2.vdb", "Dell-NIC"]
    assert [file_name(name) for name in plain] == plain
    assert slug("Seq read, 8K") == "seq-read-8k"
    assert file_names(["a/b", "a b", "A-B"])["a/b"] == "a-b"
    long = ["x" * 100 + "1", "x" * 100 + "2"]
    assert len({file_name(name) for name in long}) == 2


@pytest.mark.long
@pytest.mark.parametrize("name", ["../../x", "/tmp/linerate-evil", "a/b", "."])
def test_a_workload_names_no_folder_outside(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "one" / "two"
    inner.mkdir(parents=True)
    (inner / "load.toml").write_text(LOAD.format(name=repr(name)), "ascii")
    done = linerate("run", "load.toml", "--vdbench-output", "out", cwd=inner)
    assert done.returncode == 0, done.stderr
    (run,) = (inner / "runs").iterdir()
    assert (run / "manifest.json").exists()
    assert sorted(path.name for path in inner.iterdir()) == ["load.toml", "out", "runs"]
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert not Path("/tmp/linerate-evil").exists()


@pytest.mark.long
def test_volumes_name_no_file_outside(tmp_path: Path) -> None:
    inner = tmp_path / "one"
    inner.mkdir()
    volumes = ["../../v", "summary", "a/b", "a b", "w" * 300]
    tables = ", ".join(f'{{ name = {name!r}, target = "null:1g" }}' for name in volumes)
    text = LOAD.format(name="'load'").replace('[{ name = "v1", target = "null:1g" }]', f"[{tables}]")
    (inner / "load.toml").write_text(text, "ascii")
    done = linerate("run", "load.toml", "--vdbench-output", "out", "--output", "run", cwd=inner)
    assert done.returncode == 0, done.stderr
    reports = {path.name for path in (inner / "out").iterdir()}
    assert {"summary.html", "v.html", "a-b.html"} < reports
    own = {"summary", "totals", "logfile", "parmfile", "flatfile", "histogram", "skew", "status"}
    assert len(reports) == len(own) + len(volumes)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
