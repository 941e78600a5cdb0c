"""Who is let into a cluster, and what of it can be read on the wire."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from linerate.certificate import Authority, Credential, self_signed
from linerate.cluster.tls import Assignment, Membership

from tests.support.need import missing

PROGRAM = Path(__file__).with_name("captured.py")
ROOT = Path(__file__).parents[2]


def _context(kind: int, own: Credential, trusted: str, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(kind)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    file = folder / f"{id(own)}.pem"
    file.write_text(own.private_key + own.certificate, "ascii")
    context.load_cert_chain(file)
    context.load_verify_locations(cadata=trusted)
    return context


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Both sides in memory. Raises ssl.SSLError of the side that refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_members_of_one_authority_trust_each_other_and_no_other(tmp_path: Path) -> None:
    one, other = Authority("one"), Authority("one")
    server = _context(ssl.PROTOCOL_TLS_SERVER, one.issue("here"), one.certificate, tmp_path)
    _handshake(_context(ssl.PROTOCOL_TLS_CLIENT, one.issue("load1"), one.certificate, tmp_path), server)
    for stranger in (other.issue("load1"), self_signed("load1")):
        with pytest.raises(ssl.SSLError, match=r"CERTIFICATE_VERIFY_FAILED|UNKNOWN_CA|DECRYPT_ERROR"):
            _handshake(_context(ssl.PROTOCOL_TLS_CLIENT, stranger, one.certificate, tmp_path), server)


def test_a_member_cannot_make_another_member(tmp_path: Path) -> None:
    """Its certificate is not one of an authority."""
    authority = Authority("run")
    member = authority.issue("load1")
    false = Authority("load1")
    false._key = _key_of(member)
    server = _context(ssl.PROTOCOL_TLS_SERVER, authority.issue("here"), authority.certificate, tmp_path)
    made = false.issue("load9")
    chained = Credential(made.private_key, made.certificate + member.certificate)
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        _handshake(_context(ssl.PROTOCOL_TLS_CLIENT, chained, authority.certificate, tmp_path), server)


def _key_of(member: Credential) -> object:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(member.private_key.encode(), None)


def test_an_assignment_crosses_as_one_line_and_is_not_shown() -> None:
    members = Membership()
    own = members.issue("load1")
    told = Assignment("tls://10.0.0.1:7000", "load1", None, "7000-7010", members.certificate, *_pair(own))
    line = told.line()
    assert line.count(b"\n") == 1
    assert Assignment.of_line(line) == told
    assert "PRIVATE" not in repr(told) + repr(own)


def _pair(own: Credential) -> tuple[str, str]:
    return own.private_key, own.certificate


@pytest.mark.long
@pytest.mark.parametrize("line", ["", "{}\n", "hello\n", '{"name": "load1"}\n'])
def test_a_worker_without_an_assignment_says_who_starts_it(line: str) -> None:
    command = [sys.executable, "-m", "linerate.cluster.worker", "load1"]
    done = subprocess.run(command, input=line, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 1
    assert done.stderr == "no assignment on standard input: a worker is started by `linerate run --hosts`\n"


@pytest.mark.long
@pytest.mark.timeout(240)
def test_no_secret_crosses_in_the_clear(tmp_path: Path) -> None:
    """Every packet of the loopback of a network namespace is kept while two hosts are told a CHAP secret."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    if done.returncode and "no right to build a lab" in done.stderr:
        missing(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["in the clear on purpose"] > 0, "the capture finds what crosses in the clear"
    assert found["error"].startswith("host h"), "the hosts were told the volume, and tried it"
    assert found["tls records"] > 20
    assert (found["user"], found["secret"], found["volume"], found["private key"]) == (0, 0, 0, 0)
