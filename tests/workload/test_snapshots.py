"""Whole plans of files as administrators write them, run by run: a change of meaning shows as a change of
text."""

from __future__ import annotations

import pytest
from linerate.workload import LunMap, Overrides, PlannedRun, load_workload
from linerate.workload.spec import SizeMix, StreamSpec
from syrupy.assertion import SnapshotAssertion

from .conftest import NULL, Read

# The idioms that most real files are made of.
FILES = {
    "prefill": """
hd=default,user=root,shell=ssh,vdbench=/opt/vdbench,jvms=4
hd=localhost
sd=default,openflags=o_direct,threads=32
sd=sd1,lun=/dev/sdb
sd=sd2,lun=/dev/sdc
wd=fill,sd=sd*,rdpct=0,seekpct=eof,xfersize=1m
rd=rd_fill,wd=fill,iorate=max,elapsed=100h,interval=10,maxdata=10g
""",
    "read and write with skew": """
sd=sd1,lun=/dev/nvme0n1,openflags=directio,size=10g
wd=wd_rd,sd=(sd1),xfersize=(4k,40,8k,30,64k,30),rdpct=100,seekpct=rand,skew=70
wd=wd_wr,sd=(sd1),xf=32k,rdpct=0,seekpct=seq,skew=30
rd=rd1,wd=wd_*,iorate=MAX,el=5m,in=5,warmup=60
""",
    "curve": """
sd=sd1,lun=x
wd=wd1,sd=sd1,xfersize=8k,rdpct=70,rhpct=20,whpct=20
rd=default,elapsed=60,interval=1,warmup=15
rd=rd1,wd=wd1,iorate=curve,curve=(10,50,90),stopcurve=20
rd=rd2,wd=wd1,iorate=(1000,2000),pause=30
""",
    "sweep": """
messagescan=no
compratio=2
sd=sd,lun=/dev/dm-,count=(1,4)
wd=wd1,sd=sd*,range=(0,50)
rd=rd1,wd=wd1,iorate=max,elapsed=30,forxfersize=(4k,64k),forrdpct=(100,0),forthreads=(1-4,d)
""",
}


def stream_text(stream: StreamSpec) -> str:
    sizes = stream.sizes
    if isinstance(sizes, SizeMix):
        size = "+".join(f"{size_bytes}:{percent:g}" for size_bytes, percent in sizes.parts)
    else:
        size = f"{sizes.min_bytes}..{sizes.max_bytes}/{sizes.align_bytes}"
    extras = stream.model_dump(exclude_defaults=True)
    for shown in ("name", "volumes", "sizes", "share_percent", "read_percent", "random_percent"):
        extras.pop(shown, None)
    share = "-" if stream.share_percent is None else f"{stream.share_percent:g}%"
    text = f"{stream.name} on {','.join(stream.volumes)} share={share} {size}"
    text += f" read={stream.read_percent:g} random={stream.random_percent:g}"
    return text + "".join(f" {key}={value}" for key, value in extras.items())


def run_text(run: PlannedRun) -> str:
    spec = run.spec
    volumes = " ".join(f"{v.name}:{v.outstanding}{'d' if v.direct else ''}" for v in spec.volumes)
    head = f"{run.label} | {run.banner} | {run.average_label} {spec.shares} pause={run.pause_s:g} {volumes}"
    limits = spec.limits.model_dump(exclude_none=True)
    return "\n".join(
        [head + (f" limits={limits}" if limits else ""), *(f"  {stream_text(s)}" for s in spec.streams)]
    )


@pytest.mark.parametrize("name", FILES)
def test_plans_of_real_files(name: str, read: Read, snapshot: SnapshotAssertion) -> None:
    plan = read(FILES[name])
    assert "\n".join([*map(str, plan.warnings), *map(run_text, plan.steps())]) == snapshot


@pytest.mark.parametrize("name", ["dell-nic", "dlink", "chelsio", "anvil"])
def test_plans_of_presets(name: str, snapshot: SnapshotAssertion) -> None:
    plan = load_workload(name, overrides=Overrides(luns=NULL))
    assert "\n".join(map(run_text, plan.steps())) == snapshot


def test_the_json_that_the_data_plane_gets(snapshot: SnapshotAssertion) -> None:
    target = "iscsi://127.0.0.1:3260/iqn.2026-11.lab:demo/{n-1}"
    plan = load_workload("dell-nic", overrides=Overrides(luns=LunMap({"*": target})))
    assert next(plan.steps()).spec.model_dump_json(indent=1) == snapshot
