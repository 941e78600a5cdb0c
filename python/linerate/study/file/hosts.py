"""Hosts as a study file names them: those that exist, their volumes, and the one that makes the load of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from linerate.cluster import is_ssh_host
from linerate.errors import UserError
from linerate.san import volume_urls
from linerate.settings import ARRAY, HOST
from linerate.study.file.model import RealHostTable
from linerate.study.model import RealHost, San, Settings, SettingValue, Workload
from linerate.workload.overrides import fill_number
from linerate.workload.url import is_share, parse_target

_ELSEWHERE = "from the environment"
"""In place of the password of a share, which is needed only where the study is run."""


def real_host(table: RealHostTable) -> RealHost:
    """The host, each of its volumes with a URL of its own."""
    urls = []
    for url in table.volumes:
        count = table.count if "{n" in url else 1
        urls += [fill_number(url, str(number), "") for number in range(1, count + 1)]
    return RealHost(
        name=table.name,
        ssh=table.ssh,
        reach=table.reach,
        python=table.python,
        sudo=table.sudo,
        devices=table.devices,
        volumes=tuple(urls),
    )


def unfit_hosts(hosts: Sequence[RealHost]) -> Iterator[tuple[str, str]]:
    """What cannot be with the hosts of a SAN, and what to write instead."""
    names = [host.name for host in hosts]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f"{name} is named twice", "give each host its own name"
    if sum(host.is_here for host in hosts) > 1:
        yield (
            "several hosts are this machine",
            "name its devices in one [[san.host]], or reach the others by ssh",
        )
    for host in hosts:
        if host.ssh is not None and host.reach:
            yield f"{host.name}: ssh and reach", "give the one or the other"
        if host.ssh is not None and not is_ssh_host(host.ssh):
            yield (
                f"{host.name}: ssh = {host.ssh!r}",
                "write [user@]address; ports and keys go into ~/.ssh/config",
            )
        if host.is_here and host.sudo:
            yield f"{host.name}: sudo on this machine", "run the study itself as root"
        for url in host.volumes:
            yield from _unfit_url(host, url)


def _unfit_url(host: RealHost, url: str) -> Iterator[tuple[str, str]]:
    try:
        target = parse_target(url, environ={"LINERATE_SMB_PASSWORD": _ELSEWHERE})
    except UserError as error:
        yield f"{host.name}: {error.message}", error.hint
        return
    given = target.secret is not None and target.secret.get_secret_value() != _ELSEWHERE
    if given or target.mutual_secret is not None:
        yield (
            f"{host.name}: a secret in the URL of a volume, which every copy of the study would keep",
            "set LINERATE_SMB_PASSWORD where the study is run"
            if is_share(url)
            else "set LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD where the study is run",
        )


def volumes_by_host(san: San, array: SettingValue | None = None) -> Mapping[str, int]:
    """How many volumes each host of a SAN sees, in the order in which workloads take them; of one array, if named."""
    if san.topology is None:
        return {host.name: len(host.volumes) for host in san.hosts}
    return {
        host.name: sum(
            array in (None, name.partition(".")[0]) for name in volume_urls(san.topology, host.name)
        )
        for host in san.topology.hosts
    }


def volumes_there(san: San) -> int:
    """How many volumes a workload finds: those of all hosts together, or of the array where there are no hosts."""
    if san.clock == "virtual" and san.topology is not None:
        return sum(len(array.volumes) for array in san.topology.arrays)
    return sum(volumes_by_host(san).values())


def unfit_load_host(san: San, workload: Workload, settings: Settings) -> Iterator[tuple[str, str]]:
    """Why a case cannot have its load from the host that it names, and what to write instead."""
    named = settings.get(HOST)
    if named is None or workload.spec is None:
        return
    if san.clock == "virtual":
        yield f"{HOST}: {san.name} is computed and has no hosts", f"leave {HOST} out"
        return
    there = volumes_by_host(san, settings.get(ARRAY))
    if named not in there:
        yield f"{HOST}: {san.name} has no host {named}", f"there is {', '.join(there)}"
    elif len(workload.spec.volumes) > there[str(named)]:
        needed = len(workload.spec.volumes)
        yield (
            f"{HOST}: {workload.name} needs {needed} volumes and {named} has {there[str(named)]}",
            "give the host more volumes, or take a workload with fewer",
        )


def unfit_load_array(san: San, workload: Workload, settings: Settings) -> Iterator[tuple[str, str]]:
    """Why a case cannot load the array that it names, and what to write instead. Hosts that exist refuse it later."""
    named = settings.get(ARRAY)
    if named is None or workload.spec is None or san.topology is None:
        return
    if san.clock == "virtual":
        yield f"{ARRAY}: {san.name} is computed and has one array", f"leave {ARRAY} out"
        return
    arrays = [array.name for array in san.topology.arrays]
    if named not in arrays:
        yield f"{ARRAY}: {san.name} has no array {named}", f"there is {', '.join(arrays)}"
        return
    there, needed = sum(volumes_by_host(san, named).values()), len(workload.spec.volumes)
    if needed > there:
        yield (
            f"{ARRAY}: {workload.name} needs {needed} volumes and {named} has {there}",
            "give the array more volumes, or take a workload with fewer",
        )
