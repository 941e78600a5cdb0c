"""libiscsi's suite on volumes of both kinds and every block layout: no failure, and a reason for every skip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, Target, Volume

from tests import need
from tests.conformance.suite import PROGRAM, known_failures, known_skip, listed_names, listed_tests, run_test

IQN = "iqn.2026-11.lab.linerate:conformance"
SIZE_BYTES = 256 << 20
WRITABLE, READ_ONLY = 0, 1


LAYOUTS = {"512e": (512, 4096), "512n": (512, 512), "4kn": (4096, 4096)}
"""Logical and physical block size in bytes."""


@dataclass(frozen=True, slots=True)
class Bench:
    """An array under test and the layout of its volumes."""

    array: EmbeddedArray
    layout: str


@pytest.fixture(
    scope="module",
    params=[("memory", "512e"), ("file", "512e"), ("memory", "512n"), ("memory", "4kn")],
    ids="-".join,
)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """An array with a volume of the kind, behind two portals, so that the suite has a second path to it."""
    need.tool(PROGRAM, "libiscsi-bin")
    kind, layout = request.param
    sector_bytes, physical_sector_bytes = LAYOUTS[layout]
    folder: Path = tmp_path_factory.mktemp("conformance")
    blocks = {"sector_bytes": sector_bytes, "physical_sector_bytes": physical_sector_bytes}
    path = str(folder / "volume.img") if kind == "file" else None
    writable = Volume(lun=WRITABLE, name="vol1", kind=kind, path=path, size_bytes=SIZE_BYTES, **blocks)
    read_only = Volume(lun=READ_ONLY, name="vol2", size_bytes=SIZE_BYTES, read_only=True, **blocks)
    target = Target(name=IQN, volumes=(writable, read_only))
    with EmbeddedArray(ArrayConfig(portals=("127.0.0.1:0", "127.0.0.1:0"), targets=(target,))) as array:
        yield Bench(array, layout)


@pytest.mark.parametrize("test", listed_tests() or ["suite"])
def test_libiscsi(bench: Bench, test: str) -> None:
    lun = READ_ONLY if test.startswith("ReadOnly.") else WRITABLE
    array, layout = bench.array, bench.layout
    verdict = run_test(test, array.url(lun), array.url(lun, portal=1))
    if (why := known_failures(layout).get(test)) is not None:
        assert not verdict.passed, f"{test} passes now: remove it from libiscsi.toml"
        pytest.xfail(why)
    assert verdict.passed, verdict.output
    if known_skip(test, layout) is None:
        assert not verdict.skipped, f"{test} was skipped and stands in no list: {verdict.skipped}"
    else:
        assert verdict.skipped, f"{test} stands in libiscsi.toml but was not skipped: remove it there"


def test_listed_names_exist() -> None:
    """A renamed or removed test must not linger in the list."""
    need.tool(PROGRAM, "libiscsi-bin")
    names = set(listed_tests()) | {test.partition(".")[0] + "." for test in listed_tests()}
    assert not listed_names() - names
