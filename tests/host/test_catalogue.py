"""The catalogue: complete, consistent, and clear about what it does not know."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linerate.errors import UserError
from linerate.host import HostSetting, catalogue, named, parse_settings
from linerate.setting import MAX, Choice, Number, OnOff, Value
from linerate.workload import SessionSpec

EVERY = list(catalogue().values())


def _values(setting: HostSetting) -> st.SearchStrategy[Value]:
    match setting.kind:
        case OnOff():
            return st.booleans()
        case Choice(options=options):
            return st.sampled_from(options)
        case Number(least=least, most=most, words=words, limited=limited):
            return st.integers(least, most) | st.sampled_from([*words, *([MAX] if limited else []), least])


@pytest.mark.parametrize("setting", EVERY, ids=lambda setting: setting.name)
def test_a_value_survives_being_written_and_read(setting: HostSetting) -> None:
    @settings(deadline=None)
    @given(_values(setting))
    def survives(value: Value) -> None:
        assert setting.parse(setting.text(value)) == value
        assert setting.parse(value) == value

    survives()


@pytest.mark.parametrize("setting", EVERY, ids=lambda setting: setting.name)
def test_an_entry_says_everything(setting: HostSetting) -> None:
    assert setting.doc.endswith(".")
    assert len(setting.doc) > 60, "what it does to whom"
    assert setting.default
    assert setting.range_text
    assert any(
        (setting.names.linux, setting.names.windows, setting.names.published, setting.names.open_iscsi)
    )
    if setting.where == "session":
        assert setting.linux is None
    elif setting.linux is None:
        assert setting.absent, "why Linux has none"
    if isinstance(setting.kind, Number) and setting.unit in ("bytes", "us", "frames"):
        assert setting.name.endswith(setting.unit) or setting.name == "mtu"


def test_what_the_published_studies_changed_is_there() -> None:
    """Their tables 10 to 13, by the names of their property pages."""
    known = " ".join(setting.names.published for setting in EVERY).lower()
    for name in (
        "Flow control",
        "Interrupt moderation",
        "Jumbo packet",
        "Large Send Offload V2",
        "Number of RSS queues",
        "Receive Buffers",
        "Receive Side Scaling",
        "Recv Segment Coalescing",
        "TCP Connection Offload",
        "TCP/UDP Checksum Offload",
        "Transmit Buffers",
        "RSS load balancing profile",
        "Chimney Offload State",
        "Receive Window Auto-Tuning Level",
        "Delayed ACK algorithm",
        "Nagle's algorithm",
    ):
        assert name.lower() in known, name


def test_sessions_use_the_names_of_session_options() -> None:
    own = {"nagle", "sessions_per_volume", "outstanding"}
    names = {setting.name for setting in EVERY if setting.where == "session"} - own
    assert names <= SessionSpec.model_fields.keys()


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("mut", "mtu"),
        ("flowcontrol", "flow_control"),
        ("JumboPacket", "mtu"),
        ("TcpNoDelay", "nagle"),
        ("Receive Buffers", "rx_ring_frames"),
        ("net.ipv4.tcp_sack", "selective_ack"),
        ("interrupt-moderation", "interrupt_moderation_us"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_one(wrong: str, meant: str) -> None:
    with pytest.raises(UserError, match="there is no setting") as caught:
        named(wrong)
    assert caught.value.hint == f"did you mean {meant}?"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("mtu", 100, "mtu: 100 is out of range"),
        ("mtu", "huge", "mtu: 'huge' is not a number"),
        ("lso", "perhaps", "lso: 'perhaps' is neither on nor off"),
        ("flow_control", "both", "flow_control: 'both' is not one of on, rx, tx, off"),
        ("rx_ring_frames", True, "rx_ring_frames: True is not a number"),
        ("receive_buffer_max_bytes", "2t", "receive_buffer_max_bytes: '2t' is out of range"),
        ("congestion_control", "re no", "congestion_control: 're no' is not one of"),
    ],
)
def test_a_value_out_of_range_says_what_is_accepted(name: str, value: Value, words: str) -> None:
    with pytest.raises(UserError) as caught:
        named(name).parse(value)
    assert caught.value.message.startswith(words)
    assert named(name).range_text in f"{caught.value.message} {caught.value.hint}"


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        parse_settings({"mut": 9000, "mtu": 9000, "ecn": "sometimes"})
    assert caught.value.message.splitlines() == [
        "there is no setting 'mut' (did you mean mtu?)",
        "ecn: 'sometimes' is not one of off, passive, on (write off, passive, on)",
    ]


def test_values_come_in_the_order_of_the_catalogue() -> None:
    parsed = parse_settings({"ecn": "on", "interrupt_moderation_us": "off", "mtu": "9000", "lso": "off"})
    assert list(parsed.items()) == [
        ("mtu", 9000),
        ("lso", False),
        ("interrupt_moderation_us", 0),
        ("ecn", "on"),
    ]
