"""A host of another machine by real SSH, as docs/cluster.md sets it up: `linerate hosts check`, with keys and sudo."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.vm import network
from tests.vm.stranger import NAME, USER, Stranger

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600)]

SUDOERS = f"{USER} ALL=(root) NOPASSWD: /opt/linerate/bin/python -P -m linerate.cli host hold"


def _check(stranger: Stranger, *words: str) -> dict[str, tuple[str, str]]:
    """Name of each line -> its state and text."""
    command = [sys.executable, "-m", "linerate.cli", "hosts", "check", *(words or (NAME,)), "--json"]
    address = ["--hosts-address", network.here(network.CONTROL), "--hosts-ports", "7000-7010"]
    done = subprocess.run(
        [*command, *address], env=stranger.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, f"Linerate is not installed there, so this fails\n{done.stdout}{done.stderr}"
    return {one["name"]: (one["state"], one["text"]) for one in json.loads(done.stdout)["findings"]}


def test_check_says_what_the_host_is(stranger: Stranger) -> None:
    found = _check(stranger)
    assert found["SSH"][0] == "ok"
    assert found["SSH"][1].startswith(f"as {USER}, ")
    version = stranger.root("python3 -c 'import platform; print(platform.python_version())'").strip()
    if version.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}."):
        assert found["Python"][0] == "ok"
        assert found["Python"][1].startswith(version)
    else:
        assert version in found["Python"][1]
    assert found["Linerate"][0] == "fails"
    assert found["ports"][0] == "ok"
    assert found["ports"][1].startswith(f"{network.there(0)} port 70")


def test_sudo_is_what_the_host_allows(stranger: Stranger) -> None:
    assert _check(stranger)["sudo"][0] == "note"
    file = "/etc/sudoers.d/linerate"
    try:
        stranger.write(file, SUDOERS + "\n")
        stranger.root(f"visudo -c -f {file}")
        assert _check(stranger)["sudo"] == ("ok", "settings can be changed through sudo")
        refused = stranger.attempt("sudo -n id", user=USER)
        assert refused.returncode != 0, "only this one command"
    finally:
        stranger.root(f"rm -f {file}")


def test_an_unknown_host_and_an_unknown_user_are_refused(stranger: Stranger) -> None:
    known = stranger.keys.folder / "known_hosts"
    text = known.read_text()
    try:
        known.write_text("")
        state, said = _check(stranger)["SSH"]
    finally:
        known.write_text(text)
    assert state == "fails"
    assert "compare its fingerprint" in said
    state, said = _check(stranger, f"root@{NAME}")["SSH"]
    assert state == "fails", "the user's key is not the administrator's"
    assert "ssh-copy-id" in said
