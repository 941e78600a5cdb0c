"""What a share refuses while or before a run uses it: whose fault that is, and the way out that the message names."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.results import RunDirectory

from tests.cli.conftest import Done, linerate
from tests.support.samba import PASSWORD, USER, samba, when_in_use

FILE_BYTES = 8 << 20
LOAD = """
elapsed = "ELAPSED"
[[volume]]
name = "v1"
outstanding = 4
[[stream]]
name = "fill"
size = "64k"
read = 0
random = 0
"""
STRUCTURE = """
create_anchors=yes
fsd=fsd1,anchor=ANCHOR,depth=1,width=1,files=1,sizes=4k
fwd=fwd1,fsd=fsd1,operation=read,fileio=random,xfersize=4k,threads=1
rd=rd1,fwd=fwd1,fwdrate=max,format=yes,elapsed=2,interval=1
"""
NOT_THE_NETWORK = "is up and reachable"
"""Of the hint for a server that does not answer."""


def _run(url: str, folder: Path, *more: str, elapsed: str = "1s", create: bool = True) -> Done:
    workload = folder / "load.toml"
    workload.write_text(LOAD.replace("ELAPSED", elapsed))
    made = ("--create", "--size", str(FILE_BYTES)) if create else ()
    words = ("--target", url, *made, "--overwrite", "all", "--output", folder / "run", "--no-report")
    return linerate("run", workload, *words, *more, LINERATE_SMB_PASSWORD=PASSWORD)


def test_a_full_share_asks_for_room(tmp_path: Path) -> None:
    with samba(tmp_path, limit_bytes=FILE_BYTES // 4) as server:
        done = _run(server.url("full.img"), tmp_path)
    assert done.returncode not in (0, 2), done.stderr
    assert "the share has no space left (STATUS_DISK_FULL)" in done.stderr
    assert "make room on the share" in done.stderr
    assert NOT_THE_NETWORK not in done.stderr
    assert RunDirectory.open(tmp_path / "run").manifest.state == "failed"


@pytest.mark.long
def test_a_share_that_is_closed_while_it_is_in_use_is_to_be_offered_again(tmp_path: Path) -> None:
    with samba(tmp_path) as server:
        closing = when_in_use(tmp_path / "run", server.withdraw)
        done = _run(server.url("closed.img"), tmp_path, elapsed="60s")
        closing.join()
    assert done.returncode not in (0, 2), done.stderr
    assert "the server closed share share while the file was open" in done.stderr
    assert "offer the share again on the server" in done.stderr
    assert NOT_THE_NETWORK not in done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert run.intervals["ios"].sum() > 0
    lost = [event.message for event in run.events if event.kind == "session_lost"]
    assert any("STATUS_NETWORK_NAME_DELETED" in message for message in lost), lost


def test_a_locked_account_is_to_be_unlocked_and_not_corrected(tmp_path: Path) -> None:
    with samba(tmp_path) as server:
        server.lock_account()
        done = _run(server.url("locked.img"), tmp_path)
        listed = linerate("discover", server.url("").partition("/share")[0], LINERATE_SMB_PASSWORD=PASSWORD)
    for one in (done, listed):
        assert one.returncode == 2, one.stderr
        assert f"refused the logon of user {USER}: the account is locked" in one.stderr
        assert "unlock or enable the account on the server" in one.stderr
        assert PASSWORD not in one.stderr
    assert "correct user and secret" not in done.stderr
    assert "IPC$" not in listed.stderr


def test_a_server_without_ntlm_is_told_what_to_do_without_kerberos(tmp_path: Path) -> None:
    with samba(tmp_path, "ntlm auth = disabled\n") as server:
        done = _run(server.url("file.img"), tmp_path)
    assert done.returncode == 2, done.stderr
    assert f"accepts no logon of user {USER} with NTLM" in done.stderr
    assert "Kerberos is not supported" in done.stderr
    assert "mount -t cifs -o sec=krb5" in done.stderr


@pytest.mark.parametrize(
    ("settings", "option", "said", "hint"),
    [
        (
            "hosts deny = ALL",
            "smb.signing=auto",
            "takes no connections from this host",
            "hosts allow, hosts deny",
        ),
        (
            "smb encrypt = required",
            "smb.encryption=off",
            "it may require encryption",
            "permit it on the server",
        ),
        (
            "server max protocol = SMB2_10",
            "smb.dialect=3.1.1",
            "does not support dialect 3.1.1",
            "server max protocol",
        ),
    ],
)
def test_what_the_server_is_set_to_is_named(
    tmp_path: Path, settings: str, option: str, said: str, hint: str
) -> None:
    with samba(tmp_path, f"{settings}\n") as server:
        done = _run(server.url("file.img"), tmp_path, "--set", option)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert hint in done.stderr
    assert NOT_THE_NETWORK not in done.stderr


def test_an_anchor_that_is_a_file_is_the_users_to_correct(tmp_path: Path) -> None:
    with samba(tmp_path) as server:
        server.path("file").write_bytes(b"of the user")
        workload = tmp_path / "tree.vdb"
        workload.write_text(STRUCTURE.replace("ANCHOR", server.url("file")))
        words = ("--overwrite", "all", "--output", tmp_path / "run", "--no-report")
        done = linerate("run", workload, *words, LINERATE_SMB_PASSWORD=PASSWORD)
        assert server.path("file").read_bytes() == b"of the user"
    assert done.returncode == 2, done.stderr
    assert "a file, not a folder" in done.stderr
    assert NOT_THE_NETWORK not in done.stderr


def test_a_wrong_password_of_a_share_is_not_one_of_a_lun(tmp_path: Path) -> None:
    with samba(tmp_path) as server:
        done = _run(server.url("file.img", login="root"), tmp_path)
    assert done.returncode == 2, done.stderr
    assert "LINERATE_SMB_PASSWORD" in done.stderr
    assert "iscsi" not in done.stderr


@pytest.mark.parametrize(
    ("share", "hint"),
    [("readonly", "permit it on the server"), ("missing", "lists the shares of a server")],
)
def test_what_the_user_may_not_use_names_where_to_look(tmp_path: Path, share: str, hint: str) -> None:
    with samba(tmp_path) as server:
        server.path("there.img").write_bytes(bytes(FILE_BYTES))
        done = _run(server.url("there.img", share), tmp_path, create=False)
    assert done.returncode == 2, done.stderr
    assert hint in done.stderr
