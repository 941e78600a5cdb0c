"""`linerate lab`: the verbs, as users call them, without root."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from linerate.lab import Lab

from tests.lab.conftest import COMMAND, TIMEOUT_S, TOPOLOGY, run, unique, with_rights


def _done(*words: str) -> str:
    done = run(*words, rights="user")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_show_draws_the_topology_as_it_is_now(lab: Lab, tmp_path: Path) -> None:
    _done("link", "h1.p0", "--mtu", "4000", "--lab", lab.name)
    picture = tmp_path / "san.svg"
    shown = _done("show", "--lab", lab.name, "--seconds", "0.1", "--picture", str(picture))
    assert "host h1" in shown
    assert "MTU 4000, 0% used" in shown
    assert f"{lab.name} is up; the kernel fabric carries its frames" in shown
    assert picture.read_text().startswith("<svg")
    _done("link", "h1.p0", "--mtu", "1500", "--lab", lab.name)


@pytest.mark.long
def test_show_as_json_holds_all_that_a_script_needs(lab: Lab) -> None:
    shown = json.loads(_done("show", "--lab", lab.name, "--seconds", "0.1", "--json"))
    assert (shown["schema"], shown["name"], shown["fabric"]) == ("linerate.lab/1", lab.name, "kernel")
    assert shown["volumes"]["h1"]["a1.v1"] == lab.volume_urls("h1")[0].url
    assert set(shown["utilisation"]) == set(lab.links)
    assert Path(shown["namespaces"]["h1"]).exists()


@pytest.mark.long
def test_show_without_a_name_lists_all_labs(lab: Lab, topology_file: Path) -> None:
    name = unique("other")
    last = _done("up", str(topology_file), "--name", name).splitlines()[-1]
    try:
        target = r"iscsi://10\.231\.\d+\.\d+:3260/iqn\S+/0"
        load = rf"linerate run --preset anvil --target {target} --size 16m --elapsed 5"
        assert re.fullmatch(rf"load: linerate lab exec --lab {name} h1 -- {load}", last)
        assert {lab.name, name} <= set(json.loads(_done("show", "--json"))["labs"])
        assert f"{name}  small, kernel fabric, detached" in _done("show")
        several = run("exec", "h1", "--", "true", rights="user")
        assert several.returncode == 2
        assert "several labs are up" in several.stderr
    finally:
        _done("down", name)


LOAD = """\
warm_up = "0s"
elapsed = "0.3s"
interval = "0.1s"
volume = [{ name = "v1", size = "1m" }]
stream = [{ name = "writes", size = "8k", read = 0 }]
"""


@pytest.mark.long
def test_a_load_inside_a_node_overwrites_the_labs_volumes_and_nothing_else(tmp_path: Path) -> None:
    storage = '{ disks = 4, disk_size = "64m", raid_level = "raid5" }'
    disks = f'storage = {storage}\nvolume = [{{ name = "v1", size = "32m" }}]\n'
    text = TOPOLOGY[: TOPOLOGY.index("volume =")] + disks
    (tmp_path / "disks.toml").write_text(text, "ascii")
    (tmp_path / "load.toml").write_text(LOAD, "ascii")
    data = tmp_path / "data"
    data.write_bytes(b"precious" * 200_000)
    name = unique("inside")
    _done("up", str(tmp_path / "disks.toml"), "--name", name)
    try:
        with Lab.look(name) as found:
            url = found.volume_urls("h1")[0].url
        load = (sys.executable, "-m", "linerate.cli", "run", str(tmp_path / "load.toml"), "--no-report")
        inside = ("exec", "--lab", name, "h1", "--", *load, "--output", str(tmp_path / "run"))
        refused = run(*inside, "--target", str(data), rights="user")
        assert refused.returncode == 2
        assert "data of unknown kind" in refused.stderr
        done = run(*inside, "--target", url, rights="user")
        assert done.returncode == 0, done.stderr
        assert "volume of a virtual SAN" in done.stdout
    finally:
        _done("down", name)


@pytest.mark.long
def test_link_changes_and_tells(lab: Lab) -> None:
    changed = _done("link", "a1.p0", "--rate", "100mbit", "--mtu", "9000", "--lab", lab.name)
    assert changed == "a1.p0  100mbit, MTU 9000, up\n"
    pulled = json.loads(_done("link", "a1.p0", "--down", "--json", "--lab", lab.name))
    assert (pulled["up"], pulled["rate_bits_per_s"]) == (False, 1e8)
    assert _done("link", "a1.p0", "--up", "--rate", "1gbit", "--mtu", "1500", "--lab", lab.name).endswith(
        "up\n"
    )


@pytest.mark.long
def test_link_refuses_with_a_way_out(lab: Lab) -> None:
    for words, says in (
        (("h1.p0", "--delay", "200us"), "linerate lab up ... --fabric user"),
        (("h1.p0", "--rate", "fast"), "--rate: 'fast'"),
        (("h7.p0",), "there is no link h7.p0"),
        (("h1.p0", "--speed", "1gbit"), "no such option: --speed"),
    ):
        refused = run("link", *words, "--lab", lab.name, rights="user")
        assert refused.returncode != 0
        assert says in refused.stderr
        assert "  -> " in refused.stderr


@pytest.mark.long
def test_exec_runs_inside_and_passes_the_status_on(lab: Lab) -> None:
    listed = _done("exec", "--lab", lab.name, "h1", "--", "ls", "/sys/class/net")
    assert set(listed.split()) == {"lo", "p0", "ctl0"}
    for command, status in (("exit 7", 7), ("kill -TERM $$", 128 + 15)):
        ended = run("exec", "--lab", lab.name, "h1", "--", "sh", "-c", command, rights="user")
        assert ended.returncode == status
    nothing = run("exec", "--lab", lab.name, "h1", rights="user")
    assert (nothing.returncode, "no command was given" in nothing.stderr) == (2, True)


@pytest.mark.long
def test_a_shell_is_inside(lab: Lab) -> None:
    shell = subprocess.run(
        with_rights("user", (*COMMAND, "shell", "--lab", lab.name, "a1")),
        input="cat /sys/class/net/p0/address\nexit 3\n",
        env=os.environ | {"SHELL": "/bin/sh"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert shell.returncode == 3
    assert shell.stdout.strip() == lab.topology.node("a1").interfaces[0].mac


@pytest.mark.long
def test_probe_tells_what_is_there_and_what_is_not() -> None:
    probed = json.loads(_done("probe", "--json"))
    by_name = {part["name"]: part for part in probed["probed"]}
    assert by_name["rights"]["use"] == "a user namespace, since this is not root"
    assert all(part["there"] for part in by_name.values() if part["needed"])
    assert by_name["HTB and bfifo"]["needed"]
    assert not by_name["TAP"]["needed"]  # the kernel fabric does without
    assert all(part["there"] == (part["why_not"] == "") for part in by_name.values())
    assert "links" in _done("probe")
