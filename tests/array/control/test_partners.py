"""Who is a partner: certificates that are pinned, and what is refused from any sender."""

from __future__ import annotations

import contextlib
import http.client
import logging
import re
import socket
import ssl
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from linerate.array.control import partnership as known
from linerate.array.control.client import PartnerClient
from linerate.array.control.identity import own_identity, read_certificate
from linerate.array.control.partnership import Partnership
from linerate.errors import HostError, LinerateError, PeerError, UserError

from tests.array.fake import Array

pytestmark = pytest.mark.long

TIMEOUT_S = 10.0


@pytest.fixture(autouse=True)
def own_state(state: Path) -> None:
    """Arrays of this test are found by its verbs only."""


@pytest.fixture
def arrays(tmp_path: Path) -> tuple[Array, Array, Array]:
    return Array(tmp_path, "a"), Array(tmp_path, "b"), Array(tmp_path, "c")


def _client(here: Array, partner: Array, url: str, process: Partnership | None = None) -> PartnerClient:
    """How `here` asks its partner, whose address is said to be this."""
    return PartnerClient(partner.partner(url), process or here.knowing(partner), TIMEOUT_S)


class Relay:
    """A way between two arrays, which keeps what goes along it."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._to = (place.hostname or "", place.port or 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        self.sent: list[bytes] = []
        """By connection: all that its client has sent."""
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Relay:
        accepting = threading.Thread(target=self._accept)
        accepting.start()
        self._threads.append(accepting)
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(TIMEOUT_S)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                thread = threading.Thread(target=self._carry, args=(client,))
                thread.start()
                self._threads.append(thread)

    def _carry(self, client: socket.socket) -> None:
        number = len(self.sent)
        self.sent.append(b"")
        with client, socket.create_connection(self._to, TIMEOUT_S) as server:
            back = threading.Thread(target=_pump, args=(server, client, lambda data: None))
            back.start()
            _pump(client, server, lambda data: self._keep(number, data))
            back.join(TIMEOUT_S)

    def _keep(self, number: int, data: bytes) -> None:
        self.sent[number] += data


def _pump(source: socket.socket, sink: socket.socket, seen: object) -> None:
    assert callable(seen)
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            seen(data)
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _send(url: str, data: bytes) -> bytes:
    """What an array answers to bytes that another peer has sent before."""
    place = urlsplit(url)
    said = b""
    address = (place.hostname or "", place.port or 0)
    with socket.create_connection(address, TIMEOUT_S) as one, contextlib.suppress(OSError):
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)
        while piece := one.recv(1 << 16):
            said += piece
    return said


def test_a_partner_uses_its_verbs_and_no_others(arrays: tuple[Array, Array, Array]) -> None:
    a, b, _ = arrays
    with b.serving(a) as (array, server):
        client = _client(a, b, server.partner_url)
        heard = client.do("replica_begin", {"group": "mail"})["heard"]
        pair = {"here": b.knowing(a).own.identity, "partner": a.knowing(b).own.identity}
        assert (heard["partner"], heard["pair"]) == ("a", pair)
        for verb in ("delete", "promote", "replica_promote", "replica_prepare", "replica_give"):
            with pytest.raises(UserError, match=f"the partner a may not use {verb}"):
                client.do(verb, {"volume": "v1"})
        # What a partner says about who it is does not count.
        lie = {"partner": "other", "pair": {"here": "x", "partner": "y"}, "verb": "delete"}
        heard = client.do("replica_begin", lie)["heard"]
        assert (heard["partner"], heard["pair"], heard["verb"]) == ("a", pair, "replica_begin")
        assert [command["verb"] for command in array.commands] == ["replica_begin"] * 2


def test_the_owners_ways_in_know_no_partner_verbs(arrays: tuple[Array, Array, Array]) -> None:
    from linerate.array.control import ControlClient, find

    a, b, _ = arrays
    with b.serving(a) as (array, server):
        client = ControlClient(server.url, token=find(None).token)
        with pytest.raises(UserError, match="there is no verb 'replica_promote'"):
            client.do("replica_promote", {"group": "mail", "force": True})
        assert not array.commands


def test_an_array_that_is_no_partner_is_refused_at_both_ends(
    arrays: tuple[Array, Array, Array], caplog: pytest.LogCaptureFixture
) -> None:
    a, b, c = arrays
    with caplog.at_level(logging.WARNING), b.serving(a) as (array, server):
        with pytest.raises(PeerError, match=r"127\.0\.0\.1:\d+") as caught:
            _client(c, b, server.partner_url).do("hello", {})
        assert "linerate array identity" in caught.value.hint
        assert not array.commands
    assert re.search(r"partners: 127\.0\.0\.1 is refused: TLS: .*certificate", caplog.text)


def test_an_address_that_leads_to_another_array_is_noticed_before_anything_is_sent(
    arrays: tuple[Array, Array, Array],
) -> None:
    """The other array would let it in: both are its partners."""
    a, b, c = arrays
    with c.serving(a) as (array, server):
        with pytest.raises(
            PeerError, match=r"certificate is not the one that is trusted, which .*b\.pem"
        ) as caught:
            _client(a, b, server.partner_url).do("replica_begin", {})
        assert "`linerate array identity` prints there into that file" in caught.value.hint
        assert "linerate array rejoin" in caught.value.hint
        both = a.knowing(b, c)
        with pytest.raises(PeerError, match="certificate is not the one that is trusted"):
            _client(a, b, server.partner_url, both).do("replica_begin", {})
        assert not array.commands
        assert _client(a, c, server.partner_url, both).do("replica_begin", {})


def test_an_address_that_leads_back_to_the_array_itself_is_noticed(
    arrays: tuple[Array, Array, Array],
) -> None:
    a, b, _ = arrays
    with a.serving(b) as (array, server), Relay(server.partner_url) as relay:
        for url in (server.partner_url, server.partner_url.replace("127.0.0.1", "localhost"), relay.url):
            with pytest.raises(UserError, match="that is this array itself"):
                _client(a, b, url).do("replica_yield", {})
        assert not array.commands


def test_what_was_sent_before_counts_never_again(arrays: tuple[Array, Array, Array]) -> None:
    """A recorded request, to the process that got it and to the next one, which remembers nothing."""
    a, b, _ = arrays
    with b.serving(a) as (array, server), Relay(server.partner_url) as relay:
        _client(a, b, relay.url).do("replica_begin", {"group": "mail"})
        assert [command["verb"] for command in array.commands] == ["replica_begin"]
        (recorded,) = relay.sent
        assert len(recorded) > 300, "a whole request"
        _send(server.partner_url, recorded)
        assert len(array.commands) == 1
    with b.serving(a) as (array, server):
        _send(server.partner_url, recorded)
        assert not array.commands


def test_what_an_array_sends_is_nothing_to_the_array_itself(arrays: tuple[Array, Array, Array]) -> None:
    """Requests, live and recorded, sent back to where they came from."""
    a, b, _ = arrays
    with b.serving(a) as (_, there), Relay(there.partner_url) as relay:
        _client(a, b, relay.url).do("replica_begin", {"group": "mail"})
        (recorded,) = relay.sent
    with a.serving(b) as (array, server), Relay(server.partner_url) as mirror:
        _send(server.partner_url, recorded)
        with pytest.raises(UserError, match="that is this array itself"):
            _client(a, b, mirror.url).do("replica_begin", {"group": "mail"})
        assert not array.commands


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_no_one_gets_in_without_a_certificate(
    arrays: tuple[Array, Array, Array], version: ssl.TLSVersion
) -> None:
    a, b, _ = arrays
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = version
    if version == ssl.TLSVersion.TLSv1_2:  # with the right certificate, but an older protocol
        context.load_cert_chain(a.identity)
    with b.serving(a) as (array, server):
        place = urlsplit(server.partner_url)
        connection = http.client.HTTPSConnection(
            place.hostname or "", place.port, context=context, timeout=10
        )
        with contextlib.suppress(OSError):  # in TLS 1.3 the client hears of it after the first bytes
            connection.request("POST", "/v1/partner/hello", b"{}")
        with pytest.raises((OSError, http.client.HTTPException)):
            connection.getresponse()
        connection.close()
        assert not array.commands


def test_the_owners_token_opens_nothing_for_partners_and_the_other_way_round(
    arrays: tuple[Array, Array, Array],
) -> None:
    a, b, _ = arrays
    with b.serving(a) as (array, server):
        client = _client(a, b, server.partner_url)
        place = urlsplit(server.partner_url)
        context = a.knowing(b).client_context("b")
        for method, path in (("GET", "/v1/status"), ("POST", "/v1/commands/delete")):
            connection = http.client.HTTPSConnection(
                place.hostname or "", place.port, context=context, timeout=10
            )
            connection.request(method, path, b"{}")
            assert connection.getresponse().status == 404
            connection.close()
        assert client.do("hello", {}) == {}
        assert not array.commands


def test_two_arrays_with_one_identity_are_both_refused(
    arrays: tuple[Array, Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = arrays
    now = [0.0]
    # The module's own clock: the server keeps the real one.
    monkeypatch.setattr(known, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with b.serving(a) as (array, server):
        one, copy = (_client(a, b, server.partner_url) for _ in range(2))
        one.do("replica_begin", {})
        copy.do("replica_begin", {})  # as if the array was started anew
        for client in (one, copy, one):
            with pytest.raises(PeerError, match="two arrays have the identity of partner a"):
                client.do("replica_begin", {})
        assert len(array.commands) == 2
        now[0] = known.DOUBLE_S - 1
        with pytest.raises(PeerError, match="heard at 127"):
            copy.do("replica_begin", {})
        now[0] += known.DOUBLE_S - 1
        assert copy.do("replica_begin", {}), "the other one was not heard for long enough"
        with pytest.raises(PeerError, match="two arrays"):
            one.do("replica_begin", {})


def test_two_arrays_that_answer_with_one_identity_are_both_refused(
    arrays: tuple[Array, Array, Array],
) -> None:
    """The same seen by the array that asks: its partner's address leads to one and to the other."""
    a, b, _ = arrays
    process = a.knowing(b)
    with b.serving(a) as (_, one), b.serving(a) as (_, copy):
        ask = [_client(a, b, server.partner_url, process) for server in (one, copy)]
        ask[0].do("hello", {})
        ask[1].do("hello", {})
        for client in (ask[0], ask[1]):
            with pytest.raises(PeerError, match="two arrays have the identity of partner b"):
                client.do("hello", {})


def test_an_array_whose_identity_was_copied_refuses_its_double(arrays: tuple[Array, Array, Array]) -> None:
    """Its partner's address leads to the copy: neither the one that asks nor the one that is asked takes it."""
    a, b, _ = arrays
    with (
        a.serving(b) as (array, server),
        pytest.raises(UserError, match="or another one that has a copy of its"),
    ):
        _client(a, b, server.partner_url).do("hello", {})
    process = a.knowing(b)
    with pytest.raises(UserError, match="that is this array itself, or another one"):
        process.asked_by(process.own.identity, "0" * 32, "192.0.2.1")
    assert not array.commands


def test_a_partner_that_speaks_anew_is_greeted_at_its_own_address(arrays: tuple[Array, Array, Array]) -> None:
    """So an array that poses as it is found out at once."""
    a, b, _ = arrays
    process = b.knowing(a)
    news: list[str] = []
    process.newcomer = news.append
    identity = a.knowing(b).own.identity
    process.asked_by(identity, "1" * 32, "here")
    assert news == []
    process.asked_by(identity, "2" * 32, "there")
    assert news == ["a"]
    with pytest.raises(PeerError, match="heard at here and there"):
        process.answered_by("a", "1" * 32, "here")


@pytest.mark.parametrize("run", ["", "x", "0" * 31, "0" * 33, "G" * 32])
def test_who_does_not_say_which_run_it_is_is_refused(arrays: tuple[Array, Array, Array], run: str) -> None:
    a, b, _ = arrays
    process = b.knowing(a)
    with pytest.raises(PeerError, match="does not say which run it is"):
        process.asked_by(a.knowing(b).own.identity, run, "here")


def test_an_identity_stays_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "lab.identity"
    made = own_identity(path, "lab")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert own_identity(path, "lab") == made
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", made.identity)
    assert "PRIVATE" not in made.pem
    assert "BEGIN" not in repr(made)
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        with pytest.raises(UserError, match="others may read the array's private key") as caught:
            own_identity(path, "lab")
        assert caught.value.hint == f"chmod 600 {path}"
    path.chmod(0o600)
    path.write_text("nothing of the kind", "ascii")
    with pytest.raises(UserError, match="not a private key with its certificate"):
        own_identity(path, "lab")
    with pytest.raises(HostError, match="No such file"):
        own_identity(tmp_path / "none" / "lab.identity", "lab")


def test_a_partners_certificate_has_to_be_one_and_anothers(
    arrays: tuple[Array, Array, Array], tmp_path: Path
) -> None:
    a, b, c = arrays
    with pytest.raises(UserError, match="the certificate of partner a is that of this array itself"):
        a.knowing(a)
    c.certificate.write_text(b.certificate.read_text("ascii"), "ascii")
    with pytest.raises(UserError, match="the certificate of partner c is that of partner b too"):
        a.knowing(b, c)
    for text, message in (
        ("", "holds 0 certificates"),
        (2 * b.certificate.read_text("ascii"), "holds 2 certificates"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", str(c.certificate)),
    ):
        c.certificate.write_text(text, "ascii")
        with pytest.raises(UserError, match=re.escape(message)) as caught:
            a.knowing(b, c)
        assert "linerate array identity" in caught.value.hint
    with pytest.raises(UserError, match="No such file"):
        read_certificate(tmp_path / "none.pem")


def test_nothing_secret_is_logged(
    arrays: tuple[Array, Array, Array], caplog: pytest.LogCaptureFixture
) -> None:
    a, b, c = arrays
    with caplog.at_level(logging.DEBUG), b.serving(a) as (_, server):
        _client(a, b, server.partner_url).do("replica_begin", {"hush": "hush-hush"})
        with contextlib.suppress(LinerateError):
            _client(c, b, server.partner_url).do("replica_begin", {"hush": "hush-hush"})
    keys = [
        line for one in arrays for line in one.identity.read_text("ascii").splitlines() if len(line) == 64
    ]
    assert "hush-hush" not in caplog.text
    assert not [line for line in keys if line in caplog.text]
