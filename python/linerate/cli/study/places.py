"""What a study would do on which host that exists: where settings are changed, and which load runs there."""

from __future__ import annotations

from collections.abc import Iterator

from linerate.host import catalogue
from linerate.settings import HOST
from linerate.study import RealHost, San, Study
from linerate.study.laboratory.places import loading, owners, reached

_SHOWN = 3


def runs_here(san: San) -> bool:
    """The study's own process is the only one."""
    return all(host.is_here for host in san.hosts)


def host_lines(study: Study, san: San) -> Iterator[str]:
    """A few lines for each host: how it is reached, what is changed, what it loads."""
    names = dict.fromkeys(name for case in study.cases for name in case.settings if _is_host_s(name))
    for host in san.hosts:
        yield f"{host.name}: {reached(host)}" + (f", {host.python}" if host.python else "")
        if names:
            right = " through sudo" if host.sudo else ""
            yield f"  settings of {', '.join(host.devices)}{right}: {', '.join(names)}"
        shown = [*host.volumes[:_SHOWN], *(["..."] if len(host.volumes) > _SHOWN else [])]
        yield f"  volumes {', '.join(shown)}"
        yield from (f"  load {text}" for text in _loads(study, san, host))
    if not runs_here(san):
        where = san.control_address or "the address of its name"
        yield f"this machine gathers at {where}; hosts connect to it, and it to them"


def _loads(study: Study, san: San, host: RealHost) -> Iterator[str]:
    """Workload by workload, the volumes that this host loads."""
    for workload in study.workloads:
        if workload.san != san.name or workload.spec is None:
            continue
        cases: dict[object, list[str]] = {}
        for case in study.cases:
            if workload.name in case.workloads:
                cases.setdefault(study.settings(san.name, case.name).get(HOST), []).append(case.name)
        for named, of in cases.items():
            if named not in (None, host.name):
                continue
            hosts = loading(san.hosts, {HOST: host.name} if named else {})
            taken = zip(workload.spec.volumes, owners(hosts), strict=False)
            own = [volume.name for volume, owner in taken if owner == host.name]
            yield f"{workload.name}: {_named(own)}" + (f", for {', '.join(of)}" if named else "")


def _named(volumes: list[str]) -> str:
    if not volumes:
        return "none, its volumes are all on other hosts"
    return ", ".join(volumes) if len(volumes) <= _SHOWN else f"{volumes[0]} to {volumes[-1]}"


def _is_host_s(name: str) -> bool:
    return name in catalogue() and catalogue()[name].where != "session"
