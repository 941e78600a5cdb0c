"""The tree and the picture of a topology."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from linerate.cli.app import application
from linerate.san import beyond_kernel, load_topology, parse_topology, picture, shipped_topologies, tree
from typer.testing import CliRunner

SVG = "{http://www.w3.org/2000/svg}"


def test_a_tree_shows_links_with_rate_mtu_and_use() -> None:
    lines = tree(load_topology("base-san"), {"h1.p1": 0.94}).splitlines()
    assert lines[0].startswith("base-san: One host")
    assert lines[1:4] == [
        "\u251c\u2500 host h1",
        "\u2502  \u251c\u2500 p0  10.231.1.1  - sw1  250mbit, MTU 1500",
        "\u2502  \u2514\u2500 p1  10.231.2.1  - sw2  250mbit, MTU 1500, 94% used",
    ]
    assert lines[-1] == "   \u2514\u2500 p1  10.231.2.101  - sw2  250mbit, MTU 1500"


def test_a_tree_shows_what_is_particular() -> None:
    text = tree(load_topology("converged")) + tree(load_topology("two-sites"))
    for part in (
        "PFC for priority 3",
        "ETS 3: 50 %, 0: 50 %",
        "VLAN 10, priority 3",
        "delay 500us",
        "l1.p0 -> h1.lan0",
    ):
        assert part in text


def test_a_tree_shows_teams_groups_and_controllers() -> None:
    assert "team0  10.231.1.1  - sw1  4 x 1gbit" in tree(load_topology("mpio-team"))
    rows = [row for row in tree(load_topology("two-controllers")).splitlines() if "controller" in row]
    assert rows[1].endswith("optimized, controller A, group 1")
    assert rows[4].endswith("non-optimized, controller B, group 2")
    assert "group" not in tree(load_topology("mpio-1gbe"))  # where all are alike there is nothing to tell


@pytest.mark.parametrize("name", shipped_topologies())
def test_a_picture_names_everything_and_refers_to_nothing_outside(name: str) -> None:
    san = load_topology(name)
    svg = picture(san, dict.fromkeys(san.links, 0.5))
    root = ElementTree.fromstring(svg)
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    for node in san.nodes:
        assert node.name in texts
        assert all(any(inside.address == text for text in texts) for inside in node.interfaces)
    assert all(switch.name in texts for switch in san.switches)
    curves = [path for path in root.iter(f"{SVG}path") if "link" in path.get("class", "").split()]
    assert len(curves) == len(san.links)
    assert "href" not in svg
    assert "url(" not in svg
    assert "prefers-color-scheme:dark" in svg


def test_nothing_in_a_picture_lies_outside_of_it() -> None:
    for name in shipped_topologies():
        root = ElementTree.fromstring(picture(load_topology(name)))
        _, _, width, height = (float(part) for part in root.get("viewBox", "").split())
        for box in root.iter(f"{SVG}rect"):
            x, y = float(box.get("x", "0")), float(box.get("y", "0"))
            assert x >= 0
            assert y >= 0
            assert x + float(box.get("width", "0")) <= width
            assert y + float(box.get("height", "0")) <= height


def test_text_from_a_file_cannot_break_a_picture() -> None:
    san = parse_topology(
        'description = "<script>&"\n'
        '[[switch]]\nname = "s"\n[[host]]\nname = "h"\nport = [{ name = "p", switch = "s" }]\n'
    )
    assert "<script>" not in picture(san)
    ElementTree.fromstring(picture(san))


def test_what_needs_the_user_fabric_is_named() -> None:
    assert beyond_kernel(load_topology("base-san")) == ()
    assert "wan: delay" in beyond_kernel(load_topology("two-sites"))
    assert beyond_kernel(load_topology("mpio-team")) == ("h1.team0: a team of 4 links",)
    reasons = beyond_kernel(load_topology("converged"))
    assert "sw1: flow control" in reasons
    assert len(reasons) == 1  # its VLANs and its ETS the kernel has


def test_the_schema_of_a_topology_can_be_printed() -> None:
    result = CliRunner().invoke(application(), ["schema", "topology"])
    assert result.exit_code == 0
    schema = json.loads(result.stdout)
    assert {"switch", "host", "array", "trunk", "lan", "link", "fabric"} <= schema["properties"].keys()
    assert schema["additionalProperties"] is False
