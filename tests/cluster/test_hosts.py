"""`linerate run --hosts`, with an `ssh` that runs the remote command on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from linerate.cluster import ssh_endpoints
from linerate.errors import UserError
from linerate.results import RunDirectory

WORKLOAD = """\
warm_up = 0
elapsed = 60
interval = 0.25
volume = [{ name = "v", outstanding = 2 }]
stream = [{ name = "s", size = "4k", rate = 400 }]
"""
# As the real one: the words after the host make one line for the remote user's shell.
SSH = """\
#!/bin/sh
while [ "$1" != "--" ]; do shift; done
shift 2
exec sh -c "exec $*"
"""
TIMEOUT_S = 200.0


def _command(tmp_path: Path) -> subprocess.Popen[str]:
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(SSH, "ascii")
    ssh.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "load.toml").write_text(WORKLOAD, "ascii")
    words = ["run", str(tmp_path / "load.toml"), "--target", "null:1g", "--json", "--no-report"]
    there = ["--hosts", "load1,root@load2", "--hosts-python", sys.executable, "--hosts-address", "127.0.0.1"]
    return subprocess.Popen(
        [sys.executable, "-m", "linerate.cli", *words, *there, "--output", str(tmp_path / "run")],
        env=os.environ
        | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.timeout(240)
def test_hosts_by_ssh_make_one_run_and_ctrl_c_keeps_what_they_measured(tmp_path: Path) -> None:
    """How a run on hosts comes to its end by itself is in test_workers: each process takes seconds to begin."""
    intervals = []
    with _command(tmp_path) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if '"interval"' in line:
                intervals.append(json.loads(line))
            if len(intervals) == 4:
                break
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(TIMEOUT_S) == 130
    iops = sum(one["figures"]["total"]["iops"] for one in intervals) / len(intervals)
    assert iops == pytest.approx(400, rel=0.4), "of both together, not of each"
    run = RunDirectory.open(tmp_path / "run")
    assert (run.manifest.state, run.manifest.reason) == ("interrupted", "stopped by the user")
    assert set(run.intervals.get_column("volume")) == {"load1/v", "load2/v"}
    assert [volume["name"] for volume in run.manifest.steps[0].spec["volumes"]] == ["load1/v", "load2/v"]
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("hosts", [["a", "x@a"], [""], ["-oProxyCommand=sh"], ["a b"], ["root@-x"]])
def test_a_list_of_hosts_is_checked(hosts: list[str]) -> None:
    with pytest.raises(UserError, match="--hosts"):
        ssh_endpoints(hosts)


def test_ssh_asks_nothing_hands_nothing_on_and_knows_its_hosts() -> None:
    (place,) = ssh_endpoints(["root@stor1"])
    words = list(place.wrap(["true"]))
    assert words[0] == "ssh"
    assert words[-3:] == ["--", "root@stor1", "true"]
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ClearAllForwardings=yes"):
        assert option in words
    assert "-a" in words, "no agent is forwarded"


def test_a_remote_command_is_quoted_for_the_remote_shell() -> None:
    (place,) = ssh_endpoints(["root@stor1"], "/opt/line rate/bin/python")
    assert place.name == "stor1"
    assert place.wrap(["/opt/line rate/bin/python", "-m", "x"])[-2:] == (
        "root@stor1",
        "'/opt/line rate/bin/python' -m x",
    )
