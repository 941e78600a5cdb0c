"""Secrets of array files: where they may come from, what protects nothing, and what is warned of."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, load_array_file, parse_array_text
from linerate.array.credentials import secret_warnings
from linerate.errors import UserError

IQN = "iqn.2026-11.lab.linerate:t"
GOOD = "correct-horse-battery"


def _array(chap: str) -> str:
    return f'[[targets]]\nname = "{IQN}"\n[targets.chap]\nuser = "host1"\n{chap}\n'


def _refused(tmp_path: Path, chap: str) -> UserError:
    (tmp_path / "lab.toml").write_text(_array(chap), "utf-8")
    with pytest.raises(UserError) as caught:
        load_array_file(tmp_path / "lab.toml")
    return caught.value


def _sent(config: ArrayConfig) -> dict[str, str]:
    sent: dict[str, str] = json.loads(config.seam_json())["targets"][0]["chap"]
    return sent


def _file(tmp_path: Path, content: bytes, mode: int = 0o600) -> Path:
    path = tmp_path / "host1.secret"
    path.write_bytes(content)
    path.chmod(mode)
    return path


SHORT = "eleven byte"
FROM = ("inline", "file", "variable")


def _given(
    source: str, secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str = "secret"
) -> str:
    """The line of an array file that gives a secret in one of the three ways."""
    if source == "inline":
        return f"{key} = {json.dumps(secret)}"
    if source == "file":
        _file(tmp_path, secret.encode())
        return f'{key}_file = "host1.secret"'
    monkeypatch.setenv("HOST1_SECRET", secret)
    return f'{key}_env = "HOST1_SECRET"'


@pytest.mark.parametrize("source", FROM)
@pytest.mark.parametrize(
    ("secret", "why"), [("", "is empty"), (SHORT, "has 11 bytes"), ("\u00e9" * 128, "has 256 bytes")]
)
def test_secrets_that_protect_nothing_are_refused_wherever_they_come_from(
    source: str, secret: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = _refused(tmp_path, _given(source, secret, tmp_path, monkeypatch))
    assert why in error.message
    assert "lab.toml:5: targets[0].chap.secret" in error.message
    assert not secret or secret not in error.message + error.hint


@pytest.mark.parametrize("source", FROM)
def test_the_shortest_and_the_longest_secret_are_taken(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for secret in ("twelve bytes", "x" * 255):
        given = _given(source, secret, tmp_path, monkeypatch)
        assert _sent(parse_array_text(_array(given), folder=tmp_path))["secret"] == secret


@pytest.mark.parametrize("source", FROM)
def test_the_targets_own_secret_is_judged_alike(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chap = f'secret = "{GOOD}"\nmutual_user = "array"\n'
    short = _refused(tmp_path, chap + _given(source, SHORT, tmp_path, monkeypatch, "mutual_secret"))
    assert "targets[0].chap.mutual_secret: the secret has 11 bytes" in short.message
    same = _refused(tmp_path, chap + _given(source, GOOD, tmp_path, monkeypatch, "mutual_secret"))
    assert "must differ" in same.message
    assert GOOD not in same.message


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_one_line_end_is_not_part_of_a_secret(end: str, tmp_path: Path) -> None:
    _file(tmp_path, f" {GOOD} {end}".encode())
    config = parse_array_text(_array('secret_file = "host1.secret"'), folder=tmp_path)
    assert _sent(config)["secret"] == f" {GOOD} ", "nothing else is removed"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\n", "is empty"),
        (f"{GOOD}\n\n".encode(), "several lines"),
        (f"{GOOD}\n{GOOD}\n".encode(), "several lines"),
        (b"\xff" * 20, "not a text file"),
        (b"x" * 5000, "too long"),
    ],
)
def test_a_file_holds_a_secret_and_nothing_else(content: bytes, why: str, tmp_path: Path) -> None:
    _file(tmp_path, content)
    error = _refused(tmp_path, 'secret_file = "host1.secret"')
    assert f"{tmp_path / 'host1.secret'}" in error.message
    assert why in error.message
    assert GOOD not in error.message + error.hint


def test_a_missing_variable_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOST1_SECRET", raising=False)
    assert "HOST1_SECRET is not set" in _refused(tmp_path, 'secret_env = "HOST1_SECRET"').message
    monkeypatch.setenv("HOST1_SECRET", "")
    assert "HOST1_SECRET is empty" in _refused(tmp_path, 'secret_env = "HOST1_SECRET"').message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o622, 0o644])
def test_a_file_that_others_can_read_or_write_is_refused_with_the_way_out(mode: int, tmp_path: Path) -> None:
    path = _file(tmp_path, GOOD.encode(), mode)
    error = _refused(tmp_path, 'secret_file = "host1.secret"')
    assert f"others may read the secret (mode 0{mode:o})" in error.message
    assert error.hint == f"chmod 600 {path}"


def test_a_file_that_others_can_replace_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    _file(folder, GOOD.encode())
    folder.chmod(0o777)
    error = _refused(tmp_path, 'secret_file = "open/host1.secret"')
    assert "everyone may replace it" in error.message
    assert error.hint == f"chmod o-w {folder}"
    folder.chmod(0o1777)  # as /tmp: only owners remove and rename
    assert load_array_file(tmp_path / "lab.toml").targets[0].chap is not None


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "host1.secret", 0o600)
    assert "not a file" in _refused(tmp_path, 'secret_file = "host1.secret"').message


def test_hashes_may_be_left_out() -> None:
    given = f'secret = "{GOOD}"\nalgorithms = ["sha3-256", "sha256"]'
    assert _sent(parse_array_text(_array(given)))["algorithms"] == ["sha3-256", "sha256"]
    assert _sent(parse_array_text(_array(f'secret = "{GOOD}"')))["algorithms"][-1] == "md5"
    with pytest.raises(UserError, match="algorithms"):
        parse_array_text(_array(f'secret = "{GOOD}"\nalgorithms = ["sha512"]'))


def test_a_partners_chap_secret_is_judged_alike() -> None:
    partner = f'[[targets]]\nname = "{IQN}"\n[[partners]]\nname = "p"\nsecret = "{GOOD}"\nchap_user = "p"\n'
    with pytest.raises(UserError, match=r"partners\[0\].chap_secret: the secret has 11 bytes"):
        parse_array_text(f'{partner}chap_secret = "{SHORT}"\n')


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        ('["IQN.1991-05.com.Microsoft:Host1"]', ["iqn.1991-05.com.microsoft:host1"]),
        (
            '["iqn.1993-08.org.debian:*", "eui.02004567A425678D"]',
            ["iqn.1993-08.org.debian:*", "eui.02004567a425678d"],
        ),
        ('["*"]', ["*"]),
    ],
)
def test_initiators_are_names_or_beginnings_of_names(names: str, kept: list[str]) -> None:
    config = parse_array_text(f'[[targets]]\nname = "{IQN}"\ninitiators = {names}\n')
    assert json.loads(config.seam_json())["targets"][0]["initiators"] == kept


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("[]", "at least 1 item"),
        ('["host1"]', "starts with iqn."),
        ('["iqn.*:host1"]', "a '*' may end it"),
        ('["iqn.1991-05.com.microsoft:h\u00f6st"]', "letters, digits"),
    ],
)
def test_initiators_that_could_never_log_in_are_refused(names: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_array_text(f'[[targets]]\nname = "{IQN}"\ninitiators = {names}\n', name="lab.toml")
    assert "lab.toml:3: targets[0].initiators" in caught.value.message
    assert why in caught.value.message


def test_shared_and_readable_secrets_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    chap = '[[targets]]\nname = "{}"\n[targets.chap]\nuser = "{}"\nsecret = "{}"\n'
    path.write_text(
        chap.format(f"{IQN}1", "host1", GOOD)
        + chap.format(f"{IQN}2", "host1", GOOD)
        + chap.format(f"{IQN}3", "host3", GOOD),
        "ascii",
    )
    path.chmod(0o644)
    readable, shared = secret_warnings(path, load_array_file(path))
    assert f"chmod 600 {path}" in readable
    assert "host1 and host3 have the same CHAP secret" in shared
    assert GOOD not in readable + shared
    path.chmod(0o600)
    assert len(list(secret_warnings(path, load_array_file(path)))) == 1
