"""`linerate array check` says what is wrong with a certificate of the control API, and `serve` says the same."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.cli.conftest import linerate
from tests.support.serving import serve

ARRAY = """\
name = "lab"
portals = ["127.0.0.1:0"]
[control]
certificate = "lab.pem"
key = "lab.key"
[[targets]]
name = "iqn.2026-11.lab.linerate:t"
[[targets.volumes]]
lun = 0
name = "v"
size = "1m"
"""
DAY = datetime.timedelta(days=1)


def _make(folder: Path, name: str, *, days: int = 2, passphrase: bytes = b"") -> None:
    """A certificate that ends in some days, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    end = datetime.datetime.now(datetime.UTC) + days * DAY
    draft = x509.CertificateBuilder(
        subject, subject, key.public_key(), x509.random_serial_number(), end - 9 * DAY, end
    )
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    lock = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    (folder / f"{name}.pem").write_bytes(draft.sign(key, hashes.SHA256()).public_bytes(pem))
    (folder / f"{name}.key").write_bytes(key.private_bytes(pem, form, lock))


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """An array file with a certificate and its key."""
    _make(tmp_path, "lab")
    file = tmp_path / "lab.toml"
    file.write_text(ARRAY, "ascii")
    return file


@pytest.mark.parametrize(
    ("old", "new", "at", "fault"),
    [
        ("lab.pem", "none.pem", "4: control.certificate", "none.pem: No such file or directory; name a PEM"),
        ("lab.key", "none.key", "5: control.key", "none.key: No such file or directory; name a PEM"),
        ("lab.pem", "lab.toml", "4: control.certificate", "lab.toml is no certificate in PEM form; name"),
        ("lab.key", "lab.toml", "5: control.key", "lab.toml is no private key in PEM form; name"),
        ("lab.key", "other.key", "5: control.key", "other.key belongs to another certificate than"),
        ("lab.key", "locked.key", "5: control.key", "locked.key has a passphrase, and a service cannot ask"),
    ],
)
def test_a_certificate_that_cannot_be_used(lab: Path, old: str, new: str, at: str, fault: str) -> None:
    _make(lab.parent, "other")
    _make(lab.parent, "locked", passphrase=b"secret")
    lab.write_text(ARRAY.replace(old, new), "ascii")
    done = linerate("array", "check", lab)
    said = f"{lab}:{at}: {lab.parent}/{fault}"
    assert done.returncode == 1
    assert f"refused  control API: {said}" in done.stdout
    served = linerate("array", "serve", lab)
    assert served.returncode == 2
    assert said.partition(";")[0] in served.stderr


@pytest.mark.parametrize(("days", "fault"), [(-1, "was valid until"), (12, "is valid from")])
def test_a_certificate_that_is_not_valid_today_needs_care(lab: Path, days: int, fault: str) -> None:
    assert linerate("array", "check", lab).returncode == 0
    _make(lab.parent, "lab", days=days)
    done = linerate("array", "check", lab)
    said = f"{lab}:4: control.certificate: {lab.parent}/lab.pem {fault} "
    assert done.returncode == 1
    assert f"care     control API: {said}" in done.stdout
    process, _ = serve(lab)
    process.terminate()
    assert said in process.communicate(timeout=60)[1]
