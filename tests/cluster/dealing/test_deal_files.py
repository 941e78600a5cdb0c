"""How a run of a file system workload is dealt to hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate.cluster import deal
from linerate.cluster.deal_files import divide_files
from linerate.cluster.divide import loading
from linerate.cluster.wire import run_of, run_text
from linerate.errors import UserError
from linerate.workload import RunSpec
from linerate.workload.files import FilesLoadSpec, HostPart
from linerate.workload.hosts import LoadHost, LoadHosts
from pydantic import SecretStr

LABELS = ("h1", "h2", "h3", "h4")
HOSTS = LoadHosts(tuple(LoadHost(label, label) for label in LABELS), {}, {})


def run_of_works(*works: Mapping[str, Any], **others: Any) -> FilesLoadSpec:
    """`works` have `hosts` besides what a workload has. All structures are shared."""
    names = [f"fsd{index}" for index in range(3)]
    values = [
        {
            "name": f"fwd{index}",
            "structure": 0,
            "operation": "read",
            "sizes": [(4096, 100)],
            "threads": 8,
            "share_percent": 100 / len(works),
            **{key: value for key, value in work.items() if key != "hosts"},
        }
        for index, work in enumerate(works)
    ]
    streams = [f"{work['name']} {work['operation']}" for work in values]
    files = {
        "interval_s": 1,
        "structures": [
            {
                "name": name,
                "anchor": f"/data/{name}",
                "depth": 1,
                "width": 1,
                "files": 100,
                "sizes": [(4096, 100)],
                "total_bytes": 90_000,
                "working_set_bytes": 40_001,
            }
            for name in names
        ],
        "workloads": values,
        "streams": [
            {"name": stream, "workload": index, "operation": values[index]["operation"]}
            for index, stream in enumerate(streams)
        ],
        **others,
    }
    return FilesLoadSpec.model_validate(
        {
            "name": "rd1",
            "seed": 5,
            "volumes": [{"name": name, "url": f"file:/data/{name}"} for name in names],
            "streams": [
                {"name": stream, "volumes": [names[work["structure"]]]}
                for stream, work in zip(streams, values, strict=True)
            ],
            "files": files,
            "hosts": [work.get("hosts", ()) for work in works],
            "shared": names,
        }
    )


def of_files(parts: Mapping[str, RunSpec]) -> dict[str, FilesLoadSpec]:
    assert all(isinstance(part, FilesLoadSpec) for part in parts.values())
    return {host: part for host, part in parts.items() if isinstance(part, FilesLoadSpec)}


def test_each_host_has_its_workloads_and_their_structures() -> None:
    spec = run_of_works(
        {"structure": 2, "hosts": ("h1", "h3"), "threads": 7},
        {"structure": 0, "hosts": ("h3",), "operation": "write", "threads": 3},
    )
    divided = deal(spec, HOSTS)
    parts = of_files(divided[0])
    assert list(parts) == ["h1", "h3"]
    assert [
        (work.name, work.structure, work.threads, work.share_percent)
        for part in parts.values()
        for work in part.files.workloads
    ] == [("fwd0", 0, 3, 100), ("fwd0", 1, 3, 50), ("fwd1", 0, 3, 50)]
    third = parts["h3"]
    assert [structure.name for structure in third.files.structures] == ["h3/fsd0", "h3/fsd2"]
    assert [(volume.name, volume.url, volume.outstanding) for volume in third.volumes] == [
        ("h3/fsd0", "file:/data/fsd0", 3),
        ("h3/fsd2", "file:/data/fsd2", 3),
    ]
    assert {stream.name: stream.workload for stream in third.files.streams} == {
        "fwd0 read": 0,
        "fwd1 write": 1,
    }
    assert {stream.name: stream.volumes for stream in divided[1].streams} == {
        "fwd0 read": ("h1/fsd2", "h3/fsd2"),
        "fwd1 write": ("h3/fsd0",),
    }
    assert loading(divided) == {"fsd2": ["h1", "h3"], "fsd0": ["h3"]}


def test_a_structure_of_several_hosts_is_divided_among_them() -> None:
    spec = run_of_works(
        {"structure": 0, "hosts": ("h2", "h4")},
        {"structure": 0, "hosts": ("h1",)},
        {"structure": 1, "hosts": ("h1",)},
    )
    parts = of_files(deal(spec, HOSTS)[0])
    found = {
        structure.name: (structure.host_part, structure.total_bytes, structure.working_set_bytes)
        for part in parts.values()
        for structure in part.files.structures
    }
    assert found == {
        "h1/fsd0": (HostPart(number=0, of=3), 30_000, 13_333),
        "h2/fsd0": (HostPart(number=1, of=3), 30_000, 13_333),
        "h4/fsd0": (HostPart(number=2, of=3), 30_000, 13_333),
        "h1/fsd1": (None, 90_000, 40_001),
    }
    assert len({part.seed for part in parts.values()}) == 3


def test_a_target_is_a_structure_of_the_host_too() -> None:
    spec = run_of_works({"operation": "copy", "structure": 2, "target": 1, "hosts": ("h1", "h2")})
    part = of_files(deal(spec, HOSTS)[0])["h2"]
    (work,) = part.files.workloads
    assert (work.structure, work.target) == (1, 0)
    assert [one.host_part for one in part.files.structures] == [HostPart(number=1, of=2)] * 2
    assert [volume.outstanding for volume in part.volumes] == [4, 4]


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(LABELS), min_size=1, unique=True),
            st.integers(4, 64),
            st.floats(1, 50),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_rates_and_threads_add_up_to_the_file_s(works: Sequence[tuple[Sequence[str], int, float]]) -> None:
    spec = run_of_works(
        *({"hosts": hosts, "threads": threads, "share_percent": share} for hosts, threads, share in works),
        rate={"per_s": 1000, "process": "poisson"},
    )
    parts = of_files(deal(spec, HOSTS)[0])
    rates = [part.files.rate.per_s for part in parts.values() if part.files.rate]
    assert rates == pytest.approx([1000 / len(parts)] * len(parts))
    for part in parts.values():
        assert sum(work.share_percent for work in part.files.workloads) == pytest.approx(100)
        assert run_of(run_text(part)) == part
    for number, (hosts, threads, _) in enumerate(works):
        dealt = [
            work.threads
            for part in parts.values()
            for work in part.files.workloads
            if work.name == f"fwd{number}"
        ]
        assert dealt == [threads // len(hosts)] * len(hosts)


def test_the_threads_of_a_format_are_for_each_host() -> None:
    spec = run_of_works(
        {"operation": "write", "hosts": ("h1", "h2")},
        format={"delete": False, "folders": True, "files": True},
    )
    parts = of_files(deal(spec, HOSTS)[0])
    assert [part.files.workloads[0].threads for part in parts.values()] == [8, 8]


def test_hosts_of_the_command_line_run_all_of_it() -> None:
    spec = run_of_works({}, {"structure": 1}, rate={"per_s": 90, "process": "poisson"})
    spec = spec.model_copy(update={"hosts": ()})
    parts = of_files(divide_files(spec, LABELS[:3])[0])
    for number, (host, part) in enumerate(parts.items()):
        assert [work.threads for work in part.files.workloads] == [8, 8]
        assert part.files.rate is not None
        assert part.files.rate.per_s == 30
        assert [one.name for one in part.files.structures] == [f"{host}/fsd0", f"{host}/fsd1"]
        assert part.files.structures[0].host_part == HostPart(number=number, of=3)


def test_a_structure_that_is_not_shared_has_one_host() -> None:
    spec = run_of_works({"hosts": ("h1",)}).model_copy(update={"shared": ("fsd1",)})
    assert of_files(divide_files(spec, ["h1"])[0])["h1"].files.structures[0].host_part is None
    with pytest.raises(UserError, match="rd1: h1, h2 would use fsd0 at the same time") as raised:
        divide_files(spec, ["h1", "h2"])
    assert "write shared=yes" in raised.value.hint


def test_secrets_go_to_the_agent() -> None:
    spec = run_of_works({"hosts": ("h1",)})
    structure = spec.files.structures[0].model_copy(update={"secret": SecretStr("hunter2")})
    files = spec.files.model_copy(update={"structures": (structure, *spec.files.structures[1:])})
    part = deal(spec.model_copy(update={"files": files}), HOSTS)[0]["h1"]
    assert "hunter2" not in part.model_dump_json()
    assert '"hunter2"' in run_of(run_text(part)).seam_json()
