"""Without root, all of these tests once more inside a user namespace, where this user is root over what it makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.conftest import may_make_namespaces
from tests.support import need


def test_everything_inside_a_user_namespace(tmp_path: Path) -> None:
    if may_make_namespaces():
        pytest.skip("root runs these tests as they are")
    unshare = need.unshare()
    here = Path(__file__).parent
    files = [str(here / f"test_{name}.py") for name in ("namespace", "crash", "journal", "drivers", "verbs")]
    pytest_run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not True", *files]
    done = subprocess.run(
        [*unshare, *pytest_run, f"--basetemp={tmp_path / 'inside'}"],
        capture_output=True,
        text=True,
        cwd=here.parents[1],
        env=os.environ | {"LINERATE_CI": ""},
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout
