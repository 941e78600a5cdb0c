"""`linerate run --hosts`, with an `ssh` that runs the remote command on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from linerate.cluster import ssh_endpoints
from linerate.errors import UserError
from linerate.results import RunDirectory

from tests.cli.conftest import linerate
from tests.cluster.fake_ssh import search_path

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
ARRAY = Path(str(files("linerate.array"))) / "examples" / "drives.toml"


def _put_ssh(folder: Path, script: str) -> None:
    (folder / "bin").mkdir()
    ssh = folder / "bin" / "ssh"
    ssh.write_text(script, "ascii")
    ssh.chmod(0o755)


def _command(tmp_path: Path) -> subprocess.Popen[str]:
    _put_ssh(tmp_path, SSH)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "load.toml").write_text(WORKLOAD, "ascii")
    words = ["run", str(tmp_path / "load.toml"), "--target", "null:1g", "--json", "--no-report"]
    there = ["--hosts", "load1,root@load2", "--hosts-python", sys.executable, "--hosts-address", "127.0.0.1"]
    return subprocess.Popen(
        [sys.executable, "-m", "linerate.cli", *words, *there, "--output", str(tmp_path / "run")],
        env=os.environ | {"PATH": search_path(tmp_path), "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
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


DEALT = """\
hd=default,user=tester,shell=ssh,jvms=2
hd=one,system=load1.test
hd=two,system=load2.test
hd=three,system=localhost
sd=sd1,lun=null:1g,host=(one,two),threads=3
sd=sd2,lun=null:2g,host=two,lun=null:3g,host=three,threads=2
wd=wd1,sd=sd*
wd=wd2,sd=sd1,host=two,seekpct=seq
rd=rd1,wd=wd*,iorate=400,elapsed=3,interval=1
"""


@pytest.mark.long
@pytest.mark.timeout(240)
def test_the_hosts_of_a_vdbench_file_get_what_it_deals_to_them(tmp_path: Path) -> None:
    """Two by SSH, under the user that the file names, and this machine without it."""
    _put_ssh(tmp_path, SSH.replace("shift 2", f'echo "$2" >> {tmp_path}/asked; shift 2'))
    (tmp_path / "load.vdb").write_text(DEALT, "ascii")
    words = ["run", str(tmp_path / "load.vdb"), "--no-report", "--output", str(tmp_path / "run")]
    there = ["--hosts-python", sys.executable, "--hosts-address", "127.0.0.1"]
    done = subprocess.run(
        [sys.executable, "-m", "linerate.cli", *words, *there],
        env=os.environ | {"PATH": search_path(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    assert set((tmp_path / "asked").read_text("ascii").split()) == {"tester@load1.test", "tester@load2.test"}
    run = RunDirectory.open(tmp_path / "run")
    spec = run.manifest.steps[0].spec
    assert {volume["name"]: (volume["outstanding"], volume["url"]) for volume in spec["volumes"]} == {
        "one/sd1": (2, "null:1073741824"),
        "two/sd1": (1, "null:1073741824"),
        "two/sd2": (1, "null:2147483648"),
        "three/sd2": (1, "null:3221225472"),
    }
    loaded = run.intervals.filter(run.intervals["ios"] > 0)
    assert set(loaded.filter(loaded["stream"] == "wd2").get_column("volume")) == {"two/sd1"}
    assert set(loaded.get_column("volume")) == {"one/sd1", "two/sd1", "two/sd2", "three/sd2"}


def test_a_dry_run_shows_what_each_host_gets_and_asks_none(tmp_path: Path) -> None:
    (tmp_path / "load.vdb").write_text(DEALT, "ascii")
    done = linerate("run", str(tmp_path / "load.vdb"), "--dry-run")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["one", "tester@load1.test", "1", "of", "1", "2", "wd1"] in rows
    assert ["two", "tester@load2.test", "1", "of", "1", "2", "wd1,", "wd2"] in rows
    assert ["three", "this", "machine", "1", "of", "1", "1", "wd1"] in rows
    assert "note: " in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--hosts", "a,b"], "--hosts, and load names its hosts itself (one, two, three)"),
        (["run", "--virtual-time", str(ARRAY)], "--virtual-time, and load names hosts (one, two, three)"),
        (["scale", "--over", "hosts"], "--over hosts, and load says itself what each of its hosts does"),
    ],
)
def test_hosts_are_named_in_one_place(tmp_path: Path, words: list[str], message: str) -> None:
    verb, *options = words
    (tmp_path / "load.vdb").write_text(DEALT, "ascii")
    done = linerate(verb, str(tmp_path / "load.vdb"), *options, "--dry-run")
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


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
