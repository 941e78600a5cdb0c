"""The PowerShell scripts, as text: nothing here has run on Windows."""

from __future__ import annotations

import re

import pytest
from linerate.host import apply_script, catalogue, parse_settings, undo_script, windows_refusals
from linerate.setting import OnOff, Value
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

PORTS = ["SAN 1", "O'Neil"]
RECOMMENDED = {"mtu": 9000, "flow_control": "on", "rx_ring_frames": 4096, "tx_ring_frames": 16_384}
"""What a published study recommends for its second adapter."""
ONE_CHANGE: dict[str, Value] = {
    "checksum_offload": "rx",
    "lso": "off",
    "rsc": "off",
    "interrupt_moderation_us": "off",
    "rx_ring_frames": "max",
    "rss": "off",
    "rss_queues": 16,
    "rss_profile": "numa",
    "toe": "on",
    "receive_window_autotuning": "off",
    "delayed_ack": "off",
    "congestion_control": "dctcp",
    "ecn": "on",
    "rto_min_us": 20_000,
    "nagle": "off",
    "immediate_data": "off",
    "initial_r2t": "on",
    "first_burst_bytes": "64k",
    "max_burst_bytes": "256k",
    "max_recv_data_segment_bytes": "64k",
}


class ScriptFile(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "ps1"


@pytest.fixture
def script(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(ScriptFile)


@pytest.mark.parametrize("values", [RECOMMENDED, ONE_CHANGE], ids=["recommended", "every-setting"])
def test_scripts(values: dict[str, Value], script: SnapshotAssertion) -> None:
    checked = parse_settings(values)
    assert apply_script(checked, PORTS) == script(name="apply")
    assert undo_script(checked, PORTS) == script(name="undo")


def test_every_setting_that_windows_has_is_in_the_snapshot() -> None:
    known = {setting.name for setting in catalogue().values() if setting.windows}
    assert known == RECOMMENDED.keys() | ONE_CHANGE.keys()


def test_what_is_saved_is_what_undo_reads() -> None:
    """Each key that undo asks for was saved, and nothing is changed before everything was saved."""
    checked = parse_settings(RECOMMENDED | ONE_CHANGE)
    first, second = apply_script(checked, PORTS), undo_script(checked, PORTS)
    key = re.compile(r"\$Saved\[(['\"].*?['\"])\]")
    saved = set(re.findall(r"\$Saved\[(['\"].*?['\"])\] = ", first))
    assert set(key.findall(second)) == saved
    assert len(saved) > 20
    before = first[: first.index("Export-Clixml")]
    assert not re.search(r"\b(Set|New|Remove)-", before)


def test_braces_and_quotes_are_closed() -> None:
    for text in (
        apply_script(parse_settings(ONE_CHANGE), PORTS),
        undo_script(parse_settings(ONE_CHANGE), PORTS),
    ):
        code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        bare = re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"", "", code)
        assert bare.count("{") == bare.count("}")
        assert bare.count("(") == bare.count(")")
        assert "'" not in bare
        assert '"' not in bare


def test_what_windows_lacks_is_said_in_a_comment() -> None:
    values = parse_settings(
        {"mtu": 9000, "selective_ack": "off", "ecn": "passive", "header_digest": "crc32c"}
    )
    refused = {one.setting: one.reason for one in windows_refusals(values)}
    assert refused == {
        "selective_ack": "Windows has no such setting",
        "ecn": "Windows has no such EcnCapability (it has Enabled, Disabled)",
        "header_digest": "given elsewhere: Connect-IscsiTarget -IsHeaderDigest",
    }
    text = apply_script(values, PORTS)
    for name in refused:
        assert f"# {name}: " in text


def test_switches_reach_windows_as_numbers() -> None:
    for setting in catalogue().values():
        if isinstance(setting.kind, OnOff) and setting.windows:
            assert setting.windows.apply(True) != setting.windows.apply(False), setting.name
