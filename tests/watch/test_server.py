"""HTTP: who gets in, what is served, and how a stream resumes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from linerate.results import RunDirectory
from linerate.watch import server

from tests.watch.conftest import Event, served

UPLOT = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""SHA-256 of the files of uPlot 1.6.32 as published."""


def _is_progress(event: Event) -> bool:
    return event.kind == "progress"


@pytest.mark.parametrize("path", ["/", "/events", "/metrics", "/static/app.js", "/no-such-place"])
def test_without_the_token_nothing_is_served(path_run: RunDirectory, path: str) -> None:
    with served(path_run.path) as client:
        for given in ("", "Bearer", "Bearer wrong", f"Basic {client.token}"):
            answer = client.ask(path, authorization=given)
            assert (answer.status, b"linerate watch" in answer.body) == (403, True)
        assert client.ask(f"{path}?token=wrong", authorization="").status == 403


def test_the_token_of_the_address_becomes_a_cookie_and_leaves_the_address(path_run: RunDirectory) -> None:
    with served(path_run.path) as client:
        welcome = client.ask(f"/?token={client.token}", authorization="")
        assert (welcome.status, welcome.headers["location"]) == (303, "/")
        cookie = welcome.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        page = client.ask("/", authorization="", cookie=cookie.partition(";")[0])
        assert (page.status, b"<title>Linerate</title>" in page.body) == (200, True)


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1.example.org", ""])
def test_a_host_that_is_not_loopback_is_refused(path_run: RunDirectory, host: str) -> None:
    with served(path_run.path) as client:
        assert client.ask("/metrics", host=host).status == 400
        assert client.ask("/metrics", host=f"localhost:{client.port}").status == 200


def test_every_answer_forbids_other_sources_and_caches(path_run: RunDirectory) -> None:
    with served(path_run.path) as client:
        for path in ("/", "/static/app.js", "/static/none", "/metrics"):
            headers = client.ask(path).headers
            assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
            assert headers["cache-control"] == "no-store"
            assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "uplot/../../server.py",
        "/etc/passwd",
        "index.html",
        "uplot/LICENSE",
        "",
    ],
)
def test_no_file_is_served_that_is_not_in_the_list(path_run: RunDirectory, name: str) -> None:
    with served(path_run.path) as client:
        assert client.ask(f"/static/{name}").status == 404


def test_every_part_is_there_and_nothing_can_be_changed(path_run: RunDirectory) -> None:
    with served(path_run.path) as client:
        for name, kind in server.PARTS.items():
            answer = client.ask(f"/static/{name}")
            assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, kind)
        for method in ("POST", "PUT", "DELETE"):
            assert client.ask("/metrics", method).status == 405


def test_uplot_is_as_published_and_has_its_licence() -> None:
    folder = server.PAGE / "uplot"
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in UPLOT} == UPLOT
    assert "Leon Sorokin" in (folder / "LICENSE").read_text()


def test_a_stream_resumes_after_the_last_event_that_was_seen(path_run: RunDirectory) -> None:
    with served(path_run.path) as client:
        whole = client.events(_is_progress)
        points = [event for event in whole if event.kind == "point"]
        assert len(points) == 25
        middle = whole.index(points[10])
        assert client.events(_is_progress, last_id=points[10].id) == whole[middle + 1 :]
        assert client.events(_is_progress, path=f"/events?last={points[10].id}") == whole[middle + 1 :]


@pytest.mark.parametrize("last_id", ["elsewhere.7", "7", "x", "." * 50])
def test_an_event_of_another_server_resumes_from_the_beginning(path_run: RunDirectory, last_id: str) -> None:
    with served(path_run.path) as client:
        assert client.events(_is_progress, last_id=last_id) == client.events(_is_progress)


def test_a_directory_that_is_still_to_come_is_waited_for(path_run: RunDirectory, tmp_path: Path) -> None:
    place = tmp_path / "later"
    with served(place) as client:
        waiting = client.events(lambda event: event.kind == "waiting")
        assert waiting[-1].data == {"directory": str(place)}
        path_run.path.rename(place)
        after = client.events(_is_progress, last_id=waiting[-1].id)
        assert after[0].data == {"kinds": ["waiting"]}
        assert sum(event.kind == "point" for event in after) == 25
