"""libiscsi's suite against our array, on memory and file volumes: no failure, and a listed reason for every skip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, Target, Volume

from tests import need
from tests.conformance.suite import PROGRAM, known_failures, known_skip, known_skips, listed_tests, run_test

IQN = "iqn.2026-11.lab.linerate:conformance"
SIZE_BYTES = 256 << 20
WRITABLE, READ_ONLY = 0, 1


@pytest.fixture(scope="module", params=["memory", "file"])
def array(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedArray]:
    """An array with a volume of the kind, behind two portals, so that the suite has a second path to it."""
    need.tool(PROGRAM, "libiscsi-bin")
    folder: Path = tmp_path_factory.mktemp("conformance")
    path = str(folder / "volume.img") if request.param == "file" else None
    writable = Volume(
        lun=WRITABLE,
        name="vol1",
        kind=request.param,
        path=path,
        size_bytes=SIZE_BYTES,
        physical_sector_bytes=4096,  # some tests need physical blocks of several logical ones
    )
    read_only = Volume(lun=READ_ONLY, name="vol2", size_bytes=SIZE_BYTES, read_only=True)
    target = Target(name=IQN, volumes=(writable, read_only))
    with EmbeddedArray(ArrayConfig(portals=("127.0.0.1:0", "127.0.0.1:0"), targets=(target,))) as array:
        yield array


@pytest.mark.parametrize("test", listed_tests() or ["suite"])
def test_libiscsi(array: EmbeddedArray, test: str) -> None:
    lun = READ_ONLY if test.startswith("ReadOnly.") else WRITABLE
    verdict = run_test(test, array.url(lun), array.url(lun, portal=1))
    if (why := known_failures().get(test)) is not None:
        assert not verdict.passed, f"{test} passes now: remove it from libiscsi.toml"
        pytest.xfail(why)
    assert verdict.passed, verdict.output
    if known_skip(test) is None:
        assert not verdict.skipped, f"{test} was skipped and stands in no list: {verdict.skipped}"
    else:
        assert verdict.skipped, f"{test} stands in libiscsi.toml but was not skipped: remove it there"


def test_listed_skips_exist() -> None:
    """A renamed or removed test must not linger in the list."""
    need.tool(PROGRAM, "libiscsi-bin")
    names = set(listed_tests()) | {test.partition(".")[0] + "." for test in listed_tests()}
    assert not set(known_skips()) - names
