"""Settings of the load itself. Settings of its iSCSI sessions have their entries in the catalogue of hosts."""

from __future__ import annotations

from typing import Any

from linerate.setting import Choice, Number, OnOff, Value, Written
from linerate.settings.san_setting import AS_LOADED, ModelField, SanSetting
from linerate.workload.spec import OpenArrival

LAN = "load.lan"
HOST = "load.host"
ARRAY = "load.array"
OTHER_SESSION = "load.other_session"


def _constant_rate(iops: Any) -> OpenArrival:
    return OpenArrival(process="deterministic", rate_iops=iops)


def _name(value: Value) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    return value.strip()


SETTINGS = (
    SanSetting(
        name=HOST,
        title="Host of the load",
        applier="load",
        kind=Written("the name of a host of the SAN", _name),
        default="all hosts",
        doc="""The one host that makes the load, on its own volumes. Cases that differ in it compare hosts: a
        virtual machine with the host that it runs on, or two adapters. Other settings still go to all hosts.""",
    ),
    SanSetting(
        name=ARRAY,
        title="Array of the load",
        applier="load",
        kind=Written("the name of an array of the SAN", _name),
        default="all arrays",
        doc="""The one array whose volumes the load uses. Cases that differ in it compare arrays: a LUN with a file on
        a share, or two kinds of disks. Only a virtual SAN has it. Other settings still go to all arrays.""",
    ),
    SanSetting(
        name="load.session",
        title="Session sharing",
        applier="load",
        kind=Choice(("own", "shared")),
        default="own",
        field=ModelField("volume", "session"),
        doc="""own gives each volume its own iSCSI session. shared gives all volumes of a target and worker one
        session, so they share one command window and one connection.""",
    ),
    SanSetting(
        name="load.writes",
        title="Answers to writes",
        applier="load",
        kind=Choice(("cached", "through")),
        default="cached",
        field=ModelField("volume", "durable_writes", lambda value: value == "through"),
        elsewhere=(("Windows", "write caching policy of the disk"), ("vdbench", "openflags=o_dsync")),
        doc="""through: each write is on stable storage before it is answered (FUA). cached: flushes alone
        make writes durable, so a disk or server that caches writes answers sooner.""",
    ),
    SanSetting(
        name="load.volumes",
        title="Volumes in use",
        applier="load",
        kind=Number("volumes", 1, 65_536),
        default=AS_LOADED,
        field=ModelField("run", "volumes"),
        doc="""How many of the workload's volumes are used: the first ones. Outstanding I/Os are per volume, so
        fewer volumes also mean fewer I/Os in flight.""",
    ),
    SanSetting(
        name="load.workers",
        title="Workers",
        applier="load",
        kind=Number("workers", 1, 1024),
        default=AS_LOADED,
        field=ModelField("run", "workers"),
        doc="""How many threads of the load generator send I/O. More workers use more CPUs of the host; one
        session is always served by one worker.""",
    ),
    SanSetting(
        name="load.rate",
        title="I/O rate",
        applier="load",
        kind=Number("I/Os per second", 1, 100_000_000),
        default=AS_LOADED,
        field=ModelField("run", "arrival", _constant_rate),
        doc="""The I/O rate over all volumes. I/Os are due at fixed times, also if the SAN is late, so a slow
        SAN shows as long response times.""",
    ),
    SanSetting(
        name=LAN,
        title="LAN traffic",
        applier="load",
        kind=OnOff(),
        default="on",
        doc="""off: the LAN streams of the workload do not run. A pair of cases with and without them shows
        what LAN traffic costs storage traffic on the same links.""",
    ),
    SanSetting(
        name=OTHER_SESSION,
        title="Session of another client",
        applier="load",
        kind=Choice(("none", "idle", "reads")),
        default="none",
        doc="""A second session has another file of the share open while the load runs. idle: it reads 4 KiB each
        second, as a client does that keeps a window of the share open. reads: it always has one read of 64 KiB in
        flight.""",
    ),
)
