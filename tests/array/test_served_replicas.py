"""Arrays that really serve: copies over the SAN, changes of sides, wrong addresses, copied identities."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from linerate.array.control import ControlClient, find
from linerate.array.control.identity import own_identity
from linerate.array.control.report import ReplicationReport
from linerate.errors import UserError

from tests.array.killed.host import BLOCK_BYTES, Host
from tests.cli.conftest import linerate
from tests.support.serving import fine, free_ports, serving

pytestmark = pytest.mark.long

TIMEOUT_S = 60.0

VOLUME = '[[targets.volumes]]\nlun = 0\nname = "mail"\nkind = "pool"\npool = "p0"\nsize = "16m"\n'


class Site:
    """An array of a test: its file, and where it listens."""

    def __init__(self, folder: Path, name: str, ports: list[int], volume: str = "") -> None:
        self.folder, self.name, self.volume = folder, name, volume
        self.portal, self.partners = ports
        self.partner: Site | None = None
        self.portal_of: Site | None = None
        """Whose portal its file names, if not its partner's."""
        self.control_of: Site | None = None
        """Whose partners' address its file names, if not its partner's."""

    def text(self) -> str:
        partner = self.partner
        assert partner is not None
        return f"""\
name = "{self.name}"
portals = ["127.0.0.1:{self.portal}"]
[control]
identity = "{self.name}.identity"
partner_listen = "127.0.0.1:{self.partners}"
[[storage.disks]]
name = "d"
kind = "file"
path = "{self.name}.img"
size = "32m"
count = 4
[[storage.raid_sets]]
name = "r0"
level = "raid10"
disks = ["d"]
initialise = "assume_clean"
[[storage.pools]]
name = "p0"
raid_sets = ["r0"]
[[targets]]
name = "iqn.2026-11.lab.linerate:{self.name}"
{self.volume}
[[partners]]
name = "pair"
certificate = "{partner.name}.pem"
control = "https://127.0.0.1:{(self.control_of or partner).partners}"
portal = "127.0.0.1:{(self.portal_of or partner).portal}"
[[replications]]
name = "mail"
partner = "pair"
volumes = ["mail"]
pool = "p0"
"""

    def introduce(self) -> None:
        """Its certificate, for the others."""
        own = own_identity(self.folder / f"{self.name}.identity", self.name)
        (self.folder / f"{self.name}.pem").write_text(own.pem, "ascii")

    @contextmanager
    def serving(self) -> Iterator[None]:
        with serving(self.folder, self.text(), self.name):
            yield

    def client(self) -> ControlClient:
        return ControlClient.at(find(self.name))

    def mail(self) -> ReplicationReport:
        (one,) = self.client().report().replications
        return one

    def does(self, verb: str, **fields: bool) -> ReplicationReport:
        """Asks for a verb about the replication, and waits until it is over or waits for the partner."""
        self.client().do(verb, {"replication": "mail", **fields})
        for _ in range(int(TIMEOUT_S / 0.05)):
            if (now := self.mail()).state != "copying":
                return now
            time.sleep(0.05)
        raise AssertionError(now)

    def did(self, verb: str, **fields: bool) -> None:
        """The same, which has to be done then."""
        now = self.does(verb, **fields)
        assert (now.state, now.error) == ("idle", None)

    def takes_writes(self) -> bool:
        """Whether a host can write to its volume."""
        volumes = ControlClient.at(find(self.name)).report().storage.volumes
        lun = next((volume.lun for volume in volumes if volume.name == "mail"), None)
        if lun is None:
            return False
        try:
            with Host(self.portal, f"iqn.2026-11.lab.linerate:{self.name}") as host:
                host.write(lun, 0, bytes(BLOCK_BYTES))
        except OSError:
            return False
        return True


@pytest.fixture(autouse=True)
def own_state(state: Path) -> None:
    """Arrays of this test are found by its verbs only."""


Sites = tuple[Site, Site, Site]


@pytest.fixture
def sites(tmp_path: Path) -> Sites:
    """Two partners, and a third array that takes the first one for its partner."""
    ports = free_ports(6)
    a = Site(tmp_path, "a", ports[:2], VOLUME)
    b, c = Site(tmp_path, "b", ports[2:4]), Site(tmp_path, "c", ports[4:])
    a.partner, b.partner, c.partner = b, a, a
    for site in (a, b, c):
        site.introduce()
    return a, b, c


@pytest.fixture
def copied(sites: Sites) -> Sites:
    """The same after a first copy; none of them serves."""
    a, b, _ = sites
    with a.serving(), b.serving():
        a.did("replicate")
    return sites


def test_volumes_are_copied_and_sides_change(sites: Sites) -> None:
    a, b, _ = sites
    with ExitStack() as stack:
        stack.enter_context(a.serving())
        other = stack.enter_context(ExitStack())
        other.enter_context(b.serving())
        assert (a.mail().role, b.mail().role) == ("primary", "none")
        told = fine("array", "replicate", "mail", "--array", "a").stdout
        assert told.endswith("mail: the partner has it all\n")
        assert (a.mail().role, b.mail().role) == ("primary", "replica")
        assert (b.mail().lag_s or 0) < 60
        assert (a.takes_writes(), b.takes_writes()) == (True, False)
        for verb in ("promote", "demote", "forget", "rejoin"):
            asked = linerate("array", verb, "mail", "--array", "b")
            assert (asked.returncode, "--yes" in asked.stderr) == (2, True), (
                "without a terminal nobody agrees"
            )
        assert (a.mail().role, b.mail().role) == ("primary", "replica")
        fine("array", "promote", "mail", "--array", "b", "--yes")
        assert (a.mail().role, b.mail().role) == ("replica", "primary")
        assert (a.takes_writes(), b.takes_writes()) == (False, True)
        refused = linerate("array", "replicate", "mail", "--array", "a")
        assert (refused.returncode, "mail is a copy on this array" in refused.stderr) == (2, True)
        b.did("replicate")
        other.close()
        refused = linerate("array", "promote", "mail", "--array", "a", "--yes")
        assert (refused.returncode, "--force" in refused.stderr) == (1, True)
        fine("array", "promote", "mail", "--array", "a", "--force", "--yes")
        assert a.mail().role == "primary"


def test_roles_are_repaired_after_force(copied: Sites) -> None:
    a, b, _ = copied
    with b.serving():
        b.did("promote", force=True)
        with a.serving():
            for one in (a, b):
                said = one.does("replicate")
                assert "is primary on this array" in (said.error or ""), said
            a.did("demote")
            b.did("replicate")
            a.did("promote")
            assert (a.takes_writes(), b.takes_writes()) == (True, False)


def _itself(a: Site, b: Site, c: Site) -> None:
    b.control_of = b


def _another(a: Site, b: Site, c: Site) -> None:
    b.control_of = c


_SAID = {_itself: "that is this array itself", _another: "its certificate is not the one that is trusted"}


@pytest.mark.parametrize("mistake", [_itself, _another], ids=["loop", "swap"])
def test_a_wrong_address_promotes_nothing(copied: Sites, mistake: Callable[[Site, Site, Site], None]) -> None:
    """The partner's address leads back to the array itself, or to a third array that would let it in."""
    a, b, c = copied
    mistake(a, b, c)
    c.partner = b
    with a.serving(), b.serving(), c.serving():
        said = b.does("promote")
        assert (said.state, _SAID[mistake] in (said.error or "")) == ("failed", True), said
        assert (a.mail().role, b.mail().role) == ("primary", "replica")
        assert (a.takes_writes(), b.takes_writes(), c.takes_writes()) == (True, False, False)


def test_a_third_array_gets_nothing_from_another_ones_partner(copied: Sites) -> None:
    """It has the right certificate in its file, and a replication of the same name."""
    a, _, c = copied
    with a.serving(), c.serving(), pytest.raises(UserError, match="has no copy here yet"):
        c.does("promote", force=True)
    c.volume = VOLUME
    with a.serving(), c.serving():
        said = c.does("replicate")
        assert "it does not know its certificate" in (said.error or ""), said
        assert (a.mail().role, a.takes_writes()) == ("primary", True)


def test_a_portal_of_another_array_gets_nothing_of_a_copy(copied: Sites) -> None:
    a, b, c = copied
    a.portal_of = c
    c.volume = VOLUME
    with a.serving(), b.serving(), c.serving():
        assert a.takes_writes()
        said = a.does("replicate")
        assert "the portal is not the partner's" in (said.error or ""), said
        assert c.client().status()["writes"] == 0


def test_a_copied_identity_is_found_and_refused_on_both_sides(copied: Sites) -> None:
    """The third array was made from the second one's files, and its disks are its own."""
    a, b, c = copied
    shutil.copyfile(b.folder / "b.identity", c.folder / "c.identity")
    (c.folder / "c.identity").chmod(0o600)
    c.volume = VOLUME
    doubled = "two arrays have the identity of partner pair"
    with a.serving(), b.serving():
        b.did("promote")
        with c.serving():
            said = c.does("replicate")
            assert 'another replication named "mail"' in (said.error or "") or doubled in (
                said.error or ""
            ), said
            for one in (b, c):
                said = one.does("replicate")
                assert doubled in (said.error or ""), said
            said = a.does("promote")
            assert (a.mail().role, said.state) == ("replica", "failed")
            assert (a.takes_writes(), b.takes_writes()) == (False, True)


def test_a_lost_identity_is_replaced_by_agreement(copied: Sites) -> None:
    a, b, _ = copied
    (b.folder / "b.identity").unlink()
    with a.serving(), b.serving():
        said = b.does("promote")
        assert (said.state, "it does not know its certificate" in (said.error or "")) == ("failed", True), (
            said
        )
        said = a.does("replicate")
        assert said.state == "waiting"
        assert re.search(
            r"b\.pem holds -> if pair has a new identity.*linerate array rejoin", said.error or ""
        )
    b.introduce()
    with a.serving(), b.serving():
        said = a.does("replicate")
        error, _, hint = (said.error or "").partition(" -> ")
        assert "is joined with the array sha256:" in error, said
        assert hint == "if that array takes its place: linerate array rejoin mail", said
        for one in (a, b):
            fine("array", "rejoin", "mail", "--array", one.name, "--yes")
        a.did("replicate")
        b.did("promote")
        assert (a.takes_writes(), b.takes_writes()) == (False, True)


def test_a_replication_ends_and_begins_anew(copied: Sites) -> None:
    a, b, _ = copied
    with a.serving(), b.serving():
        fine("array", "forget", "mail", "--array", "a", "--yes")
        said = a.does("replicate")
        assert 'pair says: the receiving array has another replication named "mail"' in (said.error or ""), (
            said
        )
        with pytest.raises(UserError, match="is a copy on this array"):
            b.does("forget")
        fine("array", "forget", "mail", "--array", "b", "--force", "--yes")
        fine("array", "delete", "mail", "--array", "b", "--yes", "--with-snapshots")
        a.did("replicate")
        assert (a.mail().role, b.mail().role) == ("primary", "replica")


def test_identities_are_shown_and_secrets_are_not(sites: Sites) -> None:
    a, b, _ = sites
    (a.folder / "a.toml").write_text(a.text(), "ascii")
    told = json.loads(fine("array", "identity", a.folder / "a.toml", "--json").stdout)
    assert fine("array", "identity", a.folder / "a.toml").stdout == (a.folder / "a.pem").read_text("ascii")
    with a.serving(), b.serving():
        a.did("replicate")
        shown = fine("array", "show", "--array", "a", "--json").stdout
        assert json.loads(shown)["identity"] == told["identity"]
        assert (
            f"identity {told['identity']}" in fine("array", "show", "--array", "a", "--seconds", "0.1").stdout
        )
        key = (a.folder / "a.identity").read_text("ascii").splitlines()[1]
        for text in (shown, json.dumps(told)):
            assert key not in text
            assert "secret" not in text


def test_a_readable_identity_file_is_refused(sites: Sites) -> None:
    a, _, _ = sites
    (a.folder / "a.identity").chmod(0o644)
    (a.folder / "a.toml").write_text(a.text(), "ascii")
    refused = linerate("array", "serve", a.folder / "a.toml")
    assert refused.returncode == 2
    assert f"chmod 600 {a.folder / 'a.identity'}" in refused.stderr
