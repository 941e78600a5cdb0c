"""The control API: who gets in, what is done, what is refused and how, and that secrets stay where they are."""

from __future__ import annotations

import http.client
import json
import logging
import os
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from linerate.array import parse_array_text
from linerate.array.control import COMMANDS, ControlClient, ControlService, find, parse_command, running
from linerate.array.control.api import BODY_BYTES_MAX
from linerate.array.control.registration import Announcement, Registration, folder, read_token, token_of
from linerate.array.control.server import ControlServer
from linerate.errors import HostError, PeerError, UserError

from tests.array.fake import FILE, IQN, PretendArray, pretend
from tests.support.need import tool

Served = tuple[PretendArray, ControlServer]


def _raw(server: ControlServer, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    read = answer.read()
    connection.close()
    return answer.status, json.loads(read)


def test_the_owner_looks_and_manages(served: Served) -> None:
    array, _ = served
    client = ControlClient.at(find(None))
    made = client.send(parse_command("create_volume", {"name": "v2", "size_bytes": 1 << 30}))
    assert made == {"volume": "v2", "target": IQN, "lun": 1, "size_bytes": 1 << 30}
    report = client.report()
    assert (report.name, [volume.name for volume in report.storage.volumes]) == ("lab", ["v1", "v2"])
    assert len(report.storage.disks) == 9
    assert array.commands[0]["verb"] == "create_volume"


def test_every_verb_reaches_the_array(served: Served) -> None:
    array, _ = served
    client = ControlClient.at(find("lab"))
    fields: dict[str, dict[str, Any]] = {
        "create_volume": {"name": "v2", "size_bytes": 1 << 30, "lun": 7},
        "resize": {"volume": "v1", "size_bytes": 1 << 31},
        "snapshot": {"volumes": ["v1", "v2"], "name": "s"},
        "clone": {"volume": "v1", "snapshot": "s", "name": "v3"},
        "restore": {"volume": "v1", "snapshot": "s"},
        "delete_snapshot": {"volume": "v1", "snapshot": "s"},
        "delete": {"volume": "v2", "with_snapshots": True},
        "fail_disk": {"disk": "d3"},
        "replace_disk": {"disk": "d3", "new": {"name": "n", "size_bytes": 4096}},
        "scrub": {"raid_set": "r0"},
    }
    led = {"replicate", "promote", "demote", "forget", "rejoin"}
    for verb, given in fields.items():
        client.do(verb, given)
    assert [command["verb"] for command in array.commands] == list(fields)
    assert set(fields) | led | {"set_access"} == set(COMMANDS)


@pytest.mark.parametrize("proof", ["", "Bearer ", "Bearer wrong", "Basic dTpw"])
def test_nothing_without_the_token(served: Served, proof: str) -> None:
    array, server = served
    headers = {"Authorization": proof} if proof else {}
    for method, path in (("GET", "/v1/status"), ("GET", "/metrics"), ("POST", "/v1/commands/delete")):
        status, said = _raw(server, method, path, b'{"volume": "v1"}' if method == "POST" else b"", **headers)
        assert (status, said["blame"]) == (401, "user")
        assert said["hint"]
    assert not array.commands


def test_errors_say_whose_fault_and_the_way_out(served: Served) -> None:
    client = ControlClient.at(find(None))
    with pytest.raises(UserError, match='no volume "v9"; there are: v1'):
        client.do("resize", {"volume": "v9", "size_bytes": 4096})
    with pytest.raises(UserError, match="resize: size_bytes: must be given") as caught:
        client.do("resize", {"volume": "v9"})
    assert caught.value.hint
    with pytest.raises(UserError, match="resize: lun: no such key"):
        client.do("resize", {"volume": "v9", "size_bytes": 4096, "lun": 1})
    with pytest.raises(UserError, match="no verb 'paint'"):
        client.do("paint", {})
    with pytest.raises(UserError, match=r"replace_disk: new.count: one disk takes the place"):
        client.do("replace_disk", {"disk": "d0", "new": {"name": "n", "size_bytes": 4096, "count": 2}})


def test_a_name_that_a_volume_outside_of_pools_has_is_taken() -> None:
    array, _, service = pretend(f'{FILE}[[targets.volumes]]\nlun = 3\nname = "fast"\nsize = "1m"\n')
    for verb, fields in (
        ("create_volume", {"name": "fast", "size_bytes": 4096}),
        ("clone", {"volume": "v1", "snapshot": "s", "name": "fast"}),
    ):
        with pytest.raises(UserError, match=f'there is a volume "fast" already, LUN 3 of {IQN}'):
            service.do(verb, fields)
    assert not array.commands


def test_volumes_of_several_pools_have_no_snapshot_in_common() -> None:
    array, _, service = pretend()
    array.volumes["v2"] = array.volumes["v1"] | {"name": "v2", "pool": "p1"}
    with pytest.raises(UserError, match="these volumes are in several pools: v1 in p0, v2 in p1"):
        service.do("snapshot", {"volumes": ["v1", "v2"], "name": "s"})
    assert not array.commands


def test_what_is_no_request_is_answered_all_the_same(served: Served) -> None:
    array, server = served
    owner = {"Authorization": f"Bearer {find(None).token}"}
    assert _raw(server, "POST", "/v1/commands/delete", b"{", **owner)[0] == 400
    assert _raw(server, "POST", "/v1/commands/delete", b"[" * 100_000, **owner)[0] == 400
    assert _raw(server, "POST", "/v1/commands/delete", b"[1]", **owner)[0] == 400
    assert _raw(server, "POST", "/v1/commands/delete", b" " * (BODY_BYTES_MAX + 1), **owner)[0] == 413
    status, said = _raw(server, "GET", "/v1/nonesuch", **owner)
    assert (status, said["error"]) == (404, "there is no GET /v1/nonesuch")
    assert _raw(server, "DELETE", "/v1/status", **owner)[0] == 405
    assert not array.commands


def test_a_defect_is_told_without_what_was_sent(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    array, _ = served
    array.states = {}
    with caplog.at_level(logging.DEBUG), pytest.raises(Exception, match=r"KeyError in fake.py:\d+"):
        ControlClient.at(find(None)).do("fail_disk", {"disk": "hush-hush"})
    assert "hush-hush" not in caplog.text
    assert find(None).token not in caplog.text


def test_the_document_describes_every_verb(served: Served) -> None:
    status, told = _raw(served[1], "GET", "/v1/openapi.json")
    assert status == 200
    assert {path.rsplit("/", 1)[1] for path in told["paths"]} == {*COMMANDS, "status", "metrics"}
    text = json.dumps(told)
    for reference in {part.split('"')[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}:
        assert reference in told["components"]["schemas"]
    assert all("summary" in operation for path in told["paths"].values() for operation in path.values())


def test_the_token_lies_in_a_private_file_while_the_array_serves(state: Path) -> None:
    _, config, service = pretend()
    with ControlServer(service, config) as server:
        file, socket = sorted(folder().iterdir())
        assert (file.suffix, socket.suffix) == (".json", ".socket")
        for one in (file, socket):
            assert stat.S_IMODE(one.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        place = find("lab")
        assert (place.url, place.pid) == (server.url, os.getpid())
        assert place.token not in repr(place)
        assert server.warning == ""
        assert find(str(os.getpid())).url == server.url
    assert not list(folder().iterdir())
    with pytest.raises(UserError, match="no array of this user serves"):
        find(None)


def test_a_remnant_of_a_killed_array_is_removed(state: Path) -> None:
    """Its port may be somebody else's by now: the token is not sent there."""
    folder().mkdir(parents=True)
    left = folder() / "left.json"
    left.write_text(json.dumps({"name": "lab", "url": "http://127.0.0.1:1", "pid": 1, "token": "t"}), "ascii")
    assert running() == []
    assert not left.exists()


def test_one_of_several_arrays_is_named(state: Path) -> None:
    places = [
        Registration(name, "http://127.0.0.1:1", 10 + number, "t")
        for number, name in enumerate(["a", "b", "b"])
    ]
    with Announcement(places[0]), Announcement(places[1]), Announcement(places[2]):
        assert find("a") == places[0]
        assert find("12") == places[2]
        for name in (None, "b"):
            with pytest.raises(UserError, match="several arrays serve") as caught:
                find(name)
            assert "--array" in caught.value.hint
        with pytest.raises(UserError, match=r"no array named c serves; there are: a \(process 10\)"):
            find("c")


def test_a_token_file_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "lab.token"
    token = token_of(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token_of(path) == token == read_token(path)
    path.chmod(0o644)
    with pytest.raises(UserError, match="others may read the token") as caught:
        token_of(path)
    assert caught.value.hint == f"chmod 600 {path}"
    with pytest.raises(HostError, match="No such file"):
        token_of(tmp_path / "none" / "lab.token")
    assert token_of(None) != token_of(None)


@pytest.mark.parametrize("listen", ["192.0.2.1:0", "nonesuch.invalid:0"])
def test_an_address_that_is_not_ours_is_named(state: Path, listen: str) -> None:
    _, config, service = pretend(f'{FILE}[control]\nlisten = "{listen}"\n')
    with pytest.raises(HostError, match=f"control.listen: {listen}"), ControlServer(service, config):
        pass


def test_listening_beyond_loopback_is_warned_of(state: Path) -> None:
    _, config, service = pretend(f'{FILE}[control]\nlisten = "0.0.0.0:0"\n')
    with ControlServer(service, config) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert "set control.certificate" in server.warning
        assert ControlClient.at(find(None)).report().name == "lab"


def test_a_certificate_that_is_none(state: Path, tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no certificate", "ascii")
    text = f'{FILE}[control]\ncertificate = "{tmp_path}/c.pem"\nkey = "{tmp_path}/c.pem"\n'
    config = parse_array_text(text)
    array = PretendArray(config)
    with (
        pytest.raises(UserError, match=r"control\.certificate: .*c\.pem is no certificate in PEM form"),
        ControlServer(ControlService(array, config), config),
    ):
        pass


def _certificate(certificate: Path, key: Path, *options: str) -> None:
    """Makes a certificate for this host, with its key; without a passphrase if `options` are -nodes."""
    openssl = [tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    openssl += ["-subj", "/CN=lab", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1", *options]
    subprocess.run([*openssl, "-out", certificate, "-keyout", key], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("none.key", r"control\.key: .*none\.key: No such file"),
        ("other.key", r"control\.key: .*other\.key belongs to another certificate"),
        ("locked.key", r"control\.key: .*locked\.key has a passphrase"),
        ("lab.pem", r"control\.key: .*lab\.pem is no private key in PEM form"),
    ],
)
def test_what_is_wrong_with_a_key_is_said(state: Path, tmp_path: Path, key: str, message: str) -> None:
    _certificate(tmp_path / "lab.pem", tmp_path / "lab.key", "-nodes")
    _certificate(tmp_path / "other.pem", tmp_path / "other.key", "-nodes")
    _certificate(tmp_path / "other.pem", tmp_path / "locked.key", "-passout", "pass:secret")
    text = f'{FILE}[control]\ncertificate = "{tmp_path}/lab.pem"\nkey = "{tmp_path}/{key}"\n'
    _, config, service = pretend(text)
    with pytest.raises(UserError, match=message) as caught, ControlServer(service, config):
        pass
    assert "_ssl.c" not in str(caught.value)


def test_with_a_certificate_it_is_https(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = tmp_path / "lab.pem", tmp_path / "lab.key"
    _certificate(certificate, key, "-nodes")
    text = f'{FILE}[control]\ncertificate = "{certificate}"\nkey = "{key}"\n'
    _, config, service = pretend(text)
    with ControlServer(service, config) as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert ControlClient.at(find(None)).report().name == "lab"
        owner = ControlClient(server.url, token=find(None).token, certificate=certificate)
        assert owner.report().name == "lab"
        with pytest.raises(PeerError, match="certificate is not the one that is trusted"):
            ControlClient(server.url, token="t").status()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        with pytest.raises(PeerError, match=r"there is no file .*none\.pem \(SSL_CERT_FILE\)"):
            ControlClient(server.url, token="t").status()
        with pytest.raises(PeerError) as caught:
            ControlClient(server.url.replace("https:", "http:"), token="t").status()
        assert "whether its URL begins with https://" in caught.value.hint


def test_nobody_there_is_told_with_the_address(served: Served) -> None:
    with pytest.raises(PeerError, match=r"http://127\.0\.0\.1:1: Connection refused"):
        ControlClient("http://127.0.0.1:1", token="t").status()
    with pytest.raises(UserError, match="not a URL"):
        ControlClient("127.0.0.1:1", token="t")


def test_commands_wait_for_each_other_and_looking_does_not(served: Served) -> None:
    array, _ = served
    client = ControlClient.at(find(None))
    going, may_end = threading.Event(), threading.Event()

    def slow(asked: dict[str, Any]) -> None:
        going.set()
        assert may_end.wait(10)

    array._scrub = slow  # type: ignore[method-assign]
    thread = threading.Thread(target=client.do, args=("scrub", {"raid_set": "r0"}))
    thread.start()
    assert going.wait(10)
    assert client.report().name == "lab"
    may_end.set()
    thread.join(10)
