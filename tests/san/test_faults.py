"""Faults as data: their two written forms, what they hit, and what is said about mistakes."""

from __future__ import annotations

import pytest
from linerate.errors import UserError
from linerate.san import Fault, FaultTable, links_hit, load_topology, parse_fault
from pydantic import ValidationError


@pytest.mark.parametrize(
    ("text", "table", "fault"),
    [
        (
            "cable h1.p0 at 10s for 5s",
            {"cable": "h1.p0", "at": "10s", "for": "5s"},
            Fault(kind="cable", target="h1.p0", at_s=10, for_s=5),
        ),
        ("switch sw1", {"switch": "sw1"}, Fault(kind="switch", target="sw1")),
        ("port a1.p1 at 1.5s", {"port": "a1.p1", "at": 1.5}, Fault(kind="port", target="a1.p1", at_s=1.5)),
        ("controller a1.A", {"controller": "a1.A"}, Fault(kind="controller", target="a1.A")),
        (
            "one_way h1.p0 to for 2s",
            {"one_way": "h1.p0", "lost": "to", "for": "2s"},
            Fault(kind="one_way", target="h1.p0", for_s=2, value="to"),
        ),
        ("flap h1.p0", {"flap": "h1.p0"}, Fault(kind="flap", target="h1.p0", value=1.0)),
        (
            "flap h1.p0 500ms at 3s",
            {"flap": "h1.p0", "period": "500ms", "at": "3s"},
            Fault(kind="flap", target="h1.p0", at_s=3, value=0.5),
        ),
        ("address a1.p0", {"address": "a1.p0"}, Fault(kind="address", target="a1.p0")),
        ("mtu h1.p0 1500", {"mtu": "h1.p0", "bytes": 1500}, Fault(kind="mtu", target="h1.p0", value=1500.0)),
    ],
)
def test_text_and_table_mean_the_same(text: str, table: dict[str, object], fault: Fault) -> None:
    assert parse_fault(text) == FaultTable.model_validate(table).fault() == fault
    assert parse_fault(str(fault)) == fault
    assert Fault.model_validate_json(fault.model_dump_json()) == fault


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no fault -> "),
        ("fire sw1", "kinds are cable, switch"),
        ("cable", "write"),
        ("cable h1.p0 h1.p1", "h1.p1 is not understood"),
        ("cable h1.p0 at noon", "'noon' is not a time"),
        ("cable h1.p0 for 0s", "must be more than 0"),
        ("one_way h1.p0", "which frames are lost -> from or to the node"),
        ("one_way h1.p0 both", "both is not understood"),
        ("flap h1.p0 1ms", "needs a period -> 20ms to 1h"),
        ("mtu h1.p0", "bytes that still pass"),
        ("mtu h1.p0 12", "bytes that still pass"),
    ],
)
def test_a_text_that_is_no_fault_is_explained(text: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        parse_fault(text)
    assert says in f"{error.value.message} -> {error.value.hint}"


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({}, "no kind of fault; give one of cable"),
        ({"cable": "h1.p0", "switch": "sw1"}, "several kinds of fault: cable, switch"),
        ({"cable": "h1.p0", "lost": "to"}, "lost belongs to one_way"),
        ({"one_way": "h1.p0"}, "which frames are lost"),
        ({"mtu": "h1.p0", "period": "1s"}, "period belongs to flap"),
        ({"cable": "h1.p0", "until": "9s"}, "Extra inputs"),
    ],
)
def test_a_table_that_is_no_fault_is_explained(table: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        FaultTable.model_validate(table)
    assert says in error.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("fault", "links"),
    [
        ("cable h1.p0", ("h1.p0",)),
        ("one_way a1.p3 from", ("a1.p3",)),
        ("port a1.p2", ("a1.p2",)),
        ("controller a1.B", ("a1.p2", "a1.p3")),
        ("switch sw2", ("h1.p1", "a1.p1", "a1.p3")),
        ("address a1.p2", ()),
    ],
)
def test_a_fault_hits_links(fault: str, links: tuple[str, ...]) -> None:
    assert links_hit(load_topology("two-controllers"), parse_fault(fault)) == links


def test_one_link_of_a_team_can_be_pulled() -> None:
    san = load_topology("mpio-team")
    assert links_hit(san, parse_fault("cable h1.team0/4")) == ("h1.team0",)
    for nonsense in ("cable h1.team0/5", "cable h1.team0/0", "cable a1.p0/1", "mtu h1.team0/1 1500"):
        with pytest.raises(UserError, match="has no link"):
            links_hit(san, parse_fault(nonsense))


def test_a_switch_takes_its_trunks_with_it() -> None:
    assert "wan" in links_hit(load_topology("two-sites"), parse_fault("switch sw2"))
    assert links_hit(load_topology("two-sites"), parse_fault("mtu wan 1400")) == ("wan",)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("cable h1.p7", "has no link h1.p7 -> there are h1.p0, h1.p1, a1.p0"),
        ("port h1.p0", "has no array port h1.p0 -> there are a1.p0"),
        ("controller a1", "has no controller a1 -> there are a1.A, a1.B"),
        ("address a1.A", "has no interface a1.A -> there are h1.p0"),
        ("switch h1", "has no switch h1 -> there are sw1, sw2"),
    ],
)
def test_a_target_that_there_is_not_is_named_with_those_that_there_are(fault: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        links_hit(load_topology("two-controllers"), parse_fault(fault))
    assert says in f"{error.value.message} -> {error.value.hint}"
