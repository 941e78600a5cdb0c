"""Dependencies point downwards only: between crates as Cargo.toml says, between Python packages as imports say."""

from __future__ import annotations

import re
import tomllib
from os.path import normpath
from pathlib import PurePosixPath

from tests.tidy import rules
from tests.tidy.tree import bare_rust_file, python_imports, text, tracked


def _linerate_crates(table: dict[str, object]) -> set[str]:
    return {name.removeprefix("linerate-") for name in table if name.startswith("linerate-")}


def test_crates_depend_downwards() -> None:
    faults = []
    for path in tracked("Cargo.toml"):
        if not path.startswith("crates/"):
            continue
        crate = path.split("/")[1]
        manifest = tomllib.loads(text(path))
        allowed = rules.CRATE_EDGES[crate]
        for table, extra in (
            ("dependencies", set()),
            ("dev-dependencies", rules.CRATE_DEV_EDGES.get(crate, set())),
        ):
            for other in _linerate_crates(manifest.get(table, {})) - allowed - extra:
                faults.append(f"{path}: [{table}] {crate} may not use {other}")
    assert not faults, "\n".join(faults)


def _rust_sources(folder: PurePosixPath) -> list[str]:
    """Rust files of a crate, and those beside each file that these include with `#[path]`."""
    all_files = tracked(".rs")
    found = [path for path in all_files if PurePosixPath(path).is_relative_to(folder)]
    for path in found:  # which grows
        for named in re.findall(r'#\[path = "(.+/.+)"\]', text(path)):
            beside = normpath(PurePosixPath(path).parent / named).rpartition("/")[0] + "/"
            found += [one for one in all_files if one.startswith(beside) and one not in found]
    return found


def test_crates_use_their_dependencies() -> None:
    """Sources name each one as `name::` or `use name`; tests, examples and benches do not count for `dependencies`."""
    faults = []
    for path in tracked("Cargo.toml"):
        folder = PurePosixPath(path).parent
        sources = _rust_sources(folder)
        beside = tuple(f"{folder}/{name}/" for name in ("tests", "examples", "benches"))
        manifest = tomllib.loads(text(path))
        for table, without in (("dependencies", beside), ("dev-dependencies", ())):
            code = "\n".join(bare_rust_file(one) for one in sources if not one.startswith(without))
            for name in manifest.get(table, {}):
                library = rules.CRATE_LIBRARIES.get(name, name.replace("-", "_"))
                if not re.search(rf"\b{library}::|\buse {library}\b", code):
                    faults.append(f"{path}: [{table}] no source uses {name}")
    assert not faults, "\n".join(faults)


def test_crate_edges_have_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(rules.CRATE_EDGES):
        ready = {crate for crate, uses in rules.CRATE_EDGES.items() if uses <= done} - done
        assert ready, f"a cycle among {set(rules.CRATE_EDGES) - done}"
        done |= ready


def test_python_packages_import_downwards() -> None:
    level = {package: row for row, packages in enumerate(rules.PYTHON_LAYERS) for package in packages}
    faults = []
    for path in tracked(".py"):
        parts = path.removesuffix(".py").split("/")
        if not path.startswith("python/linerate/") or parts[2] == "__init__":
            continue
        own = parts[2]
        assert own in level, f"{path}: {own} is in no layer of tests/tidy/rules.py"
        for name, line in python_imports(text(path)):
            other = name.split(".")[1] if name.startswith("linerate.") else own
            if other != own and level.get(other, len(level)) >= level[own]:
                faults.append(f"{path}:{line}: {own} may not import {other}")
    assert not faults, "\n".join(faults)
