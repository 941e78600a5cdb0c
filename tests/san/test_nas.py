"""An array of kind `nas` in a topology file."""

from __future__ import annotations

import pytest
from linerate.errors import UserError
from linerate.san import Topology, load_topology, parse_topology, tree, volume_urls
from linerate.study.laboratory.multipath import paths_of

FILE = """
[[switch]]
name = "sw1"
[[host]]
name = "h1"
port = [{ name = "p0", switch = "sw1" }, { name = "p1", switch = "sw1" }]
[[array]]
name = "n1"
"""
PORTS = 'port = [{ name = "p0", switch = "sw1" }]\n'
VOLUMES = 'volume = [{ name = "v{n}", count = 2, size = "1m" }]\n'


def _nas(keys: str) -> Topology:
    return parse_topology(f'{FILE}kind = "nas"\n{keys}')


def test_its_volumes_are_files_of_its_share() -> None:
    topology = _nas(f'target = "backups"\nfolder = "/srv/images"\n{PORTS}{VOLUMES}')
    urls = {name: url for name, (_, url) in volume_urls(topology, "h1").items()}
    assert urls == {
        "n1.v1": "smb://10.231.1.101:445/backups/v1.img",
        "n1.v2": "smb://10.231.1.101:445/backups/v2.img",
    }
    assert topology.arrays[0].folder == "/srv/images"
    assert Topology.model_validate_json(topology.model_dump_json()) == topology


def test_without_names_it_is_in_memory_and_called_share() -> None:
    (array,) = load_topology("nas-san").arrays
    assert (array.kind, array.target, array.folder, array.service_port) == ("nas", "share", None, 445)
    assert "array n1  NAS, 4 volumes of 64m, share" in tree(load_topology("nas-san"))


def test_a_file_of_a_share_has_one_path_in_every_layout() -> None:
    found = paths_of(_nas(PORTS + VOLUMES), "h1", {"multipath.paths": "mesh"})
    assert [len(paths) for paths in found.values()] == [1, 1]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (f"storage = {{ disks = 4 }}\n{PORTS}{VOLUMES}", "a NAS has no disks of its own"),
        (f'target = "no share"\n{PORTS}{VOLUMES}', "no share is no name of a share"),
        (f'folder = "images"\n{PORTS}{VOLUMES}', "folder"),
        (f'folder = "/srv/%u"\n{PORTS}{VOLUMES}', "folder"),
        (f'folder = "/dev/shm/x"\n{PORTS}{VOLUMES}', "of a lab is its own"),
        (f'{PORTS}volume = [{{ name = "v1", paths = "mesh" }}]\n', "a file of a share has one path"),
        (
            f'port = [{{ name = "p0", switch = "sw1", alua = "standby" }}]\n{VOLUMES}',
            "a port of a NAS has none",
        ),
    ],
)
def test_what_a_nas_cannot_have_is_told(keys: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        _nas(keys)
    assert message in f"{caught.value.message} {caught.value.hint}"


def test_an_iscsi_array_has_no_folder() -> None:
    with pytest.raises(UserError, match="only a NAS has a folder"):
        parse_topology(f'{FILE}folder = "/srv"\n{PORTS}{VOLUMES}')
