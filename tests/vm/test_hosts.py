"""A host of another machine by real SSH, as docs/cluster.md sets it up: checked, installed on, loading, cleaned up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate import _core
from linerate.cluster.hosts import INSTALLATIONS
from linerate.results import RunDirectory

from tests.support.patience import a_busy_machine_may_spoil
from tests.support.serving import serving
from tests.vm import image, network
from tests.vm.stranger import NAME, USER, Stranger

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1500)]

PORTS = "7000-7010"
# As `ufw` with the rules of docs/cluster.md, step 6: what the host asks for comes in, and SSH, and the workers' ports.
FIREWALL = f"""\
table inet guard {{
    chain input {{
        type filter hook input priority 0; policy drop;
        ct state established,related accept
        iif lo accept
        tcp dport {{ 22, {PORTS} }} accept
    }}
}}
"""
IQN = "iqn.2026-11.lab.linerate:hosts"
ARRAY = f"""\
portals = ["{network.here(network.SAN_A)}:3260"]
[[targets]]
name = "{IQN}"
[[targets.volumes]]
lun = 0
name = "vol"
kind = "memory"
size = "16m"
"""
WORKLOAD = """\
warm_up = 0
elapsed = 4
interval = 1
volume = [{ name = "v", outstanding = 4 }]
stream = [{ name = "s", size = "8k", read = 50 }]
"""


def _check(stranger: Stranger, *words: str, ports: str = PORTS) -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit code; name of each line -> its state and text."""
    address = ["--hosts-address", network.here(network.CONTROL), "--hosts-ports", ports]
    done = stranger.linerate("hosts", "check", *(words or (NAME,)), *address, "--json")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)["findings"]
    return done.returncode, {one["name"]: (one["state"], one["text"]) for one in found}


@pytest.fixture
def firewall(stranger: Stranger) -> Iterator[None]:
    stranger.write("/tmp/firewall", FIREWALL)
    stranger.root("nft -f /tmp/firewall")
    yield
    stranger.root("nft delete table inet guard")


@pytest.mark.usefixtures("firewall")
def test_check_says_what_a_host_is_and_what_is_missing(stranger: Stranger) -> None:
    code, found = _check(stranger, ports="8000-8010")
    assert code == 1
    assert found["SSH"][0] == "ok"
    assert found["SSH"][1].startswith(f"as {USER}, ")
    assert found["Linerate"][0] == "fails"
    assert "`linerate hosts install` brings it" in found["Linerate"][1]
    assert found["sudo"][0] == "note"
    assert found["ports"][0] == "fails"
    assert f"from here {network.there(network.CONTROL)} port 8000 cannot be reached" in found["ports"][1]
    assert "firewall" in found["ports"][1]


def test_an_unknown_host_and_an_unknown_user_are_refused(stranger: Stranger) -> None:
    known = stranger.keys.folder / "known_hosts"
    text = known.read_text()
    try:
        known.write_text("")
        _, found = _check(stranger)
    finally:
        known.write_text(text)
    assert found["SSH"][0] == "fails"
    assert "compare its fingerprint" in found["SSH"][1]
    _, found = _check(stranger, f"root@{NAME}")
    assert found["SSH"][0] == "fails", "the user's key is not the administrator's"
    assert "ssh-copy-id" in found["SSH"][1]


@pytest.mark.usefixtures("sudo", "firewall")
def test_linerate_is_brought_and_then_everything_is_there(stranger: Stranger, installed: str) -> None:
    folder = f"/home/{USER}/{INSTALLATIONS[2:]}/{_core.__version__}"
    assert f"{NAME}: {_core.__version__} installed, {folder}/bin/python" in installed
    code, found = _check(stranger)
    refused = stranger.user("sudo -n id")
    assert code == 0, found
    python = ".".join(map(str, image.PYTHON))
    assert found["Python"][1].startswith(f"{python}.")
    assert found["Linerate"][1].startswith(f"{_core.__version__} in {folder.rpartition('/')[0]}")
    assert found["sudo"] == ("ok", "settings can be changed through sudo")
    assert found["ports"][0] == "ok"
    assert refused.returncode != 0, "sudo allows this one command and no other"


# On a busy machine an emulated host can answer too late for its clock to be known.
@pytest.mark.usefixtures("installed", "firewall")
@a_busy_machine_may_spoil
def test_a_run_is_made_by_the_host_through_its_firewall(stranger: Stranger, tmp_path: Path) -> None:
    directory = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
    (tmp_path / "load.toml").write_text(WORKLOAD)
    words = ["--hosts", NAME, "--hosts-address", network.here(network.CONTROL), "--hosts-ports", PORTS]
    with serving(tmp_path, ARRAY):
        done = stranger.linerate(
            *("run", tmp_path / "load.toml", *words, "--overwrite", "all", "--no-report"),
            *("--target", f"iscsi://{network.here(network.SAN_A)}/{IQN}/0", "--output", directory),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert stranger.attempt(f"pgrep -u {USER} -f linerate").stdout == "", "no process is left there"
    run = RunDirectory.open(directory)
    assert set(run.intervals.get_column("volume")) == {f"{NAME}/v"}
    assert run.intervals.get_column("ios").sum() > 0
    assert run.intervals.get_column("errors").sum() == 0


@pytest.mark.usefixtures("installed")
def test_what_was_brought_is_removed(stranger: Stranger) -> None:
    done = stranger.linerate("hosts", "remove", NAME)
    assert done.returncode == 0, done.stdout + done.stderr
    assert _core.__version__ in done.stdout
    assert stranger.attempt(f"ls -d ~{USER}/{INSTALLATIONS[2:]}").returncode != 0
