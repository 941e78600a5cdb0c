"""A lab that is up on the page: what its links carry, and its cables, pulled and plugged in by a click."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from linerate.errors import LinerateError
from linerate.lab import Lab
from linerate.watch import LabSource
from linerate.watch.feed import Update

from tests.lab.conftest import end, hold, lab, topology_file, unique
from tests.support.traffic import MIB, transfer_s
from tests.watch.browser import Tab, chromium
from tests.watch.conftest import Answer, Client, kept, served

__all__ = ["lab", "topology_file"]

CABLE = "/cable"
JSON = "application/json"
WIDTHS = (1280, 800, 390)
PULL = b'{"link": "h1.p0", "plugged": false}'
WAIT_S = 20.0
ROW = "document.querySelector('#links tr[data-link=\"h1.p0\"]')"
HAS_FIGURES = f"({ROW}?.querySelector('td.sent').textContent ?? '-') !== '-'"
IS_OPEN = "document.getElementById('cable').open"


@pytest.fixture(autouse=True)
def _plugged(lab: Lab) -> Iterator[None]:
    yield
    lab.plug("h1.p0")


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as found:
        yield found


def _until(source: LabSource, kind: str) -> Update:
    """The next message of a kind. Raises what polling raises."""
    deadline_s = time.monotonic() + WAIT_S
    while time.monotonic() < deadline_s:
        for update in source.poll():
            if update.kind == kind:
                return update
        time.sleep(0.05)
    raise AssertionError(f"no {kind} came")


@pytest.mark.long
def test_what_passes_a_link_is_told_once_a_second(lab: Lab) -> None:
    source = kept(LabSource(lab.name))
    san = _until(source, "san").data
    assert (san["lab"], san["fabric"], san["may_pull"], san["faults"]) == (lab.name, "kernel", True, [])
    assert all(path["is_alive"] for path in san["paths"])
    _until(source, "traffic")
    took_s = transfer_s(lab, 4 * MIB)
    links = _until(source, "traffic").data["links"]
    assert links["h2.p0"]["received_mib_s"] > 0.5
    assert links["h2.p0"]["load_percent"] > links["a1.p0"]["load_percent"]
    assert links["h2.p0"]["queue_bytes"] >= 0
    assert took_s > 0


def test_a_change_by_another_command_is_seen(lab: Lab) -> None:
    source = kept(LabSource(lab.name))
    _until(source, "san")
    lab.pull("h1.p0")
    san = _until(source, "san").data
    assert [fault["label"] for fault in san["faults"]] == ["cable h1.p0"]
    assert {link["name"]: link["up"] for link in san["links"]}["h1.p0"] is False
    assert {path["name"]: path["is_alive"] for path in san["paths"]}["h1.p0-a1.p0"] is False


def _asked(client: Client, body: bytes = PULL, **headers: str) -> Answer:
    return client.ask(CABLE, "POST", body, **{"content_type": JSON, **headers})


def test_a_post_pulls_a_cable_and_another_plugs_it_in(lab: Lab) -> None:
    with served(kept(LabSource(lab.name))) as client:
        assert _asked(client).status == 204
        assert lab.links["h1.p0"].up is False
        again = _asked(client)
        assert (again.status, "already in effect" in json.loads(again.body)["error"]) == (400, True)
        own = f"http://127.0.0.1:{client.port}"
        assert _asked(client, PULL.replace(b"false", b"true"), origin=own).status == 204
        assert lab.links["h1.p0"].up is True


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (403, PULL, {"authorization": ""}),
        (403, PULL, {"authorization": "Bearer wrong"}),
        (400, PULL, {"host": "example.org"}),
        (403, PULL, {"origin": "http://127.0.0.1:1"}),
        (403, PULL, {"origin": "null"}),
        (415, PULL, {"content_type": "text/plain"}),
        (415, PULL, {"content_type": ""}),
        (400, b'{"link": "h9.p0", "plugged": false}', {}),
        (400, b'{"link": "h1.p0"}', {}),
        (400, b'{"link": "h1.p0", "plugged": 0}', {}),
        (400, b'["h1.p0", false]', {}),
        (400, b"{", {}),
        (400, PULL + b" " * 1024, {}),
    ],
)
def test_what_may_not_pull_a_cable_is_refused(
    lab: Lab, status: int, body: bytes, headers: dict[str, str]
) -> None:
    with served(kept(LabSource(lab.name))) as client:
        assert _asked(client, body, **headers).status == status
        assert lab.faults == ()
        assert lab.links["h1.p0"].up is True


def test_a_link_that_is_not_there_is_refused_with_those_that_are(lab: Lab) -> None:
    with served(kept(LabSource(lab.name))) as client:
        answer = json.loads(_asked(client, b'{"link": "<b>", "plugged": true}').body)
        assert answer["error"] == f"{lab.name} has no link <b>"
        assert answer["hint"] == "there are h1.p0, h2.p0, a1.p0"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_cable_is_pulled_by_post_only(lab: Lab, method: str) -> None:
    with served(kept(LabSource(lab.name))) as client:
        assert client.ask(CABLE, method).status == 405
        assert lab.faults == ()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_click_on_a_link_asks_and_then_pulls_its_cable(tab: Tab, lab: Lab, width: int) -> None:
    tab.requests.clear()
    tab.said.clear()
    drawing = "wide" if width > 900 else "narrow"
    click = f"document.querySelector('#san-{drawing} g[data-link=\"h1.p0\"]').dispatchEvent(new MouseEvent('click'))"
    with served(kept(LabSource(lab.name))) as client:
        tab.open(client.url, width=width, dark=width == 800)
        tab.until(HAS_FIGURES)
        tab.value(click)
        assert tab.value(IS_OPEN) is True
        assert "Pull the cable of h1.p0?" in tab.text()
        tab.value("document.getElementById('cable-no').click()")
        assert tab.value(IS_OPEN) is False
        assert lab.links["h1.p0"].up is True
        tab.value(click)
        tab.value("document.getElementById('cable-yes').click()")
        tab.until(f"{ROW}.querySelector('td.state').textContent === 'down' && !{IS_OPEN}")
        assert lab.links["h1.p0"].up is False
        assert "In force: cable h1.p0." in tab.text()
        assert tab.value("document.querySelector('#san-paths tr.bad').textContent") == "h1.p0a1.p0dead"
        assert tab.value(f"document.querySelectorAll('#san-{drawing} path.link.down').length") == 1
        tab.value(f"{ROW}.querySelector('button').click()")
        assert "Plug the cable of h1.p0 in?" in tab.text()
        tab.value("document.getElementById('cable-yes').click()")
        tab.until(f"{ROW}.querySelector('td.state').textContent === 'up'")
        assert lab.links["h1.p0"].up is True
        wide = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
        assert tab.value(f"{wide}.map(e => e.tagName + e.textContent.slice(0, 40))") == []
        assert not [url for url in tab.requests if not url.startswith(f"http://127.0.0.1:{client.port}/")]
        assert tab.said == []


def test_what_the_lab_refuses_is_told_in_the_question(tab: Tab, lab: Lab) -> None:
    with served(kept(LabSource(lab.name))) as client:
        tab.open(client.url)
        tab.until(HAS_FIGURES)
        tab.value(f"{ROW}.querySelector('button').click()")
        lab.pull("h1.p0")
        tab.value("document.getElementById('cable-yes').click()")
        tab.until("document.getElementById('cable-error').textContent.includes('already in effect')")
        assert tab.value(IS_OPEN) is True


@pytest.mark.long
def test_a_lab_that_goes_down_is_told_and_one_of_its_name_is_shown_again(
    tab: Tab, topology_file: Path
) -> None:
    name = unique("watched")
    state = "document.getElementById('state')?.textContent"
    with ExitStack() as stack:
        holder = hold(topology_file, name, "user")
        stack.callback(end, holder)
        client = stack.enter_context(served(kept(LabSource(name))))
        tab.open(client.url)
        tab.until(f"{state} === 'up' && {ROW} !== null")
        end(holder)
        tab.until(f"{state} === 'down' && document.getElementById('san').hidden")
        tab.until(f"document.getElementById('trouble').textContent.includes('no lab named {name} is up')")
        stack.callback(end, hold(topology_file, name, "user"))
        tab.until(f"{state} === 'up' && {ROW} !== null && document.getElementById('trouble').hidden")


@pytest.mark.long
def test_a_lab_that_is_not_up_is_refused() -> None:
    with pytest.raises(LinerateError, match="no lab named test-none is up"):
        LabSource("test-none")
