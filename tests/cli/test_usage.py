"""What users see before any I/O: help, examples, schemas, and mistakes with a way out, never a traceback."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from linerate import _core
from linerate.array import ArrayConfig, example_text
from linerate.cli import console
from linerate.cli.app import VERBS, tell
from linerate.errors import UserError
from linerate.results import Finding, Validity
from linerate.study import shipped_studies
from linerate.workload import PRESETS
from rich.console import Console

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate


def test_help_names_every_verb() -> None:
    done = linerate("--help")
    assert done.returncode == 0
    for verb in VERBS:
        assert f" {verb} " in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    done = linerate(verb, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert "\N{HORIZONTAL ELLIPSIS}" not in done.stdout, "text is cut off at 80 columns"


def test_paragraphs_of_help_fill_the_lines() -> None:
    above = linerate("discover", "--help").stdout.split("\N{BOX DRAWINGS LIGHT ARC DOWN AND RIGHT}")[0]
    lines = [line.strip() for line in above.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("User and secret"))
    paragraph = lines[first : lines.index("", first)]
    assert len(paragraph) > 3
    for line, below in pairwise(paragraph):
        assert len(f"{line} {below.split()[0]}") > 78, f"{line!r} ends early"


def test_version_is_the_crates_version() -> None:
    cargo = tomllib.loads(Path("Cargo.toml").read_text("ascii"))
    version = cargo["workspace"]["package"]["version"]
    assert linerate("--version").stdout == f"linerate {version}\n"
    assert _core.__version__ == version


def test_the_package_starts_as_a_module() -> None:
    command = (sys.executable, "-m", "linerate", "--version")
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment())
    assert (done.returncode, done.stdout) == (0, f"linerate {_core.__version__}\n")


OF_A_SHARE = ("run", "--preset", "anvil", "--target", "smb://nas/disks/test.img", "--set")


def test_array_example_is_printed() -> None:
    assert linerate("array", "serve", "--example").stdout == example_text()


@pytest.mark.parametrize("subject", ["workload", "run", "array", "events", "manifest"])
def test_schemas_are_json(subject: str) -> None:
    schema = json.loads(linerate("schema", subject).stdout)
    Draft202012Validator.check_schema(schema)
    assert schema.get("properties") or schema.get("oneOf")


def test_array_schema_is_the_models() -> None:
    assert json.loads(linerate("schema", "array").stdout) == ArrayConfig.model_json_schema()


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["run"], "nothing to run", "--preset dell-nic"),
        (["run", "none.vdb"], "none.vdb", ""),
        (["run", "--preset", "nonesuch", "--target", "null:1g"], "nonesuch", "dell-nic"),
        (["run", "--preset", "dell-nic", "--set", "colour=1"], "--set colour=1", "iscsi.header_digest"),
        (["run", "--preset", "dell-nic", "--set", "iscsi.colour=1"], "iscsi.colour=1", "header_digest"),
        (["run", "--preset", "dlink", "--path", "a b c"], "--path: 'a b c' is not a path", "10.1.0.1 -> "),
        (["run", "--preset", "dlink", "--set", "multipath.colour=1"], "multipath.colour=1", "policy"),
        (["run", "--preset", "dlink", "--import-multipath", "none.conf"], "none.conf: No such file", ""),
        (["run", "--preset", "dell-nic", "--size", "big"], "--size big", "k, m, g"),
        (["run", "--preset", "dell-nic", "--cpus", "0-"], "--cpus 0-", "0,2-3"),
        (
            ["run", "--preset", "dell-nic", "--target", "null:1g", "--cpus", "9999"],
            "this process may not use CPU 9999",
            "it may use ",
        ),
        (["run", "--preset", "dell-nic", "--cpus", "0-99999999"], "no host has a CPU 0-99999999", "0,2-3"),
        (["run", "--preset", "chelsio", "--target", "./new.img", "--create"], "needs a size", "--size 8g"),
        (["array", "serve"], "needs a file", "--example"),
        (["array", "serve", "none.toml"], "none.toml: No such file", "--example"),
        (["report", "none"], "none", ""),
        (["check", "none"], "none", ""),
        (["compare", "none"], "two runs", "BASELINE"),
        (["discover", "host:port"], "host:port", ""),
        (["discover", "http://host"], "no iSCSI portal", "iscsi://"),
        (
            ["discover", "iscsi://10.0.0.5/iqn.2026-11.lab:disk/0"],
            "a LUN cannot be asked for alone",
            "[/target]",
        ),
        (["discover", "a::b::c"], "no IPv6 address", "[::1]:3260"),
        (["discover", "\\\\nas\\disks"], "a file server, in another form", "write smb://user@nas\n"),
        (["discover", "//nas/disks/a.img"], "a file server, in another form", "write smb://user@nas\n"),
        (["discover", "cifs://joe@nas"], "no such kind of server", "write smb://user@HOST"),
        ([*OF_A_SHARE, "smb.transport=rdma"], "no SMB Direct (RDMA)", "mount.cifs -o rdma"),
        ([*OF_A_SHARE, "smb.dialect=2.1", "--set", "smb.encryption=on"], "smb.dialect=2.1", "3.0 or later"),
        (
            [*OF_A_SHARE, "smb.dialect=3.0", "--set", "smb.encryption=aes-256-gcm"],
            "smb.dialect=3.0",
            "it has aes-128-ccm",
        ),
        ([*OF_A_SHARE, "smb.dialect=2.1", "--set", "smb.channels=2"], "smb.channels=2", "3.0 or later"),
    ],
)
def test_mistakes_end_with_2_and_a_way_out(words: list[str], message: str, hint: str, tmp_path: Path) -> None:
    done = linerate(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("linerate: ")
    assert message in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir()), "a mistake found before the run leaves nothing behind"


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (b"\x1b[2J\0\xfe\n" * 99, "given:1: a NUL byte", "save it as UTF-8"),
        (example_text("raid6").encode(), "given.toml: this is an array file", "linerate array serve"),
        (b"[host]\n[switch]\n", "given.toml: this is a topology", "linerate lab up"),
    ],
)
def test_another_kind_of_file_is_named(content: bytes, message: str, hint: str, tmp_path: Path) -> None:
    file = tmp_path / ("given.toml" if b"\0" not in content else "given")
    file.write_bytes(content)
    done = linerate("run", file.name, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert hint in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("name", ["manifest.json", "study.json"])
def test_a_directory_with_results_is_not_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / name).write_text("{}")
    done = linerate("run", "old", cwd=tmp_path)
    assert done.returncode == 2
    assert "`linerate report old` shows them" in done.stderr


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--colour"], "no such option: --colour", "`linerate --help`"),
        (["run", "--colour"], "no such option: --colour", "`linerate run --help`"),
        (["nonesuch"], "no such command 'nonesuch'", "`linerate --help`"),
        (["schema", "nonesuch"], "'nonesuch'", "schema"),
        (
            ["run", "--volumes", "0"],
            "invalid value for '--volumes': must be at least 1",
            "`linerate run --help`",
        ),
        (
            ["run", "--elapsed", "abc"],
            "invalid value for '--elapsed': must be a number",
            "`linerate run --help`",
        ),
        (["run", "--volumes", "x"], "invalid value for '--volumes': must be a whole number", "--help"),
        (["lab", "up"], "missing argument 'TOPOLOGY'", "`linerate lab up --help`"),
        (["backup-load", "image"], "missing option '--size'", "`linerate backup-load URL --size SIZE`"),
        (["array", "resize", "mail"], "missing argument 'SIZE'", "`linerate array resize VOLUME SIZE`"),
    ],
)
def test_misspelt_options_end_with_2_in_the_form_of_all_errors(
    words: list[str], message: str, hint: str
) -> None:
    done = linerate(*words)
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert first.startswith("linerate: ")
    assert message in first
    assert second.startswith("  -> ")
    assert hint in second


def test_presets_are_listed_with_what_they_need() -> None:
    lines = linerate("presets").stdout.splitlines()
    assert len(lines) == len(PRESETS) + 2
    dell = next(line for line in lines if line.startswith("dell-nic"))
    assert re.match(r"dell-nic +8 +100 GiB +60 min +3 +yes +Dell NIC tuning: ", dell)
    told = json.loads(linerate("presets", "--json").stdout)
    assert {one["name"]: one["volumes"] for one in told["presets"]} == {
        name: preset.volumes for name, preset in PRESETS.items()
    }


@pytest.mark.long
def test_studies_are_listed_with_duration_and_what_they_need() -> None:
    lines = linerate("studies").stdout.splitlines()
    told = json.loads(linerate("study", "list", "--json").stdout)["studies"]
    assert [one["name"] for one in told] == list(shipped_studies())
    assert [line.split()[0] for line in lines[1:-1]] == list(shipped_studies())
    needs = {one["name"]: one["needs"] for one in told}
    assert needs["nic-tuning"] == "virtual SAN"
    assert needs["raid-levels"] == "nothing (computed)"
    for one in told:
        assert 0 < one["quick_most_s"] <= one["most_s"]
        assert one["title"] in "\n".join(lines)


ENCODINGS = (
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
)


@pytest.mark.long
@pytest.mark.parametrize("env", ENCODINGS)
@pytest.mark.parametrize("words", [("run", "--help"), ("lab", "up", "--help"), ("studies",)])
def test_a_terminal_without_unicode_ends_no_verb(words: tuple[str, ...], env: dict[str, str]) -> None:
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, timeout=TIMEOUT_S, env=environment(**env), check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert len(done.stdout) > 200


LOADED = """
import sys
from linerate.cli import main
main(sys.argv[1:])
print(*sorted(sys.modules.keys() & {"altair", "polars", "rich", "linerate.cli.run", "linerate.cli.discover"}))
"""


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        (("discover",), {"linerate.cli.discover"}),
        (("--version",), set()),
        (("--help",), {"linerate.cli.discover", "linerate.cli.run", "rich"}),
        (("check", "no-such-run"), {"polars", "rich"}),
    ],
)
def test_a_verb_loads_what_it_needs(words: tuple[str, ...], loaded: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(),
        check=False,
    )
    assert set(done.stdout.splitlines()[-1].split()) == loaded, done.stderr


INTERRUPTED_IMPORT = """
import builtins, os, signal, sys
real = builtins.__import__
def slow(name, *words, **more):
    if name.startswith("linerate.cli.app") or name == "typer":
        builtins.__import__ = real
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *words, **more)
from linerate.cli import main
builtins.__import__ = slow
sys.exit(main(["--version"]))
"""


def test_ctrl_c_while_modules_are_loaded_shows_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = linerate("array", "serve", "none.toml", cwd=tmp_path, LINERATE_DEBUG="1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


LONG = "iscsi://10.231.1.101:3260/iqn.2026-11.lab.linerate:a1/0"


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_line_goes_on_below_between_two_words() -> None:
    line = "  caution  the queue depth was 11.6 on average, of 16 asked for [b01-mixed-controller]"
    lines = console.folded(line, 40, " " * 11).splitlines()
    assert " ".join(part.strip() for part in lines) == line.strip()
    assert max(map(len, lines)) <= 40
    assert all(part.startswith(" " * 11) for part in lines[1:])
    assert "[b01-mixed-controller]" in lines[-1]


def test_a_word_that_is_too_long_stays_whole() -> None:
    assert LONG in console.folded(f"load with {LONG}", 30, "  ").splitlines()[-1]


def test_without_a_terminal_a_line_stays_as_it_is() -> None:
    assert console.folded(f"load  with {LONG}", None, "  ") == f"load  with {LONG}"


def test_notes_of_a_result_are_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    terminal = Console(file=out, force_terminal=True, color_system=None, width=80)
    monkeypatch.setattr(console, "console", lambda: terminal)
    reason = " ".join(f"reason{number}" for number in range(30))
    finding = Finding(rule="thin-tail", severity="note", reason=reason, advice="run longer", step="rd1")
    console.show_result([], Validity(stamp="valid", findings=(finding,)), "nothing")
    lines = out.getvalue().splitlines()
    assert f"thin-tail: {reason} [rd1]" in " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= 80


def test_errors_are_folded_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("COLUMNS", "60")
    tell(UserError("two measurements at a time would disturb each other; this one was not started", LONG))
    assert out.getvalue().splitlines() == [
        "linerate: two measurements at a time would disturb each",
        "  other; this one was not started",
        f"  -> {LONG}",
    ]
