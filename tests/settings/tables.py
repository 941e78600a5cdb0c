"""Tables of settings in the documentation, written from the catalogue: `make docs`.

A table is between `<!-- settings: NAME -->` and `<!-- end of settings -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from linerate import host
from linerate.host import HostSetting
from linerate.settings import PATHS, SanSetting, applied_by, catalogue

from tests.host.test_namespace import EVERYWHERE, NOT_HERE, ONLY_ROOT
from tests.host.test_session import AT_LOGIN
from tests.vm.test_settings import CARD, VIRTIO

PAGES = Path(__file__).resolve().parents[2] / "docs"
QUEUES = ("rss", "rss_queues")
"""A test of their own covers them."""
_MARKED = re.compile(r"(<!-- settings: (\w+) -->\n).*?(<!-- end of settings -->)", re.DOTALL)


def current(text: str) -> str:
    """The page with every marked table as the catalogue has it."""
    return _MARKED.sub(lambda found: f"{found[1]}\n{_lines(found[2])}\n\n{found[3]}", text)


def pages() -> list[Path]:
    """The pages with marked tables."""
    return [page for page in sorted(PAGES.glob("*.md")) if _MARKED.search(page.read_text())]


def _lines(name: str) -> str:
    match name:
        case "host":
            return "\n".join(_of_hosts())
        case "unproven":
            return "\n".join(_unproven())
        case "multipath_names":
            return "\n".join(_multipath_names())
        case "fabric" | "load" | "array" | "multipath" | "faults":
            return "\n".join(_of_san(name))
    raise ValueError(f"there is no table {name}")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{' --- |' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell or '-' for cell in row)} |"


def _of_hosts() -> Iterator[str]:
    header = ("setting", "accepts", "default", "Linux", "Windows", "published studies", "read back")
    return _table(header, (_host_row(setting) for setting in host.catalogue().values()))


def _host_row(setting: HostSetting) -> Sequence[str]:
    names = setting.names
    name, on_linux, on_windows = (
        f"`{text}`" if text else "" for text in (setting.name, names.linux or names.open_iscsi, names.windows)
    )
    cells = (name, setting.range_text, setting.default, on_linux, on_windows, names.published)
    return (*cells, _read_back(setting))


def _read_back(setting: HostSetting) -> str:
    if setting.where == "session":
        return "login" if setting.name in AT_LOGIN else "run"
    card = ("card",) if setting.name in (*CARD, *VIRTIO) else ()
    if setting.name in EVERYWHERE or setting.name in QUEUES:
        return ", ".join(("namespace", *card))
    if setting.name in ONLY_ROOT:
        return ", ".join(("root", "driver", *card))
    return ", ".join(("driver", *card)) if setting.name in NOT_HERE else "none"


def _unproven() -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for setting in host.catalogue().values():
        if setting.unproven:
            reasons.setdefault(setting.unproven, []).append(f"`{setting.name}`")
    return (f"- {', '.join(names)}: {why}." for why, names in reasons.items())


def _of_san(applier: str) -> Iterator[str]:
    rows = [
        (f"`{one.name}`", one.range_text, one.default, one.doc)
        for one in catalogue().values()
        if isinstance(one, SanSetting) and applied_by(one.name) == applier
    ]
    return _table(("setting", "accepts", "default", "what it does"), rows)


def _multipath_names() -> Iterator[str]:
    rows = []
    for one in catalogue().values():
        if isinstance(one, SanSetting) and one.field is not None and one.field.part == "multipath":
            elsewhere = dict(one.elsewhere)
            key = one.name.removeprefix(PATHS.removesuffix("paths"))
            names = (elsewhere.get(system, "") for system in ("Windows MPIO", "multipath.conf"))
            rows.append((f"`{key}`", one.default, *names))
    return _table(("`multipath`", "default", "Windows MPIO", "multipath.conf"), rows)


def main() -> None:
    """Writes the tables into the pages."""
    for page in pages():
        page.write_text(current(page.read_text()))


if __name__ == "__main__":
    main()
