"""docs/host.md is the catalogue, and claims no more than the tests show."""

from __future__ import annotations

from pathlib import Path

from linerate.host import HostSetting, catalogue, unproven

from tests.host.test_namespace import EVERYWHERE, NOT_HERE, ONLY_ROOT
from tests.host.test_session import AT_LOGIN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "host.md"
QUEUES = ("rss", "rss_queues")
"""Shown by a test of their own."""


def _read_back(setting: HostSetting) -> str:
    if setting.where == "session":
        return "login" if setting.name in AT_LOGIN else "run"
    if setting.name in EVERYWHERE or setting.name in QUEUES:
        return "namespace"
    if setting.name in ONLY_ROOT:
        return "root, driver"
    return "driver" if setting.name in NOT_HERE else "none"


def table() -> list[str]:
    rows = [
        "| setting | accepts | Linux | Windows | published studies | read back |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for setting in catalogue().values():
        names = setting.names
        linux = names.linux or names.open_iscsi
        name, on_linux, on_windows = (
            f"`{text}`" if text else "" for text in (setting.name, linux, names.windows)
        )
        cells = [name, setting.range_text, on_linux, on_windows, names.published, _read_back(setting)]
        rows.append(f"| {' | '.join(cell or '-' for cell in cells)} |")
    return rows


def test_the_page_lists_every_setting_as_it_is() -> None:
    lines = PAGE.read_text().splitlines()
    start = lines.index(table()[0])
    assert lines[start : start + len(table())] == table()
    assert not lines[start + len(table())].startswith("|")


def test_the_page_names_what_reading_back_does_not_show() -> None:
    reasons: dict[str, list[str]] = {}
    for setting in catalogue().values():
        if setting.unproven:
            reasons.setdefault(setting.unproven, []).append(f"`{setting.name}`")
    _, _, section = PAGE.read_text().partition("## What reading back does not show\n")
    listed = [line for line in section.splitlines() if line.startswith("- ")]
    assert listed == [f"- {', '.join(names)}: {why}." for why, names in reasons.items()]


def test_what_only_a_login_agrees_is_not_proven_by_reading_it_back() -> None:
    """Those that the run itself makes are its own to know."""
    made = {"sessions_per_volume", "outstanding"}
    named = {one.name for one in catalogue().values() if one.where == "session" and not one.unproven}
    assert named == made
    assert set(unproven(["mtu", "ecn", "no such setting"])) == {"ecn"}
