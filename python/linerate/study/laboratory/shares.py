"""Which settings volumes on SMB shares have, and which only LUNs have; and the session of another client on a share.

A case with a setting that no volume of its SAN has is not applicable: it would compare the baseline with itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from linerate.errors import HostError
from linerate.host import catalogue as host_catalogue
from linerate.lab.supervisor import smbd
from linerate.run import VirtualSan
from linerate.san import Topology
from linerate.settings import ARRAY, OTHER_SESSION, applied_by, model_field
from linerate.study.laboratory.measure import Placed
from linerate.study.laboratory.multipath import is_of_paths
from linerate.study.model import Settings
from linerate.volumes import Consent, clear
from linerate.workload import RunSpec, StreamSpec, VolumeSpec
from linerate.workload.spec import ClosedArrival, OpenArrival, SizeMix

NO_SHARE = "no volume of this load is a file on an SMB share"
NO_LUN = (
    "every volume of this load is a file on an SMB share: it has neither iSCSI sessions nor several paths"
)
_OF_EVERY_SESSION = ("outstanding", "sessions_per_volume")
_OF_LUNS = ("load.session",)
_LONGEST_S = 86_400.0
_INTERVAL_S = 3600.0
"""Nothing takes the intervals, so there must be few."""


def unfit_for(are_shares: Iterable[bool], settings: Settings) -> dict[str, str]:
    """Setting -> why these volumes cannot have it, of all settings that they cannot have."""
    of_shares = list(are_shares)
    refused: dict[str, str] = {}
    for name in settings:
        if is_of_shares(name) and not any(of_shares):
            refused[name] = NO_SHARE
        elif _is_of_luns(name) and of_shares and all(of_shares):
            refused[name] = NO_LUN
    return refused


def without_shares(topology: Topology, cases: Iterable[Settings]) -> tuple[Topology, Mapping[str, str]]:
    """The topology without its NAS, and why, where this machine lacks Samba and every case names the array that it
    loads.

    Then cases with other arrays can run. Else the topology as it is, and nothing; bringing it up may then fail.
    """
    shares = [array.name for array in topology.arrays if array.kind == "nas"]
    named = {case.get(ARRAY) for case in cases}
    if not shares or None in named or named <= set(shares):
        return topology, {}
    try:
        smbd.programs(shares[0])
    except HostError as error:
        why = f"{error.message} ({error.hint})"
        others = tuple(array for array in topology.arrays if array.name not in shares)
        return topology.model_copy(update={"arrays": others}), dict.fromkeys(shares, why)
    return topology, {}


def is_of_shares(name: str) -> bool:
    """Whether a setting is one of the SMB sessions in which files on shares are opened."""
    field = model_field(name)
    return name == OTHER_SESSION or (field is not None and field.part == "smb")


def _is_of_luns(name: str) -> bool:
    of_session = name in host_catalogue() and applied_by(name) == "load" and name not in _OF_EVERY_SESSION
    return of_session or is_of_paths(name) or name in _OF_LUNS


@contextmanager
def other_session(place: Placed, what: str) -> Iterator[None]:
    """Another client's session on a file of the share while the block lasts. `what`: idle or reads.

    Raises LinerateError if the file cannot be opened, or if the session was lost meanwhile.
    """
    spec = other_client(place, what)
    loader = VirtualSan()
    load = loader.start(clear([spec], loader.look, Consent.nothing()).of(spec))
    try:
        yield
    except BaseException:
        load.stop()
        load.finish()
        raise
    load.stop()
    if (error := load.finish().error) is not None:
        raise error


def other_client(place: Placed, what: str) -> RunSpec:
    """What the other client does until it is stopped."""
    idle = what == "idle"
    return RunSpec(
        name="other client",
        elapsed_s=_LONGEST_S,
        interval_s=_INTERVAL_S,
        volumes=(VolumeSpec(name="file", url=place.url, netns=place.netns, outstanding=1, **place.access),),
        streams=(
            StreamSpec(
                name="read",
                volumes=("file",),
                sizes=SizeMix.one(4096 if idle else 65_536),
                read_percent=100,
                random_percent=100,
            ),
        ),
        arrival=OpenArrival(process="deterministic", rate_iops=1.0) if idle else ClosedArrival(),
    )
