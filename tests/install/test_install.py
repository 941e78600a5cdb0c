"""What people install: one wheel, the verbs' completion, the man page."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND
from tests.install import manpage
from tests.support import need

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT_S = 900.0
INSTALL_TIMEOUT_S = 300.0
DEMO_TIMEOUT_S = 300.0


def _run(command: list[str], folder: Path, timeout_s: float) -> str:
    """Runs without anything of this tree on the path; its output."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run(
        command, cwd=folder, env=bare, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(BUILD_TIMEOUT_S + 2 * INSTALL_TIMEOUT_S + DEMO_TIMEOUT_S)
def test_a_wheel_works_in_an_empty_environment_outside_the_tree(tmp_path: Path) -> None:
    maturin = Path(sys.executable).with_name("maturin")
    if not maturin.exists():
        need.missing("maturin is not installed (make dev)")
    # `make wheel` takes the profile `release`, which builds longer.
    build = [str(maturin), "build", "--profile", "local", "--locked", "--out", str(tmp_path / "dist")]
    _run(build, ROOT, BUILD_TIMEOUT_S)
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name.startswith("linerate_san-")
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / "bin" / "python"
    pins = ROOT / "requirements" / "run.txt"
    _run(
        [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "-c", str(pins), str(wheel)],
        tmp_path,
        INSTALL_TIMEOUT_S,
    )
    linerate = str(python.with_name("linerate"))
    assert _run([linerate, "--version"], tmp_path, 60.0).startswith("linerate 0.")
    _run([linerate, "demo", "--quick"], tmp_path, DEMO_TIMEOUT_S)
    page = tmp_path / "empty" / "share" / "man" / "man1" / "linerate.1"
    assert page.read_text().startswith('.\\" Written by')


def test_the_man_page_is_as_the_help_texts_are() -> None:
    assert manpage.PAGE.read_text() == manpage.page(), "run `make docs`"


@pytest.mark.parametrize(
    ("words", "offered"),
    [("linerate stu", "study"), ("linerate array sh", "show"), ("linerate run --ela", "--elapsed")],
)
def test_bash_completes_verbs_and_options(words: str, offered: str) -> None:
    asked = os.environ | {
        "_LINERATE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(COMMAND, env=asked, capture_output=True, text=True, timeout=60, check=False)
    assert offered in done.stdout.split(), done.stdout + done.stderr
