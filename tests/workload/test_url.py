"""Target URLs: what libiscsi's tools accept, plus files and null; errors name the part, secrets stay out of
sight."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload.spec import RunSpec, StreamSpec, VolumeSpec
from linerate.workload.url import parse_smb_folder, parse_smb_server, parse_target

IQN = "iqn.2026-11.lab.linerate:demo"


def url(text: str) -> str:
    return parse_target(text, environ={}).url


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (f"iscsi://10.0.0.5/{IQN}/0", f"iscsi://10.0.0.5:3260/{IQN}/0"),
        (f"iscsi://array.lab:3261/{IQN}/255", f"iscsi://array.lab:3261/{IQN}/255"),
        (f"iscsi://[::1]:3260/{IQN}/0", f"iscsi://[::1]:3260/{IQN}/0"),
        (f"iscsi://[FE80:0::1]/{IQN}/0", f"iscsi://[fe80::1]:3260/{IQN}/0"),
        ("iscsi://h/iqn.2026-11.lab%3Ademo/7", "iscsi://h:3260/iqn.2026-11.lab:demo/7"),
        ("iscsi://h/IQN.2026-11.LAB:Demo/7", "iscsi://h:3260/iqn.2026-11.lab:demo/7"),
        ("iscsi://h/eui.02004567A425678D/0", "iscsi://h:3260/eui.02004567a425678d/0"),
        ("iscsi://h/naa.52004567BA64678D/0", "iscsi://h:3260/naa.52004567ba64678d/0"),
        ("null:8g", "null:8589934592"),
        ("null:512", "null:512"),
        ("null:", "null:8589934592"),
        ("file:/tmp/x.img", "file:/tmp/x.img"),
        ("file:///tmp/x.img", "file:/tmp/x.img"),
        ("/tmp/a/../x.img", "file:/tmp/x.img"),
    ],
)
def test_accepted(text: str, canonical: str) -> None:
    assert url(text) == canonical


def test_canonical_urls_are_stable(tmp_path: Path) -> None:
    for text in (f"iscsi://[::1]/{IQN}/3", "null:1g", str(tmp_path / "x")):
        assert url(url(text)) == url(text)


def test_relative_paths_start_at_the_folder(tmp_path: Path) -> None:
    assert parse_target("disk.img", folder=tmp_path).url == f"file:{tmp_path}/disk.img"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("iscsi:/h/x/0", "// is missing"),
        ("iscsi://", "'' is not a host name or address"),
        ("iscsi://h", "the target's name is missing"),
        (f"iscsi://h/{IQN}", "the LUN is missing after the target's name"),
        (f"iscsi://h/{IQN}/", "the LUN is missing"),
        (f"iscsi://h/{IQN}/x", "'x' is no LUN"),
        (f"iscsi://h/{IQN}/0/1", "'0/1' is no LUN"),
        (f"iscsi://h/{IQN}/16384", "'16384' is no LUN"),
        (f"iscsi://h:99999/{IQN}/0", "'99999' is not a port"),
        (f"iscsi://h:/{IQN}/0", "'' is not a port"),
        (f"iscsi://[::1/{IQN}/0", "is not a portal"),
        (f"iscsi://[::1]x/{IQN}/0", "is not a portal"),
        (f"iscsi://[zz]/{IQN}/0", "'zz' is no IPv6 address"),
        (f"iscsi://fe80::1/{IQN}/0", "is not a portal"),
        (f"iscsi://a b/{IQN}/0", "'a b' is not a host name"),
        ("iscsi://h/disk/0", "'disk' is no iSCSI name"),
        ("iscsi://h/iqn.2026-13.lab:x/0", "is no iSCSI name"),
        (f"iscsi://h/{IQN}{'x' * 223}/0", "is no iSCSI name"),
        (f"iscsi://h/{IQN}/0?digest=crc32c", "'digest' is not known after ?"),
        (f"iscsi://h/{IQN}/0?header_digest=md5", "no such header_digest"),
        (f"iscsi://bob@h/{IQN}/0", "user and secret go together"),
        ("null:8x", "'8x' is not a size"),
        ("null:0", "more than 0"),
        ("http://h/x", "http://: no such kind of target"),
        ("iser://h/x/0", "iser://: no such kind of target"),
        ("", "no path"),
        ("/", "a directory"),
        ("\\\\.\\PhysicalDrive1", "a Windows device"),
        ("d:\\disk.img", "a Windows device"),
    ],
)
def test_errors_name_the_part_and_the_accepted_form(text: str, part: str) -> None:
    with pytest.raises(UserError) as caught:
        url(text)
    assert part in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("127.0.0.1:3260", "iscsi://127.0.0.1:3260/TARGET-NAME/0"),
        ("10.0.0.5", "iscsi://10.0.0.5/TARGET-NAME/0"),
        ("10.0.0.5/3", "iscsi://10.0.0.5/TARGET-NAME/0"),
        ("[::1]:3260", "iscsi://[::1]:3260/TARGET-NAME/0"),
        ("fe80::1", "iscsi://[fe80::1]/TARGET-NAME/0"),
        ("san.example.com", "iscsi://san.example.com/TARGET-NAME/0"),
        ("array1.storage.example", "iscsi://array1.storage.example/TARGET-NAME/0"),
        ("array1.lan", "iscsi://array1.lan/TARGET-NAME/0"),
        ("san1:860", "iscsi://san1:860/TARGET-NAME/0"),
        ("localhost", "iscsi://localhost/TARGET-NAME/0"),
        (f"san1/{IQN}/3", f"iscsi://san1/{IQN}/3"),
        (f"10.0.0.5:3260/{IQN}", f"iscsi://10.0.0.5:3260/{IQN}/0"),
        (IQN, f"iscsi://HOST/{IQN}/0"),
        ("bob%HIDDEN@10.0.0.5", "iscsi://USER%SECRET@10.0.0.5/TARGET-NAME/0"),
    ],
)
def test_hosts_and_names_are_no_files(text: str, meant: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        parse_target(text, folder=tmp_path, environ={})
    assert "no target by itself" in caught.value.message
    assert caught.value.hint.startswith(f"write {meant}; ")
    assert "HIDDEN" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("text", ["127.0.0.1:3260", "10.0.0.5", "san1:860", "[::1]:3260", IQN])
def test_an_address_is_none_even_if_a_file_has_its_name(text: str, tmp_path: Path) -> None:
    (tmp_path / text).touch()
    with pytest.raises(UserError, match="no target by itself"):
        parse_target(text, folder=tmp_path)
    assert parse_target(f"./{text}", folder=tmp_path).url == f"file:{tmp_path}/{text}"


def test_a_file_that_is_there_may_be_named_like_a_host(tmp_path: Path) -> None:
    (tmp_path / "san.example.com").touch()
    assert parse_target("san.example.com", folder=tmp_path).kind == "file"


@pytest.mark.parametrize(
    "text",
    ["disk.img", "my.disk.img", "a.v2.raw", "disk", "volumes/10.0.0.5", "./san.example.com", "/10.0.0.5"],
)
def test_files_are_no_hosts(text: str, tmp_path: Path) -> None:
    assert parse_target(text, folder=tmp_path).kind == "file"


@pytest.mark.parametrize(
    ("login", "user", "secret"),
    [("bob%s3cret", "bob", "s3cret"), ("bob:s3cret", "bob", "s3cret"), ("bob%a/b:c%d", "bob", "a/b:c%d")],
)
def test_user_and_secret(login: str, user: str, secret: str) -> None:
    target = parse_target(f"iscsi://{login}@h/{IQN}/0", environ={})
    assert (target.user, target.url) == (user, f"iscsi://h:3260/{IQN}/0")
    assert target.secret is not None
    assert target.secret.get_secret_value() == secret
    assert secret not in repr(target)


def test_mutual_chap_and_digest_in_the_query() -> None:
    text = f"iscsi://bob%one@h/{IQN}/0?target_user=arr&target_password=two&header_digest=crc32c"
    target = parse_target(text, environ={})
    assert target.mutual_user == "arr"
    assert target.mutual_secret is not None
    assert target.mutual_secret.get_secret_value() == "two"
    assert target.iscsi.header_digest == "crc32c"


def test_the_environment_stands_in_for_the_login() -> None:
    environ = {"LIBISCSI_CHAP_USERNAME": "bob", "LIBISCSI_CHAP_PASSWORD": "s3cret"}
    target = parse_target(f"iscsi://h/{IQN}/0", environ=environ)
    assert target.user == "bob"
    assert target.secret is not None


@pytest.mark.parametrize(
    "text",
    [
        f"iscsi://bob%HIDDEN@h/{IQN}/x",
        f"iscsi://bob%HID@DEN@h/{IQN}/0",
        f"iscsi://bob%HIDDEN?x@h/{IQN}/0",
        f"iscsi://bob%a@h/{IQN}/0?target_password=HIDDEN&nonsense=1",
        "iscsi:/bob%HIDDEN@h/x",
    ],
)
def test_messages_never_show_a_secret(text: str) -> None:
    with pytest.raises(UserError) as caught:
        url(text)
    assert "HIDDEN" not in caught.value.message + caught.value.hint
    assert "DEN" not in caught.value.message


def test_a_secret_is_revealed_at_the_seam_only() -> None:
    target = parse_target(f"iscsi://bob%s3cret@h/{IQN}/0", environ={})
    volume = VolumeSpec(name="v", url=target.url, user=target.user, secret=target.secret)
    spec = RunSpec(name="r", volumes=(volume,), streams=(StreamSpec(name="s", volumes=("v",)),))
    assert "s3cret" in spec.seam_json()
    for shown in (spec.model_dump_json(), repr(spec), str(spec.model_dump(mode="json"))):
        assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("smb://nas/disks/test.img", "smb://nas:445/disks/test.img"),
        ("SMB://nas:4450/disks/a/b.img", "smb://nas:4450/disks/a/b.img"),
        ("smb://[::1]/d/a%20b", "smb://[::1]:445/d/a%20b"),
        ("smb://joe%pw@nas/d/a@b", "smb://nas:445/d/a%40b"),
        ("smb://joe%pw@nas/d@e/a", "smb://nas:445/d%40e/a"),
        ("smb://joe%pw@nas/d/a%40b/c/e", "smb://nas:445/d/a%40b/c/e"),
        ("smb://nas:4450/d/a@b/c/e", "smb://nas:4450/d/a%40b/c/e"),
        ("smb://[::1]/d/a@b/c/e", "smb://[::1]:445/d/a%40b/c/e"),
    ],
)
def test_files_of_shares(text: str, canonical: str) -> None:
    assert url(text) == canonical
    assert url(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("smb:nas/d/f", "// is missing"),
        ("smb://nas", "the share is missing"),
        ("smb://nas/d", "the file is missing"),
        ("smb://nas/d/e/", "the file is missing"),
        ("smb://nas/d/../f", "'..' is not the name"),
        ("smb://nas/d/a%5Cb", "is not the name"),
        ("smb://nas:0/d/f", "'0' is not a port"),
        ("smb://na s/d/f", "not a host name"),
        ("smb://::1/d/f", "an IPv6 address is written in brackets"),
        ("smb://joe@nas/d/f", "the password of joe is missing"),
        ("smb://%hunter2@nas/d/f", "the user is missing"),
    ],
)
def test_errors_of_shares_name_the_part(text: str, part: str) -> None:
    with pytest.raises(UserError) as refused:
        url(text)
    assert part in refused.value.message
    assert "smb" in refused.value.hint.lower() or "port" in refused.value.hint
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["\\\\nas\\disks\\my file.img", "//nas/disks/my file.img", "smb:\\\\nas\\disks\\my file.img"]
)
def test_a_share_in_the_form_of_another_program_is_told_as_a_url(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_target(text)
    assert refused.value.hint == "write smb://user@nas/disks/my%20file.img"


def test_two_slashes_before_a_folder_of_this_host_are_a_path(tmp_path: Path) -> None:
    assert parse_target(f"/{tmp_path}/disk.img").url == f"file:/{tmp_path}/disk.img"


@pytest.mark.parametrize(
    "text",
    [
        "smb://joe%hunter/two@nas/d/f",
        "smb://joe%hunter/t/wo@nas/d/f",
        "smb://joe:hunter/two@nas/d/f",
        "smb://joe%one@hunter/two@nas/d/f",
        "smb://joe%one@hunter/two/three@nas/d/f",
        "smb://joe%hunter/d/f",
    ],
)
def test_a_password_with_a_slash_is_refused_and_no_part_of_it_is_shown(text: str) -> None:
    for parse in (parse_target, parse_smb_folder):
        with pytest.raises(UserError) as refused:
            parse(text, environ={})
        assert "@" in refused.value.message
        assert not re.search("hunter|two|wo@|joe", f"{refused.value.message} {refused.value.hint}")


@pytest.mark.parametrize("text", ["smb://nas/share", "iscsi://nas", "smb:nas", "smb://joe%hunter2@nas/s/f"])
def test_an_address_of_a_server_has_no_share(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_smb_server(text, {})
    assert "no address of a server alone" in refused.value.message
    assert "hunter2" not in str(refused.value)
    server = parse_smb_server("smb://LAB;joe%hunter2@[::1]:4450/", {})
    assert (server.url, server.user) == ("smb://[::1]:4450", "LAB\\joe")
    assert server.secret is not None
    assert server.secret.get_secret_value() == "hunter2"


def test_the_login_of_a_share_is_in_the_url_or_in_the_environment() -> None:
    environ = {"LINERATE_SMB_USER": "eve", "LINERATE_SMB_PASSWORD": "hunter2"}
    for text, user in (
        ("smb://nas/d/f", "eve"),
        ("smb://joe@nas/d/f", "joe"),
        ("smb://LAB;joe@nas/d/f", "LAB\\joe"),
    ):
        target = parse_target(text, environ=environ)
        assert target.secret is not None
        assert (target.user, target.secret.get_secret_value()) == (user, "hunter2")
        assert "hunter2" not in repr(target)
    guest = parse_target("smb://nas/d/f", environ={"LINERATE_SMB_PASSWORD": "hunter2"})
    assert (guest.user, guest.secret) == (None, None)
